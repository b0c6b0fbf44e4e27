import { messageOf } from './errors.ts';

/**
 * An abort controller that its parent aborts too. Call `unlink` when its scope ends, or a long-lived parent collects
 * listeners (as `AbortSignal.any` does on Node 20).
 */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  unlink(): void;
}

interface Followers {
  readonly controllers: Set<AbortController>;
  readonly abortAll: () => void;
}

/** By parent, which has one listener for all of them: a signal searches its listeners when one is added or removed. */
const followersOf = new WeakMap<AbortSignal, Followers>();

export function linkedAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  if (parent.aborted) controller.abort(parent.reason);
  else follow(parent, controller);
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => unfollow(parent, controller),
  };
}

function follow(parent: AbortSignal, controller: AbortController): void {
  const known = followersOf.get(parent);
  if (known) return void known.controllers.add(controller);
  const controllers = new Set([controller]);
  const abortAll = () => {
    followersOf.delete(parent);
    for (const one of controllers) one.abort(parent.reason);
  };
  followersOf.set(parent, { controllers, abortAll });
  parent.addEventListener('abort', abortAll, { once: true });
}

function unfollow(parent: AbortSignal, controller: AbortController): void {
  const known = followersOf.get(parent);
  if (!known?.controllers.delete(controller) || known.controllers.size > 0) return;
  followersOf.delete(parent);
  parent.removeEventListener('abort', known.abortAll);
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
  const link = linkedAbort(signal);
  try {
    return await Promise.race([
      work,
      new Promise<never>((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        link.signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    ]);
  } finally {
    link.unlink();
  }
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
