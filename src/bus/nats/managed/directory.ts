import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { nkeys } from 'nats';
import { fullDiskError, messageOf, ParleyError } from '../../../kernel/index.ts';
import type { ManagedLog } from './host.ts';

/**
 * The files of one managed server.
 *
 * MANAGED-DIRECTORY-1 A file is complete or missing: it is written under another name, synced and renamed, then the folder is synced.
 * MANAGED-DIRECTORY-2 The file with the seed is readable by its owner only, from its first byte on.
 * MANAGED-DIRECTORY-3 An invalid file is logged and treated as missing; it never prevents a start.
 */

export interface ServerFiles {
  readonly directory: string;
  /** Locked while the server runs. */
  readonly lock: string;
  /** JetStream's data; the server appends `jetstream` to its `store_dir`. */
  readonly store: string;
  /** The seed of the only user's nkey, in the format of the client and the `nats` command. */
  readonly seed: string;
  /** Port and name, the same for every start. */
  readonly endpoint: string;
  /** The current process. */
  readonly record: string;
  /** Written by the server itself, so it exists even if the daemon that started it was killed. */
  readonly pidFile: string;
  readonly configuration: string;
  readonly log: string;
  /** The server's output before its log is open, and its panics. */
  readonly output: string;
}

/** An nkey signs the server's challenge, so another program on the same port gets no secret. */
export interface Credentials {
  /** Public. */
  readonly user: string;
  /** Path of the file with the seed. */
  readonly nkey: string;
}

export interface Endpoint {
  readonly port: number;
  /** The server's name in its greeting, which distinguishes it from another server on the same port. */
  readonly name: string;
}

export interface ServerRecord extends Endpoint {
  readonly pid: number;
  readonly version: string;
  /** ISO 8601. */
  readonly startedAt: string;
}

/** Creates the directory if it is missing. Throws `NATS_DIRECTORY_UNWRITABLE`. */
export async function prepareDirectory(path: string): Promise<ServerFiles> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    // The real path, because the server's process is identified by the path of its configuration.
    const directory = await realpath(path);
    const probe = join(directory, `.writable.${randomBytes(6).toString('hex')}.tmp`);
    await (await open(probe, 'wx', 0o600)).close();
    await rm(probe, { force: true }); // another daemon that launches a server may have removed it
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

function filesIn(directory: string): ServerFiles {
  return {
    directory,
    lock: join(directory, 'LOCK'),
    store: join(directory, 'jetstream'),
    seed: join(directory, 'user.nk'),
    endpoint: join(directory, 'endpoint.json'),
    record: join(directory, 'server.json'),
    pidFile: join(directory, 'server.pid'),
    configuration: join(directory, 'nats-server.conf'),
    log: join(directory, 'nats-server.log'),
    output: join(directory, 'output.log'),
  };
}

/** MANAGED-DIRECTORY-1, MANAGED-DIRECTORY-2. Call it while holding the lock. */
export async function writeWhole(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export function writeDocument(path: string, document: object): Promise<void> {
  return writeWhole(path, `${JSON.stringify(document, null, 2)}\n`);
}

/** Removes temporary files of a killed writer. Call it while holding the lock. */
export async function removeLeftovers(files: ServerFiles): Promise<void> {
  for (const name of await readdir(files.directory)) {
    if (name.endsWith('.tmp')) await rm(join(files.directory, name), { force: true });
  }
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
  await tighten(files.seed, log);
  return { user, nkey: files.seed };
}

/** MANAGED-DIRECTORY-2. Call it while holding the lock. */
export async function writeCredentials(files: ServerFiles): Promise<Credentials> {
  const pair = nkeys.createUser();
  await writeWhole(files.seed, `${Buffer.from(pair.getSeed()).toString()}\n`);
  return { user: pair.getPublicKey(), nkey: files.seed };
}

export async function readEndpoint(files: ServerFiles, log: ManagedLog): Promise<Endpoint | null> {
  const found = await readDocument(files.endpoint, log);
  return (
    found && (endpointOf(found) ?? damaged(files.endpoint, log, '"port" must be 1 to 65535, "name" a text'))
  );
}

export async function readRecord(files: ServerFiles, log: ManagedLog): Promise<ServerRecord | null> {
  const found = await readDocument(files.record, log);
  if (!found) return null;
  const endpoint = endpointOf(found);
  const { pid, version, startedAt } = found;
  if (!endpoint || !isPid(pid) || typeof version !== 'string' || typeof startedAt !== 'string') {
    return damaged(files.record, log, 'port, name, pid, version or startedAt is missing');
  }
  return { ...endpoint, pid, version, startedAt };
}

/** The process id from the server's own file; null when it is missing or incomplete. */
export async function readPidFile(files: ServerFiles): Promise<number | null> {
  try {
    const pid = Number((await readFile(files.pidFile, 'utf8')).trim());
    return isPid(pid) ? pid : null;
  } catch {
    return null;
  }
}

function endpointOf(found: Record<string, unknown>): Endpoint | null {
  const { port, name } = found;
  const valid = typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;
  return valid && typeof name === 'string' && /^[\w-]+$/.test(name) ? { port, name } : null;
}

function isPid(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 1;
}

async function readText(path: string, log: ManagedLog): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : damaged(path, log, messageOf(error));
  }
}

async function readDocument(path: string, log: ManagedLog): Promise<Record<string, unknown> | null> {
  const text = await readText(path, log);
  if (text === null) return null;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return { ...parsed };
    return damaged(path, log, 'not a JSON object');
  } catch (error) {
    return damaged(path, log, messageOf(error));
  }
}

function damaged(path: string, log: ManagedLog, why: string): null {
  log('warn', `${path} cannot be used: ${why}`);
  return null;
}

async function tighten(path: string, log: ManagedLog): Promise<void> {
  if (((await stat(path)).mode & 0o077) === 0) return;
  await chmod(path, 0o600);
  log('warn', `${path} was readable by other users; its permissions are now 0600`);
}
