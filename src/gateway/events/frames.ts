import type { LiveChunk } from '../../bus/port.ts';
import type { Entry } from '../../conversation/index.ts';

/** Encodes server-sent events. JSON has no line break, so one `data:` line is enough. */

const encoder = new TextEncoder();

/** The id is the entry's index, returned by clients in `Last-Event-ID`. */
export function entryFrame(entry: Entry): Uint8Array {
  return encoder.encode(`id: ${entry.index}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`);
}

/** Without an id: live text is not stored and cannot be requested again. */
export function liveFrame(agent: string, chunk: LiveChunk): Uint8Array {
  return encoder.encode(`event: live\ndata: ${JSON.stringify({ agent, ...chunk })}\n\n`);
}

/** The reason for the end of the stream. */
export function farewellFrame(code: string, message: string): Uint8Array {
  return encoder.encode(`event: end\ndata: ${JSON.stringify({ code, message })}\n\n`);
}

export const HEARTBEAT: Uint8Array = encoder.encode(': still here\n\n');
/** Sent first: the browser reports the stream as open, and reconnects after a second. */
export const GREETING: Uint8Array = encoder.encode('retry: 1000\n\n');
