import { randomBytes } from 'node:crypto';
import { accessSync, type BigIntStats, constants, lstatSync, renameSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { z } from 'zod';
import type { ToolOutcome } from '../../../agents/tool-port.ts';
import { differenceLines, differenceText } from '../../../conversation/text/line-diff.ts';
import { decodeUtf8, ParleyError } from '../../../kernel/index.ts';
import { completed } from '../../toolbox.ts';
import { defineTool, FILES_TIMEOUT_MS, PROJECT_PATH, WRITES } from '../tool.ts';
import { pathRefused, projectNames } from './names.ts';
import { readAt, refuseBinary } from './read.ts';
import {
  aliasOf,
  type Folder,
  locate,
  openFile,
  openParent,
  openSandbox,
  requireFile,
  type Sandbox,
} from './sandbox.ts';

/** Writes whole files (`fs_write`) and changes parts of them (`fs_edit`). */

const WRITE_BYTES = 1024 * 1024;

const wholeSchema = z.strictObject({
  path: PROJECT_PATH,
  content: z.string().describe('the whole content of the file, as it is to be'),
});

export const writeTool = defineTool({
  name: 'fs_write',
  description:
    'Write a whole file: makes it, with the folders that are missing, or replaces all that it held. At most 1 MiB. To change a part of a file, use fs_edit.',
  risk: 'risky',
  subject: WRITES,
  timeoutMs: FILES_TIMEOUT_MS,
  schema: wholeSchema,
  run: async ({ path, content }, context) => {
    const names = fileNames(path, projectNames(path));
    const bytes = Buffer.from(content, 'utf8');
    if (bytes.length > WRITE_BYTES) {
      const message = `${bytes.length} bytes are more than the ${WRITE_BYTES} that one call may write`;
      throw new ParleyError('TOO_LARGE', message, { hint: 'write several files' });
    }
    const sandbox = openSandbox(context);
    const { folder, name } = await openParent(sandbox, names, { make: true });
    try {
      const { created } = await replaceFile({ folder, name, names, content: bytes, signal: context.signal });
      return completed(`${created ? 'Created' : 'Replaced'} ${aliasOf(names)} (${bytes.length} bytes).`);
    } finally {
      await folder.handle.close();
    }
  },
  change: async ({ path, content }, context) => {
    const names = fileNames(path, projectNames(path));
    const sandbox = openSandbox(context);
    if (locate(sandbox, names).missing.length > 0) return completed('The file is new.');
    const { text } = await readWhole(sandbox, names);
    return difference(names, text, content);
  },
});

/** Characters of a difference that is shown. */
const LONGEST_DIFFERENCE = 200_000;

function difference(names: readonly string[], before: string, after: string): ToolOutcome {
  if (before === after) return completed('The file stays as it is.');
  const text = differenceText(aliasOf(names), before, after);
  if (differenceLines(text) === null) return completed('Only the line end of the last line changes.');
  if (text.length <= LONGEST_DIFFERENCE) return completed(text);
  const message = `${text.length} characters are more than the ${LONGEST_DIFFERENCE} that are shown`;
  throw new ParleyError('TOO_LARGE', message, { hint: 'the arguments of the call are complete' });
}

/** The components of a path that must name a file. */
function fileNames(path: string, names: readonly string[]): readonly string[] {
  if (path.endsWith('/') || names.length === 0) throw pathRefused(path, 'that is a folder');
  return names;
}

/** An edited file is in memory three times. */
const EDIT_BYTES = 4 * 1024 * 1024;

const editSchema = z.strictObject({
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
  schema: editSchema,
  run: async (given, context) => {
    const names = fileNames(given.path, projectNames(given.path));
    const sandbox = openSandbox(context);
    const { text, stats } = await readWhole(sandbox, names);
    const { changed, count } = edited(text, given, names);
    const content = Buffer.from(changed, 'utf8');
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
  change: async (given, context) => {
    const names = fileNames(given.path, projectNames(given.path));
    const { text } = await readWhole(openSandbox(context), names);
    return difference(names, text, edited(text, given, names, 'as it is, the call would fail').changed);
  },
});

function edited(
  text: string,
  { find, replace, all = false }: z.infer<typeof editSchema>,
  names: readonly string[],
  next?: string,
) {
  const count = text.split(find).length - 1;
  if (count === 0 || (count > 1 && !all)) throw doesNotFit(names, count, next);
  return { changed: text.split(find).join(replace), count }; // a replacement may hold "$&" and the like
}

async function readWhole(sandbox: Sandbox, names: readonly string[]) {
  const handle = await openFile(sandbox, names);
  try {
    const stats = await handle.stat({ bigint: true });
    if (stats.size > BigInt(EDIT_BYTES)) throw tooLarge(names, Number(stats.size));
    await refuseBinary(handle, aliasOf(names));
    const text = decodeUtf8(await readAt(handle, 0, Number(stats.size)), { keepsMark: true });
    if (text !== null) return { text, stats };
    const message = `${aliasOf(names)} holds bytes that are not UTF-8; writing it again would change them`;
    throw new ParleyError('BINARY_FILE', message);
  } finally {
    await handle.close();
  }
}

/** `next`: absent, what the agent can do. */
function doesNotFit(names: readonly string[], count: number, next?: string): ParleyError {
  if (count === 0) {
    const hint = next ?? 'it must match to the letter, spaces and line ends included: read the file again';
    return new ParleyError('FIND_MISSING', `the text to find is not in ${aliasOf(names)}`, { hint });
  }
  const hint = next ?? 'take more of the lines around it, or set all';
  const message = `the text to find occurs ${count} times in ${aliasOf(names)}`;
  return new ParleyError('FIND_AMBIGUOUS', message, { hint });
}

function tooLarge(names: readonly string[], size: number): ParleyError {
  const message = `${aliasOf(names)}: ${size} bytes are more than the ${EDIT_BYTES} that can be edited`;
  return new ParleyError('TOO_LARGE', message);
}

/**
 * Replaces a whole file.
 *
 * REPLACE-1 Readers see the old content or the new, never a part. A full disk or a crash leaves the old.
 * REPLACE-2 When the call ends, the file is durable under its name.
 * REPLACE-3 An existing file keeps its permissions. A file without write permission is not replaced.
 * REPLACE-4 Content derived from a file's old content does not overwrite another change. The last check and the rename are
 *    one synchronous step, so no other call of this process comes between them.
 */
interface Replacement {
  readonly folder: Folder;
  readonly name: string;
  /** For messages. */
  readonly names: readonly string[];
  readonly content: Buffer;
  /** The file from which the new content was derived. */
  readonly from?: BigIntStats;
  readonly signal: AbortSignal;
}

/** Returns whether the file is new. */
export async function replaceFile(replacement: Replacement): Promise<{ readonly created: boolean }> {
  const { folder, name, signal } = replacement;
  const before = existing(replacement);
  const temporary = folder.at(`.parley-${randomBytes(8).toString('hex')}.tmp`);
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666);
  try {
    await fill(handle, replacement.content, before);
    signal.throwIfAborted();
    existing(replacement);
    renameSync(temporary, folder.at(name));
  } catch (error) {
    await unlink(temporary).catch(() => {}); // the first error is reported
    throw error;
  }
  await folder.handle.sync();
  return { created: before === null };
}

async function fill(handle: FileHandle, content: Buffer, before: BigIntStats | null): Promise<void> {
  try {
    await handle.writeFile(content);
    if (before !== null) await handle.chmod(Number(before.mode & 0o777n));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The existing file, checked: REPLACE-3, REPLACE-4. */
function existing({ folder, name, names, from }: Replacement): BigIntStats | null {
  const path = folder.at(name);
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  if (found !== null) {
    requireFile(found, aliasOf(names));
    accessSync(path, constants.W_OK);
  }
  if (from !== undefined && !isSame(found, from)) {
    const message = `${aliasOf(names)} was changed by another program meanwhile; nothing was written`;
    throw new ParleyError('CHANGED_MEANWHILE', message, { hint: 'read it again' });
  }
  return found;
}

function isSame(found: BigIntStats | null, from: BigIntStats): boolean {
  return (
    found !== null &&
    found.ino === from.ino &&
    found.dev === from.dev &&
    found.size === from.size &&
    found.mtimeNs === from.mtimeNs
  );
}
