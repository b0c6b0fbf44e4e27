import { CRASH_POINTS } from '../../src/daemon/observe/crash-points.ts';
import { type PlannedPost, planBatches, planPosts } from './posts-plan.ts';
import { type Rng, rng } from './rng.ts';

/**
 * The faults and posts of a run, planned before it begins.
 *
 * SCHEDULE-1 Pure data: the same seed, length and list of crash points give the same schedule on any machine.
 * SCHEDULE-2 Faults of one lane follow one another; different lanes overlap freely. Each daemon has its own lane.
 * SCHEDULE-3 Every fault ends before the end of the fault phase.
 */

/** The target of a fault. Each lane is one actor, or one connection between two. */
export const LANES = ['daemon', 'server', 'network', 'disk', 'model', 'tools'] as const;
export type Lane = (typeof LANES)[number];

export const FAULT_KINDS = {
  /** SIGKILL, and a restart `lastsMs` later. */
  'daemon-kill': 'daemon',
  /** SIGSTOP, and SIGCONT after `lastsMs`. */
  'daemon-freeze': 'daemon',
  /** SIGTERM, and a restart `lastsMs` after its end. */
  'daemon-stop': 'daemon',
  /** A start in which the daemon kills itself at a named point of its work; awaited for at most `lastsMs`. */
  'daemon-crash': 'daemon',
  'server-kill': 'server',
  'server-freeze': 'server',
  'server-stop': 'server',
  /** Every connection through this proxy is reset, and none is accepted for `lastsMs`. */
  'network-cut': 'network',
  /** Nothing is forwarded for `lastsMs`; it arrives afterwards. */
  'network-stall': 'network',
  /** Data arrives `delayMs` late. */
  'network-slow': 'network',
  /** No byte is free on the disk with the logs. */
  'disk-full': 'disk',
  /** Nothing of an answer arrives. */
  'model-hang': 'model',
  'model-error': 'model',
  'model-busy': 'model',
  /** The connection ends in the middle of the text. */
  'model-drop': 'model',
  /** A call takes effect, and its answer arrives when the fault is over. */
  'tools-slow': 'tools',
  /** A call takes effect, and its answer never arrives. */
  'tools-drop': 'tools',
} as const satisfies Readonly<Record<string, Lane>>;
export type FaultKind = keyof typeof FAULT_KINDS;

export interface Fault {
  readonly kind: FaultKind;
  /** Milliseconds since the beginning. */
  readonly atMs: number;
  readonly lastsMs: number;
  /** For a fault of the network: the client side of the connection. */
  readonly between?: 'daemon' | 'publishers';
  readonly delayMs?: number;
  /** For a fault of a daemon or its connection: which daemon, from 0; absent if there is one. */
  readonly daemon?: number;
  /** For a fault of a server: which server, from 0; absent if there is one. */
  readonly server?: number;
  /** Targets the leader of the streams instead, if there is one. */
  readonly leader?: boolean;
  /** For a fault of the daemon: it waits until the daemon is ready. */
  readonly onceReady?: boolean;
  /** The delay after that: a daemon that always ends when it is ready would do no work and have nothing to lose. */
  readonly worksMs?: number;
  /** For a crash: the point, and the ordinal of its visit. */
  readonly point?: { readonly name: string; readonly nth: number };
}

export interface Schedule {
  readonly seed: number;
  readonly seconds: number;
  /** One by default. Several share their logs, which are kept in a stream. */
  readonly daemons?: number;
  /** One by default. Several are a cluster. */
  readonly servers?: number;
  readonly faults: readonly Fault[];
  readonly posts: readonly PlannedPost[];
  /** The posts that remain when the faults are over: posted (the default), or never begun. */
  readonly posting?: 'all' | 'while-faults';
}

export interface ScheduleOptions {
  readonly seed: number;
  /** The duration of the fault phase. */
  readonly seconds: number;
  /** All by default. */
  readonly crashPoints?: readonly string[];
  /** One by default. */
  readonly daemons?: number;
  /** One by default. */
  readonly servers?: number;
  /** Number of concurrent conversations. By default four, which are replaced each minute. */
  readonly conversations?: number;
}

interface Rhythm {
  /** Between the end of one fault and the begin of the next. Milliseconds, both ends included. */
  readonly pause: readonly [number, number];
  readonly lasts: readonly [number, number];
}

const RHYTHMS: Readonly<Record<Lane, Rhythm>> = {
  daemon: { pause: [200, 1_200], lasts: [50, 1_000] },
  server: { pause: [4_000, 10_000], lasts: [100, 2_500] },
  network: { pause: [2_000, 6_000], lasts: [200, 3_000] },
  disk: { pause: [6_000, 14_000], lasts: [500, 2_500] },
  model: { pause: [1_500, 5_000], lasts: [300, 3_000] },
  tools: { pause: [1_500, 5_000], lasts: [300, 2_000] },
};

/** Relative frequency: a kill is the most likely fault of a daemon. */
const WEIGHTS: Partial<Record<FaultKind, number>> = {
  'daemon-kill': 8,
  'daemon-freeze': 2,
  'server-kill': 2,
};

/** A start takes some time, and the point is reached some time after it. */
const CRASH_LASTS = [2_000, 5_000] as const;

/** With several daemons: rare enough that sometimes all are healthy, with freezes long enough to be noticed. */
const DAEMON_OF_SEVERAL: Rhythm = { pause: [3_000, 12_000], lasts: [50, 1_500] };
const LONGEST_FREEZE_MS = 30_000;
/** The maximum part of the run that a freeze lasts. */
const FREEZE_SHARE = 1 / 3;

interface Plan {
  readonly endMs: number;
  readonly crashPoints: readonly string[];
  readonly daemons: number;
  readonly servers: number;
}

export function createSchedule(options: ScheduleOptions): Schedule {
  const { seed, seconds, crashPoints = CRASH_POINTS, daemons = 1, servers = 1, conversations } = options;
  const plan = { endMs: seconds * 1_000, crashPoints, daemons, servers };
  const faults = LANES.flatMap((lane) => {
    if (daemons > 1 && lane === 'disk') return []; // the server has the logs
    if (lane !== 'daemon') return planLane(lane, plan, rng(seed, lane));
    return Array.from({ length: daemons }, (_, daemon) => {
      const planned = planLane(lane, plan, rng(seed, daemon === 0 ? lane : `${lane} ${daemon}`));
      return daemons > 1 ? planned.map((fault) => ({ ...fault, daemon })) : planned;
    }).flat();
  });
  return {
    seed,
    seconds,
    ...(daemons > 1 && { daemons }),
    ...(servers > 1 && { servers }),
    faults: faults.sort((a, b) => a.atMs - b.atMs || a.kind.localeCompare(b.kind)),
    posts: planPosts(plan.endMs, rng(seed, 'posts'), conversations),
  };
}

/** More batches than any crash needs, so that none waits for missing posts. */
const BATCHES_PER_CRASH = 4;

/**
 * Only crashes, one after the other, each awaited for at most `patienceMs`. A daemon gets a batch of posts when it
 * is ready, and further ones until it reaches its point, so progress does not depend on time.
 */
export function createCrashSchedule(
  seed: number,
  crashes: readonly NonNullable<Fault['point']>[],
  patienceMs: number,
): Schedule {
  return {
    seed,
    seconds: Math.ceil((crashes.length * patienceMs) / 1_000),
    faults: crashes.map((point) => ({ kind: 'daemon-crash', atMs: 0, lastsMs: patienceMs, point })),
    posts: planBatches(crashes.length * BATCHES_PER_CRASH, rng(seed, 'batches')),
    posting: 'while-faults',
  };
}

/** Faults with the same answer follow one another (SCHEDULE-2). */
export function laneOf({ kind, daemon = 0 }: Fault): string {
  const lane = FAULT_KINDS[kind];
  return lane === 'daemon' ? `${lane} ${daemon}` : lane;
}

/** For faults of servers. */
const LEADER_SHARE = 0.5;
const LONGEST_WORK_MS = 1_000;
/** For faults of the daemon. Some may hit a start, but a daemon that never finishes its start does no work. */
const READY_SHARE = 0.75;

function planLane(lane: Lane, plan: Plan, roll: Rng): Fault[] {
  const { pause } = rhythmOf(lane, plan);
  const all = Object.keys(FAULT_KINDS) as FaultKind[];
  const kinds = all
    .filter((kind) => FAULT_KINDS[kind] === lane)
    .flatMap((kind) => Array<FaultKind>(WEIGHTS[kind] ?? 1).fill(kind));
  const faults: Fault[] = [];
  for (let atMs = roll.between(0, pause[1]); ; ) {
    const kind = roll.pick(kinds);
    const fault = { kind, atMs, lastsMs: roll.between(...lastsOf(kind, plan, roll)) };
    const end = atMs + fault.lastsMs;
    if (end > plan.endMs) return faults; // SCHEDULE-3
    faults.push({ ...fault, ...details(fault.kind, plan, roll) });
    atMs = end + roll.between(...pause); // SCHEDULE-2
  }
}

function rhythmOf(lane: Lane, { daemons }: Plan): Rhythm {
  return daemons > 1 && lane === 'daemon' ? DAEMON_OF_SEVERAL : RHYTHMS[lane];
}

function lastsOf(kind: FaultKind, plan: Plan, roll: Rng): Rhythm['lasts'] {
  if (kind === 'daemon-crash') return CRASH_LASTS;
  const { lasts } = rhythmOf(FAULT_KINDS[kind], plan);
  if (kind !== 'daemon-freeze' || plan.daemons === 1 || roll.next() < 0.5) return lasts;
  const longest = Math.min(LONGEST_FREEZE_MS, Math.floor(plan.endMs * FREEZE_SHARE));
  return [Math.min(lasts[1], longest), longest];
}

function details(kind: FaultKind, { crashPoints, daemons, servers }: Plan, roll: Rng): Partial<Fault> {
  if (FAULT_KINDS[kind] === 'server')
    return servers > 1 ? { server: roll.between(0, servers - 1), leader: roll.next() < LEADER_SHARE } : {};
  if (FAULT_KINDS[kind] === 'network') {
    const between = roll.pick(['daemon', 'publishers'] as const);
    const daemon = daemons > 1 && between === 'daemon' ? { daemon: roll.between(0, daemons - 1) } : {};
    const way = { between, ...daemon };
    return kind === 'network-slow' ? { ...way, delayMs: roll.between(5, 300) } : way;
  }
  if (kind === 'daemon-crash') return { point: { name: roll.pick(crashPoints), nth: roll.between(1, 4) } };
  // With several daemons, one that only starts and never works would leave all work to the others.
  if (FAULT_KINDS[kind] !== 'daemon') return {};
  const onceReady = roll.next() < READY_SHARE || daemons > 1;
  return { onceReady, ...(onceReady && { worksMs: roll.between(0, LONGEST_WORK_MS) }) };
}
