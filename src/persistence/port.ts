import type { Entry } from '../conversation/index.ts';

/**
 * What the daemon needs of a store. One contract suite (`test/contract/`) holds every adapter to it.
 *
 * PERSISTENCE-PORT-1 An append is all or nothing, and durable before it resolves (L5).
 * PERSISTENCE-PORT-2 An append names the length it expects; a wrong one changes nothing (L3).
 * PERSISTENCE-PORT-3 What was read once is read again, byte for byte, whatever was appended since (L2).
 * PERSISTENCE-PORT-4 Damage is reported, never hidden and never overwritten.
 */

/** What an append came to. I/O faults are thrown (`ParleyError`), and then nothing was appended. */
export type AppendOutcome =
  | { readonly kind: 'appended'; readonly length: number }
  /** Somebody else wrote: `length` is what the log holds now. */
  | { readonly kind: 'conflict'; readonly length: number };

/** What an append says of its conversation beside its entries, for those who read no log. */
export interface Standing {
  /** Who works on it, and by the how manieth claim; null: nobody said so. */
  readonly claim: { readonly daemon: string; readonly epoch: number } | null;
  /** Something is under way or waits, so that somebody must look after it. */
  readonly owes: boolean;
}

/** The newest append of a conversation. */
export interface NewestAppend {
  /** Null: it was made by something that says nothing of it. */
  readonly standing: Standing | null;
  /** Its place: grows with each append. */
  readonly sequence: number;
  /** Of the log, with it; null: it is no append. */
  readonly length: number | null;
}

export interface ConversationLog {
  readonly conversation: string;
  /** Entries in the log, appends that are still on their way to the disk included. */
  readonly length: number;
  /**
   * Appends one batch, whole or not at all. `entries[i].index` is `expectedLength + i`. Callers may append
   * without waiting for one another, each naming the length after the one before; such appends share a sync.
   * When one of them fails, those queued behind it fail too. `standing` is kept only where logs are shared.
   */
  append(expectedLength: number, entries: readonly Entry[], standing?: Standing): Promise<AppendOutcome>;
  /** Where logs are shared: the place of the newest append that is known here; 0: there is none. */
  readonly newestSequence?: number;
  /** Entries `from` (inclusive) to `to` (exclusive, default the durable length). */
  read(from: number, to?: number): Promise<Entry[]>;
  close(): Promise<void>;
}

/** What opening found and mended, for the operator. */
export interface TornTail {
  /** Bytes cut from the end of the log: a batch that was never acknowledged. Kept aside in `keptIn`. */
  readonly bytes: number;
  readonly keptIn: string;
}

export interface OpenedLog {
  readonly log: ConversationLog;
  /** Every entry, oldest first. */
  readonly entries: Entry[];
  readonly tornTail: TornTail | null;
}

/** A row of the list of conversations: a projection (L1). */
export interface ConversationRow {
  readonly id: string;
  readonly title: string | null;
  readonly phase: string;
  readonly mode: string;
  readonly activeAgent: string | null;
  readonly length: number;
  /** ISO 8601. */
  readonly updatedAt: string;
  /** What model calls used so far; absent in a row that was written before rows had it. */
  readonly tokens?: number;
  readonly usd?: number;
  /** Slugs of the agents that wait for somebody, that a limit halted, and that are stopped and have work; absent in older rows. */
  readonly waiting?: readonly string[];
  readonly limited?: readonly string[];
  readonly stopped?: readonly string[];
}

/** How far the ingress stream was read: every sequence up to `sequence` of that `stream` is in the logs (or refused). */
export interface IngressPosition {
  /** Identifies one life of the stream: it changes when the stream is made anew. */
  readonly stream: string;
  readonly sequence: number;
}

/** Posts of one life of the ingress stream. */
export interface IngressPosts {
  readonly stream: string;
  readonly sequences: readonly number[];
}

/** Posts of one life of the ingress stream that the daemon began to decide on, and how often, without coming to an end. */
export interface IngressAttempts {
  readonly stream: string;
  readonly posts: readonly { readonly sequence: number; readonly begun: number }[];
}

/** A tool call as its runner saw it: what repair may backfill a result from, the one truth beside the log (L1). */
export interface AuditRecord {
  readonly type: 'ToolCallRequested' | 'ToolCallStarted' | 'ToolCallCompleted';
  /** `entry`: the index of the assistant entry; `position`: the call's place in it (L10). */
  readonly call: { readonly entry: number; readonly position: number };
  readonly tool: string;
  /** ISO 8601. */
  readonly at: string;
  readonly arguments?: string;
  readonly result?: string;
}

export interface AuditTrail {
  /** Oldest first; without what cannot be read. */
  readonly records: readonly AuditRecord[];
  /** Places, from 1, of what cannot be read: cut short by a crash, damaged, or written by another program. */
  readonly unreadable: readonly number[];
}

/** What runners of tools leave behind. Deleted with the conversation. */
export interface ToolRecords {
  /** Durable when it resolves. */
  append(conversation: string, records: readonly AuditRecord[]): Promise<void>;
  read(conversation: string): Promise<AuditTrail>;
  /** Keeps a large output whole; durable when it resolves. */
  saveOutput(conversation: string, entryId: string, content: string): Promise<void>;
  /** Null: there is none. */
  readOutput(conversation: string, entryId: string): Promise<string | null>;
}

/** Posts that may have ended a daemon, marked where the others see it. */
export interface SharedMarks {
  /** Attempts on this post that began; null: it has no mark. */
  attempts(position: IngressPosition): Promise<number | null>;
  /** Durable when it resolves. Null: the mark goes. */
  saveAttempts(position: IngressPosition, begun: number | null): Promise<void>;
}

/** Logs that several daemons append to. Reads none of them. */
export interface SharedLogs extends SharedMarks {
  /** Null: there is none. */
  newest(conversation: string): Promise<NewestAppend | null>;
  /** Of every conversation, by id. */
  all(): Promise<ReadonlyMap<string, NewestAppend>>;
  /** The conversation is not listed any more; its log is not there. */
  forgetRow(conversation: string): Promise<void>;
}

/** What a deletion removed beside the log: records of tool calls, and large outputs that were kept apart. */
export interface Removed {
  readonly records: number;
  readonly outputs: number;
}

/** Up to where the posts of a deleted conversation are void. */
export interface Deletion extends IngressPosition {
  readonly conversation: string;
}

export interface ConversationStore {
  /** Names these logs, and goes with a copy of them: another store has another one. */
  readonly id: string;
  /**
   * True: what is appended to a log, and what runners of tools record, is published to its followers by the store
   * itself, since it is kept on their subjects. Nobody else may publish there.
   */
  readonly isFeed: boolean;
  readonly toolRecords: ToolRecords;
  /** Null: the logs belong to one daemon at a time. */
  readonly shared: SharedLogs | null;

  /** Opens (and creates on first append) one conversation's log. Reads its own file only. Once per conversation at a time. */
  open(conversation: string): Promise<OpenedLog>;
  /** True if the log holds at least one entry. Reads no log. */
  exists(conversation: string): Promise<boolean>;
  /**
   * Deletes the log and every file of the conversation; again is fine. The log must be closed. `upTo`: its posts up to
   * there are void for ever; that is durable before the log is touched, and never moves back. `newest`, where logs are
   * shared: the place of the newest append that is meant; a log that begins later stays. Default: all of the log.
   */
  delete(conversation: string, upTo?: IngressPosition | null, newest?: number): Promise<Removed>;
  /** What the last deletion named: the ingress stream may still have those posts. Null if it was never deleted. */
  deletedUpTo(conversation: string): Promise<IngressPosition | null>;
  /**
   * The ingress stream lost its newest posts: deletions that name a later post than its last one are cut to that,
   * durably. `end` answers with the last one. It is asked when the deletions are known, so none made since is cut.
   */
  cutDeletions(end: () => Promise<IngressPosition>): Promise<void>;
  /** What `deletedUpTo` knows, of every conversation. */
  deletions(): Promise<Deletion[]>;

  /**
   * Marks a conversation that owes something, durably, before its first owing entry. `openMarks()` answers
   * null when the marks themselves are missing: then every log must be read.
   */
  markOpen(conversation: string): Promise<void>;
  /** Removes the mark. The conversation's row must have been saved before. */
  clearOpen(conversation: string): Promise<void>;
  openMarks(): Promise<string[] | null>;
  /** Makes the marks exist (after a start that read every log). */
  initialiseMarks(): Promise<void>;

  /** Every conversation that has a log, by id. Reads no log. */
  conversations(): Promise<string[]>;

  /** The list of conversations, ordered by id. A projection: may lag, is rebuilt from the logs. */
  rows(): Promise<ConversationRow[]>;
  saveRow(row: ConversationRow): Promise<void>;
  /** The state document of one conversation, for people and tools: a projection. */
  saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void>;

  ingressPosition(): Promise<IngressPosition | null>;
  /** May lag what the logs hold, never lead it. */
  saveIngressPosition(position: IngressPosition): Promise<void>;

  ingressAttempts(): Promise<IngressAttempts | null>;
  /** Durable when it resolves; calls made at once may share a write of the newest. */
  saveIngressAttempts(attempts: IngressAttempts): Promise<void>;

  /** On which posts the last owner was deciding when it ended; null: on none. */
  lastDecision(): Promise<IngressPosts | null>;
  /**
   * Notes on which posts the owner decides from now on; null: on none. The note is kept when this returns, whatever ends
   * the process then; a power loss may undo it. A hint, so never an error; where logs are shared, nothing is kept.
   */
  noteDecision(posts: IngressPosts | null): void;

  /** Writes what is pending and releases the directory. */
  close(): Promise<void>;
}

/** What stands on the disk of one conversation, read by whoever does not own it. */
export interface Inspection {
  /** Null: none yet. */
  readonly row: { readonly value: ConversationRow | null } | { readonly fault: string };
  readonly state: { readonly value: unknown } | { readonly fault: string };
  readonly audit: readonly AuditRecord[];
  /** Lines of the audit log, from 1, that are no record. */
  readonly badAuditLines: readonly number[];
  readonly log:
    | { readonly entries: readonly Entry[]; readonly tornTail: { readonly bytes: number } | null }
    | { readonly damage: Error };
  /** The next start reads this log: it is marked, or the marks are missing. */
  readonly isMarked: boolean;
  hasOutput(entryId: string): boolean;
  /** What else could not be looked at, and why. */
  readonly unreadable: readonly string[];
}

/** What a deletion should have removed. */
export interface Leftover {
  readonly conversation: string;
  /** Where it is, within the directory of the store. */
  readonly path: string;
  /** Opening the store removes it. */
  readonly isSwept: boolean;
}

/** Looks at a store without a lock, and changes nothing. */
export interface StoreInspector {
  conversations(): Promise<string[]>;
  /** Of conversations that were deleted. A deletion that is under way is among them. */
  leftovers(): Promise<Leftover[]>;
  inspect(conversation: string): Promise<Inspection>;
}

/** All that a store holds, as it stands there, for whoever copies it. Reading changes nothing. */
export interface StoreArchive {
  /** For people, and to know the store by. */
  readonly name: string;
  conversations(): Promise<string[]>;
  /** Every entry, oldest first; an append that was cut short is left out. */
  entries(conversation: string): Promise<Entry[]>;
  audit(conversation: string): Promise<readonly AuditRecord[]>;
  /** The entry ids that `output` knows, in order. */
  outputs(conversation: string): Promise<string[]>;
  output(conversation: string, entryId: string): Promise<string | null>;
  deletions(): Promise<Deletion[]>;
  ingressPosition(): Promise<IngressPosition | null>;
  /** From where conversations are being moved into this store; null: nothing is under way. */
  migration(): Promise<string | null>;
}

/** A store that conversations are moved out of; nobody writes to it until it is closed. */
export interface MigrationSource {
  /** `ConversationStore.id` of these logs; null: they have none yet. */
  readonly id: string | null;
  readonly archive: StoreArchive;
  close(): Promise<void>;
}

/**
 * A store that conversations are moved into. From `begin` to `end` nobody else opens it (`MIGRATION_UNFINISHED`), so
 * that what is there in part is never taken for the whole; both are durable when they resolve. Each rejects (`MIGRATION_RUNNING`)
 * if another run marked the target, or ended, since `archive.migration()` was asked last.
 */
export interface MigrationTarget {
  readonly store: ConversationStore;
  readonly archive: StoreArchive;
  begin(from: string): Promise<void>;
  end(): Promise<void>;
}
