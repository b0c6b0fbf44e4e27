import {
  Conversation,
  type ConversationState,
  type Entry,
  hasOutstandingWork,
} from '../../conversation/index.ts';
import type { ConversationLog, OpenedLog, WorkStatus } from '../../persistence/index.ts';
import type { Runtime } from '../runtime.ts';
import { saveProjections } from './projections.ts';

/**
 * The book of one conversation: what was decided, and what of it is durable.
 *
 * LEDGER-1 Nothing but what is durable is shown. What was decided and could not be appended is taken back.
 * LEDGER-2 A conversation that owes something is marked before its first owing entry, so that the next start finds it.
 */

type LedgerRuntime = Pick<Runtime, 'store' | 'rules' | 'reach'>;

export class Ledger {
  /** What is decided on: ahead of what is durable while that is on its way. */
  readonly conversation: Conversation;
  readonly #id: string;
  readonly #runtime: LedgerRuntime;
  readonly #log: ConversationLog;
  #durable: ConversationState;
  #isMarked: boolean;

  constructor(id: string, runtime: LedgerRuntime, isMarked: boolean, { log, entries }: OpenedLog) {
    this.#id = id;
    this.#runtime = runtime;
    this.#isMarked = isMarked;
    this.#log = log;
    this.conversation = new Conversation(runtime.rules, entries);
    this.#durable = this.conversation.state;
  }

  /** The durable state. */
  get state(): ConversationState {
    return this.#durable;
  }

  /** Something durable is under way or waits. */
  get hasOutstandingWork(): boolean {
    return hasOutstandingWork(this.#durable);
  }

  /** The store knows that this conversation owes something (LEDGER-2). */
  get isMarked(): boolean {
    return this.#isMarked;
  }

  /** Where the store counts: of the newest append; else 0. */
  get newestSequence(): number {
    return this.#log.newestSequence ?? 0;
  }

  /** Durable entries from `from` on, `limit` at most. */
  entries(from: number, limit: number): readonly Entry[] {
    return this.conversation.entries.slice(from, Math.min(this.#durable.length, from + limit));
  }

  /** Makes durable what was decided since the log had this length. False: others have appended. */
  async append(before: number, entries: readonly Entry[], standing?: WorkStatus): Promise<boolean> {
    const { store, reach } = this.#runtime;
    if (!this.#isMarked && hasOutstandingWork(this.conversation.state)) {
      await store.markOpen(this.#id); // LEDGER-2
      this.#isMarked = true;
      reach('marked');
    }
    reach('before-append');
    const outcome = await this.#log.append(before, entries, standing);
    reach('after-append');
    // Others may have appended behind it before its answer came: then it stands, and what it asks for is theirs to do.
    if (outcome.kind !== 'appended' || this.#log.length !== before + entries.length) return false;
    this.#durable = this.conversation.state;
    return true;
  }

  /** LEDGER-1 */
  takeBack(length: number): void {
    this.conversation.truncate(length);
  }

  async saveProjections(): Promise<void> {
    await saveProjections(this.#id, this.#durable, this.conversation.entries, this.#runtime.store);
  }

  /** LEDGER-2: of one that owes nothing any more. */
  async liftMark(): Promise<void> {
    if (!this.#isMarked || this.hasOutstandingWork) return;
    await this.#runtime.store.clearOpen(this.#id);
    this.#isMarked = false;
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}
