import { hostname } from 'node:os';
import { type NatsConnection, RequestStrategy, type Service } from 'nats';
import { messageOf, ParleyError, sleep } from '../../../kernel/index.ts';
import type { BusLog } from '../../log.ts';
import type { Subjects } from '../../subjects.ts';

/**
 * Which daemons may serve one server and prefix. Two with logs of their own would both answer every post; those whose
 * logs are in a stream share them, and so the work.
 *
 * CLAIM-1 A daemon is seen before it looks for others: of two that start together, one at least sees the other.
 * CLAIM-2 Who serves stays. Of those that begin together the one with the smallest id goes on, as soon as the others are gone;
 *    if one of them has not seen it and serves, that one stays.
 * CLAIM-3 Nothing is written down: a daemon that was killed answers nothing, and so never blocks the next.
 */

export type StoreKind = 'file' | 'jetstream';

/** What each daemon says of itself in the answers of its micro service. Its `state` changes (SERVICE-4 in `service.ts`). */
export interface Presence {
  readonly prefix: string;
  readonly host: string;
  readonly pid: string;
  /** Where its logs are. */
  readonly store: StoreKind;
  /** `migration`: it is no daemon, but keeps all of them away. */
  readonly work?: 'migration';
  state?: 'starting' | 'serving';
}

/** How long an answer may take: from the other end of a wide network, or of a busy process. */
const LOOK_MS = 400;
/** Between two looks at a daemon that has not decided yet. */
const PAUSE_MS = 50;

export function presenceOf({ prefix }: Subjects, store: StoreKind, work?: 'migration'): Presence {
  return { prefix, host: hostname(), pid: `${process.pid}`, store, ...(work && { work }) };
}

export interface ClaimOptions {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  readonly log: BusLog;
}

/** Throws `DAEMON_ALREADY_SERVING`. The service answers already (CLAIM-1); `presence` is what it says. */
export async function claim(options: ClaimOptions, service: Service, presence: Presence): Promise<void> {
  const own = service.info().id;
  for (;;) {
    const others = (await look(options, own)).filter((other) => !worksBeside(other, presence));
    const ahead = others.find((other) => other.state === 'serving' || other.id < own);
    if (ahead) throw alreadyServing(options, ahead);
    if (others.length === 0) break;
    await sleep(PAUSE_MS); // CLAIM-2: they see this one and end, or have not seen it and serve
  }
  presence.state = 'serving';
}

/** One that does not say where its logs are is of a version that shares nothing. */
function worksBeside(other: Other, presence: Presence): boolean {
  return other.store === 'jetstream' && presence.store === 'jetstream';
}

interface Other {
  readonly id: string;
  readonly host: string | undefined;
  readonly pid: string | undefined;
  readonly store: string | undefined;
  readonly work: string | undefined;
  readonly state: string | undefined;
}

async function look({ connection, subjects, log }: ClaimOptions, own: string): Promise<Other[]> {
  const others: Other[] = [];
  let sawItself = false;
  try {
    const asked = connection.services.client({ strategy: RequestStrategy.Timer, maxWait: LOOK_MS });
    for await (const { id, metadata } of await asked.info(subjects.service)) {
      if (id === own) sawItself = true;
      else if (metadata?.prefix === subjects.prefix) {
        const { host, pid, store, work, state } = metadata;
        others.push({ id, host, pid, store, work, state });
      }
    }
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'asking for other daemons failed');
  }
  if (!sawItself)
    log.warn({}, 'whether another daemon serves here could not be seen; going on as the only one');
  return others;
}

function alreadyServing({ connection, subjects }: ClaimOptions, other: Other): ParleyError {
  const { host, pid, store, work } = other;
  if (work === 'migration') {
    const where = `${subjects.prefix}.> on nats://${connection.getServer()}`;
    return new ParleyError(
      'MIGRATION_RUNNING',
      `\`parley migrate\` (process ${pid} on ${host}) moves the conversations of ${where}`,
      { hint: 'wait until it has ended, and try again' },
    );
  }
  const message = `another daemon (process ${pid} on ${host}, store ${store ?? 'file'}) serves ${subjects.prefix}.> on nats://${connection.getServer()}`;
  return new ParleyError('DAEMON_ALREADY_SERVING', message, {
    hint: 'stop that one, start both with --store jetstream, or give this one a subjectPrefix of its own (parley.yaml, or PARLEY_SUBJECT_PREFIX)',
  });
}
