import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { closeSync, ftruncateSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import {
  bytesBelow,
  fullDiskError,
  isAtLeast,
  messageOf,
  openPrivate,
  ParleyError,
  replaceFile,
  sleep,
} from '../../../kernel/index.ts';
import { openNats } from '../connection/connection.ts';
import {
  type Credentials,
  type Endpoint,
  findServerProcess,
  type HeldLock,
  pruneRotatedLogs,
  readCredentials,
  readEndpoint,
  readRecord,
  type ServerFiles,
  type ServerRecord,
  tailOfLog,
  takeLock,
  writeCredentials,
  writeDocument,
} from './directory.ts';
import type { Host, ManagedLog } from './host.ts';
import { inspectBinary } from './install.ts';

/**
 * Starts or adopts a server, at the first start and at every restart: the process that gets the lock launches a server, every
 * other one adopts it. A killed daemon leaves its server running, or starting.
 *
 * LAUNCH-1 Files are written only while the lock is held. The server inherits the lock before this process releases it.
 * LAUNCH-2 A server that is not ready in time is ended before the error is thrown.
 * LAUNCH-3 Only a server with this directory's name and credentials, whose process was started with this directory's
 *    configuration, is adopted, because `stop()` will end exactly that process.
 */

export interface ServerContext {
  readonly files: ServerFiles;
  readonly host: Host;
  readonly log: ManagedLog;
  /** Path of the nats-server. Its version is read at every launch, because an upgrade may replace the file. */
  readonly binary: string;
  /** Its version, if it was read for this launch. */
  readonly version?: string | undefined;
  /** Limit for an empty server; one with data gets more time. */
  readonly startTimeoutMs: number;
  /** Aborted by `stop()`; ends every wait. */
  readonly signal: AbortSignal;
}

/** A server that has answered. */
export interface RunningServer {
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly pid: number;
  readonly version: string;
  /** Another process, probably a killed daemon, had started it. */
  readonly adopted: boolean;
  /** Resolves when it ends, if it is a child of this process; otherwise only the lock shows that. */
  readonly exited: Promise<unknown> | null;
}

const PAUSE_MS = 100;
/** Longer than a launch by another process takes. */
const EXTRA_TIMEOUT_MS = 5_000;

/** Throws when neither succeeds in time. */
export async function bringUp(given: ServerContext): Promise<RunningServer> {
  const context = { ...given, log: withoutRepeats(given.log) };
  const { files, signal, startTimeoutMs } = context;
  const deadline = performance.now() + startTimeoutMs + Math.min(startTimeoutMs, EXTRA_TIMEOUT_MS);
  for (;;) {
    signal.throwIfAborted();
    const lock = await takeLock(files.lock);
    if (lock) return launchServer(context, lock);
    const found = await adoptServer(context);
    if ('endpoint' in found) return found;
    if (performance.now() > deadline) throw directoryInUse(files, found);
    await sleep(PAUSE_MS);
  }
}

function directoryInUse({ directory, lock }: ServerFiles, { why, pid }: NotAdopted): ParleyError {
  return new ParleyError(
    'NATS_DIRECTORY_IN_USE',
    `${directory} is locked by another process, and its nats-server cannot be adopted: ${why}`,
    {
      hint:
        pid === null
          ? `find the process that holds ${lock} (lsof ${lock}) and stop it, or choose another directory with --data`
          : `stop it (kill ${pid}) and start again, or choose another directory with --data`,
    },
  );
}

/** A wait reads the same files repeatedly; each problem is logged once. */
function withoutRepeats(log: ManagedLog): ManagedLog {
  const logged = new Set<string>();
  return (level, message, fields) => {
    if (logged.has(message)) return;
    logged.add(message);
    log(level, message, fields);
  };
}

interface NotAdopted {
  readonly why: string;
  readonly pid: number | null;
}

/** LAUNCH-3. Writes no file, because the holder of the lock may be writing. */
async function adoptServer({ files, host, log }: ServerContext): Promise<RunningServer | NotAdopted> {
  const pid = await findServerProcess(files, host, log);
  if (pid === null) return { why: 'no server process of this directory is known', pid };
  const credentials = await readCredentials(files, log);
  if (!credentials) return { why: `${files.seed} is missing or damaged`, pid };
  // The record of the running server first: the endpoint file may have been edited for the next start.
  const endpoint = (await readRecord(files, log)) ?? (await readEndpoint(files, log));
  if (!endpoint) return { why: `${files.endpoint} is missing or damaged`, pid };
  const probe = await probeServer(endpoint, credentials);
  if ('why' in probe) return { why: probe.why, pid };
  return { endpoint, credentials, pid, version: probe.version, adopted: true, exited: null };
}

export function urlOf(endpoint: Endpoint): string {
  return `nats://${LOOPBACK}:${endpoint.port}`;
}

const JETSTREAM_TIMEOUT_MS = 2_000;

/** The version of a server that accepts the credentials, has the expected name, and whose JetStream answers. */
async function probeServer(
  endpoint: Endpoint,
  credentials: Credentials,
): Promise<{ readonly version: string } | { readonly why: string }> {
  try {
    const { nkey } = credentials;
    const connection = await openNats({ url: urlOf(endpoint), nkey, managed: true, name: 'parley-probe' });
    try {
      const { server_name: name, version = '0' } = connection.info ?? {};
      if (name !== endpoint.name) return { why: `another server answers there: ${name}` };
      await connection.jetstreamManager({ timeout: JETSTREAM_TIMEOUT_MS }); // asks for the account's info
      return { version };
    } finally {
      await connection.close();
    }
  } catch (error) {
    return { why: messageOf(error) };
  }
}

interface Prepared extends Pick<RunningServer, 'endpoint' | 'credentials' | 'version'> {
  /** Bytes of the store. */
  readonly used: number;
}

interface Spawned {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<string>;
  /** Length of the log before. */
  readonly logFrom: number;
}

const PROBE_PAUSE_MS = 15;
const END_TIMEOUT_MS = 2_000;
/** A server reads its store before it listens. */
const RECOVERY_MS_PER_100_MB = 1_000;
const LITTLE_DISK = 1024 * 1024 * 1024;
/** The server needs no other variables, and must not get the secrets of this process. */
const CHILD_ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

/** Releases the lock in every case. Throws when the server cannot be started. */
async function launchServer(context: ServerContext, lock: HeldLock): Promise<RunningServer> {
  let prepared: Prepared;
  let spawned: Spawned;
  try {
    prepared = await prepare(context);
    spawned = await spawnServer(context, lock);
    await recordServer(context, prepared, spawned);
  } catch (error) {
    throw fullDiskError(error, 'NATS_DISK_FULL', `the disk of ${context.files.directory}`);
  } finally {
    await lock.release();
  }
  return untilReady(context, prepared, spawned);
}

async function prepare(context: ServerContext): Promise<Prepared> {
  const { files, log, host } = context;
  const version = context.version ?? (await inspectBinary(context.binary, host)).version;
  await pruneRotatedLogs(files);
  const endpoint = await settleEndpoint(context);
  const credentials = (await readCredentials(files, log)) ?? (await writeCredentials(files));
  const free = await host.freeBytes(files.directory);
  if (free < LITTLE_DISK)
    log('warn', `only ${Math.floor(free / 1024 / 1024)} MiB are free on the disk of ${files.directory}`);
  const used = await bytesBelow(files.store);
  const maxFile = sizeMaxFile(free, used);
  await replaceFile(
    files.configuration,
    renderConfiguration({ files, endpoint, credentials, version, maxFile }),
  );
  // Both are of an ended server, because the lock was free.
  await rm(files.record, { force: true });
  await rm(files.pidFile, { force: true });
  return { endpoint, credentials, version, used };
}

async function settleEndpoint({ files, log }: ServerContext): Promise<Endpoint> {
  const written = await readEndpoint(files, log);
  const known = written ?? (await readRecord(files, log));
  if (known && !(await isPortFree(known.port))) throw portInUse(files, known);
  if (written) return written;
  const port = known?.port ?? (await choosePort());
  const endpoint = { port, name: known?.name ?? `parley-${randomBytes(6).toString('hex')}` };
  await writeDocument(files.endpoint, endpoint);
  if (!known) log('info', `the nats-server of ${files.directory} uses port ${port} from now on`);
  return endpoint;
}

function portInUse({ endpoint, record, directory }: ServerFiles, { port }: Endpoint): ParleyError {
  return new ParleyError(
    'NATS_PORT_IN_USE',
    `port ${port} on ${LOOPBACK}, which the nats-server of ${directory} uses, is taken by another program`,
    {
      hint: `stop that program, or change "port" in ${endpoint}; if you remove that file and ${record}, a free port is chosen`,
    },
  );
}

/**
 * Below the ranges of ephemeral ports: a client that keeps reconnecting to an ephemeral port can connect to itself, and
 * then the server cannot listen there.
 */
const LOWEST_PORT = 20_000;
const HIGHEST_PORT = 30_000;
const ATTEMPTS = 50;

export async function choosePort(isFree: (port: number) => Promise<boolean> = isPortFree): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    if (await isFree(port)) return port;
  }
  throw new ParleyError(
    'NATS_NO_FREE_PORT',
    `none of ${ATTEMPTS} ports tried between ${LOWEST_PORT} and ${HIGHEST_PORT} on ${LOOPBACK} is free`,
    { hint: 'check that this process may listen on loopback, or use a running server with --nats URL' },
  );
}

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: LOOPBACK, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function spawnServer({ files, binary }: ServerContext, lock: HeldLock): Promise<Spawned> {
  const logFrom = (await stat(files.log).catch(() => null))?.size ?? 0;
  const output = openPrivate(files.output);
  try {
    ftruncateSync(output);
    const child = spawnPrivately(binary, ['-c', files.configuration], {
      cwd: files.directory,
      env: CHILD_ENVIRONMENT,
      detached: true, // Ctrl-C reaches only the daemon, and the server survives it
      stdio: ['ignore', output, output, lock.fd],
    });
    const exited = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    return { child, pid: child.pid ?? 0, exited, logFrom };
  } catch (error) {
    throw new ParleyError('NATS_SERVER_UNUSABLE', `${binary} cannot be started: ${messageOf(error)}`, {
      hint: 'set NATS_BIN to a working nats-server',
      cause: error,
    });
  } finally {
    closeSync(output);
  }
}

/** Files of the server are readable by its owner only: a child inherits the umask at its start. */
function spawnPrivately(...started: Parameters<typeof spawn>): ChildProcess {
  const umask = process.umask(0o077);
  try {
    return spawn(...started);
  } finally {
    process.umask(umask);
  }
}

async function recordServer({ files }: ServerContext, prepared: Prepared, spawned: Spawned): Promise<void> {
  const { endpoint, version } = prepared;
  const startedAt = new Date().toISOString();
  const record: ServerRecord = { pid: spawned.pid, ...endpoint, version, startedAt };
  try {
    await writeDocument(files.record, record);
  } catch (error) {
    await endChild(spawned);
    throw error;
  }
}

async function untilReady(
  context: ServerContext,
  { endpoint, credentials, used }: Prepared,
  spawned: Spawned,
): Promise<RunningServer> {
  const { files, signal, startTimeoutMs } = context;
  const { pid, exited } = spawned;
  const timeoutMs = startTimeoutMs + Math.ceil(used / 100e6) * RECOVERY_MS_PER_100_MB;
  const deadline = performance.now() + timeoutMs;
  let ended: string | null = null;
  void exited.then((how) => {
    ended = how;
  });
  let why = 'it did not answer';
  while (ended === null && performance.now() < deadline && !signal.aborted) {
    const probe = await probeServer(endpoint, credentials);
    if ('why' in probe) why = probe.why;
    else if (ended === null)
      return { endpoint, credentials, version: probe.version, pid, adopted: false, exited };
    await sleep(PROBE_PAUSE_MS);
  }
  const how: string | null = ended; // before `endChild` changes it
  await endChild(spawned);
  if (signal.aborted) throw new ParleyError('NATS_SERVER_STOPPED', 'the nats-server is being stopped');
  const tail = await tailOfLog(files, spawned.logFrom);
  if (how !== null && /address already in use/i.test(tail)) throw portInUse(files, endpoint);
  const what =
    how === null ? `was not ready after ${timeoutMs} ms (${why})` : `ended before it was ready (${how})`;
  throw new ParleyError(
    how === null ? 'NATS_SERVER_NOT_READY' : 'NATS_SERVER_FAILED',
    `the nats-server of ${files.directory} ${what}; its output:\n${tail || '(none)'}`,
    { hint: `read its log ${files.log} and its configuration ${files.configuration}` },
  );
}

/** Safe for a child whose exit was not seen yet: its process id cannot be reused. */
async function endChild(spawned: Spawned): Promise<void> {
  spawned.child.kill('SIGTERM');
  const forced = setTimeout(() => spawned.child.kill('SIGKILL'), END_TIMEOUT_MS);
  await spawned.exited;
  clearTimeout(forced);
}

interface ConfigurationInput extends Omit<Prepared, 'used'> {
  readonly files: ServerFiles;
  /** Bytes. */
  readonly maxFile: number;
}

/** The only address of the managed server. */
const LOOPBACK = '127.0.0.1';

const MEBIBYTE = 1024 * 1024;
const MAX_MEMORY = 256 * MEBIBYTE;
const LOG_SIZE_LIMIT = 10 * MEBIBYTE;

/** Since 2.10 a server can sync each message (`sync_interval: always`). */
export function canSyncAlways(version: string): boolean {
  return isAtLeast(version, [2, 10]);
}

/**
 * The configuration of the managed server.
 *
 * CONFIGURATION-1 It listens on loopback only and has one user with an nkey, so the configuration contains no secret.
 * CONFIGURATION-2 It has no key that the server's version does not know: the server would exit.
 * CONFIGURATION-3 `max_file` is never lower than what the streams contain and `PARLEY_DEAD` reserves: with less, nats-server 2.9.10
 *    does not load those streams, and reports that only in its log.
 */
export function renderConfiguration(input: ConfigurationInput): string {
  const { files, endpoint, credentials } = input;
  const lines = [
    '# Written by parley at every start of the server. Changes in this file are lost.',
    `server_name: ${quote(endpoint.name)}`,
    `host: ${quote(LOOPBACK)}`,
    `port: ${endpoint.port}`,
    `authorization { users: [{ nkey: ${quote(credentials.user)} }] }`,
    `max_payload: ${MEBIBYTE}`,
    // Disconnects a dead client after 10 s, one that reads too slowly after 5 s.
    'ping_interval: "5s"',
    'ping_max: 2',
    'write_deadline: "5s"',
    `pid_file: ${quote(files.pidFile)}`,
    `log_file: ${quote(files.log)}`,
    `logfile_size_limit: ${LOG_SIZE_LIMIT}`,
    'jetstream {',
    `  store_dir: ${quote(files.directory)}`,
    `  max_mem: ${MAX_MEMORY}`,
    `  max_file: ${input.maxFile}`,
    ...(canSyncAlways(input.version) ? ['  sync_interval: always'] : []),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

/** The server's escapes are a subset of JSON's, which is sufficient for paths. */
function quote(text: string): string {
  return JSON.stringify(text);
}

/** The server's share of a disk; the rest is for the logs and other programs. */
const SHARE_OF_DISK = 0.75;
/** Room for the streams of the daemon on a disk that is nearly full. */
const LEAST_MAX_FILE = 512 * MEBIBYTE;

/** The limit of all streams together, in bytes. `free`: the free bytes of the disk. */
export function sizeMaxFile(free: number, used: number): number {
  return Math.floor(Math.max((free + used) * SHARE_OF_DISK, used + LEAST_MAX_FILE));
}
