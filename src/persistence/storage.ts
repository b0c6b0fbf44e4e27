import type { Entry } from '../conversation/index.ts';
import type { ParleyError } from '../kernel/index.ts';
import type { AuditRecord, OpenedLog, Removed, SharedLogs } from './port.ts';

/** What an adapter provides: logs, audit logs, and documents with a durability class. `store.ts` keeps the records in them. */
export interface Storage {
  /** `ConversationStore.id` */
  readonly id: string;
  /** `ConversationStore.isFeed` */
  readonly isFeed: boolean;
  readonly documents: Documents;
  readonly audit: AuditLog;
  readonly blobs: BlobContents;
  readonly shared: (Pick<SharedLogs, 'newest' | 'origin' | 'all'> & SharedExtent) | null;
  /** `ConversationStore.fault`. Absent: null. */
  fault?(): ParleyError | null;
  /** Call `onClosed` once, after the log is closed. */
  openLog(conversation: string, onClosed: () => void): Promise<OpenedLog>;
  hasLog(conversation: string): Promise<boolean>;
  /** Those that have a log. */
  conversations(): Promise<string[]>;
  /**
   * Removes the closed log, the audit log and the documents of a conversation, except `deleted` and `deleting`. It is
   * repeated after a crash. `newest`, where logs are shared: `ConversationStore.delete`.
   */
  remove(conversation: string, newest: number): Promise<Omit<Removed, 'files'>>;
  /** Steps after which tests end the process. */
  readonly reach?: ReachStorePoint | undefined;
  /** All logs are closed. Writes pending changes and releases the storage. */
  close(): Promise<void>;
}

export const STORE_POINTS = [
  'blob-stored',
  'blob-claimed',
  'deletion-noted',
  'blob-erasing',
  'blob-erased',
  'log-removed',
] as const;
export type StorePoint = (typeof STORE_POINTS)[number];
export type ReachStorePoint = (point: StorePoint) => void;

interface SharedExtent {
  /** The newest message of a log, and then the first entry with its sequence. `last` 0, `first` null: there is none. */
  extent(conversation: string): Promise<{
    readonly last: number;
    readonly first: { readonly id: string; readonly sequence: number } | null;
  }>;
}

export interface BlobContents {
  /** Durable when it resolves, with the name of the content. Where `content` throws, nothing is left. */
  put(sha256: string, content: AsyncIterable<Uint8Array>): Promise<string>;
  /** From this byte on. Null: not stored. */
  read(name: string, from?: number): Promise<AsyncIterable<Uint8Array> | null>;
  /** Idempotent. Durable when it resolves. */
  remove(name: string): Promise<void>;
  /** The names of all, incomplete ones included. */
  list(): Promise<string[]>;
  /** ISO 8601; null: not stored. */
  storedAt(name: string): Promise<string | null>;
}

/** Without the first bytes. */
export async function* bytesFrom(
  content: AsyncIterable<Uint8Array>,
  from: number,
): AsyncGenerator<Uint8Array> {
  let left = from;
  for await (const piece of content) {
    if (piece.length > left) yield piece.subarray(left);
    left = Math.max(0, left - piece.length);
  }
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
  readonly blobs: Pick<BlobContents, 'read'>;
  conversations(): Promise<string[]>;
  /** `ends`: the number of entries up to the end of each append. */
  log(conversation: string): Promise<{ readonly entries: Entry[]; readonly ends: readonly number[] }>;
}

/**
 * What a store keeps besides its logs: small values by key. A key is a kind and names with dots between them, such as
 * `row.demo` and `output.demo.e1`. The kinds `output` and `definition` hold texts, the others any JSON.
 *
 * DOCUMENTS-1 A document is there as a whole or not at all.
 * DOCUMENTS-2 Changes of one key take effect in the order of the calls.
 * DOCUMENTS-3 `durable`: on the disk when the call resolves. `derived`: it can be computed again, so it may be saved later and
 *             may be lost. A failed save of a row or of the ingress position is reported and does not reject.
 */
export type Durability = 'durable' | 'derived';

export interface Documents {
  /** Null: not stored. */
  get(key: string): Promise<unknown>;
  put(key: string, value: unknown, durability: Durability): Promise<void>;
  /**
   * Saves `next(stored value)`, where null means no document; compare-and-set where several processes write. Null from `next`: no
   * change. What is stored is durable when it resolves.
   */
  change(key: string, next: (known: unknown) => unknown): Promise<void>;
  /** `derived`: after a power loss it may be there again. */
  remove(key: string, durability?: Durability): Promise<void>;
  /** Removes the document if `when(stored value)`, in one step with the comparison; durable when it resolves. */
  removeIf(key: string, when: (known: unknown) => boolean): Promise<void>;
  /** Removes every document whose key begins with `start`. */
  removeAll(start: string): Promise<void>;
  /** The rest of each key that begins with `start`, in order. */
  keys(start: string): Promise<string[]>;
  /** The same, with the values. Where logs are shared, another process may have changed them just now. */
  entries(start: string): Promise<ReadonlyMap<string, unknown>>;
  /** Resolves when every change of this kind so far is durable. */
  flush(kind: string): Promise<void>;
}

/**
 * Lets callers share runs of `work`. A call during a run waits for the next run, since the current one may have begun before
 * the caller's change. At most one run is active and one is waiting.
 */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let waiting: Promise<void> | null = null;

  function request(): Promise<void> {
    if (running === null) {
      running = work().finally(() => {
        running = null;
      });
      return running;
    }
    waiting ??= running
      .catch(() => undefined) // the callers of that run get its error
      .then(() => {
        waiting = null;
        return request();
      });
    return waiting;
  }
  return request;
}
