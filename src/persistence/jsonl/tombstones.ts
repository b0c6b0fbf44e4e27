import type { Deletion, IngressPosition } from '../port.ts';
import { byId, isBeyond, isCovered } from '../rules.ts';
import { type LazyDocument, openLazyDocument } from './documents.ts';
import type { StoreLog } from './log/log-file.ts';
import { parseTombstones, type Tombstone } from './projections.ts';

/**
 * Tombstones of deleted conversations, whose posts may still be in the ingress stream.
 *
 * TOMBSTONES-1 A tombstone is durable before the log of its conversation is touched.
 * TOMBSTONES-2 It never moves back within one life of the stream, unless the stream lost the post that it names.
 * TOMBSTONES-3 A tombstone of a new life of the stream removes those of earlier lives: their posts are gone.
 */
export class Tombstones {
  readonly #document: LazyDocument<{ deleted: Tombstone[] }>;
  readonly #byId: Map<string, Tombstone>;

  static async open(path: string, log: StoreLog): Promise<Tombstones> {
    const empty = { deleted: [] };
    return new Tombstones(await openLazyDocument({ path, empty, parse: parseTombstones, log }));
  }

  private constructor(document: LazyDocument<{ deleted: Tombstone[] }>) {
    this.#document = document;
    this.#byId = new Map(document.data.deleted.map((tombstone) => [tombstone.id, tombstone]));
  }

  get(conversation: string): IngressPosition | null {
    const found = this.#byId.get(conversation);
    return found ? { stream: found.stream, sequence: found.sequence } : null;
  }

  all(): Deletion[] {
    return [...this.#byId.values()].map(({ id, ...place }) => ({ conversation: id, ...place }));
  }

  /** Resolves when it is durable (TOMBSTONES-1). */
  async put(conversation: string, { stream, sequence }: IngressPosition): Promise<void> {
    if (!isCovered({ stream, sequence }, this.#byId.get(conversation))) {
      for (const [id, other] of this.#byId) if (other.stream !== stream) this.#byId.delete(id); // TOMBSTONES-3
      this.#byId.set(conversation, { id: conversation, stream, sequence });
      this.#changed();
    }
    await this.#document.flush(); // also for a known position: its save may have failed
  }

  /** TOMBSTONES-2. Resolves when it is durable. */
  async cut(end: () => Promise<IngressPosition>): Promise<void> {
    const known = [...this.#byId.values()];
    const { stream, sequence } = await end();
    for (const tombstone of known) {
      const { id } = tombstone;
      if (this.#byId.get(id) === tombstone && isBeyond(tombstone, { stream, sequence }))
        this.#byId.set(id, { id, stream, sequence });
    }
    this.#changed();
    await this.#document.flush();
  }

  #changed(): void {
    this.#document.change(() => ({ deleted: [...this.#byId.values()].sort(byId) }));
  }

  close(): Promise<void> {
    return this.#document.close();
  }
}
