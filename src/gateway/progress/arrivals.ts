import { Follower, type FollowSource } from '../../bus/follower.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from './ask.ts';

/** What a conversation publishes, as the daemon has it. */
export function sourceOf(
  daemon: GatewayPort,
  conversation: string,
  subscribe: FollowSource['subscribe'] = (onArrival) => daemon.subscribe(conversation, onArrival),
): FollowSource {
  const page = (from: number) =>
    ask(daemon, 'entries', { conversation, from }).catch((error: unknown) => {
      if (error instanceof ParleyError && error.code === 'NOT_FOUND') return { length: 0, entries: [] };
      throw error;
    });
  return { subscribe, page };
}

/** Follows a conversation from one of its entries on. It subscribes before that entry is known (FOLLOWER-2). */
export class Arrivals extends Follower {
  constructor(daemon: GatewayPort, conversation: string) {
    super(sourceOf(daemon, conversation), { whenFull: 'end' });
  }

  /** Starts at this index. */
  override begin(index: number): void {
    super.begin(index, Math.max(1, index));
  }
}
