import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, ftruncateSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullDiskError, messageOf, openPrivate, ParleyError } from '../../../../kernel/index.ts';
import type { RunningServer, ServerContext } from '../context.ts';
import {
  type Credentials,
  type Endpoint,
  readCredentials,
  readEndpoint,
  readRecord,
  removeLeftovers,
  type ServerRecord,
  writeCredentials,
  writeDocument,
  writeWhole,
} from '../directory.ts';
import { inspectBinary } from '../install/version.ts';
import type { HeldLock } from '../lock.ts';
import { choosePort, isPortFree, LOOPBACK } from '../port.ts';
import { maxFileFor, measureStore, renderConfiguration } from './configuration.ts';
import { probeServer } from './probe.ts';
import { logLength, pruneRotatedLogs, tailOfLog } from './server-log.ts';

/**
 * Starts a server on a directory whose lock this process holds.
 *
 * LAUNCH-1 Files are written only while the lock is held.
 * LAUNCH-2 The server inherits the lock before this process releases it.
 * LAUNCH-3 A server that is not ready in time is ended before the error is thrown.
 */

export type LaunchOutcome =
  | { readonly kind: 'running'; readonly server: RunningServer }
  /** Another program took the newly chosen port: choose another one. */
  | { readonly kind: 'port-lost' };

interface Prepared {
  readonly endpoint: Endpoint;
  /** The port was chosen now and may still change. */
  readonly fresh: boolean;
  readonly credentials: Credentials;
  readonly version: string;
}

interface Spawned {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<string>;
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
export async function launchServer(context: ServerContext, lock: HeldLock): Promise<LaunchOutcome> {
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
  const { files, log } = context;
  const version = context.version ?? (await inspectBinary(context.binary, context.host)).version;
  await removeLeftovers(files);
  await pruneRotatedLogs(files);
  const { endpoint, fresh } = await settleEndpoint(context);
  const credentials = await settleCredentials(context);
  const { maxFile, free } = await maxFileFor(files, context.host);
  if (free < LITTLE_DISK)
    log('warn', `only ${Math.floor(free / 1024 / 1024)} MiB are free on the disk of ${files.directory}`);
  const input = { files, endpoint, credentials, version, maxPayload: context.maxPayload, maxFile };
  await writeWhole(files.configuration, renderConfiguration(input));
  // Both are of an ended server, because the lock was free.
  await rm(files.record, { force: true });
  await rm(files.pidFile, { force: true });
  return { endpoint, fresh, credentials, version };
}

async function settleEndpoint(context: ServerContext): Promise<{ endpoint: Endpoint; fresh: boolean }> {
  const { files, log } = context;
  const written = await readEndpoint(files, log);
  const known = written ?? (await readRecord(files, log));
  if (known) {
    const endpoint = { port: known.port, name: known.name };
    if (!(await isPortFree(endpoint.port))) throw portInUse(context, endpoint);
    if (!written) await writeDocument(files.endpoint, endpoint);
    return { endpoint, fresh: false };
  }
  const endpoint = { port: await choosePort(), name: `parley-${randomBytes(6).toString('hex')}` };
  await writeDocument(files.endpoint, endpoint);
  log('info', `the nats-server of ${files.directory} uses port ${endpoint.port} from now on`);
  return { endpoint, fresh: true };
}

async function settleCredentials(context: ServerContext): Promise<Credentials> {
  return (await readCredentials(context.files, context.log)) ?? writeCredentials(context.files);
}

async function spawnServer(context: ServerContext, lock: HeldLock): Promise<Spawned> {
  const { files } = context;
  const logFrom = await logLength(files);
  const output = openPrivate(files.output);
  try {
    ftruncateSync(output);
    const child = spawnPrivately(context.binary, ['-c', files.configuration], {
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
    throw new ParleyError(
      'NATS_SERVER_UNUSABLE',
      `${context.binary} cannot be started: ${messageOf(error)}`,
      {
        hint: 'set NATS_BIN to a working nats-server',
        cause: error,
      },
    );
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

async function recordServer(context: ServerContext, prepared: Prepared, spawned: Spawned): Promise<void> {
  const startedAt = new Date().toISOString();
  const record: ServerRecord = {
    pid: spawned.pid,
    ...prepared.endpoint,
    version: prepared.version,
    startedAt,
  };
  try {
    await writeDocument(context.files.record, record);
  } catch (error) {
    await endChild(spawned);
    throw error;
  }
}

async function untilReady(
  context: ServerContext,
  prepared: Prepared,
  spawned: Spawned,
): Promise<LaunchOutcome> {
  const { used } = await measureStore(context.files.store);
  const timeoutMs = context.startTimeoutMs + Math.ceil(used / 100e6) * RECOVERY_MS_PER_100_MB;
  const deadline = performance.now() + timeoutMs;
  let ended: string | null = null;
  void spawned.exited.then((how) => {
    ended = how;
  });
  let why = 'it did not answer';
  while (ended === null && performance.now() < deadline && !context.signal.aborted) {
    const probe = await probeServer(prepared.endpoint, prepared.credentials);
    if (probe.kind === 'ready' && ended === null)
      return { kind: 'running', server: runningServer(prepared, spawned, probe.version) };
    if (probe.kind === 'not-ready') why = probe.why;
    await sleep(PROBE_PAUSE_MS);
  }
  const failure = { ended, why, timeoutMs }; // before `endChild` changes `ended`
  await endChild(spawned);
  return explainFailure(context, prepared, spawned, failure);
}

function runningServer(prepared: Prepared, spawned: Spawned, version: string): RunningServer {
  const { endpoint, credentials } = prepared;
  return { endpoint, credentials, version, pid: spawned.pid, adopted: false, exited: spawned.exited };
}

async function explainFailure(
  context: ServerContext,
  prepared: Prepared,
  spawned: Spawned,
  failure: { ended: string | null; why: string; timeoutMs: number },
): Promise<LaunchOutcome> {
  const { files } = context;
  if (context.signal.aborted)
    throw new ParleyError('NATS_SERVER_STOPPED', 'the nats-server is being stopped');
  const tail = await tailOfLog(files, spawned.logFrom);
  if (failure.ended !== null && /address already in use/i.test(tail)) {
    if (!prepared.fresh) throw portInUse(context, prepared.endpoint);
    await rm(files.endpoint, { force: true });
    await rm(files.record, { force: true });
    return { kind: 'port-lost' };
  }
  const what =
    failure.ended === null
      ? `was not ready after ${failure.timeoutMs} ms (${failure.why})`
      : `ended before it was ready (${failure.ended})`;
  throw new ParleyError(
    failure.ended === null ? 'NATS_SERVER_NOT_READY' : 'NATS_SERVER_FAILED',
    `the nats-server of ${files.directory} ${what}; its output:\n${tail || '(none)'}`,
    { hint: `read its log ${files.log} and its configuration ${files.configuration}` },
  );
}

function portInUse(context: ServerContext, endpoint: Endpoint): ParleyError {
  const { endpoint: file, record, directory } = context.files;
  return new ParleyError(
    'NATS_PORT_IN_USE',
    `port ${endpoint.port} on ${LOOPBACK}, which the nats-server of ${directory} uses, is taken by another program`,
    {
      hint: `stop that program, or change "port" in ${file}; if you remove that file and ${record}, a free port is chosen`,
    },
  );
}

/** Safe for a child whose exit was not seen yet: its process id cannot be reused. */
async function endChild(spawned: Spawned): Promise<void> {
  spawned.child.kill('SIGTERM');
  const forced = setTimeout(() => spawned.child.kill('SIGKILL'), END_TIMEOUT_MS);
  await spawned.exited;
  clearTimeout(forced);
}
