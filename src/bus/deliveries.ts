/** A post as a bus hands it over, and where it stands. */

/** A place in the ingress stream. `stream` names one life of it (it changes when the stream is made anew). */
export interface StreamPosition {
  readonly stream: string;
  readonly sequence: number;
}

/** A post as it came from the stream, undecoded. */
export interface IngressDelivery {
  readonly position: StreamPosition;
  /** When the stream took it: milliseconds since the epoch, of the broker's clock. */
  readonly takenAt: number;
  /** A deterministic id for a post that names none: the same delivery has the same one for ever. */
  readonly fallbackId: string;
  readonly publisher: string;
  readonly conversation: string;
  /** Whether the name of the author is the publisher's own; absent: the daemon did not say. */
  readonly isNameBound?: boolean;
  readonly body: Uint8Array;
  /** The header `Nats-Msg-Id`, if any. */
  readonly messageId: string | null;
  /** The daemon that it came through, which waits to hear what becomes of it. */
  readonly origin?: string | null;
}
