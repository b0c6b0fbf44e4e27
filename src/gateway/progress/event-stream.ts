import type { UnderlyingSource } from 'node:stream/web';
import { onAbort } from '../../kernel/index.ts';
import { faultsOf, type Request } from '../context.ts';

/**
 * Sends frames as server-sent events.
 *
 * PROGRESS-EVENT-STREAM-1 The next frame is made when the client has space for it.
 * PROGRESS-EVENT-STREAM-2 An idle stream sends heartbeat comments: only a write detects a broken connection.
 * PROGRESS-EVENT-STREAM-3 A client that disconnects ends the stream. One that reads nothing is disconnected (GATEWAY-4).
 * PROGRESS-EVENT-STREAM-4 An error in making a frame is reported and ends the body: the server would only print it.
 */

const HEARTBEAT = ': still here\n\n';

export interface EventStreamOptions {
  readonly heartbeatMs: number;
  /** Aborted when the daemon stops. */
  readonly closing: AbortSignal;
  /** The body has ended, the client has disconnected or the daemon stops: no frame is made of what comes later. */
  readonly onGone: () => void;
  /** Called with a bug in the making of frames. */
  readonly onFault: (error: unknown) => void;
}

/** The answer to a request, beside the headers that its route has set. `onGone`: as in `EventStreamOptions`. */
export function streamed(
  context: Request,
  frames: AsyncIterator<string | Uint8Array>,
  onGone: () => void,
): Response {
  const { heartbeatMs, closing } = context.var.routes;
  const response = eventStream(frames, { heartbeatMs, closing, onGone, onFault: faultsOf(context) });
  return context.newResponse(response.body, response);
}

const ENDED = { done: true, value: undefined } as const;

export function eventStream(
  frames: AsyncIterator<string | Uint8Array>,
  { heartbeatMs, closing, onGone, onFault }: EventStreamOptions,
): Response {
  const bytesOf = (frame: string | Uint8Array) => (typeof frame === 'string' ? Buffer.from(frame) : frame);
  let isComing = false;
  let arrived: IteratorResult<string | Uint8Array, unknown> | null = null;
  /** Ends the wait of `pull`, if it waits. */
  let wake: (() => void) | null = null;
  const heart = setInterval(() => wake?.(), heartbeatMs);
  const detach = onAbort([closing], onGone);
  const end = () => {
    clearInterval(heart);
    detach();
    onGone();
  };
  const ask = async () => {
    isComing = true;
    arrived = await frames.next().catch((error: unknown) => {
      onFault(error);
      return ENDED;
    });
    isComing = false;
    wake?.();
  };
  const source: UnderlyingSource<Uint8Array> = {
    async pull(controller) {
      if (!isComing && !arrived) void ask();
      if (!arrived)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      wake = null;
      const next = arrived;
      arrived = null;
      if (!next) return controller.enqueue(bytesOf(HEARTBEAT));
      if (!next.done) return controller.enqueue(bytesOf(next.value));
      end();
      controller.close();
    },
    cancel: end,
  };
  const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers });
}
