import type { UnderlyingSource } from 'node:stream/web';

/**
 * Sends frames as server-sent events.
 *
 * PROGRESS-EVENT-STREAM-1 The next frame is made when the client has space for it.
 * PROGRESS-EVENT-STREAM-2 An idle stream sends heartbeat comments: only a write detects a broken connection.
 * PROGRESS-EVENT-STREAM-3 A client that disconnects, or reads nothing between two heartbeats, ends the stream.
 * PROGRESS-EVENT-STREAM-4 An error in making a frame is reported and ends the body: the server would only print it.
 */

const HEARTBEAT = ': still here\n\n';

export interface EventStreamOptions {
  readonly heartbeatMs: number;
  /** The body has ended or the client has disconnected. */
  readonly onGone: () => void;
  /** Called with a bug in the making of frames. */
  readonly onFault: (error: unknown) => void;
}

export function eventStream(frames: AsyncIterator<string>, options: EventStreamOptions): Response {
  const body = new ReadableStream<Uint8Array>(new FrameSource(frames, options), {
    highWaterMark: 0,
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  });
}

const ENDED = { done: true, value: undefined } as const;

class FrameSource implements UnderlyingSource<Uint8Array> {
  readonly #frames: AsyncIterator<string>;
  readonly #options: EventStreamOptions;
  readonly #heart: NodeJS.Timeout;
  readonly #encoder = new TextEncoder();
  /** The next frame, in progress. */
  #coming: Promise<IteratorResult<string, unknown>> | null = null;
  /** `pull` waits for a frame. */
  #isAsked = false;
  /** Heartbeats since the last `pull`. */
  #missed = 0;
  #beat: () => void = () => undefined;

  constructor(frames: AsyncIterator<string>, options: EventStreamOptions) {
    this.#frames = frames;
    this.#options = options;
    this.#heart = setInterval(() => this.#onBeat(), options.heartbeatMs);
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#missed = 0;
    this.#isAsked = true;
    this.#coming ??= this.#frames.next();
    const beat = new Promise<null>((resolve) => {
      this.#beat = () => resolve(null);
    });
    const next = await Promise.race([this.#coming, beat]).catch((error: unknown) => {
      this.#options.onFault(error);
      return ENDED;
    });
    this.#isAsked = false;
    if (next === null) {
      controller.enqueue(this.#encoder.encode(HEARTBEAT));
      return;
    }
    this.#coming = null;
    if (!next.done) controller.enqueue(this.#encoder.encode(next.value));
    else {
      this.#gone();
      controller.close();
    }
  }

  cancel(): void {
    this.#gone();
  }

  #onBeat(): void {
    if (this.#isAsked) this.#beat();
    else if (++this.#missed > 1) this.#gone();
  }

  #gone(): void {
    clearInterval(this.#heart);
    this.#options.onGone();
  }
}
