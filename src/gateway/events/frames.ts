import type { LiveChunk } from '../../bus/port.ts';
import type { Entry } from '../../conversation/index.ts';

/** Server-sent events as bytes. JSON holds no line break, so one `data:` line is enough. */

const encoder = new TextEncoder();

/** The id is the entry's index: what `Last-Event-ID` brings back. */
export function entryFrame(entry: Entry): Uint8Array {
  return encoder.encode(`id: ${entry.index}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`);
}

/** Without an id: live text is not kept, and a reader that comes back does not ask for it. */
export function liveFrame(agent: string, chunk: LiveChunk): Uint8Array {
  return encoder.encode(`event: live\ndata: ${JSON.stringify({ agent, ...chunk })}\n\n`);
}

/** The reader is told why, and how long to wait before it comes again. */
export function farewellFrame(code: string, message: string): Uint8Array {
  return encoder.encode(`event: end\ndata: ${JSON.stringify({ code, message })}\n\n`);
}

export const HEARTBEAT: Uint8Array = encoder.encode(': still here\n\n');
/** Sent first: a browser shows the stream as open, and comes back after a second. */
export const GREETING: Uint8Array = encoder.encode('retry: 1000\n\n');
