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
  const follow = () => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => parent.removeEventListener('abort', follow),
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
