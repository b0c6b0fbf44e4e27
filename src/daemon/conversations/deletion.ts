import type { StreamPosition } from '../../bus/index.ts';
import type { ConversationState, Entry } from '../../conversation/index.ts';
import { type ConversationStore, isBeyond, isCovered, type Removed } from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import type { IngressProgress } from './ingress-progress.ts';
import type { LogAsked, Ownership } from './ownership.ts';
import { stateOf } from './projections.ts';
import { firstPost, openLog } from './worker/ledger.ts';

/**
 * Deletes a conversation with its posts.
 *
 * DELETE-1  Each post that the ingress stream took before the request is void, whether it is in the log, being decided
 *           or still unread. A later post begins a new conversation.
 * DELETE-2  A request deletes nothing that began after the position of its newest post was read. So a deletion that a
 *           client repeats seldom covers the next post. A post of a request has no position: where logs are shared, the request
 *           names the log that it deletes.
 * DELETE-3  Where logs are shared, another daemon may append the first entry of a log that was deleted meanwhile. A log
 *           whose first post is void is removed by the next daemon that opens it: the one that deletes does so at the end.
 * DELETE-4  A stream that lost its newest posts in a crash gives their sequences to other posts. So no deletion covers
 *           a sequence that the stream has not reached: it is cut when the loss is noticed, and capped when it is made.
 */

export interface DeletionContext {
  readonly store: ConversationStore;
  readonly ownership: Ownership;
  /** How far the posts of the stream are in the logs. */
  readonly progress: IngressProgress;
  readonly whatIfs: { remove(conversation: string): void };
  readonly reach: ReachCrashPoint;
  /** The newest post of a conversation in the ingress stream now; sequence 0: none. */
  lastPost(conversation: string): Promise<StreamPosition>;
  /** The newest post of the ingress stream now; sequence 0: it never had one. */
  ingressEnd(): Promise<StreamPosition>;
}

/** A conversation that was in memory, or whose log was read to be deleted. */
export interface Deletable {
  readonly isOurs: boolean;
  readonly state: ConversationState;
  readonly newestSequence: number;
  entries(): readonly Entry[];
  /** Ends what runs and closes the log. */
  abandon(): Promise<void>;
}

export interface Deleted extends Removed {
  /** False: there was no such conversation. */
  readonly existed: boolean;
  readonly entries: number;
  /** Its posts up to here are void. */
  readonly posts: StreamPosition;
  /** Why it was kept. */
  readonly kept?: string;
}

/** Why a conversation is kept; null: delete it. `state`: undefined without a readable log. */
export type KeepCheck = (state: ConversationState | undefined, asked: StreamPosition) => string | null;

/** What a request deletes: the posts up to a position, and the log that it had then, as far as it is known (DELETE-2). */
export interface DeletionTarget extends StreamPosition {
  readonly log: LogAsked;
}

/** A conversation that is not in memory; null: its log cannot be read, and can be deleted. */
export async function readToDelete(id: string, store: ConversationStore): Promise<Deletable | null> {
  const opened = await openLog(id, { store }).catch(() => null);
  if (opened === null) return null;
  const { log, entries } = opened;
  const newestSequence = log.newestSequence ?? 0;
  return {
    isOurs: false,
    state: stateOf(entries),
    newestSequence,
    entries: () => entries,
    abandon: () => log.close(),
  };
}

/** DELETE-2. The streams may still contain posts from before `asked`. */
export function nothingDeleted({ stream, sequence }: StreamPosition): Deleted {
  return { existed: false, entries: 0, records: 0, outputs: 0, files: 0, posts: { stream, sequence } };
}

/** `worker`: null where the log cannot be read. */
export async function deleteConversation(
  id: string,
  { store, ownership, progress, ingressEnd, reach, whatIfs }: DeletionContext,
  { log: known, ...asked }: DeletionTarget,
  worker: Deletable | null,
): Promise<Deleted> {
  await worker?.abandon();
  if (worker && beganAfter(worker, { ...asked, log: known })) return nothingDeleted(asked); // DELETE-2
  // Only now: nothing can be appended any more.
  const reached = progress.reached(id, worker?.state.ingress);
  const isLater = reached !== null && reached.stream === asked.stream && reached.sequence > asked.sequence;
  const upTo = isLater ? earlier(reached, await ingressEnd()) : asked;
  const isWaiting = !progress.isSettled(asked) && !isCovered(asked, await store.deletedUpTo(id));
  const isThere = Boolean(worker?.state.length) || (await store.exists(id));
  const hasPosts = isThere || isWaiting;
  if (!hasPosts && !ownership.removesRest) return nothingDeleted(asked);
  const entries = worker?.state.length ?? (await storedLength(id, store));
  whatIfs.remove(id);
  const removed = await store.delete(id, hasPosts ? upTo : null, worker?.newestSequence); // DELETE-1
  if (await store.exists(id)) await (await openLog(id, { store })).log.close(); // DELETE-3
  reach('conversation-removed');
  const existed = isThere || (isWaiting && !progress.isElsewhere(asked)); // a replay would deliver that post: it is void too
  return { ...removed, existed, entries, posts: upTo };
}

/** The length of a log that is not in memory, from its row. */
async function storedLength(id: string, store: ConversationStore): Promise<number> {
  return (await store.rows()).find((row) => row.id === id)?.length ?? 0;
}

/** DELETE-2: the running conversation continues. */
export function isSpared(worker: Deletable | null, asked: DeletionTarget): boolean {
  return worker?.isOurs === true && beganAfter(worker, asked);
}

function beganAfter(worker: Deletable, asked: DeletionTarget): boolean {
  const first = firstPost(worker.entries());
  if (asked.log === 'same') return false;
  if (first === null) return asked.log === 'later' && worker.state.length > 0;
  return (first.stream ?? asked.stream) === asked.stream && first.sequence > asked.sequence;
}

function earlier(reached: StreamPosition, end: StreamPosition): StreamPosition {
  return isBeyond(reached, end) ? end : reached;
}
