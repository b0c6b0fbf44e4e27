import type { Entry } from '../conversation/index.ts';
import type { ParleyError } from '../kernel/index.ts';
import type { Documents } from './documents.ts';
import type { AuditRecord, IngressPosts, OpenedLog, Removed, SharedLogs } from './port.ts';

/** What an adapter provides: logs, audit logs, and documents with a durability class. `store.ts` keeps the records in them. */
export interface Storage {
  /** `ConversationStore.id` */
  readonly id: string;
  /** `ConversationStore.isFeed` */
  readonly isFeed: boolean;
  readonly documents: Documents;
  readonly audit: AuditLog;
  readonly shared: Pick<SharedLogs, 'newest' | 'origin' | 'all'> | null;
  /** `ConversationStore.fault`. Absent: null. */
  fault?(): ParleyError | null;
  /** Call `onClosed` once, after the log is closed. */
  openLog(conversation: string, onClosed: () => void): Promise<OpenedLog>;
  hasLog(conversation: string): Promise<boolean>;
  /** Those that have a log. */
  conversations(): Promise<string[]>;
  /**
   * Removes the closed log, the audit log and the documents of a conversation, except `deleted`. A crash leaves all of it, or
   * the next opening removes the rest. `newest`: `ConversationStore.delete`.
   */
  remove(conversation: string, newest?: number): Promise<Removed>;
  /** `ConversationStore.lastDecision` */
  readonly lastDecision: IngressPosts | null;
  noteDecision(posts: IngressPosts | null): void;
  /** All logs are closed. Writes pending changes and releases the storage. */
  close(): Promise<void>;
}

/** Records of tool calls, by conversation. */
export interface AuditLog {
  /** Durable when it resolves, in the order of the calls. */
  append(conversation: string, records: readonly AuditRecord[]): Promise<void>;
  /** The JSON of each record, oldest first; '' for nothing. It may be incomplete or of another program. */
  read(conversation: string): Promise<readonly string[]>;
}

/** What can be read of a storage without owning it. */
export interface StoredContent {
  readonly documents: Pick<Documents, 'get' | 'keys'>;
  readonly audit: Pick<AuditLog, 'read'>;
  conversations(): Promise<string[]>;
  /** `ends`: the number of entries up to the end of each append. */
  log(conversation: string): Promise<{ readonly entries: Entry[]; readonly ends: readonly number[] }>;
}
