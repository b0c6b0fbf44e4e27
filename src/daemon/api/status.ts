import {
  type AnswerOf,
  type BackOffStatus,
  type Bus,
  type IngressLag,
  MOST_STATUS_ROWS,
  type RequestOf,
  STATUS_ROWS,
  type StatusGroups,
} from '../../bus/index.ts';
import { spentTogether } from '../../conversation/index.ts';
import { type Clock, within } from '../../kernel/index.ts';
import type { Activity } from '../conversations/activity.ts';
import type { ListedRow } from '../conversations/projections.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { ModelHealth } from '../team/health.ts';
import { absentMsOf, type Team } from '../team/team.ts';

/** The verb `status`: collects what this daemon knows and builds the answer from it. */

type Status = AnswerOf<'status'>;
type DaemonStatus = Status['daemons'][number];

/** What does not change while the daemon runs. */
export type DaemonFacts = Required<
  Pick<DaemonStatus, 'daemon' | 'version' | 'pid' | 'startedAt' | 'store' | 'data' | 'nats' | 'http'>
>;

interface Known {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly rows: readonly ListedRow[];
  /** Ids of the conversations that this daemon owns. */
  readonly held: readonly string[];
  readonly facts: DaemonFacts;
  readonly servers: NonNullable<DaemonStatus['servers']>;
  readonly models: DaemonStatus['models'];
  readonly programs: DaemonStatus['programs'];
  readonly backOff?: readonly BackOffStatus[];
  readonly agents: Status['agents'];
  readonly lag: IngressLag | null;
  readonly deadLetters: number | null;
}

export interface StatusParts {
  readonly team: Team;
  readonly now: Clock;
  readonly health: Pick<ModelHealth, 'backingOff'>;
  readonly workers: Pick<Workers, 'rows' | 'held'>;
  readonly bus: Pick<Bus, 'isAgentConnected' | 'ingressLag' | 'deadLetters'>;
  readonly facts: DaemonFacts;
  readonly metrics: Pick<Metrics, 'models' | 'programs'>;
}

/** For an answer of the server: on a full disk it may give none. */
const SERVER_MS = 1_000;

export async function collectStatus(
  parts: StatusParts,
  { limit, days }: RequestOf<'status'>,
): Promise<Status> {
  const { team, now, workers, bus, facts } = parts;
  const remote = [...team.rules.roster.agents.values()].filter((card) => card.runtime === 'bus');
  const [rows, lag, deadLetters, agents] = await Promise.all([
    workers.rows(days),
    soon(bus.ingressLag()),
    soon(bus.deadLetters.count()),
    Promise.all(
      remote.map(async ({ slug }) => ({
        agent: slug,
        connected: await bus.isAgentConnected(slug),
        absent: absentMsOf(team, slug) === null ? ('fail' as const) : ('wait' as const),
      })),
    ),
  ]);
  const servers = team.toolbox.servers?.() ?? [];
  const models = parts.metrics.models(team.models.names);
  const programs = parts.metrics.programs(remote.map(({ slug }) => slug));
  const counted = { models, programs };
  const backOff = backOffOf(team, parts.health, now());
  const known = { now: now(), backOff, rows, held: workers.held, facts, servers, agents, lag, deadLetters };
  return statusFrom({ ...known, ...counted }, limit);
}

function backOffOf({ models }: Team, health: StatusParts['health'], now: number): BackOffStatus[] {
  return models.names.flatMap((model) => {
    const client = models.get(model);
    if (!client) return [];
    return (client.keys ?? [client]).flatMap((one, at) => {
      const found = health.backingOff(one);
      if (!found) return [];
      const { code, failures, leftMs } = found;
      const until = new Date(now + leftMs).toISOString();
      return [{ model, ...(client.keys && { key: at + 1 }), code, failures, until }];
    });
  });
}

/** Null if the server does not answer: the status names what the daemon itself knows. */
function soon<T>(lookedUp: Promise<T>): Promise<T | null> {
  return within(SERVER_MS, lookedUp).catch(() => null);
}

/** The answer from what the daemon knows. */
export function statusFrom(known: Known, limit = STATUS_ROWS): Status {
  const { facts, servers, models, programs, backOff = [], held, lag, agents, deadLetters } = known;
  const most = Math.min(limit, MOST_STATUS_ROWS);
  const oldest = lag?.oldestTakenAt ?? null;
  const shown = servers.map(({ server, state, leftOut, error }) => ({
    server,
    state,
    ...(leftOut && { leftOut: [...leftOut] }),
    ...(error === undefined ? {} : { error }),
  }));
  return {
    at: new Date(known.now).toISOString(),
    ...statusGroups(known.rows, most),
    deadLetters,
    queue: lag && {
      posts: lag.messages,
      oldestAt: oldest === null ? null : new Date(oldest).toISOString(),
    },
    daemons: [
      {
        ...facts,
        servers: shown,
        ...(models && { models }),
        ...(programs && { programs }),
        ...(backOff.length > 0 && { backOff: [...backOff] }),
        owns: { count: held.length, first: held.slice(0, most) },
      },
    ],
    agents,
    ...spentIn(known.rows),
  };
}

/** Empty if the rows do not have it. */
function spentIn(rows: readonly ListedRow[]): Pick<Status, 'spent'> {
  const all = rows.flatMap(({ spent }) => (spent === undefined ? [] : [spent]));
  return all.length === 0 ? {} : { spent: spentTogether(all.flat()) };
}

/** Running and waiting: longest first. The others: newest first. */
export function statusGroups(rows: readonly ListedRow[], most = STATUS_ROWS): StatusGroups {
  const all = rows.flatMap(({ id, title, activity = [] }) =>
    activity.map((one) => ({ ...one, conversation: id, title })),
  );
  const group = (status: Activity['status'], isNewestFirst = false) => {
    const found = all.filter((one) => one.status === status);
    const sign = isNewestFirst ? -1 : 1;
    found.sort((a, b) => sign * ((a.since ?? '') < (b.since ?? '') ? -1 : 1));
    return { count: found.length, first: found.slice(0, most) };
  };
  return {
    conversations: rows.length,
    running: group('running'),
    waiting: group('waiting'),
    limited: group('limited', true),
    stopped: group('stopped', true),
    failed: group('failed', true),
  };
}

/**
 * Joins the answers of daemons that share logs; the first is this daemon's own. `rows` is the list that they answer together.
 * Dead letters, the queue and agents on the bus are the same for all.
 */
export function mergeStatus(
  answers: readonly { readonly daemons: readonly object[] }[],
  {
    rows,
    silent,
    limit,
  }: { rows: readonly ListedRow[]; silent: readonly string[]; limit: number | undefined },
): object {
  const missing = silent.map((daemon) => ({ daemon, error: 'it did not answer in time' }));
  return {
    ...answers[0],
    ...statusGroups(rows, limit),
    ...spentIn(rows),
    daemons: [...answers.flatMap(({ daemons }) => daemons), ...missing],
    ...(silent.length > 0 && { incomplete: silent }),
  };
}
