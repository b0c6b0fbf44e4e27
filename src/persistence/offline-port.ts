import type { Entry } from '../conversation/index.ts';
import type {
  AuditRecord,
  BackupFacts,
  ConversationRow,
  ConversationStore,
  Deletion,
  IngressPosition,
} from './port.ts';

/** What commands without a daemon need of a store: to inspect it, and to migrate it. */

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
}

/** Everything a store contains, for a migration or a backup. Reading changes nothing. */
export interface StoreArchive {
  /** Identifies the store, for people and programs. */
  readonly name: string;
  conversations(): Promise<string[]>;
  /** Every entry, oldest first, without an incomplete append. */
  entries(conversation: string): Promise<Entry[]>;
  /** The number of entries up to the end of each append; absent: the store does not tell. Read later than `entries`, it may have more. */
  appendEnds?(conversation: string): Promise<readonly number[]>;
  audit(conversation: string): Promise<readonly AuditRecord[]>;
  /** The entry ids of stored outputs, in order. */
  outputs(conversation: string): Promise<string[]>;
  output(conversation: string, entryId: string): Promise<string | null>;
  /** The hashes of all texts of definitions, in order. */
  definitions(): Promise<string[]>;
  definition(hash: string): Promise<string | null>;
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
 * (`MIGRATION_UNFINISHED`). Each rejects with `MIGRATION_RUNNING` if another run changed the mark since the last
 * `archive.migration()`.
 */
export interface MigrationTarget {
  readonly store: ConversationStore;
  readonly archive: StoreArchive;
  begin(from: string): Promise<void>;
  end(): Promise<void>;
}
