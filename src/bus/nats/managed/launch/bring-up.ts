import { setTimeout as sleep } from 'node:timers/promises';
import { ParleyError } from '../../../../kernel/index.ts';
import type { RunningServer, ServerContext } from '../context.ts';
import { readCredentials, readEndpoint, readRecord } from '../directory.ts';
import type { ManagedLog } from '../host.ts';
import { takeLock } from '../lock.ts';
import { findServerProcess } from '../process.ts';
import { launchServer } from './launch.ts';
import { probeServer } from './probe.ts';

/**
 * Starts or adopts a server, at the first start and at every restart: the process that gets the lock launches a server, every
 * other one adopts it. So two daemons that start at once use one server.
 */

const PAUSE_MS = 100;
/** Longer than a launch by another process takes. */
const EXTRA_TIMEOUT_MS = 5_000;

/** Throws when neither succeeds in time. */
export async function bringUp(given: ServerContext): Promise<RunningServer> {
  const context = { ...given, log: withoutRepeats(given.log) };
  const deadline =
    performance.now() + context.startTimeoutMs + Math.min(context.startTimeoutMs, EXTRA_TIMEOUT_MS);
  for (;;) {
    context.signal.throwIfAborted();
    const lock = await takeLock(context.files.lock);
    if (lock) {
      const outcome = await launchServer(context, lock);
      if (outcome.kind === 'running') return outcome.server;
    } else {
      const outcome = await adoptServer(context);
      if (outcome.kind === 'adopted') return outcome.server;
      if (performance.now() > deadline) throw directoryInUse(context, outcome.why, outcome.pid);
    }
    await sleep(PAUSE_MS);
  }
}

function directoryInUse(context: ServerContext, why: string, pid: number | null): ParleyError {
  const { directory, lock } = context.files;
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

/**
 * Adopts a running server.
 *
 * BRING-UP-1 Only a server with this directory's name and credentials, whose process was started with this directory's
 *    configuration, is adopted, because `stop()` will end exactly that process.
 * BRING-UP-2 No file is written, because the holder of the lock may be writing.
 */
type Adoption =
  | { readonly kind: 'adopted'; readonly server: RunningServer }
  | { readonly kind: 'not-yet'; readonly why: string; readonly pid: number | null };

async function adoptServer(context: ServerContext): Promise<Adoption> {
  const { files, host, log } = context;
  const pid = await findServerProcess(files, host, log);
  if (pid === null) return notYet('no server process of this directory is known', null);
  const credentials = await readCredentials(files, log);
  if (!credentials) return notYet(`${files.seed} is missing or damaged`, pid);
  // The record of the running server first: the endpoint file may have been edited for the next start.
  const endpoint = (await readRecord(files, log)) ?? (await readEndpoint(files, log));
  if (!endpoint) return notYet(`${files.endpoint} is missing or damaged`, pid);
  const probe = await probeServer(endpoint, credentials);
  if (probe.kind === 'not-ready') return notYet(probe.why, pid);
  if (probe.maxPayload !== context.maxPayload) {
    const wanted = `max_payload should be ${context.maxPayload}, and is ${probe.maxPayload}`;
    log('warn', `the running nats-server keeps its settings until it is stopped: ${wanted}`);
  }
  const server = { endpoint, credentials, pid, version: probe.version, adopted: true, exited: null };
  return { kind: 'adopted', server };
}

function notYet(why: string, pid: number | null): Adoption {
  return { kind: 'not-yet', why, pid };
}
