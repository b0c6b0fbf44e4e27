import type { UnderlyingSource } from 'node:stream/web';

/**
 * Frames as the body of a response of server-sent events.
 *
 * B1 The next frame is made when the other side has room for it.
 * B2 Where nothing else is said there is a comment now and then: a connection that broke is found by writing to it.
 * B3 Whoever goes away, or takes nothing between two comments, ends the making of frames; so does a frame that cannot be
 *    made.
 */

const HEARTBEAT = ': still here\n\n';

export function eventStream(
  frames: AsyncIterator<string>,
  { heartbeatMs, onGone }: { heartbeatMs: number; onGone: () => void },
): Response {
  const body = new ReadableStream<Uint8Array>(new FrameSource(frames, heartbeatMs, onGone), {
    highWaterMark: 0,
  });
  return new Response(body, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  });
}

class FrameSource implements UnderlyingSource<Uint8Array> {
  readonly #frames: AsyncIterator<string>;
  readonly #onGone: () => void;
  readonly #heart: NodeJS.Timeout;
  readonly #encoder = new TextEncoder();
  /** The frame that is being made. */
  #coming: Promise<IteratorResult<string, unknown>> | null = null;
  /** Asked for a frame, which is not there yet. */
  #isAsked = false;
  /** Beats since it was asked for a frame. */
  #missed = 0;
  #beat: () => void = () => undefined;

  constructor(frames: AsyncIterator<string>, heartbeatMs: number, onGone: () => void) {
    this.#frames = frames;
    this.#onGone = onGone;
    this.#heart = setInterval(() => this.#onBeat(), heartbeatMs);
  }

  /** B1 */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#missed = 0;
    this.#isAsked = true;
    this.#coming ??= this.#frames.next();
    const beat = new Promise<null>((resolve) => {
      this.#beat = () => resolve(null);
    });
    const next = await Promise.race([this.#coming, beat]).catch((error: unknown) => {
      this.#gone(); // B3
      throw error;
    });
    this.#isAsked = false;
    if (next === null) {
      controller.enqueue(this.#encoder.encode(HEARTBEAT)); // B2
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
    else if (++this.#missed > 1) this.#gone(); // B3
  }

  #gone(): void {
    clearInterval(this.#heart);
    this.#onGone();
  }
}
