import { Follower } from '../../bus/follower.ts';
import type { Received } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { sourceOf } from '../progress/arrivals.ts';
import type { Channel, Channels } from './channel.ts';
import type { Feed } from './reader.ts';

export interface FeedOptions {
  readonly daemon: GatewayPort;
  readonly channels: Channels;
  readonly conversation: string;
  /** The first index wanted. */
  readonly from: number;
  /** Called with bugs; the client sees only that there was one. */
  readonly onFault: (error: unknown) => void;
  readonly onEntries?: () => void;
}

/** The frames of one conversation, from an index on. */
export class ConversationFeed implements Feed {
  readonly #options: FeedOptions;
  readonly #follower: Follower;
  #channel: Channel | null = null;
  #next: number;
  /** The log was read up to its end once. */
  #isCurrent = false;
  #isOver = false;

  constructor(options: FeedOptions) {
    const { daemon, channels, conversation, from } = options;
    this.#options = options;
    this.#next = from;
    const source = sourceOf(daemon, conversation, (onArrival) => {
      this.#channel = channels.join(daemon, conversation, onArrival);
      return this.#channel.leave;
    });
    this.#follower = new Follower(source, { whenFull: 'end' });
    this.#follower.begin(from, from); // a client that reconnects has seen the entries before
  }

  async take(): Promise<readonly Uint8Array[] | 'too-slow' | null> {
    if (this.#isOver) return null;
    try {
      const frames: Uint8Array[] = [];
      let received = await this.#follower.take();
      if (!received) return null;
      for (; received; received = this.#follower.takeQueued()) frames.push(...this.#framesOf(received));
      return frames;
    } catch (error) {
      const shown = publicErrorOf(error, this.#options.onFault);
      this.#isOver = true;
      return shown.code === 'TOO_SLOW'
        ? 'too-slow'
        : [this.#options.channels.framing.over(shown, this.#options.conversation)];
    }
  }

  close(): void {
    this.#follower.close();
  }

  #framesOf(received: Received): Uint8Array[] {
    const frames = this.#channel?.framesOf(received) ?? [];
    if (received.kind === 'live') return frames;
    this.#options.onEntries?.();
    this.#next = (received.entries.at(-1)?.index ?? this.#next - 1) + 1;
    if (!received.isCurrent || this.#isCurrent) return frames;
    this.#isCurrent = true;
    const current = this.#options.channels.framing.current(this.#next, this.#options.conversation);
    return current ? [...frames, current] : frames;
  }
}
