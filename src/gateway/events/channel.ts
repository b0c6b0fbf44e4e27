import type { Entry, Received } from '../../conversation/index.ts';
import type { Arrival, GatewayPort } from '../port.ts';
import type { Framing } from './frames.ts';

/**
 * Shares one subscription to a conversation among its readers.
 *
 * CHANNEL-1 It subscribes once, while there is at least one reader.
 * CHANNEL-2 An entry or a piece of live text is encoded once for all readers, whether from the feed or the log.
 * CHANNEL-3 A reader first gets the text so far of messages that are being written.
 */

export type Listener = (arrival: Arrival) => void;

export interface Channel {
  framesOf(received: Received): Uint8Array[];
  leave(): void;
}

interface Shared {
  readonly listeners: Set<Listener>;
  readonly frames: Frames;
  readonly unsubscribe: () => void;
}

/** By entry object, as the daemon's log in memory returns the same objects; live text by its arrival. */
type Frames = WeakMap<Entry | Arrival, Uint8Array>;

export class Channels {
  readonly #shared = new Map<string, Shared>();
  readonly framing: Framing;

  constructor(framing: Framing) {
    this.framing = framing;
  }

  join(daemon: GatewayPort, conversation: string, listener: Listener): Channel {
    const shared = this.#shared.get(conversation) ?? this.#open(daemon, conversation);
    for (const arrival of daemon.liveSoFar(conversation)) listener(arrival);
    shared.listeners.add(listener);
    return {
      framesOf: (received) => this.#framesOf(conversation, shared.frames, received),
      leave: () => {
        shared.listeners.delete(listener);
        if (shared.listeners.size > 0 || this.#shared.get(conversation) !== shared) return;
        this.#shared.delete(conversation);
        shared.unsubscribe();
      },
    };
  }

  #open(daemon: GatewayPort, conversation: string): Shared {
    const listeners = new Set<Listener>();
    const unsubscribe = daemon.subscribe(conversation, (arrival) => {
      for (const listener of [...listeners]) listener(arrival);
    });
    const shared = { listeners, frames: new WeakMap(), unsubscribe };
    this.#shared.set(conversation, shared);
    return shared;
  }

  #framesOf(conversation: string, frames: Frames, received: Received): Uint8Array[] {
    const { live, entry } = this.framing;
    if (received.kind === 'live')
      return [encoded(frames, received, () => live(received.agent, received.chunk, conversation))];
    return received.entries.map((one) => encoded(frames, one, () => entry(one, conversation)));
  }
}

function encoded(frames: Frames, key: Entry | Arrival, encode: () => Uint8Array): Uint8Array {
  const known = frames.get(key);
  if (known) return known;
  const frame = encode();
  frames.set(key, frame);
  return frame;
}
