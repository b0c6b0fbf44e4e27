import { z } from 'zod';
import { ParleyError } from '../../../kernel/index.ts';
import { completed } from '../../guarded.ts';
import { defineTool, FILES_TIMEOUT_MS, PROJECT_PATH, WRITES } from '../tool.ts';
import { projectNames } from './list.ts';
import { readAt, refuseBinary } from './read.ts';
import { replaceFile } from './replace.ts';
import { aliasOf, openFile, openParent, openSandbox, type Sandbox } from './sandbox.ts';
import { fileNames } from './write.ts';

/** An edited file is in memory three times. */
const EDIT_BYTES = 4 * 1024 * 1024;

const schema = z.strictObject({
  path: PROJECT_PATH,
  find: z.string().min(1).describe('the text to replace, exactly as it is in the file, including line ends'),
  replace: z.string().describe('the new text; empty to delete'),
  all: z.boolean().optional().describe('replace every occurrence; else there must be exactly one'),
});

export const editTool = defineTool({
  name: 'fs_edit',
  description:
    'Change a part of a text file: finds a text and puts another one in its place. The text must occur exactly once: take enough of the lines around it to make it so, or set all. Read the file first. Nothing is changed when the text does not fit.',
  risk: 'risky',
  subject: WRITES,
  timeoutMs: FILES_TIMEOUT_MS,
  schema,
  run: async ({ path, find, replace, all = false }, context) => {
    const names = fileNames(path, projectNames(path, context));
    const sandbox = openSandbox(context.project, context.closed, context);
    const { text, stats } = await readWhole(sandbox, names);
    const count = occurrences(text, find);
    if (count === 0 || (count > 1 && !all)) throw doesNotFit(names, count);
    // Split and join: a replacement may hold "$&" and the like.
    const content = Buffer.from(text.split(find).join(replace), 'utf8');
    if (content.length > EDIT_BYTES) throw tooLarge(names, content.length);
    const { folder, name } = await openParent(sandbox, names, { make: false });
    try {
      await replaceFile({ folder, name, names, content, from: stats, signal: context.signal });
      const times = count === 1 ? '1 place' : `${count} places`;
      return completed(`Changed ${aliasOf(names)} in ${times} (${content.length} bytes now).`);
    } finally {
      await folder.handle.close();
    }
  },
});

async function readWhole(sandbox: Sandbox, names: readonly string[]) {
  const handle = await openFile(sandbox, names);
  try {
    const stats = await handle.stat({ bigint: true });
    if (stats.size > BigInt(EDIT_BYTES)) throw tooLarge(names, Number(stats.size));
    await refuseBinary(handle, aliasOf(names));
    const text = strictText(await readAt(handle, 0, Number(stats.size)));
    if (text !== null) return { text, stats };
    const message = `${aliasOf(names)} holds bytes that are not UTF-8; writing it again would change them`;
    throw new ParleyError('BINARY_FILE', message);
  } finally {
    await handle.close();
  }
}

/** Null for bytes that are not UTF-8. A byte order mark stays. */
function strictText(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function occurrences(text: string, find: string): number {
  return text.split(find).length - 1;
}

function doesNotFit(names: readonly string[], count: number): ParleyError {
  if (count === 0) {
    const hint = 'it must match to the letter, spaces and line ends included: read the file again';
    return new ParleyError('FIND_MISSING', `the text to find is not in ${aliasOf(names)}`, { hint });
  }
  const hint = 'take more of the lines around it, or set all';
  const message = `the text to find occurs ${count} times in ${aliasOf(names)}`;
  return new ParleyError('FIND_AMBIGUOUS', message, { hint });
}

function tooLarge(names: readonly string[], size: number): ParleyError {
  const message = `${aliasOf(names)}: ${size} bytes are more than the ${EDIT_BYTES} that can be edited`;
  return new ParleyError('TOO_LARGE', message);
}
