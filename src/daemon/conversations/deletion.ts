import type { StreamPosition } from '../../bus/index.ts';
import type { ConversationState, Entry } from '../../conversation/index.ts';
import {
  type ConversationStore,
  type IngressPosition,
  isBeyond,
  isCovered,
  type OpenedLog,
  type Removed,
} from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import type { LogAsked, Ownership } from './ownership.ts';
import { stateOf } from './projections.ts';
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

/** Opens a log, with the position up to which the posts of its conversation are void. */
export async function openLog(
  id: string,
  { store }: Pick<DeletionContext, 'store'>,
): Promise<OpenedLog & { readonly deletedUpTo: IngressPosition | null }> {
  const opened = await store.open(id);
  try {
    const deletedUpTo = await store.deletedUpTo(id);
    if (!isVoidLog(opened.entries, deletedUpTo)) return { ...opened, deletedUpTo };
    await opened.log.close();
    await store.delete(id, deletedUpTo); // DELETE-3
    return { ...(await store.open(id)), deletedUpTo };
  } catch (error) {
    await opened.log.close(); // otherwise it could never be opened again
    throw error;
  }
}

/** DELETE-3 */
export function isVoidLog(entries: readonly Entry[], deletedUpTo: IngressPosition | null): boolean {
  const { stream, sequence } = firstPost(entries) ?? { stream: null, sequence: 0 };
  return stream !== null && isCovered({ stream, sequence }, deletedUpTo);
}

function beganAfter(worker: Deletable, asked: DeletionTarget): boolean {
  const first = firstPost(worker.entries());
  if (asked.log === 'same') return false;
  if (first === null) return asked.log === 'later' && worker.state.length > 0;
  return (first.stream ?? asked.stream) === asked.stream && first.sequence > asked.sequence;
}

/** `stream`: null where no claim names it. */
function firstPost(
  entries: readonly Entry[],
): { readonly stream: string | null; readonly sequence: number } | null {
  let stream: string | null = null;
  for (const entry of entries) {
    if (entry.type === 'claim') stream = entry.ingress ?? null;
    else if (entry.type === 'message' && entry.ingressSequence !== undefined)
      return { stream, sequence: entry.ingressSequence };
  }
  return null;
}

function earlier(reached: StreamPosition, end: StreamPosition): StreamPosition {
  return isBeyond(reached, end) ? end : reached;
}

/**
 * How far the posts of the ingress stream are in the logs: overall, and for one conversation. A deletion needs it to cover
 * the conversation's posts that the stream still has.
 *
 * INGRESS-PROGRESS-1  `reached` is never after a post of the conversation that is neither in its log nor refused: that post
 *                     starts the conversation again and must not be lost.
 * INGRESS-PROGRESS-2  `reached` is never before a post that is in the log: that post would return after a crash.
 */
export class IngressProgress {
  /** Every post up to here is settled. */
  #settled: StreamPosition | null;
  #isElsewhere: (position: StreamPosition) => boolean = () => false;
  /** By conversation: its newest durable post, while that is after `#settled`. */
  readonly #taken = new Map<string, StreamPosition>();

  constructor(stored: StreamPosition | null) {
    this.#settled = stored;
  }

  /** A post is durable. Call it before anything else can happen to its conversation (INGRESS-PROGRESS-2). */
  took(conversation: string, position: StreamPosition): void {
    const known = this.#taken.get(conversation);
    if (known?.stream === position.stream && known.sequence > position.sequence) return;
    this.#taken.set(conversation, position);
  }

  skips(isElsewhere: (position: StreamPosition) => boolean): void {
    this.#isElsewhere = isElsewhere;
  }

  /** Another store settled this post: it is not delivered here, except by `--replay`. */
  isElsewhere(position: StreamPosition): boolean {
    return this.#isElsewhere(position);
  }

  /** Every post up to there is in a log or refused, as far as this daemon knows. */
  isSettled(position: StreamPosition): boolean {
    return position.sequence === 0 || isCovered(position, this.#settled);
  }

  /** 0: the stream lost its newest posts, and other posts get their sequences. */
  settledUpTo(position: StreamPosition): void {
    this.#settled = position;
    if (position.sequence === 0) this.#taken.clear();
    for (const [conversation, taken] of this.#taken) {
      if (taken.stream !== position.stream || taken.sequence <= position.sequence)
        this.#taken.delete(conversation);
    }
  }

  /**
   * The position up to which this conversation's posts are in its log or refused; null: none was read. `inLog`: the newest
   * post in its log, which another daemon may have appended.
   */
  reached(conversation: string, inLog?: ConversationState['ingress']): StreamPosition | null {
    if (inLog?.stream) this.took(conversation, { stream: inLog.stream, sequence: inLog.sequence });
    const taken = this.#taken.get(conversation);
    const settled = this.#settled;
    if (!taken || !settled || taken.stream !== settled.stream) return taken ?? settled;
    return taken.sequence > settled.sequence ? taken : settled;
  }
}
