import { lstat, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Entry } from '../../../conversation/index.ts';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import type { TornTail } from '../../port.ts';
import { errnoOf, fileTimestamp, orNullIfMissing, writeNewFile } from './durable.ts';
import type { LogFile, StoreLog } from './log-file.ts';
import { type LogContents, type ScanVerdict, scanLog } from './scan.ts';

/**
 * Reads a log that may be torn or damaged.
 *
 * RECOVERY-1 A torn tail is durable in a file of its own before it is cut (PERSISTENCE-PORT-4).
 * RECOVERY-2 A damaged log is not changed and gets a note beside it; only its own conversation is refused.
 * RECOVERY-3 Entries that were read count as durable, so they are synced first: after a kill between write and sync they may
 *            be in the page cache only.
 */

interface RecoveredLog extends LogContents {
  readonly tornTail: TornTail | null;
}

/** Reads a log that this process owns, and cuts a torn tail. */
export async function recoverLog(
  conversation: string,
  path: string,
  file: LogFile,
  log: StoreLog,
): Promise<RecoveredLog> {
  const bytes = await file.readAll();
  const verdict = scanLog(bytes);
  if (verdict.kind === 'damaged') {
    const note = await leaveNote(path, bytes, verdict);
    log({ type: 'log-quarantined', conversation, line: verdict.line, reason: verdict.reason, note });
    throw damagedError(path, verdict);
  }
  if (verdict.kind === 'whole') {
    await file.sync();
    return { ...verdict, tornTail: null };
  }
  const tail = bytes.subarray(verdict.bytes);
  const keptIn = await writeNewFile(dirname(path), `log.torn-${fileTimestamp()}`, tail);
  await file.truncate(verdict.bytes);
  await file.sync();
  log({ type: 'torn-tail-cut', conversation, bytes: tail.length, keptIn });
  return { ...verdict, tornTail: { bytes: tail.length, keptIn } };
}

/** The content of a log file, for readers that must not change it. */
export interface LogFileContents {
  readonly entries: Entry[];
  /** Bytes after the last whole batch: an incomplete write, or one in progress. */
  readonly tornTail: { readonly bytes: number } | null;
  /** The number of entries up to the end of each append. */
  readonly ends: readonly number[];
}

/** Reads a log without owning it: takes no lock, changes nothing. */
export async function readLogFile(path: string): Promise<LogFileContents> {
  const bytes = await readPlainFile(path).catch((cause: unknown) => {
    if (errnoOf(cause) === 'ENOENT') {
      throw new ParleyError('LOG_NOT_FOUND', `There is no log ${path}`, {
        hint: 'check the conversation id and the data directory; a conversation in JetStream has no files: use --nats instead of --data',
        cause,
      });
    }
    throw new ParleyError('LOG_UNREADABLE', `${path} cannot be read: ${messageOf(cause)}`, {
      hint: UNREADABLE_HINT,
      cause,
    });
  });
  const verdict = scanLog(bytes);
  if (verdict.kind === 'damaged') throw damagedError(path, verdict);
  const torn = bytes.length - verdict.bytes;
  const { entries, ends } = verdict;
  return { entries, ends, tornTail: verdict.kind === 'torn' ? { bytes: torn } : null };
}

/** What to do about a log that cannot be opened. */
export const UNREADABLE_HINT =
  'A log is a plain file that this user may read and write. See to that, or restore it from a backup.';

/** Reading another kind of file may never end. */
async function readPlainFile(path: string): Promise<Buffer> {
  const found = await orNullIfMissing(stat(path));
  if (found?.isFile()) return readFile(path);
  if (found === null && (await orNullIfMissing(lstat(path))) === null) return readFile(path); // says that it is missing
  throw new Error(found ? 'it is no plain file' : 'it is a link to what is not there');
}

type Damage = Extract<ScanVerdict, { kind: 'damaged' }>;

function damagedError(path: string, damage: Damage): ParleyError {
  return new ParleyError(
    'LOG_CORRUPT',
    `${path} is damaged at line ${damage.line} (byte ${damage.offset}): ${damage.reason}`,
    {
      hint:
        `Nothing was changed, and other conversations continue. Stop the daemon, keep a copy of the file, then restore it ` +
        `from a backup${wholeBefore(damage.line)} (docs/guides/troubleshooting.md).`,
    },
  );
}

function wholeBefore(line: number): string {
  if (line === 1) return '; no line before this one could be kept';
  if (line === 2) return ', or keep its first line alone: it is whole';
  return `, or keep its first ${line - 1} lines alone: they are whole`;
}

/** One note per content of the file: opening a damaged log again adds none. */
async function leaveNote(path: string, bytes: Buffer, damage: Damage): Promise<string | null> {
  const directory = dirname(path);
  const name = `quarantine-${crc32(bytes).toString(16).padStart(8, '0')}.json`;
  const note = { file: basename(path), bytes: bytes.length, foundAt: new Date().toISOString(), ...damage };
  try {
    const existing = await readFile(join(directory, name)).catch(() => null);
    if (existing !== null) return join(directory, name);
    return await writeNewFile(directory, name, `${JSON.stringify(note)}\n`);
  } catch {
    return null; // the damage is reported even if the disk is full or read-only
  }
}
