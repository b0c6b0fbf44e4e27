import { closeSync } from 'node:fs';
import { access, chmod, constants, mkdir, readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { tryLock } from 'fs-native-extensions';
import { nkeys } from 'nats';
import { z } from 'zod';
import {
  errnoOf,
  fieldFault,
  fullDiskError,
  messageOf,
  openPrivate,
  ParleyError,
  parseJson,
  replaceFile,
} from '../../../kernel/index.ts';
import type { Host, ManagedLog } from './host.ts';

/**
 * The directory of one managed server: its files, its lock, and which process is its server.
 *
 * MANAGED-DIRECTORY-1 A file is complete or missing: it is written under another name, synced and renamed, then the folder is synced.
 * MANAGED-DIRECTORY-2 The file with the seed is readable by its owner only, from its first byte on.
 * MANAGED-DIRECTORY-3 An invalid file is logged and treated as missing; it never prevents a start.
 */

/** An nkey signs the server's challenge, so another program on the same port gets no secret. */
export interface Credentials {
  /** Public. */
  readonly user: string;
  /** Path of the file with the seed. */
  readonly nkey: string;
}

const pidSchema = z.coerce.number().int().min(2);
/** The name, in the server's greeting, distinguishes it from another server on the same port. */
const endpointSchema = z.object({
  port: z.int().min(1).max(65_535),
  name: z.string().regex(/^[\w-]+$/),
});
/** `startedAt`: ISO 8601. */
const recordSchema = endpointSchema.extend({ pid: pidSchema, version: z.string(), startedAt: z.string() });

export type Endpoint = Readonly<z.output<typeof endpointSchema>>;
export type ServerRecord = Readonly<z.output<typeof recordSchema>>;

/** Creates the directory if it is missing. Throws `NATS_DIRECTORY_UNWRITABLE`. */
export async function prepareDirectory(path: string): Promise<ServerFiles> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    // The real path, because the server's process is identified by the path of its configuration.
    const directory = await realpath(path);
    await access(directory, constants.W_OK);
    return filesIn(directory);
  } catch (thrown) {
    const error = fullDiskError(thrown, 'NATS_DISK_FULL', `the disk of ${resolve(path)}`);
    if (error instanceof ParleyError) throw error;
    throw new ParleyError(
      'NATS_DIRECTORY_UNWRITABLE',
      `the managed nats-server cannot write its files to ${resolve(path)}: ${messageOf(error)}`,
      { hint: 'make that directory writable for this user, or choose another with --data', cause: error },
    );
  }
}

function filesIn(directory: string) {
  return {
    directory,
    /** Locked while the server runs. */
    lock: join(directory, 'LOCK'),
    /** JetStream's data; the server appends `jetstream` to its `store_dir`. */
    store: join(directory, 'jetstream'),
    /** The seed of the only user's nkey, in the format of the client and the `nats` command. */
    seed: join(directory, 'user.nk'),
    /** Port and name, the same for every start. */
    endpoint: join(directory, 'endpoint.json'),
    /** The current process. */
    record: join(directory, 'server.json'),
    /** Written by the server itself, so it exists even if the daemon that started it was killed. */
    pidFile: join(directory, 'server.pid'),
    configuration: join(directory, 'nats-server.conf'),
    log: join(directory, 'nats-server.log'),
    /** The server's output before its log is open, and its panics. */
    output: join(directory, 'output.log'),
  };
}
export type ServerFiles = Readonly<ReturnType<typeof filesIn>>;

/** Call it while holding the lock. */
export function writeDocument(path: string, document: object): Promise<void> {
  return replaceFile(path, `${JSON.stringify(document, null, 2)}\n`);
}

/** Null when missing or invalid (MANAGED-DIRECTORY-3). */
export async function readCredentials(files: ServerFiles, log: ManagedLog): Promise<Credentials | null> {
  const seed = await readText(files.seed, log);
  if (seed === null) return null;
  let user: string;
  try {
    user = nkeys.fromSeed(Buffer.from(seed.trim())).getPublicKey();
  } catch {
    return damaged(files.seed, log, 'it does not contain the seed of an nkey');
  }
  if (((await stat(files.seed)).mode & 0o077) !== 0) {
    await chmod(files.seed, 0o600);
    log('warn', `${files.seed} was readable by other users; its permissions are now 0600`);
  }
  return { user, nkey: files.seed };
}

/** MANAGED-DIRECTORY-2. Call it while holding the lock. */
export async function writeCredentials(files: ServerFiles): Promise<Credentials> {
  const pair = nkeys.createUser();
  await replaceFile(files.seed, `${Buffer.from(pair.getSeed()).toString()}\n`);
  return { user: pair.getPublicKey(), nkey: files.seed };
}

export function readEndpoint(files: ServerFiles, log: ManagedLog): Promise<Endpoint | null> {
  return readDocument(files.endpoint, endpointSchema, log);
}

export function readRecord(files: ServerFiles, log: ManagedLog): Promise<ServerRecord | null> {
  return readDocument(files.record, recordSchema, log);
}

/** The process id from the server's own file; null when it is missing or incomplete. */
export async function readPidFile(files: ServerFiles): Promise<number | null> {
  const text = await readFile(files.pidFile, 'utf8').catch(() => '');
  return pidSchema.safeParse(text).data ?? null;
}

async function readText(path: string, log: ManagedLog): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? null : damaged(path, log, messageOf(error));
  }
}

async function readDocument<T>(path: string, schema: z.ZodType<T>, log: ManagedLog): Promise<T | null> {
  const text = await readText(path, log);
  if (text === null) return null;
  const document = parseJson(text);
  const { data, error } = schema.safeParse(document);
  const [issue] = error?.issues ?? [];
  return data ?? damaged(path, log, issue ? fieldFault(issue, document) : 'not understood');
}

function damaged(path: string, log: ManagedLog, why: string): null {
  log('warn', `${path} cannot be used: ${why}`);
  return null;
}

const TAIL_LINES = 12;
const TAIL_BYTES = 64 * 1024;
const KEPT_LOGS = 2;

/** The last lines since `from`: of the server's output, then of its log. */
export async function tailOfLog(files: ServerFiles, from: number): Promise<string> {
  const printed = await readFile(files.output, 'utf8').catch(() => '');
  const bytes = await readFile(files.log).catch(() => Buffer.alloc(0));
  // A shorter log was rotated meanwhile, so all of it is new.
  const logged = bytes.subarray(bytes.length >= from ? from : 0).toString('utf8');
  const lines = `${printed.slice(-TAIL_BYTES)}\n${logged.slice(-TAIL_BYTES)}`.split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .slice(-TAIL_LINES)
    .join('\n');
}

/** Removes old rotated logs. Only newer servers have a setting for that. */
export async function pruneRotatedLogs({ directory, log }: ServerFiles): Promise<void> {
  const prefix = `${basename(log)}.`;
  // The suffix is a sortable time.
  const rotated = (await readdir(directory)).filter((name) => name.startsWith(prefix)).sort();
  for (const name of rotated.slice(0, -KEPT_LOGS)) await rm(join(directory, name), { force: true });
}

/**
 * The lock that prevents two servers on one directory, and the process of its server.
 *
 * MANAGED-LOCK-1 It is a kernel lock on an open file description: it lasts until the last process that inherited it has ended,
 *    in whatever way. It depends on no timestamp and no process id.
 * MANAGED-LOCK-2 The starting process takes it, passes it to the server as an extra file, and closes its own copy. So the lock
 *    is free exactly when no server runs here and none is being started.
 * MANAGED-LOCK-3 A process id alone proves nothing, because ids are reused. A process is the server of a directory only if it was
 *    started with that directory's configuration file; only such a process gets a signal.
 */
export interface HeldLock {
  /** The server inherits it. */
  readonly fd: number;
  /** Closes this process's copy; the lock itself is free once no copy is left (MANAGED-LOCK-1). */
  release(): Promise<void>;
}

/** Null when another process holds it. Throws `NATS_LOCK_FAILED` if the file system has no locks. */
export async function takeLock(path: string): Promise<HeldLock | null> {
  const fd = openPrivate(path);
  let taken = false;
  try {
    taken = tryLock(fd);
  } catch (error) {
    throw new ParleyError('NATS_LOCK_FAILED', `cannot lock ${path}: ${messageOf(error)}`, {
      hint: 'move the data directory (--data) to a local file system that supports locks',
      cause: error,
    });
  } finally {
    if (!taken) closeSync(fd);
  }
  return taken ? { fd, release: async () => closeSync(fd) } : null;
}

/** Whether no server runs and none is being started (MANAGED-LOCK-2). */
export async function isLockFree(path: string): Promise<boolean> {
  const lock = await takeLock(path);
  await lock?.release();
  return lock !== null;
}

const PS_TIMEOUT_MS = 5_000;

export async function isServerProcess(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform !== 'linux') {
    const listed = await host.run('ps', ['-ww', '-o', 'command=', '-p', String(pid)], PS_TIMEOUT_MS);
    return listed.kind === 'exited' && listed.code === 0 && listed.output.includes(`-c ${configuration}`);
  }
  // Empty for a process that has ended and was not reaped yet.
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  return words.some((word, at) => word === '-c' && words[at + 1] === configuration);
}

/** The server process of this directory, from its records; null when none of them is valid. */
export async function findServerProcess(
  files: ServerFiles,
  host: Host,
  log: ManagedLog,
): Promise<number | null> {
  const candidates = [(await readRecord(files, log))?.pid ?? null, await readPidFile(files)];
  for (const pid of candidates) {
    if (pid !== null && (await isServerProcess(pid, files.configuration, host))) return pid;
  }
  return null;
}

/** Ignores a process that has already ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}
