import { type Bus, handlePeerMessage, invalidAnswer, type PeerHandlers } from '../../bus/index.ts';
import type { LiveArrival } from '../../conversation/index.ts';
import { type Log, ParleyError, sizeOf } from '../../kernel/index.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Watchers } from '../feed/watchers.ts';
import type { PeerMonitor } from './peer-monitor.ts';
import type { Reconciler } from './reconciler.ts';
import type { SharedApi } from './shared-api.ts';

/** Answers the messages of other daemons (`src/bus/peer-contract.ts`). */

/** The part of a message's payload for the texts: they need room for their names, too. */
const SHARE_OF_TEXTS = 0.5;

export interface PeerRequestParts {
  /** The id of this daemon. */
  readonly daemon: string;
  readonly workers: Workers;
  readonly post: PeerHandlers['post'];
  readonly api: SharedApi;
  readonly watchers: Pick<Watchers, 'textsOf'>;
  readonly bus: Pick<Bus, 'maxPayload'>;
  readonly monitor: PeerMonitor;
  /** Null until this daemon reads posts. */
  readonly reconciler: () => Reconciler | null;
}

export function peerHandlers({
  daemon: self,
  workers,
  post,
  api,
  watchers,
  bus,
  monitor,
  reconciler,
}: PeerRequestParts): PeerHandlers {
  return {
    alive: ({ daemon, isNew = false, fingerprint }) => monitor.noteHeartbeat(daemon, isNew, fingerprint),
    left: ({ daemon }) => (daemon === self ? undefined : monitor.noteLeft(daemon)),
    probe: () => ({}),
    post,
    holds: async ({ conversations }) => ({ held: await heldOf(workers, conversations) }),
    released: async ({ conversation, claim }) => reconciler()?.released(conversation, claim),
    api: ({ conversation, request }) => api.handleFromPeer(conversation, { ...request, body: request.body }),
    texts: ({ conversation }) => ({
      texts: fitting(watchers.textsOf(conversation), bus.maxPayload * SHARE_OF_TEXTS),
    }),
  };
}

/** None, if they do not fit a message: the log has them soon. */
function fitting(texts: readonly LiveArrival[], mostBytes: number) {
  const size = texts.reduce((sum, { chunk }) => sum + sizeOf(chunk), 0);
  return size > mostBytes ? [] : texts.map(({ agent, chunk }) => ({ agent, chunk }));
}

/** PEER-CONTRACT-1 */
export async function answerPeer(
  verb: string,
  body: unknown,
  handlers: PeerHandlers,
  log: Pick<Log, 'warn'>,
): Promise<unknown> {
  try {
    return await handlePeerMessage(verb, body, handlers);
  } catch (error) {
    if (!(error instanceof ParleyError && error.code === 'BAD_REQUEST')) throw error;
    log.warn({ verb, reason: error.message }, 'a message of another daemon is refused as invalid');
    return invalidAnswer(error.message);
  }
}

async function heldOf(workers: Workers, ids: readonly string[]): Promise<string[]> {
  const held = await Promise.all(ids.map((id) => workers.willHold(id)));
  return ids.filter((_, place) => held[place]);
}
