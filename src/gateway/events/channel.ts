import type { Entry } from '../../conversation/index.ts';
import type { Arrival, GatewayPort } from '../port.ts';
import { entryFrame, liveFrame } from './frames.ts';

/**
 * Shares one subscription to a conversation among its readers.
 *
 * CHANNEL-1 It subscribes once, while there is at least one reader.
 * CHANNEL-2 An entry is encoded once for all readers, whether from the feed or the log.
 */

export interface Listener {
  /** One append. */
  entries(entries: readonly Entry[]): void;
  live(frame: Uint8Array): void;
}

export interface Channel {
  /** CHANNEL-2 */
  frameOf(entry: Entry): Uint8Array;
  leave(): void;
}

interface Shared {
  readonly listeners: Set<Listener>;
  /** By entry object: the daemon's log in memory returns the same objects. */
  readonly frames: WeakMap<Entry, Uint8Array>;
  readonly unsubscribe: () => void;
}

export class Channels {
  readonly #shared = new Map<string, Shared>();

  join(daemon: GatewayPort, conversation: string, listener: Listener): Channel {
    const shared = this.#shared.get(conversation) ?? this.#open(daemon, conversation);
    shared.listeners.add(listener);
    return {
      frameOf: (entry) => frameOf(shared.frames, entry),
      leave: () => {
        shared.listeners.delete(listener);
        if (shared.listeners.size > 0 || this.#shared.get(conversation) !== shared) return;
        this.#shared.delete(conversation); // CHANNEL-1
        shared.unsubscribe();
      },
    };
  }

  #open(daemon: GatewayPort, conversation: string): Shared {
    const listeners = new Set<Listener>();
    const frames = new WeakMap<Entry, Uint8Array>();
    const unsubscribe = daemon.subscribe(conversation, (arrival) => pass(arrival, listeners));
    const shared = { listeners, frames, unsubscribe };
    this.#shared.set(conversation, shared);
    return shared;
  }
}

function pass(arrival: Arrival, listeners: Iterable<Listener>): void {
  const frame = arrival.kind === 'live' ? liveFrame(arrival.agent, arrival.chunk) : null;
  for (const listener of [...listeners]) {
    if (frame) listener.live(frame);
    else if (arrival.kind === 'entries') listener.entries(arrival.entries);
  }
}

function frameOf(frames: Shared['frames'], entry: Entry): Uint8Array {
  const known = frames.get(entry);
  if (known) return known;
  const frame = entryFrame(entry);
  frames.set(entry, frame);
  return frame;
}
