import { coalesce, messageOf, sleep } from '../../kernel/index.ts';
import type { IngressPosition } from '../port.ts';
import type { Documents } from './documents.ts';

const KEY = 'ingress';
/** Posts settle more often than the position has to be saved: it may lag. */
const EVERY_MS = 200;

/** How far the ingress stream was read: the newest is saved, and not every one before it. */
export class LatestPosition {
  readonly #documents: Documents;
  readonly #closing = new AbortController();
  readonly #save: () => Promise<void>;
  #newest: IngressPosition | null = null;
  #saved: IngressPosition | null = null;
  #saving: Promise<void> = Promise.resolve();

  constructor(documents: Documents, onFailure: (reason: string) => void) {
    this.#documents = documents;
    this.#save = coalesce(async () => {
      await sleep(EVERY_MS, this.#closing.signal);
      const newest = this.#newest;
      if (newest === this.#saved) return;
      try {
        await documents.put(KEY, newest);
        this.#saved = newest;
      } catch (error) {
        onFailure(messageOf(error));
      }
    });
  }

  async get(): Promise<IngressPosition | null> {
    return this.#newest ?? ((await this.#documents.get(KEY)) as IngressPosition | null);
  }

  set(position: IngressPosition): void {
    this.#newest = { ...position };
    this.#saving = this.#save();
  }

  /** Saves what is newer than what was saved. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#saving;
  }
}
