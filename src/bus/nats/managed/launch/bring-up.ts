import { setTimeout as sleep } from 'node:timers/promises';
import { ParleyError } from '../../../../kernel/index.ts';
import type { RunningServer, ServerContext } from '../context.ts';
import { endServer } from '../end.ts';
import { takeLock } from '../lock.ts';
import type { ManagedLog } from '../log.ts';
import { adoptServer } from './adopt.ts';
import { launchServer } from './launch.ts';

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
