import { Follower } from '../../bus/follower.ts';
import type { Entry, LiveChunk, Received } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { sourceOf } from '../progress/arrivals.ts';

/** The frames of one conversation or of the list. */
export interface Feed {
  /** The next frames; null: nothing more comes. `too-slow`: frames were lost, and a client can reconnect and read the log. */
  take(): Promise<readonly Uint8Array[] | 'too-slow' | null>;
  /** Idempotent. */
  close(): void;
}

const encoder = new TextEncoder();

/** JSON has no line break, so one `data:` line is enough. */
export function frame(event: string, data: object, id?: number): Uint8Array {
  const name = id === undefined ? '' : `id: ${id}\n`;
  return encoder.encode(`${name}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Encodes a value once for all readers: the daemon gives them the same objects. */
function once<Value extends object, More extends unknown[]>(
  encode: (value: Value, ...more: More) => Uint8Array,
): typeof encode {
  const known = new WeakMap<Value, Uint8Array>();
  return (value, ...more) => {
    const encoded = known.get(value) ?? encode(value, ...more);
    known.set(value, encoded);
    return encoded;
  };
}

/** How a stream encodes what a conversation publishes. */
export interface Framing {
  entry(entry: Entry, conversation: string): Uint8Array;
  /** Without an id: live text is not stored and cannot be requested again. */
  live(chunk: LiveChunk, agent: string, conversation: string): Uint8Array;
  /** After the first read of the log up to its end. */
  current(length: number, conversation: string): readonly Uint8Array[];
  /** Nothing more comes of the conversation. */
  over(error: { readonly code: string; readonly message: string }, conversation: string): Uint8Array;
}

/** The stream of one conversation. The id is the entry's index, returned by clients in `Last-Event-ID`. */
export const ONE_CONVERSATION: Framing = {
  entry: once((entry) => frame('entry', entry, entry.index)),
  live: once((chunk, agent) => frame('live', { agent, ...chunk })),
  current: () => [],
  over: ({ code, message }) => frame('end', { code, message }),
};

/** The stream of several conversations: each event names its conversation. */
export const SEVERAL_CONVERSATIONS: Framing = {
  entry: once((entry, conversation) => frame('entry', { conversation, entry })),
  live: once((chunk, agent, conversation) => frame('live', { conversation, agent, ...chunk })),
  current: (length, conversation) => [frame('current', { conversation, length })],
  over: ({ code, message }, conversation) => frame('over', { conversation, code, message }),
};

export interface FeedOptions {
  readonly daemon: GatewayPort;
  readonly framing: Framing;
  readonly conversation: string;
  /** The first index wanted. */
  readonly from: number;
  /** Called with bugs; the client sees only that there was one. */
  readonly onFault: (error: unknown) => void;
  readonly onEntries?: () => void;
}

/** One conversation from an index on. It begins with the text so far of messages that are being written. */
export function conversationFeed(options: FeedOptions): Feed {
  const { daemon, framing, conversation, from, onFault, onEntries } = options;
  const source = sourceOf(daemon, conversation, (onArrival) => {
    for (const arrival of daemon.liveSoFar(conversation)) onArrival(arrival);
    return daemon.subscribe(conversation, onArrival);
  });
  const follower = new Follower(source, { whenFull: 'end' });
  follower.begin(from, from); // a client that reconnects has seen the entries before
  let next = from;
  let isCurrent = false;
  let isOver = false;

  const framesOf = (received: Received): readonly Uint8Array[] => {
    if (received.kind === 'live') return [framing.live(received.chunk, received.agent, conversation)];
    onEntries?.();
    const frames = received.entries.map((entry) => framing.entry(entry, conversation));
    next = (received.entries.at(-1)?.index ?? next - 1) + 1;
    if (!received.isCurrent || isCurrent) return frames;
    isCurrent = true;
    return [...frames, ...framing.current(next, conversation)];
  };
  return {
    async take() {
      if (isOver) return null;
      try {
        let received = await follower.take();
        if (!received) return null;
        const frames: Uint8Array[] = [];
        for (; received; received = follower.takeQueued()) frames.push(...framesOf(received));
        return frames;
      } catch (error) {
        isOver = true;
        const shown = publicErrorOf(error, onFault);
        return shown.code === 'TOO_SLOW' ? 'too-slow' : [framing.over(shown, conversation)];
      }
    },
    close: () => follower.close(),
  };
}
