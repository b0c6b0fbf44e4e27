import { Follower, type FollowSource } from '../../bus/follower.ts';
import type { Received } from '../../conversation/index.ts';
import { onAbort } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask, orElse } from './ask.ts';

/** What a conversation publishes, as the daemon has it. */
export function sourceOf(
  daemon: GatewayPort,
  conversation: string,
  subscribe: FollowSource['subscribe'] = (onArrival) => daemon.subscribe(conversation, onArrival),
): FollowSource {
  const page = (from: number) =>
    orElse(ask(daemon, 'entries', { conversation, from }), { length: 0, entries: [] });
  return { subscribe, page };
}

/** Follows a conversation from one of its entries on. It subscribes before that entry is known (FOLLOWER-2). */
export class Arrivals extends Follower {
  constructor(daemon: GatewayPort, conversation: string) {
    super(sourceOf(daemon, conversation), { whenFull: 'end' });
  }

  override begin(index: number): void {
    super.begin(index, Math.max(1, index));
  }

  /** Closed if the work, which may post, fails. */
  static async subscribed<T>(
    daemon: GatewayPort,
    conversation: string,
    work: (arrivals: Arrivals) => Promise<T>,
  ): Promise<T> {
    const arrivals = new Arrivals(daemon, conversation);
    try {
      return await work(arrivals);
    } catch (error) {
      arrivals.close();
      throw error;
    }
  }

  /** From this index on, until it is closed, the reader leaves or the signal aborts. */
  async *from(index: number, signal?: AbortSignal): AsyncGenerator<Received, void, undefined> {
    const detach = onAbort(signal ? [signal] : [], () => this.close());
    try {
      this.begin(index);
      for (let received = await this.take(); received; received = await this.take()) yield received;
    } finally {
      detach();
      this.close();
    }
  }
}
