import { type Dice, dice } from './dice.ts';
import { type PlannedPost, planBatches, planPosts } from './posts-plan.ts';

/**
 * What happens in a run, decided before it begins.
 *
 * S1 Pure data: the same seed, length and list of crash points give the same schedule, on any machine.
 * S2 Faults of one lane follow one another; those of different lanes meet as they like.
 * S3 Every fault is over before the end of the time in which faults happen.
 */

/** What a fault is done to. Each lane is one actor, or one way between two. */
export const LANES = ['daemon', 'server', 'network', 'disk', 'model', 'tools'] as const;
export type Lane = (typeof LANES)[number];

export const FAULT_KINDS = {
  /** SIGKILL, and a new start `lastsMs` later. */
  'daemon-kill': 'daemon',
  /** SIGSTOP, and SIGCONT after `lastsMs`. */
  'daemon-freeze': 'daemon',
  /** SIGTERM, and a new start when it has ended and `lastsMs` have passed. */
  'daemon-stop': 'daemon',
  /** A start in which the daemon ends itself (SIGKILL) at a named point of its work; waited for `lastsMs` at most. */
  'daemon-crash': 'daemon',
  'server-kill': 'server',
  'server-freeze': 'server',
  'server-stop': 'server',
  /** Every connection through this proxy is reset, and none is taken for `lastsMs`. */
  'network-cut': 'network',
  /** Nothing is carried for `lastsMs`; it arrives afterwards. */
  'network-stall': 'network',
  /** What is carried arrives `delayMs` late. */
  'network-slow': 'network',
  /** No byte is free on the disk with the logs. */
  'disk-full': 'disk',
  /** No word of an answer. */
  'model-hang': 'model',
  'model-error': 'model',
  'model-busy': 'model',
  /** The connection ends in the middle of the words. */
  'model-drop': 'model',
  /** A call takes effect, and its answer comes when the fault is over. */
  'tools-slow': 'tools',
  /** A call takes effect, and its answer never comes. */
  'tools-drop': 'tools',
} as const satisfies Readonly<Record<string, Lane>>;
export type FaultKind = keyof typeof FAULT_KINDS;

export interface Fault {
  readonly kind: FaultKind;
  /** Milliseconds since the beginning. */
  readonly atMs: number;
  readonly lastsMs: number;
  /** Of a fault of the network: between the server and whom. */
  readonly between?: 'daemon' | 'publishers';
  readonly delayMs?: number;
  /** Of a fault of the daemon: it comes when the daemon is ready, not while it starts. */
  readonly onceReady?: boolean;
  /** Of a crash: where, and at the how manieth time. */
  readonly point?: { readonly name: string; readonly nth: number };
}

export interface Schedule {
  readonly seed: number;
  readonly seconds: number;
  readonly faults: readonly Fault[];
  readonly posts: readonly PlannedPost[];
  /** What becomes of those that are left when the faults are over: they are posted (the default), or never begun. */
  readonly posting?: 'all' | 'while-faults';
}

export interface ScheduleOptions {
  readonly seed: number;
  /** How long faults happen. */
  readonly seconds: number;
  readonly crashPoints: readonly string[];
}

interface Rhythm {
  /** Between the end of one fault and the begin of the next. Milliseconds, both ends included. */
  readonly pause: readonly [number, number];
  readonly lasts: readonly [number, number];
}

const RHYTHMS: Readonly<Record<Lane, Rhythm>> = {
  daemon: { pause: [800, 3_000], lasts: [50, 1_500] },
  server: { pause: [4_000, 10_000], lasts: [100, 2_500] },
  network: { pause: [2_000, 6_000], lasts: [200, 3_000] },
  disk: { pause: [6_000, 14_000], lasts: [500, 2_500] },
  model: { pause: [1_500, 5_000], lasts: [300, 3_000] },
  tools: { pause: [1_500, 5_000], lasts: [300, 2_000] },
};

/** How much more often than others a fault comes: a kill is what a daemon is most likely to meet. */
const WEIGHTS: Partial<Record<FaultKind, number>> = {
  'daemon-kill': 5,
  'daemon-freeze': 2,
  'daemon-crash': 2,
  'server-kill': 2,
};

/** A start takes its time, and the point is reached some time after it. */
const CRASH_LASTS = [3_000, 8_000] as const;

export function createSchedule({ seed, seconds, crashPoints }: ScheduleOptions): Schedule {
  const faults = LANES.flatMap((lane) => planLane(lane, seconds * 1_000, dice(seed, lane), crashPoints));
  return {
    seed,
    seconds,
    faults: faults.sort((a, b) => a.atMs - b.atMs || a.kind.localeCompare(b.kind)),
    posts: planPosts(seconds * 1_000, dice(seed, 'posts')),
  };
}

/** More than one crash ever asks for, so that none waits for posts that are not there. */
const BATCHES_PER_CRASH = 4;

/**
 * Nothing but crashes, one after the other, each waited for as long as `patienceMs` at most. A daemon is given a batch of
 * posts when it is ready, and further ones until it comes to its point: it is not time that decides what is reached.
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
    posts: planBatches(crashes.length * BATCHES_PER_CRASH, dice(seed, 'batches')),
    posting: 'while-faults',
  };
}

/** Of the faults of the daemon. The others may meet a start: it has to stand them, but one that never ends does no work. */
const READY_SHARE = 0.75;

function planLane(lane: Lane, endMs: number, roll: Dice, crashPoints: readonly string[]): Fault[] {
  const { pause, lasts } = RHYTHMS[lane];
  const all = Object.keys(FAULT_KINDS) as FaultKind[];
  const kinds = all
    .filter((kind) => FAULT_KINDS[kind] === lane)
    .flatMap((kind) => Array<FaultKind>(WEIGHTS[kind] ?? 1).fill(kind));
  const faults: Fault[] = [];
  for (let atMs = roll.between(0, pause[1]); ; ) {
    const kind = roll.pick(kinds);
    const fault = { kind, atMs, lastsMs: roll.between(...(kind === 'daemon-crash' ? CRASH_LASTS : lasts)) };
    const end = atMs + fault.lastsMs;
    if (end > endMs) return faults; // S3
    faults.push({ ...fault, ...details(fault.kind, roll, crashPoints) });
    atMs = end + roll.between(...pause); // S2
  }
}

function details(kind: FaultKind, roll: Dice, crashPoints: readonly string[]): Partial<Fault> {
  if (FAULT_KINDS[kind] === 'network') {
    const between = roll.pick(['daemon', 'publishers'] as const);
    return kind === 'network-slow' ? { between, delayMs: roll.between(5, 300) } : { between };
  }
  if (kind === 'daemon-crash') return { point: { name: roll.pick(crashPoints), nth: roll.between(1, 4) } };
  if (FAULT_KINDS[kind] === 'daemon') return { onceReady: roll.next() < READY_SHARE };
  return {};
}
