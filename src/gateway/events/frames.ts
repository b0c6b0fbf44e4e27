import type { Entry, LiveChunk } from '../../conversation/index.ts';
import type { ParleyError } from '../../kernel/index.ts';

/** Encodes server-sent events. JSON has no line break, so one `data:` line is enough. */

const encoder = new TextEncoder();

function frame(event: string, data: object): Uint8Array {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** How a stream encodes what a conversation publishes. */
export interface Framing {
  entry(entry: Entry, conversation: string): Uint8Array;
  /** Without an id: live text is not stored and cannot be requested again. */
  live(agent: string, chunk: LiveChunk, conversation: string): Uint8Array;
  /** After the first read of the log up to its end; null: not sent. */
  current(length: number, conversation: string): Uint8Array | null;
  /** Nothing more comes of the conversation. */
  over(error: ParleyError, conversation: string): Uint8Array;
}

/** The stream of one conversation. The id is the entry's index, returned by clients in `Last-Event-ID`. */
export const ONE_CONVERSATION: Framing = {
  entry: (entry) => encoder.encode(`id: ${entry.index}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`),
  live: (agent, chunk) => frame('live', { agent, ...chunk }),
  current: () => null,
  over: ({ code, message }) => farewellFrame(code, message),
};

/** The stream of several conversations: each event names its conversation. */
export const SEVERAL_CONVERSATIONS: Framing = {
  entry: (entry, conversation) => frame('entry', { conversation, entry }),
  live: (agent, chunk, conversation) => frame('live', { conversation, agent, ...chunk }),
  current: (length, conversation) => frame('current', { conversation, length }),
  over: ({ code, message }, conversation) => frame('over', { conversation, code, message }),
};

/** A change of the conversation list. */
export function listFrame(change: object): Uint8Array {
  return frame('list', change);
}

/** The reason for the end of the stream. */
export function farewellFrame(code: string, message: string): Uint8Array {
  return frame('end', { code, message });
}

export const HEARTBEAT: Uint8Array = encoder.encode(': still here\n\n');
/** Sent first: the browser reports the stream as open, and reconnects after a second. */
export const GREETING: Uint8Array = encoder.encode('retry: 1000\n\n');
