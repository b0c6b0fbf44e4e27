import {
  Conversation,
  type ConversationState,
  type Entry,
  hasOutstandingWork,
} from '../../../conversation/index.ts';
import {
  type ConversationLog,
  type ConversationStore,
  type IngressPosition,
  isCovered,
  type OpenedLog,
  type WorkStatus,
} from '../../../persistence/index.ts';
import type { ReachCrashPoint } from '../../observe/crash-points.ts';
import type { Definitions } from '../../team/definitions.ts';
import type { Team } from '../../team/team.ts';
import { saveProjections } from '../projections.ts';

export interface LedgerContext {
  readonly store: ConversationStore;
  readonly team: Pick<Team, 'for'>;
  readonly definitions: Pick<Definitions, 'store'>;
  readonly reach: ReachCrashPoint;
}

/**
 * The log of one conversation in memory: the decided state and the durable state.
 *
 * LEDGER-1  Only durable entries are shown. Decided entries that could not be appended are undone.
 * LEDGER-2  A conversation is marked before the first append since it was opened: after a crash, the next start continues its
 *           outstanding work and lists it as it is. The mark is cleared after its row was saved.
 */
export class Ledger {
  /** The decided state: ahead of the durable one while an append is in progress. */
  readonly conversation: Conversation;
  readonly #id: string;
  readonly #daemon: LedgerContext;
  readonly #log: ConversationLog;
  #durable: ConversationState;
  /** LEDGER-2 */
  isMarked: boolean;

  constructor(id: string, daemon: LedgerContext, isMarked: boolean, { log, entries }: OpenedLog) {
    this.#id = id;
    this.#daemon = daemon;
    this.isMarked = isMarked;
    this.#log = log;
    this.conversation = new Conversation((state) => daemon.team.for(state).rules, entries, id);
    this.#durable = this.conversation.state;
  }

  /** The durable state. */
  get state(): ConversationState {
    return this.#durable;
  }

  /** In the durable state. */
  get hasOutstandingWork(): boolean {
    return hasOutstandingWork(this.#durable);
  }

  /** Sequence of the newest append; 0 if the store has none. */
  get newestSequence(): number {
    return this.#log.newestSequence ?? 0;
  }

  /** Durable entries from `from` on, `limit` at most. */
  entries(from: number, limit: number): readonly Entry[] {
    return this.conversation.entries.slice(from, Math.min(this.#durable.length, from + limit));
  }

  /** Appends the entries decided since the log had length `before`. False: another process appended first. */
  async append(before: number, entries: readonly Entry[], status?: WorkStatus): Promise<boolean> {
    const { store, reach, definitions } = this.#daemon;
    await definitions.store(entries); // DEFINITIONS-1
    if (!this.isMarked) {
      await store.markOpen(this.#id); // LEDGER-2
      this.isMarked = true;
      reach('marked');
    }
    reach('before-append');
    const outcome = await this.#log.append(before, entries, status);
    reach('after-append');
    // Another daemon may have appended after it before the answer arrived: then the entries count, and it runs their effects.
    if (outcome.kind !== 'appended' || this.#log.length !== before + entries.length) return false;
    this.#durable = this.conversation.state;
    return true;
  }

  /** LEDGER-1 */
  truncate(length: number): void {
    this.conversation.truncate(length);
  }

  async saveProjections(): Promise<void> {
    const state = this.#durable;
    if (state.length === 0) return;
    await saveProjections(this.#daemon.store, this.#id, state, this.entries(0, state.length));
  }

  /** LEDGER-2: only without outstanding work. */
  async clearMark(): Promise<void> {
    if (!this.isMarked || this.hasOutstandingWork) return;
    await this.#daemon.store.clearOpen(this.#id);
    this.isMarked = false;
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

/** Opens a log, with the position up to which the posts of its conversation are void. */
export async function openLog(
  id: string,
  { store }: Pick<LedgerContext, 'store'>,
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

/** The first post of a log; `stream`: null where no claim names it. */
export function firstPost(
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
