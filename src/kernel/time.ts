import { createContext, Script } from 'node:vm';
import { messageOf } from './errors.ts';

const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

export const DURATION_PATTERN = /^([1-9]\d{0,5})([smhdw])$/;
export const DURATION_FORM = 'a whole number with s, m, h, d or w, such as 90d';

/** The longest delay of `setTimeout`; a timer with a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Milliseconds of `90d`; null: not a duration. */
export function durationOf(text: string): number | null {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  return count && unit ? Number(count) * (UNITS[unit] ?? 0) : null;
}

/** True if a version such as `2.10.27-beta.1` is not below `least`. */
export function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
  for (const [place, number] of least.entries()) {
    const part = parts[place] ?? 0;
    if (part !== number) return part > number;
  }
  return true;
}

/** A time in milliseconds. Injected, so that the core stays pure. */
export type Clock = () => number;

/** Milliseconds since the epoch. The system clock may jump: for dates only, never for durations. */
export const systemClock: Clock = () => Date.now();

/** Milliseconds since an arbitrary time. Never jumps: for durations and deadlines. */
export const monotonicClock: Clock = () => performance.now();

/** Timers of a clock, which may be simulated. */
export interface Timers {
  /** Calls `run` after `ms`; returns how to prevent it. `unref`: the timer does not keep the process alive. */
  after(ms: number, run: () => void, options?: { readonly unref?: boolean }): () => void;
  /** Resolves after `ms`, or as soon as the signal aborts. */
  readonly sleep: typeof sleep;
}

export const systemTimers: Timers = {
  after(ms, run, { unref = false } = {}) {
    const timer = setTimeout(run, ms);
    if (unref) timer.unref();
    return () => clearTimeout(timer);
  },
  sleep,
};

const SCRIPT = new Script('work()');
/** Created at first use, since that takes milliseconds. */
let context: { work: (() => unknown) | null } | null = null;

/** Runs in all, when earlier ones timed out because the process got no CPU time. */
const MAX_RUNS = 5;

/**
 * Stops synchronous work after a timeout: a foreign pattern such as `^(a+)+$` would block the process. Throws what the work
 * throws, or `ERR_SCRIPT_EXECUTION_TIMEOUT`. The work may run more than once on a busy machine: it must change nothing.
 */
export function inTime<Result>(work: () => Result, timeoutMs: number): Result {
  for (let run = 1; ; run++) {
    const before = process.cpuUsage();
    try {
      return runOnce(work, timeoutMs);
    } catch (error) {
      const { user, system } = process.cpuUsage(before);
      const hadCpuTime = (user + system) / 1000 >= timeoutMs / 2;
      if (!isTimeout(error) || hadCpuTime || run === MAX_RUNS) throw error;
    }
  }
}

function runOnce<Result>(work: () => Result, timeoutMs: number): Result {
  // Not a sandbox: the work is our own code. The script's timeout also ends a regular expression.
  context ??= createContext({ work: null }) as { work: (() => unknown) | null };
  const outer = context.work;
  context.work = work;
  try {
    return SCRIPT.runInContext(context, { timeout: timeoutMs });
  } finally {
    context.work = outer;
  }
}

/** The error is of the other context, so it is not an `instanceof Error` here. */
export function isTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

const OVERDUE_MS = 7 * 86_400_000;

/**
 * Whether something was due for more than a week. Where that is so for the newest that is due, the clock may have been set forward:
 * such a clock makes everything due.
 */
export function isOverdue(at: string, age: number, now: number): boolean {
  return now - Date.parse(at) > age + OVERDUE_MS;
}

/**
 * An abort controller that its parent aborts too. Call `unlink` when its scope ends, or a long-lived parent collects
 * listeners (as `AbortSignal.any` does on Node 20).
 */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  unlink(): void;
}

export function linkedAbort(parent?: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: onAbort(parent ? [parent] : [], () => controller.abort(parent?.reason)),
  };
}

/** Calls `then` once one of the signals aborts, or has. Returns how to end that: a signal may outlive what listens. */
export function onAbort(signals: readonly AbortSignal[], then: () => void): () => void {
  const listener = () => then(); // a signal keeps one listener of the same function
  for (const signal of signals) signal.addEventListener('abort', listener, { once: true });
  if (signals.some(({ aborted }) => aborted)) then();
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener);
  };
}

/** Resolves after `ms`, or as soon as the signal aborts. Clears its timer. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** Timers that stop while anything is waited for, and then begin again; `stop` ends them. */
export class PausableTimers {
  readonly #begin: () => readonly NodeJS.Timeout[];
  #running: readonly NodeJS.Timeout[];
  #waits = 0;
  #isOver = false;

  constructor(begin: () => readonly NodeJS.Timeout[]) {
    this.#begin = begin;
    this.#running = begin();
  }

  async paused<Value>(wait: () => Promise<Value>): Promise<Value> {
    this.#waits += 1;
    this.#clear();
    try {
      return await wait();
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0 && !this.#isOver) this.#running = this.#begin();
    }
  }

  refreshFirst(): void {
    this.#running[0]?.refresh();
  }

  stop(): void {
    this.#isOver = true;
    this.#clear();
  }

  #clear(): void {
    for (const timer of this.#running) clearTimeout(timer);
  }
}

/** The result; null if it takes longer. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  const over = new AbortController();
  try {
    return await Promise.race([work, sleep(ms, over.signal).then(() => null)]);
  } finally {
    over.abort();
  }
}

/** The result, or the reason of the signal as an error. The work itself goes on. */
export async function abortable<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work;
  const over = new AbortController();
  try {
    return await Promise.race([
      work,
      new Promise<never>((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        const options = { once: true, signal: over.signal };
        signal.addEventListener('abort', () => reject(signal.reason), options);
      }),
    ]);
  } finally {
    over.abort();
  }
}

/** Runs the work on one key in the order of the calls. What fails holds up nothing. */
export class InOrder {
  readonly #tails = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const done = (this.#tails.get(key) ?? Promise.resolve()).then(work);
    const tail = done
      .catch(() => undefined) // its own caller gets the error
      .then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    this.#tails.set(key, tail);
    return done;
  }

  /** Resolves when nothing runs and nothing waits, or nothing of this key. */
  async idle(key?: string): Promise<void> {
    if (key === undefined) while (this.#tails.size > 0) await Promise.all(this.#tails.values());
    else while (this.#tails.has(key)) await this.#tails.get(key);
  }
}

/** The same, without keys. */
export function inOrder(): <T>(work: () => Promise<T>) => Promise<T> {
  const order = new InOrder();
  return (work) => order.run('', work);
}

/** At most so many at a time, in their order. */
export async function concurrently<Item>(
  items: Iterable<Item>,
  most: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const waiting = items[Symbol.iterator]();
  const loops = Array.from({ length: most }, async () => {
    for (let next = waiting.next(); !next.done; next = waiting.next()) await work(next.value);
  });
  await Promise.all(loops);
}

/** Releases resources in reverse order of acquisition. A release that fails does not prevent the others. */
export class Releasers {
  readonly #stack: { readonly name: string; readonly release: () => unknown }[] = [];
  #released: Promise<string[]> | null = null;

  add(name: string, release: () => unknown): void {
    this.#stack.push({ name, release });
  }

  /** Idempotent: later calls share the first run. Returns the failures, by name. */
  release(): Promise<string[]> {
    this.#released ??= this.#run();
    return this.#released;
  }

  async #run(): Promise<string[]> {
    const failures: string[] = [];
    for (let item = this.#stack.pop(); item; item = this.#stack.pop()) {
      try {
        await item.release();
      } catch (error) {
        failures.push(`${item.name}: ${messageOf(error)}`);
      }
    }
    return failures;
  }
}

/** The grace period of a stop: one for all waits, starting with the first. */
export class Grace {
  readonly #milliseconds: number;
  #over: Promise<void> | null = null;
  readonly #done = new AbortController();

  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** Resolves when the work or the grace period ends. */
  async within(work: Promise<void>): Promise<void> {
    this.#over ??= sleep(this.#milliseconds, this.#done.signal);
    await Promise.race([work, this.#over]);
  }

  /** Ends the period and clears its timer. */
  end(): void {
    this.#done.abort();
  }
}
