import type { Dirent } from 'node:fs';
import { type FileHandle, lstat, readdir, readlink } from 'node:fs/promises';
import { z } from 'zod';
import { errnoOf, foldCase, wellFormed } from '../../../kernel/index.ts';
import { completed } from '../../toolbox.ts';
import { defineTool, FILES_TIMEOUT_MS, PATH, READS } from '../tool.ts';
import { printable, projectNames } from './names.ts';
import { PROBE_BYTES, readAt } from './read.ts';
import {
  aliasOf,
  type Folder,
  isOpenTo,
  openFile,
  openFileIn,
  openFolder,
  openSandbox,
  type Sandbox,
} from './sandbox.ts';

/**
 * Searches the files of a folder for a text.
 *
 * SEARCH-1 The query is plain text, not a pattern: no query makes a search slow.
 * SEARCH-2 Links are not followed, so nothing is searched twice or endlessly.
 * SEARCH-3 Skipped files are reported: a result without hits and without a note means that there are none.
 */
const SEARCH_HITS = 200;
/** Characters of a line with a hit. */
const SEARCH_EXCERPT = 200;
const SEARCH_RESULT_BYTES = 48_000;
/** Larger files are skipped and counted. */
const SEARCH_FILE_BYTES = 4 * 1024 * 1024;
const SEARCH_FILES = 20_000;
const SEARCH_SKIPPED_FOLDERS: ReadonlySet<string> = new Set(['.git', 'node_modules']);

const schema = z.strictObject({
  query: z
    .string()
    .min(1)
    .max(1_000)
    .regex(/^[^\n\r]*$/, 'one line of text')
    .describe('the text to look for, as it is (no pattern), within one line'),
  path: PATH.optional().describe('file or folder to search; default @project'),
  ignoreCase: z.boolean().optional().describe('take capitals and small letters as the same'),
});

export const searchTool = defineTool({
  name: 'fs_search',
  description:
    'Look for a text in the files of a folder and of those below it. Gives "path:line: text" for each hit, at most 200. Leaves out binary files, links, .git and node_modules. Use it to find where something is named, then fs_read to read around it.',
  risk: 'safe',
  subject: READS,
  timeoutMs: FILES_TIMEOUT_MS,
  schema,
  run: async ({ query, path = '@project', ignoreCase = false }, context) => {
    const names = projectNames(path);
    const sandbox = openSandbox(context);
    const search = new Search(sandbox, ignoreCase ? foldCase(query) : query, ignoreCase, context.signal);
    await search.start(names);
    return completed(search.report());
  },
});

class Search {
  readonly #sandbox: Sandbox;
  readonly #query: string;
  readonly #ignoreCase: boolean;
  readonly #signal: AbortSignal;
  readonly #lines: string[] = [];
  #bytes = 0;
  #files = 0;
  #large = 0;
  #unread = 0;
  #stopReason: string | null = null;

  constructor(sandbox: Sandbox, query: string, ignoreCase: boolean, signal: AbortSignal) {
    this.#sandbox = sandbox;
    this.#query = query;
    this.#ignoreCase = ignoreCase;
    this.#signal = signal;
  }

  async start(names: readonly string[]): Promise<void> {
    const folder = await this.#folderOrNull(names);
    if (folder !== null) return this.#walk(names, folder);
    await this.#inFile(names, await openFile(this.#sandbox, names));
  }

  report(): string {
    const notes = [
      this.#stopReason,
      this.#large > 0 ? `${this.#large} larger than ${SEARCH_FILE_BYTES} bytes left out` : null,
      this.#unread > 0 ? `${this.#unread} that could not be read left out` : null,
    ].filter((note) => note !== null);
    const found = this.#lines.length > 0 ? this.#lines.join('\n') : `no hits in ${this.#files} files`;
    return notes.length > 0 ? `${found}\n[${notes.join('; ')}]` : found;
  }

  /** Null if it is a file. */
  async #folderOrNull(names: readonly string[]): Promise<Folder | null> {
    try {
      return await openFolder(this.#sandbox, names);
    } catch (error) {
      if (errnoOf(error) === 'ENOTDIR') return null;
      throw error;
    }
  }

  async #walk(names: readonly string[], opened: Folder): Promise<void> {
    const below = await this.#filesOf(names, opened);
    for (const name of below) {
      if (this.#stopReason !== null) return;
      const inner = [...names, name];
      const folder = await openFolder(this.#sandbox, inner, { isBelow: true }).catch(() => null);
      if (folder === null) this.#unread += 1;
      else await this.#walk(inner, folder);
    }
  }

  /** Searches the files of a folder, closes it, and returns its sub-folders. */
  async #filesOf(names: readonly string[], folder: Folder): Promise<string[]> {
    try {
      this.#signal.throwIfAborted();
      const found = await readdir(folder.at('.'), { withFileTypes: true });
      found.sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const { name } of found.filter((entry) => entry.isFile())) {
        if (this.#stopReason !== null) return [];
        await this.#tryFile(folder, name, [...names, name]);
      }
      return found.filter((entry) => this.#mayEnter(folder, entry)).map(({ name }) => name);
    } finally {
      await folder.handle.close();
    }
  }

  #mayEnter(folder: Folder, entry: Dirent): boolean {
    if (!entry.isDirectory() || SEARCH_SKIPPED_FOLDERS.has(entry.name)) return false;
    return isOpenTo(this.#sandbox, `${folder.real}/${entry.name}`);
  }

  async #tryFile(folder: Folder, name: string, names: readonly string[]): Promise<void> {
    this.#signal.throwIfAborted();
    const handle = await openFileIn(this.#sandbox, folder, name, names).catch(() => null);
    if (handle === null) this.#unread += 1;
    else await this.#inFile(names, handle);
  }

  async #inFile(names: readonly string[], handle: FileHandle): Promise<void> {
    try {
      this.#files += 1;
      if (this.#files > SEARCH_FILES) {
        this.#stopReason = `stopped after ${SEARCH_FILES} files: search a folder below`;
        return;
      }
      const { size } = await handle.stat();
      if (size > SEARCH_FILE_BYTES) {
        this.#large += 1;
        return;
      }
      const bytes = await readAt(handle, 0, size);
      if (!bytes.subarray(0, PROBE_BYTES).includes(0)) this.#inText(names, bytes.toString('utf8'));
    } finally {
      await handle.close();
    }
  }

  #inText(names: readonly string[], text: string): void {
    if (!this.#folded(text).includes(this.#query)) return;
    for (const [at, line] of text.split('\n').entries()) {
      const column = this.#folded(line).indexOf(this.#query);
      if (column >= 0) this.#addHit(`${aliasOf(names)}:${at + 1}: ${excerpt(line, column)}`);
      if (this.#stopReason !== null) return;
    }
  }

  #addHit(line: string): void {
    const size = Buffer.byteLength(line) + 1;
    if (this.#lines.length >= SEARCH_HITS || this.#bytes + size > SEARCH_RESULT_BYTES) {
      this.#stopReason = 'there are more hits: search for more of the text, or in a folder below';
      return;
    }
    this.#bytes += size;
    this.#lines.push(line);
  }

  #folded(text: string): string {
    return this.#ignoreCase ? foldCase(text) : text;
  }
}

/** The part of a line around the hit, without control characters. */
function excerpt(line: string, column: number): string {
  const start = Math.max(0, Math.min(column - 60, line.length - SEARCH_EXCERPT));
  const cut = wellFormed(line.slice(start, start + SEARCH_EXCERPT));
  const more = start + SEARCH_EXCERPT < line.length ? '…' : '';
  return `${start > 0 ? '…' : ''}${cut.replaceAll(/\p{Cc}/gu, ' ').trim()}${more}`;
}

const LIST_ENTRIES = 1_000;

const folderSchema = z.strictObject({
  path: PATH.describe('a folder: @project, or @project/ and the way from there'),
});

export const listTool = defineTool({
  name: 'fs_list',
  description:
    'List a folder: one name per line in alphabetical order, folders with "/" at the end, files with their size, links with their target. At most 1,000 names. Not recursive: to search file contents, use fs_search.',
  risk: 'safe',
  subject: READS,
  timeoutMs: FILES_TIMEOUT_MS,
  schema: folderSchema,
  run: async ({ path }, context) => {
    const names = projectNames(path);
    const folder = await openFolder(openSandbox(context), names);
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
