import type { AuditedCall, Entry, FilePart, Spent } from '../conversation/index.ts';
import type { ParleyError } from '../kernel/index.ts';

/**
 * What the daemon needs of a store. One contract suite (`test/contract/`) runs on every adapter.
 *
 * PERSISTENCE-PORT-1 An append is all or nothing, and durable before it resolves (L5).
 * PERSISTENCE-PORT-2 An append names the length it expects; a wrong one changes nothing (L3).
 * PERSISTENCE-PORT-3 Entries never change: each read returns the same bytes, whatever was appended since (L2).
 * PERSISTENCE-PORT-4 Damage is reported, never hidden and never overwritten.
 */

/** The result of an append. I/O faults are thrown (`ParleyError`), and then nothing was appended. */
export type AppendOutcome =
  | { readonly kind: 'appended'; readonly length: number }
  /** Another writer appended: `length` is the log's length now. */
  | { readonly kind: 'conflict'; readonly length: number };

/** What an append says about its conversation, for readers that do not read the log. */
export interface WorkStatus {
  /** The owner and the ordinal of its claim; null: no owner is recorded. */
  readonly claim: { readonly daemon: string; readonly epoch: number } | null;
  /** A daemon must continue work on it. */
  readonly hasOutstandingWork: boolean;
}

export interface NewestAppend {
  /** Null: the append does not say. */
  readonly status: WorkStatus | null;
  /** Increases with each append. */
  readonly sequence: number;
  /** The length of the log, including this append; null: the message is not an append. */
  readonly length: number | null;
}

export interface ConversationLog {
  readonly conversation: string;
  /** Entries in the log, including appends that are not durable yet. */
  readonly length: number;
  /**
   * Appends one batch, whole or not at all. `entries[i].index` is `expectedLength + i`. Appends may be queued, each naming
   * the length after the previous one; when one fails, those queued after it fail too. `status` is stored only where logs
   * are shared.
   */
  append(expectedLength: number, entries: readonly Entry[], status?: WorkStatus): Promise<AppendOutcome>;
  /** Where logs are shared: the sequence of the newest append that is known here; 0: none. */
  readonly newestSequence?: number;
  /** Entries `from` (inclusive) to `to` (exclusive, default the durable length). */
  read(from: number, to?: number): Promise<Entry[]>;
  close(): Promise<void>;
}

/** What opening a log repaired, for the operator. */
export interface TornTail {
  /** Bytes of an unacknowledged batch, which were cut from the end of the log and copied to `keptIn`. */
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
  /** The beginning of the newest message, without Markdown; null: there is none. */
  readonly newest: string | null;
  readonly phase: string;
  readonly mode: string;
  readonly activeAgent: string | null;
  readonly length: number;
  /** ISO 8601. */
  readonly updatedAt: string;
  /** The time of the newest entry that is news, and the number of entries up to it. */
  readonly activeAt: string;
  readonly activeLength: number;
  /** Used by model calls so far. */
  readonly tokens: number;
  readonly usd: number;
  /** Calls whose cost is unknown and not part of `usd`. */
  readonly unpricedCalls: number;
  /** The same by day (UTC) and agent. */
  readonly spent: readonly Spent[];
  /** Slugs of agents that wait, that a limit stopped, and that a person stopped with work left. */
  readonly waiting: readonly string[];
  readonly limited: readonly string[];
  readonly stopped: readonly string[];
  /** Absent: not all agents are stopped. */
  readonly allStopped?: true;
  readonly archived: boolean;
  readonly agents: readonly string[];
  readonly people: readonly string[];
  /** What its agents wait for, and which of them are limited, stopped or failed. */
  readonly activity: readonly RowActivity[];
}

/** One agent that needs something: an element for each thing that it waits for. */
export interface RowActivity {
  readonly agent: string;
  readonly status: string;
  /** ISO 8601. */
  readonly since: string | null;
  /** What it waits for, and which one: the tool, the other agent. */
  readonly for?: string;
  readonly of?: string;
  /** The entry to show for it, and the position of a question's call there. */
  readonly entry?: number;
  readonly position?: number;
}

/** How far the ingress stream was read: every post up to `sequence` is in a log or was refused. */
export interface IngressPosition {
  /** The creation time of the stream: changes when it is created again. */
  readonly stream: string;
  readonly sequence: number;
}

/** A tool call as its runner recorded it. Repair may take a result from it: the only source besides the log (L1). */
export interface AuditRecord extends AuditedCall {
  readonly type: 'ToolCallRequested' | 'ToolCallStarted' | 'ToolCallCompleted';
  /** ISO 8601. */
  readonly at: string;
  readonly arguments?: string;
}

export interface AuditTrail {
  /** Oldest first, without unreadable ones. */
  readonly records: readonly AuditRecord[];
  /** Positions, from 1, of unreadable records: incomplete after a crash, damaged, or of another program. */
  readonly unreadable: readonly number[];
}

/** Records and large outputs of tool calls. Deleted with the conversation. */
export interface ToolRecords {
  /** Durable when it resolves. */
  append(conversation: string, records: readonly AuditRecord[]): Promise<void>;
  read(conversation: string): Promise<AuditTrail>;
  /** Stores a whole large output; durable when it resolves. */
  saveOutput(conversation: string, entryId: string, content: string): Promise<void>;
  /** Null: not found. */
  readOutput(conversation: string, entryId: string): Promise<string | null>;
}

/**
 * Texts under their SHA-256 (hex): the definitions of agents, in parts. They are configuration, not content of a
 * conversation: no deletion removes them. A text that no entry names is harmless.
 */
export interface DefinitionTexts {
  /** Durable when it resolves; a part of the texts may be stored if it rejects. A text that is stored stays; a damaged one is replaced. */
  put(texts: ReadonlyMap<string, string>): Promise<void>;
  /** Null: not stored. The caller compares the text with its hash. */
  get(hash: string): Promise<string | null>;
}

/** A small document of each person, by the SHA-256 (hex) of the id. It is not copied by a backup or a migration. */
export interface PersonRecords {
  /** Null: none. A damaged one is no object. */
  get(person: string): Promise<unknown>;
  /** `Documents.change` */
  change(person: string, next: (known: unknown) => unknown): Promise<void>;
}

/** The newest appends of logs that several daemons share. Reads no log. */
export interface SharedLogs {
  /** Null: no append. */
  newest(conversation: string): Promise<NewestAppend | null>;
  /** Tells the log that a conversation has now from a later one of the same id; null: it has none. */
  origin(conversation: string): Promise<number | null>;
  /** The newest append of every conversation, by id. */
  all(): Promise<ReadonlyMap<string, NewestAppend>>;
  /** Removes the row and the state of a conversation whose log is gone. */
  forgetRow(conversation: string): Promise<void>;
}

/** What a deletion removed besides the log: records of tool calls, large outputs, and files that no other log names. */
export interface Removed {
  readonly records: number;
  readonly outputs: number;
  readonly files: number;
}

/** The posts of a deleted conversation are void up to this position. */
export interface Deletion extends IngressPosition {
  readonly conversation: string;
}

/** Where and when a backup was made. */
export interface BackupFacts {
  /** The store that was copied. */
  readonly from: string;
  /** ISO 8601. */
  readonly madeAt: string;
}

/** Set while these logs are a backup on which no daemon has started. Durable when `put` and `remove` resolve. */
export interface BackupMark {
  get(): Promise<BackupFacts | null>;
  put(facts: BackupFacts): Promise<void>;
  remove(): Promise<void>;
}

/** What is known of a file's content. */
export type BlobFacts = Omit<FilePart, 'type' | 'name'>;

/**
 * The content of files, once for each SHA-256. An append whose entries name a blob that is not stored rejects with
 * `MISSING_BLOB`; a blob that a log names stays until the conversation is deleted.
 */
export interface Blobs {
  /**
   * Durable when it resolves. Content without this hash and size rejects with `BLOB_WRONG_HASH`, and nothing is stored. What is
   * stored already is not read, unless it is damaged.
   */
  put(facts: BlobFacts, content: () => AsyncIterable<Uint8Array>): Promise<void>;
  /** Null: not stored, or being erased. */
  facts(sha256: string): Promise<BlobFacts | null>;
  /** Null: not stored. Damaged content rejects with `BLOB_DAMAGED` before its last piece, unless `from` leaves bytes out. */
  read(sha256: string, from?: number): Promise<AsyncIterable<Uint8Array> | null>;
  /** The files that the log of a conversation names. It is read, unless it is open. */
  of(conversation: string): Promise<readonly BlobFacts[]>;
  /** Whether the log of a conversation may name a blob. The log is not read. */
  isIn(conversation: string, sha256: string): Promise<boolean>;
  /**
   * Finishes interrupted deletions, and erases what no conversation names and was stored before this time (ISO 8601). Returns the
   * number of erased blobs. The end of `signal` ends it early; the next sweep does the rest.
   */
  sweep(before: string, signal?: AbortSignal): Promise<number>;
  /** A repair, while no log is open: the records say what these logs name. Those of other conversations stay. */
  rebuild(logs: ReadonlyMap<string, NamedFiles>): Promise<void>;
}

export interface NamedFiles {
  /** The first entry; null: there is none. */
  readonly first: Pick<Entry, 'id'> | null;
  readonly files: readonly FilePart[];
}

export interface ConversationStore {
  /** Identifies these logs; a copy of them has the same id, a backup has none. */
  readonly id: string;
  /**
   * True: the store itself publishes appends and tool records to followers, since it stores them on their subjects. No
   * other code may publish there.
   */
  readonly isFeed: boolean;
  readonly toolRecords: ToolRecords;
  readonly definitions: DefinitionTexts;
  /** A deletion removes the conversation from their `lengths`. */
  readonly people: PersonRecords;
  readonly backupMark: BackupMark;
  readonly blobs: Blobs;
  /** Null: one daemon at a time owns all logs. */
  readonly shared: SharedLogs | null;

  /** Why the server of the logs makes reads and appends wait, or refuses them; null: it does not, or the store has none. */
  fault(): ParleyError | null;

  /** Opens one log; its first append creates it. Reads no other log. Once at a time for each conversation. */
  open(conversation: string): Promise<OpenedLog>;
  /** True if the log contains an entry. Reads no log. */
  exists(conversation: string): Promise<boolean>;
  /**
   * Deletes a closed log and every file of the conversation; idempotent. `upTo`: posts up to there are void from now on, which
   * is durable before the log is touched. `newest`, where logs are shared: the sequence of the last append to remove; a log
   * that begins later stays. Default: the whole log.
   */
  delete(conversation: string, upTo?: IngressPosition | null, newest?: number): Promise<Removed>;
  /** The position of the last deletion: the ingress stream may still have those posts. Null: never deleted. */
  deletedUpTo(conversation: string): Promise<IngressPosition | null>;
  /**
   * Call when the ingress stream may have lost its newest posts: deletions beyond its last post are durably moved back to
   * it. `end` returns the last post. It is called after the deletions are read, so no newer deletion is cut.
   */
  cutDeletions(end: () => Promise<IngressPosition>): Promise<void>;
  /** `deletedUpTo` of every deleted conversation. */
  deletions(): Promise<Deletion[]>;

  /**
   * Durably marks a conversation whose log the next start must read: before the first append since it was opened. `openMarks()`
   * returns null when the marks are missing: then every log must be read.
   */
  markOpen(conversation: string): Promise<void>;
  /** Removes the mark. The conversation's row must have been saved before. */
  clearOpen(conversation: string): Promise<void>;
  openMarks(): Promise<string[] | null>;
  /** Creates the marks, after a start that read every log. */
  initialiseMarks(): Promise<void>;

  /** Every conversation that has a log, ordered by id. Reads no log. */
  conversations(): Promise<string[]>;

  /** The list of conversations, ordered by id. A projection: it may lag, and can be rebuilt from the logs. */
  rows(): Promise<ConversationRow[]>;
  saveRow(row: ConversationRow): Promise<void>;
  /** The state document of one conversation, for people and tools: a projection. */
  saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void>;

  ingressPosition(): Promise<IngressPosition | null>;
  /** May lag the logs, never lead them. The first one in a stream is saved before it resolves. */
  saveIngressPosition(position: IngressPosition): Promise<void>;

  /** Writes pending changes and releases the store. */
  close(): Promise<void>;
}

/** What is stored of one conversation, read without the lock. */
export interface Inspection {
  /** Null: no row yet. */
  readonly row: { readonly value: ConversationRow | null } | { readonly fault: string };
  readonly state: { readonly value: unknown } | { readonly fault: string };
  readonly audit: readonly AuditRecord[];
  /** Lines of the audit log, from 1, that are not records. */
  readonly badAuditLines: readonly number[];
  readonly log:
    | { readonly entries: readonly Entry[]; readonly tornTail: { readonly bytes: number } | null }
    | { readonly damage: Error };
  /** The next start reads this log: it is marked, or the marks are missing. */
  readonly isMarked: boolean;
  hasOutput(entryId: string): boolean;
  /** What else could not be read, and why. */
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

/** Reads a store without its lock, and changes nothing. */
export interface StoreInspector {
  conversations(): Promise<string[]>;
  /** Files of deleted conversations, including deletions in progress. */
  leftovers(): Promise<Leftover[]>;
  inspect(conversation: string): Promise<Inspection>;
  /** The text of a definition or of a part of it; null: not stored. */
  definition(hash: string): Promise<string | null>;
  readonly blobs: InspectedBlobs;
}

export interface InspectedBlobs extends Pick<Blobs, 'facts' | 'read'> {
  /** Whether the records let the log that begins with this entry name a blob (`Blobs.rebuild`). */
  isClaimed(sha256: string, conversation: string, first: Pick<Entry, 'id'>): Promise<boolean>;
  /** Whether there is content, with a record or without. */
  hasContent(sha256: string): Promise<boolean>;
  /** By hash, what is stored, with the time (ISO 8601) of the newest upload. */
  stored(): Promise<ReadonlyMap<string, string>>;
}

/** Everything a store contains, for a migration or a backup. Reading changes nothing. */
export interface StoreArchive {
  /** Identifies the store, for people and programs. */
  readonly name: string;
  conversations(): Promise<string[]>;
  /** Every entry, oldest first, without an incomplete append. */
  entries(conversation: string): Promise<Entry[]>;
  /** The number of entries up to the end of each append; read later than `entries`, it may have more. */
  appendEnds(conversation: string): Promise<readonly number[]>;
  audit(conversation: string): Promise<readonly AuditRecord[]>;
  /** The entry ids of stored outputs, in order. */
  outputs(conversation: string): Promise<string[]>;
  output(conversation: string, entryId: string): Promise<string | null>;
  /** The hashes of all texts of definitions, in order. */
  definitions(): Promise<string[]>;
  definition(hash: string): Promise<string | null>;
  readonly blobs: Pick<Blobs, 'facts' | 'read'>;
  deletions(): Promise<Deletion[]>;
  ingressPosition(): Promise<IngressPosition | null>;
  /** Set: it is a backup on which no daemon has started. */
  backup(): Promise<BackupFacts | null>;
  /** The source of an unfinished migration into this store; null: none. */
  migration(): Promise<string | null>;
}

/** A store that conversations are moved out of. No daemon writes to it until it is closed. */
export interface MigrationSource {
  /** `ConversationStore.id` of these logs; null: no id yet. */
  readonly id: string | null;
  readonly archive: StoreArchive;
  close(): Promise<void>;
}

/**
 * A store that conversations are moved into. From `begin` to `end`, both durable, every other opening is refused
 * (`MIGRATION_UNFINISHED`).
 */
export interface MigrationTarget {
  readonly store: ConversationStore;
  readonly archive: StoreArchive;
  begin(from: string): Promise<void>;
  end(): Promise<void>;
}
