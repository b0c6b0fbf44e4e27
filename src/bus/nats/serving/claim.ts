import { hostname } from 'node:os';
import { ErrorCode, type NatsConnection, NatsError, RequestStrategy, type Service } from 'nats';
import { messageOf, ParleyError, sleep } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import type { Subjects } from '../../subjects.ts';

/**
 * Decides which daemons may serve one server and prefix. Two daemons with their own logs would both answer every post;
 * daemons whose logs are in JetStream share them and the work.
 *
 * CLAIM-1 A daemon is visible before it searches for others: of two that start together, at least one sees the other. In a
 *    cluster of servers it is visible elsewhere a little later, so there it searches until it has been visible for a while.
 *    Servers that are joined as leaf nodes do not report it: of two daemons that start on both sides at once, both may serve.
 * CLAIM-2 A serving daemon keeps serving. Of several that start together, the one with the smallest id continues once the
 *    others have ended; if one of these did not see it and serves already, that one continues.
 * CLAIM-3 Nothing is stored: a killed daemon does not answer, and so never blocks the next one.
 * CLAIM-4 On a connection without echo the own service is not asked. If the server then reports no responders, no other
 *    daemon is connected, and the search ends at once.
 */

export type StoreKind = 'file' | 'jetstream';

/** The metadata of each daemon's micro service. Its `state` changes (SERVICE-4 in `service.ts`). */
export interface Presence {
  readonly prefix: string;
  readonly host: string;
  readonly pid: string;
  /** Where its logs are. */
  readonly store: StoreKind;
  /** `migration`: a migration, which excludes all daemons. */
  readonly work?: 'migration';
  state?: 'starting' | 'serving';
}

/** Enough for an answer over a wide network or from a busy process. Without any other daemon the search is shorter (CLAIM-4). */
const ANSWER_TIMEOUT_MS = 400;
/** Pause before another search while a daemon is undecided. */
const PAUSE_MS = 50;
/** CLAIM-1: more than a subscription takes to the other servers of a cluster, also over a wide network. */
const SPREAD_MS = 400;

export function presenceOf({ prefix }: Subjects, store: StoreKind, work?: 'migration'): Presence {
  return { prefix, host: hostname(), pid: `${process.pid}`, store, ...(work && { work }) };
}

interface ClaimOptions {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  readonly log: BusLog;
}

/** Throws `DAEMON_ALREADY_SERVING`. `service` answers already (CLAIM-1), with `presence` as its metadata. */
export async function claim(options: ClaimOptions, service: Service, presence: Presence): Promise<void> {
  const own = service.info().id;
  const visibleFrom = performance.now() + (options.connection.info?.cluster ? SPREAD_MS : 0);
  for (;;) {
    const isVisible = performance.now() >= visibleFrom;
    const others = (await findOthers(options, own)).filter((other) => !canShareWith(other, presence));
    const ahead = others.find((other) => other.state === 'serving' || other.id < own);
    if (ahead) throw alreadyServing(options, ahead);
    if (others.length === 0 && isVisible) break;
    await sleep(PAUSE_MS); // CLAIM-1; CLAIM-2: the others end, or serve because they did not see this one
  }
  presence.state = 'serving';
}

/** A daemon without `store` is of a version that cannot share. */
function canShareWith(other: Other, presence: Presence): boolean {
  return other.store === 'jetstream' && presence.store === 'jetstream';
}

/** The metadata that another daemon reports. */
type Other = { readonly id: string } & { readonly [field in keyof Presence]?: string };

async function findOthers({ connection, subjects, log }: ClaimOptions, own: string): Promise<Other[]> {
  const others: Other[] = [];
  let isAnswered = false;
  try {
    const asked = connection.services.client({ strategy: RequestStrategy.Timer, maxWait: ANSWER_TIMEOUT_MS });
    for await (const { id, metadata } of await asked.info(subjects.service)) {
      isAnswered = true;
      if (id !== own && metadata?.prefix === subjects.prefix) others.push({ ...metadata, id });
    }
  } catch (error) {
    if (error instanceof NatsError && error.code === ErrorCode.NoResponders) return [];
    log.warn({ reason: messageOf(error) }, 'the search for other daemons failed');
  }
  if (!isAnswered)
    log.warn(
      {},
      `no daemon answered the search within ${ANSWER_TIMEOUT_MS} ms; continuing as the only daemon`,
    );
  return others;
}

function alreadyServing({ connection, subjects }: ClaimOptions, other: Other): ParleyError {
  const { host, pid, store, work } = other;
  if (work === 'migration') {
    const where = `${subjects.prefix}.> on nats://${connection.getServer()}`;
    return new ParleyError(
      'MIGRATION_RUNNING',
      `\`parley migrate\` (process ${pid} on ${host}) is moving the conversations of ${where}`,
      { hint: 'wait until it has ended, then try again' },
    );
  }
  const message = `another daemon (process ${pid} on ${host}, store ${store ?? 'file'}) serves ${subjects.prefix}.> on nats://${connection.getServer()}`;
  return new ParleyError('DAEMON_ALREADY_SERVING', message, {
    hint: 'stop the other daemon, start both with --store jetstream, or give this one its own subjectPrefix (parley.yaml, or PARLEY_SUBJECT_PREFIX)',
  });
}
