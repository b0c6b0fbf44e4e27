/** Names along the path of a post: `Delivery` (raw, here), `Post` (decoded, `post.ts`), `Entry` (stored, in the log). */

/** A position in the ingress stream. `stream` identifies one life of it: it changes when the stream is created again. */
export interface StreamPosition {
  readonly stream: string;
  readonly sequence: number;
}

/** The raw message of a post. */
export interface Delivery {
  readonly position: StreamPosition;
  /** When the stream stored it: milliseconds since the epoch, by the broker's clock. */
  readonly takenAt: number;
  /** A deterministic id for a post that names none: a redelivery has the same one. */
  readonly fallbackId: string;
  readonly publisher: string;
  readonly conversation: string;
  readonly body: Uint8Array;
  /** The header `Nats-Msg-Id`, if any. */
  readonly messageId: string | null;
  /** The header `traceparent`, if any. */
  readonly traceparent?: string | null;
  /** Milliseconds by which it is too early for its publisher's rate, as `onRead` decided; absent: not decided. */
  readonly waitMs?: number;
  /** A replay delivers it although it was refused, and gives it no second letter (`fate.ts`). */
  readonly hasLetter?: boolean;
}

/** A delivery when it is read, before it waits to be delivered. */
export interface DeliveryHead extends Omit<Delivery, 'body' | 'waitMs'> {
  /** Bytes of its body. */
  readonly bytes: number;
}

/** The decision on a post that was read. */
export type Reading =
  | { readonly kind: 'deliver'; readonly waitMs: number }
  /** Refused with others of its publisher, and settled when `kept` resolves; if it rejects the post stays unsettled. */
  | { readonly kind: 'refused'; readonly kept: Promise<void> };

/** Posts of one publisher that were refused together. */
export interface RefusedRuns {
  /** The life of the ingress stream. */
  readonly stream: string;
  readonly count: number;
  /** Of their bodies; an estimate of unread ones. */
  readonly bytes: number;
  /** When the stream stored the first and the last of them: milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** First and last sequence of each run; all posts of this publisher in a run were refused. In ascending order. */
  readonly runs: readonly (readonly [number, number])[];
}

/** Posts of one publisher that were not read. Those of others between the first and the last sequence do not count. */
export interface UnreadPosts extends Omit<RefusedRuns, 'runs'> {
  readonly publisher: string;
  readonly first: number;
  readonly last: number;
}

/** Posts that need a person's decision, because they may have an answer that is in no log of this store (`settled.ts`). */
export interface OldPosts {
  /** The name of the ingress stream. */
  readonly stream: string;
  readonly count: number;
  /** A start that skips up to here answers none of these. */
  readonly last: number;
  /** When the stream stored the first and the last, if nothing is known of them (SETTLED-7); null: a backup lacks them (SETTLED-9). */
  readonly time: { readonly from: number; readonly to: number } | null;
  /** The store that settled them; null: not known. */
  readonly by: string | null;
}

/** The last post that a store does not answer: the newest now, one by its sequence, or the newest of a time in milliseconds. */
export type SkipUntil =
  | { readonly kind: 'now' }
  | { readonly kind: 'sequence'; readonly sequence: number }
  | { readonly kind: 'time'; readonly time: number };

/** Posts that a store does not answer, although nothing is known to have settled them. */
export interface SkippedPosts {
  /** Reading continues after it. */
  readonly position: StreamPosition;
  /** By publisher. */
  readonly posts: ReadonlyMap<string, RefusedRuns>;
}
