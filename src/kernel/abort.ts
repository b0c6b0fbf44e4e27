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

export function linkedAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const abort = () => controller.abort(parent.reason);
  if (parent.aborted) abort();
  else parent.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => parent.removeEventListener('abort', abort),
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
