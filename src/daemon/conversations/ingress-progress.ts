import type { StreamPosition } from '../../bus/index.ts';
import type { ConversationState } from '../../conversation/index.ts';
import { isCovered } from '../../persistence/index.ts';

/**
 * How far the posts of the ingress stream are in the logs: overall, and for one conversation. A deletion needs it to cover
 * the conversation's posts that the stream still has.
 *
 * INGRESS-PROGRESS-1  `reached` is never after a post of the conversation that is neither in its log nor refused: that post
 *                     starts the conversation again and must not be lost.
 * INGRESS-PROGRESS-2  `reached` is never before a post that is in the log: that post would return after a crash.
 */
export class IngressProgress {
  /** Every post up to here is settled. */
  #settled: StreamPosition | null;
  /** Another store settled this post: it is not delivered here, except by `--replay`. */
  isElsewhere: (position: StreamPosition) => boolean = () => false;
  /** By conversation: its newest durable post, while that is after `#settled`. */
  readonly #taken = new Map<string, StreamPosition>();

  constructor(stored: StreamPosition | null) {
    this.#settled = stored;
  }

  /** A post is durable. Call it before anything else can happen to its conversation (INGRESS-PROGRESS-2). */
  took(conversation: string, position: StreamPosition): void {
    const known = this.#taken.get(conversation);
    if (known?.stream === position.stream && known.sequence > position.sequence) return;
    this.#taken.set(conversation, position);
  }

  /** Every post up to there is in a log or refused, as far as this daemon knows. */
  isSettled(position: StreamPosition): boolean {
    return position.sequence === 0 || isCovered(position, this.#settled);
  }

  /** 0: the stream lost its newest posts, and other posts get their sequences. */
  settledUpTo(position: StreamPosition): void {
    this.#settled = position;
    if (position.sequence === 0) this.#taken.clear();
    for (const [conversation, taken] of this.#taken) {
      if (taken.stream !== position.stream || taken.sequence <= position.sequence)
        this.#taken.delete(conversation);
    }
  }

  /**
   * The position up to which this conversation's posts are in its log or refused; null: none was read. `inLog`: the newest
   * post in its log, which another daemon may have appended.
   */
  reached(conversation: string, inLog?: ConversationState['ingress']): StreamPosition | null {
    if (inLog?.stream) this.took(conversation, { stream: inLog.stream, sequence: inLog.sequence });
    const taken = this.#taken.get(conversation);
    const settled = this.#settled;
    if (!taken || !settled || taken.stream !== settled.stream) return taken ?? settled;
    return taken.sequence > settled.sequence ? taken : settled;
  }
}
