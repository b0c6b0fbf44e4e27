import { access } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ParleyError } from '../../../../kernel/index.ts';
import type { RunningServer, ServerContext } from '../context.ts';
import { readCredentials, readEndpoint, readRecord } from '../directory.ts';
import { endServer } from '../end.ts';
import { takeLock } from '../lock.ts';
import type { ManagedLog } from '../log.ts';
import { findServerProcess } from '../process.ts';
import { launchServer } from './launch.ts';
import { probeServer } from './probe.ts';

/**
 * One way up, for the first start and for every restart: whoever gets the lock launches a server, everybody else
 * adopts it. So two daemons that start at once end up with one server.
 */

const PAUSE_MS = 100;
/** Longer than a launch by somebody else may take. */
const EXTRA_PATIENCE_MS = 5_000;

/** Throws when neither can be done in bounded time. */
export async function bringUp(given: ServerContext): Promise<RunningServer> {
  const context = { ...given, log: withoutRepeats(given.log) };
  const deadline =
    performance.now() + context.startTimeoutMs + Math.min(context.startTimeoutMs, EXTRA_PATIENCE_MS);
  for (;;) {
    context.signal.throwIfAborted();
    const lock = await takeLock(context.files.lock);
    if (lock) {
      const outcome = await launchServer(context, lock);
      if (outcome.kind === 'running') return outcome.server;
    } else {
      const outcome = await adoptServer(context);
      if (outcome.kind === 'adopted') return outcome.server;
      if (outcome.kind === 'outdated') {
        context.log('info', 'the nats-server of an older version is started anew, without a password');
        await endServer(context);
        continue;
      }
      if (performance.now() > deadline) throw directoryInUse(context, outcome.why, outcome.pid);
    }
    await sleep(PAUSE_MS);
  }
}

function directoryInUse(context: ServerContext, why: string, pid: number | null): ParleyError {
  const { directory, lock } = context.files;
  return new ParleyError(
    'NATS_DIRECTORY_IN_USE',
    `${directory} is locked by another process, and its nats-server cannot be taken over: ${why}`,
    {
      hint:
        pid === null
          ? `see who holds ${lock} (lsof ${lock}) and stop it, or choose another directory with --data`
          : `stop it (kill ${pid}) and start again, or choose another directory with --data`,
    },
  );
}

/** A wait looks at the same files again and again; what is wrong with one is said once. */
function withoutRepeats(log: ManagedLog): ManagedLog {
  const said = new Set<string>();
  return (level, message, fields) => {
    if (said.has(message)) return;
    said.add(message);
    log(level, message, fields);
  };
}

/**
 * Taking over a server that runs already.
 *
 * BRING-UP-1 Only one that answers to this directory's name and credentials, and whose process was started on this
 *    directory's configuration, is adopted: `stop()` will have to end exactly that process.
 * BRING-UP-2 Nothing is written: whoever holds the lock may be writing.
 */
export type Adoption =
  | { readonly kind: 'adopted'; readonly server: RunningServer }
  /** An older version started it with a password, which is not sent to any port: it is to be started anew. */
  | { readonly kind: 'outdated' }
  | { readonly kind: 'not-yet'; readonly why: string; readonly pid: number | null };

export async function adoptServer(context: ServerContext): Promise<Adoption> {
  const { files, host, log } = context;
  const pid = await findServerProcess(files, host, log);
  if (pid === null) return notYet('no process that was started on this directory is known', null);
  const credentials = await readCredentials(files, log);
  if (!credentials) {
    if (await exists(files.oldPassword)) return { kind: 'outdated' };
    return notYet(`${files.seed} is missing or damaged`, pid);
  }
  // What runs counts: the other file may have been edited since, for the next start.
  const endpoint = (await readRecord(files, log)) ?? (await readEndpoint(files, log));
  if (!endpoint) return notYet(`${files.endpoint} is missing or damaged`, pid);
  const probe = await probeServer(endpoint, credentials);
  if (probe.kind === 'not-ready') return notYet(probe.why, pid);
  if (probe.maxPayload !== context.maxPayload) {
    const wanted = `max_payload ${context.maxPayload} is wanted, ${probe.maxPayload} is in force`;
    log('warn', `the nats-server that runs keeps its settings until it is stopped: ${wanted}`);
  }
  const server = { endpoint, credentials, pid, version: probe.version, adopted: true, exited: null };
  return { kind: 'adopted', server };
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function notYet(why: string, pid: number | null): Adoption {
  return { kind: 'not-yet', why, pid };
}
