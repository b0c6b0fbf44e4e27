import type { IngressLag, StreamPosition } from '../../bus/index.ts';
import type { Clock } from '../../kernel/index.ts';
import { isCovered } from '../../persistence/index.ts';

/**
 * How far the ingress stream is in the logs: in all of them, and in that of one conversation. Known so that a
 * conversation can be deleted together with its posts, which the stream still has.
 *
 * INGRESS-PROGRESS-1 `reached` never passes a post of that conversation that is not in its log (or refused): what comes behind it
 *    begins a new life of the conversation and must not be lost.
 * INGRESS-PROGRESS-2 It is never short of one that is in the log: that post would come back after a crash.
 */
export class IngressProgress {
  /** Every post up to here is settled. */
  #settled: StreamPosition | null;
  #isElsewhere: (position: StreamPosition) => boolean = () => false;
  /** By conversation: its newest durable post, as long as that stands behind `#settled`. */
  readonly #taken = new Map<string, StreamPosition>();

  constructor(stored: StreamPosition | null) {
    this.#settled = stored;
  }

  /** A post is durable. Called at once, before anything else can happen to its conversation (INGRESS-PROGRESS-2). */
  took(conversation: string, position: StreamPosition): void {
    const known = this.#taken.get(conversation);
    if (known?.stream === position.stream && known.sequence > position.sequence) return;
    this.#taken.set(conversation, position);
  }

  skips(isElsewhere: (position: StreamPosition) => boolean): void {
    this.#isElsewhere = isElsewhere;
  }

  /** Another store settled this post: it is not delivered here, except by `--replay`. */
  isElsewhere(position: StreamPosition): boolean {
    return this.#isElsewhere(position);
  }

  /** Every post up to there is in a log or refused, as far as is known here. */
  isSettled(position: StreamPosition): boolean {
    return position.sequence === 0 || isCovered(position, this.#settled);
  }

  /** At 0 the stream has lost its end: other posts have, or get, the places that are known. */
  settledUpTo(position: StreamPosition): void {
    this.#settled = position;
    if (position.sequence === 0) this.#taken.clear();
    for (const [conversation, taken] of this.#taken) {
      if (taken.stream !== position.stream || taken.sequence <= position.sequence)
        this.#taken.delete(conversation);
    }
  }

  /**
   * Up to where this conversation's posts are in its log or refused; null: none was read. `inLog`: the newest one that
   * its log holds, where others may have put it there.
   */
  reached(
    conversation: string,
    inLog?: { readonly stream: string | null; readonly sequence: number },
  ): StreamPosition | null {
    if (inLog?.stream) this.took(conversation, { stream: inLog.stream, sequence: inLog.sequence });
    const taken = this.#taken.get(conversation);
    const settled = this.#settled;
    if (!taken || !settled || taken.stream !== settled.stream) return taken ?? settled;
    return taken.sequence > settled.sequence ? taken : settled;
  }
}

/** Asked of the broker at most so often, however many ask for it. */
const FRESH_MS = 1_000;

/** What the ingress stream has that is not in a log yet; null while nobody can say. Never rejects. */
export function createLagMeter(
  read: () => Promise<IngressLag | null>,
  elapsed: Clock,
): () => Promise<IngressLag | null> {
  let asked: { readonly at: number; readonly lag: Promise<IngressLag | null> } | null = null;
  return () => {
    if (asked === null || elapsed() - asked.at >= FRESH_MS)
      asked = { at: elapsed(), lag: read().catch(() => null) };
    return asked.lag;
  };
}
