import type { Deletion, IngressPosition } from '../port.ts';
import { isBeyond, isCovered } from '../rules.ts';
import type { Documents } from './documents.ts';

/** Keys of documents, followed by the conversation: up to where its posts are void, and what is being removed. */
const DELETED = 'deleted.';
const DELETING = 'deleting.';

/** What the store knows about deleted conversations, and about removals that are not finished. */
export class Deletions {
  readonly #documents: Documents;

  constructor(documents: Documents) {
    this.#documents = documents;
  }

  async upTo(conversation: string): Promise<IngressPosition | null> {
    return (await this.#documents.get(DELETED + conversation)) as IngressPosition | null;
  }

  /** Durable when it resolves. Never moves back within one life of the ingress stream. */
  async put(conversation: string, upTo: IngressPosition): Promise<void> {
    await this.#documents.change(DELETED + conversation, (known) =>
      isCovered(upTo, known as IngressPosition | null) ? null : upTo,
    );
  }

  /** Each position is read from the leader, since a migration compares what it has just written. */
  async all(): Promise<Deletion[]> {
    const found: Deletion[] = [];
    for (const conversation of (await this.#documents.keys(DELETED)).sort()) {
      const position = await this.upTo(conversation);
      if (position !== null) found.push({ conversation, ...position });
    }
    return found;
  }

  async cut(end: () => Promise<IngressPosition>): Promise<void> {
    const known = (await this.#documents.entries(DELETED)) as Map<string, IngressPosition>;
    const last = await end();
    for (const [conversation, position] of known) {
      if (!isBeyond(position, last)) continue;
      await this.#documents.change(DELETED + conversation, (now) =>
        (now as IngressPosition | null)?.stream === position.stream &&
        (now as IngressPosition).sequence === position.sequence
          ? last
          : null,
      );
    }
  }

  /** `log`: the sequence of the last append to remove. */
  async begin(conversation: string, log: number): Promise<void> {
    await this.#documents.put(DELETING + conversation, { log });
  }

  async finish(conversation: string): Promise<void> {
    await this.#documents.remove(DELETING + conversation);
  }

  /** Conversations whose removal began and did not finish. */
  unfinished(): Promise<string[]> {
    return this.#documents.keys(DELETING);
  }

  /** What `begin` recorded; true: an older version did not record a sequence; null: the removal is finished. */
  async begun(conversation: string): Promise<{ readonly log: number } | true | null> {
    return (await this.#documents.get(DELETING + conversation)) as { log: number } | true | null;
  }
}
