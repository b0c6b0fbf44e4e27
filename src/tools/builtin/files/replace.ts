import { randomBytes } from 'node:crypto';
import { accessSync, type BigIntStats, constants, lstatSync, renameSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { ParleyError } from '../../../kernel/index.ts';
import { aliasOf, type Folder, requireFile } from './sandbox.ts';

/**
 * Replaces a whole file.
 *
 * REPLACE-1 Readers see the old content or the new, never a part. A full disk or a crash leaves the old.
 * REPLACE-2 When the call ends, the file is durable under its name.
 * REPLACE-3 An existing file keeps its permissions. A file without write permission is not replaced.
 * REPLACE-4 Content derived from a file's old content does not overwrite another change. The last check and the rename are
 *    one synchronous step, so no other call of this process comes between them.
 */
export interface Replacement {
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
