import type { Entry } from '../../conversation/index.ts';
import type { Arrival, GatewayPort } from '../port.ts';
import { entryFrame, liveFrame } from './frames.ts';

/**
 * One conversation as its readers get it.
 *
 * CHANNEL-1 It watches the conversation while it has a reader, and once for all of them.
 * CHANNEL-2 An entry is written down once for all readers, whether it comes from the feed or is read from the log.
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
  /** By entry: they are the log's own objects, as long as the daemon keeps it in memory. */
  readonly frames: WeakMap<Entry, Uint8Array>;
  readonly unsubscribe: () => void;
}

export class Channels {
  readonly #shared = new Map<string, Shared>();

  join(door: GatewayPort, conversation: string, listener: Listener): Channel {
    const shared = this.#shared.get(conversation) ?? this.#open(door, conversation);
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

  #open(door: GatewayPort, conversation: string): Shared {
    const listeners = new Set<Listener>();
    const frames = new WeakMap<Entry, Uint8Array>();
    const unsubscribe = door.subscribe(conversation, (arrival) => pass(arrival, listeners));
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
