import { lstat, readdir, readlink } from 'node:fs/promises';
import { z } from 'zod';
import { completed } from '../../guarded.ts';
import { defineTool, FILES_TIMEOUT_MS, PATH, READS, type ToolContext } from '../tool.ts';
import { parsePath, pathRefused, printable } from './names.ts';
import { aliasOf, type Folder, openFolder, openSandbox } from './sandbox.ts';

const LIST_ENTRIES = 1_000;

const schema = z.strictObject({
  path: PATH.describe('a folder: @project, or @project/ and the way from there'),
});

export const listTool = defineTool({
  name: 'fs_list',
  description:
    'List a folder: one name per line in alphabetical order, folders with "/" at the end, files with their size, links with their target. At most 1,000 names. Not recursive: to search file contents, use fs_search.',
  risk: 'safe',
  subject: READS,
  timeoutMs: FILES_TIMEOUT_MS,
  schema,
  run: async ({ path }, context) => {
    const names = projectNames(path, context);
    const folder = await openFolder(openSandbox(context.project, context.closed, context), names);
    try {
      const found = (await readdir(folder.at('.'))).sort();
      const lines: string[] = [];
      for (const name of found.slice(0, LIST_ENTRIES)) {
        context.signal.throwIfAborted();
        lines.push(await described(folder, name));
      }
      const more = found.length - lines.length;
      if (more > 0) lines.push(`[${more} more, not listed]`);
      return completed(lines.length === 0 ? `[${aliasOf(names)} is empty]` : lines.join('\n'));
    } finally {
      await folder.handle.close();
    }
  },
});

/** For tools that walk folders: `@state` is refused. */
export function projectNames(path: string, context: ToolContext): readonly string[] {
  const named = parsePath(path, context.conversation);
  if (named.kind === 'project') return named.names;
  throw pathRefused(path, 'stored outputs can only be read, with fs_read');
}

async function described(folder: Folder, name: string): Promise<string> {
  const path = folder.at(name);
  // Deleted since, or a name that is not UTF-8.
  const found = await lstat(path).catch(() => null);
  if (found === null) return printable(name);
  if (found.isDirectory()) return `${printable(name)}/`;
  if (found.isSymbolicLink()) {
    const target = await readlink(path).catch(() => '?');
    return `${printable(name)} -> ${printable(target)}`;
  }
  return found.isFile()
    ? `${printable(name)}  ${found.size} bytes`
    : `${printable(name)}  (no ordinary file)`;
}
