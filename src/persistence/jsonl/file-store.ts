import { readdir, stat } from 'node:fs/promises';
import { fullDiskError } from '../../kernel/index.ts';
import { OpenLogs } from '../open-logs.ts';
import type {
  BackupMark,
  ConversationRow,
  ConversationStore,
  DefinitionTexts,
  Deletion,
  IngressAttempts,
  IngressPosition,
  IngressPosts,
  OpenedLog,
  Removed,
  ToolRecords,
} from '../port.ts';
import { requireConversationId, storeClosed } from '../rules.ts';
import { DecisionNote } from './decision-note.ts';
import { createDefinitionFiles } from './definition-files.ts';
import { backupMarkAt } from './directory/backup-mark.ts';
import { writeFormat } from './directory/format.ts';
import { identityOf } from './directory/identity.ts';
import type { FileLock } from './directory/lock.ts';
import { Marks } from './directory/marks.ts';
import { refuseUnfinishedMigration } from './directory/migration-mark.ts';
import { idOf, type StorePaths, storePaths } from './directory/paths.ts';
import { takeDirectory } from './directory/take-directory.ts';
import { type LazyDocument, openLazyDocument, StateDocuments } from './documents.ts';
import { orNullIfMissing } from './log/durable.ts';
import { openFileLog } from './log/file-log.ts';
import { type LogFiles, nodeLogFiles, type StoreEvent, type StoreLog } from './log/log-file.ts';
import { ConversationRows, parseIngressAttempts, parseIngressPosition } from './projections.ts';
import { Tombstones } from './tombstones.ts';
import { createToolFiles, removeConversation, sweepRemoved } from './tool-files.ts';

/**
 * The store of one machine: a directory of logs and projections, owned by one process.
 *
 * FILE-STORE-1 One owner: the kernel's lock on `LOCK` is held from before the first read until after the last write.
 * FILE-STORE-2 A log has one writer: a conversation is opened once at a time.
 * FILE-STORE-3 Only `open` reads a log.
 * FILE-STORE-4 A conversation is deleted by renaming its directory, so it is there as a whole or not at all. Its tombstone is
 *              durable before.
 */

export interface FileStoreOptions {
  /** Receives repairs and failed saves. */
  readonly log?: StoreLog;
  /** The file operations of the logs; a test makes them fail. */
  readonly files?: LogFiles;
  /** True for a migration; other callers are refused while one is unfinished. */
  readonly isMigrating?: boolean;
}

export async function openFileStore(
  directory: string,
  options: FileStoreOptions = {},
): Promise<ConversationStore> {
  const paths = storePaths(directory);
  const log = options.log ?? (() => undefined);
  const lock = await takeDirectory(paths);
  try {
    if (!options.isMigrating) await refuseUnfinishedMigration(directory);
    await writeFormat(directory);
    const id = await identityOf(directory);
    await sweepRemoved(paths);
    const rows = await ConversationRows.open(paths.rows, log);
    const empty = null;
    const ingress = await openLazyDocument({ path: paths.ingress, empty, parse: parseIngressPosition, log });
    const attempts = await openLazyDocument({
      path: paths.attempts,
      empty,
      parse: parseIngressAttempts,
      log,
    });
    const tombstones = await Tombstones.open(paths.deleted, log);
    rows.keepOnly(new Set((await readdir(paths.conversations)).flatMap((name) => idOf(name) ?? [])));
    const files = options.files ?? nodeLogFiles;
    const deciding = new DecisionNote(paths.deciding, log);
    return new FileStore({ id, paths, log, lock, ingress, attempts, deciding, tombstones, rows, files });
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface StoreParts {
  readonly id: string;
  readonly paths: StorePaths;
  readonly log: StoreLog;
  readonly lock: FileLock;
  readonly files: LogFiles;
  readonly rows: ConversationRows;
  readonly ingress: LazyDocument<IngressPosition | null>;
  readonly attempts: LazyDocument<IngressAttempts | null>;
  readonly deciding: DecisionNote;
  readonly tombstones: Tombstones;
}

class FileStore implements ConversationStore {
  readonly id: string;
  readonly isFeed = false;
  readonly shared = null;
  readonly toolRecords: ToolRecords;
  readonly definitions: DefinitionTexts;
  readonly backupMark: BackupMark;
  readonly #parts: StoreParts;
  #ingress: IngressPosition | null;
  readonly #marks: Marks;
  readonly #states = new StateDocuments();
  /** The reported damage of each conversation. */
  readonly #quarantined = new Map<string, string>();
  readonly #logs = new OpenLogs();
  /** Changes in progress: the lock is not released before they end (FILE-STORE-1). */
  readonly #working = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.id = parts.id;
    this.toolRecords = createToolFiles(parts.paths);
    this.backupMark = backupMarkAt(parts.paths.backup);
    const files = createDefinitionFiles(parts.paths.definitions);
    this.definitions = { put: (texts) => this.#work(files.put(texts)), get: files.get };
    this.#ingress = parts.ingress.data;
    this.#marks = new Marks(parts.paths.marks);
  }

  open(conversation: string): Promise<OpenedLog> {
    const { paths, files } = this.#parts;
    const log = (event: StoreEvent) => this.#report(event);
    return this.#logs.open(
      conversation,
      (id) => this.#admit(id),
      (onClosed) => openFileLog({ conversation, path: paths.log(conversation), files, log, onClosed }),
    );
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return this.#hasLog(conversation);
  }

  async delete(conversation: string, upTo: IngressPosition | null = null): Promise<Removed> {
    this.#admit(conversation);
    return this.#logs.delete(conversation, () => this.#work(this.#delete(conversation, upTo)));
  }

  async #delete(conversation: string, upTo: IngressPosition | null): Promise<Removed> {
    const { paths, rows, tombstones } = this.#parts;
    if (upTo !== null) await tombstones.put(conversation, upTo);
    const removed = await removeConversation(paths, conversation); // FILE-STORE-4
    await this.#marks.remove(conversation, async () => undefined);
    rows.delete(conversation);
    await rows.flush(); // a row contains a title
    return removed;
  }

  async deletedUpTo(conversation: string): Promise<IngressPosition | null> {
    this.#admit(conversation);
    return this.#parts.tombstones.get(conversation);
  }

  async cutDeletions(end: () => Promise<IngressPosition>): Promise<void> {
    this.#admit();
    await this.#work(this.#parts.tombstones.cut(end));
  }

  async deletions(): Promise<Deletion[]> {
    this.#admit();
    return this.#parts.tombstones.all();
  }

  async markOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    await this.#work(this.#marks.add(conversation));
  }

  async clearOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    await this.#work(this.#marks.remove(conversation, () => this.#parts.rows.flush()));
  }

  async openMarks(): Promise<string[] | null> {
    this.#admit();
    return this.#marks.list();
  }

  async initialiseMarks(): Promise<void> {
    this.#admit();
    await this.#work(this.#marks.complete());
  }

  async conversations(): Promise<string[]> {
    this.#admit();
    const ids = (await readdir(this.#parts.paths.conversations)).flatMap((name) => idOf(name) ?? []);
    const held = await Promise.all(ids.map((id) => this.#hasLog(id)));
    return ids.filter((_, position) => held[position]).sort();
  }

  async rows(): Promise<ConversationRow[]> {
    this.#admit();
    return this.#parts.rows.all();
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    this.#parts.rows.put({ ...row });
  }

  async saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void> {
    this.#admit(conversation);
    await this.#work(this.#states.save(this.#parts.paths.state(conversation), state));
  }

  async ingressPosition(): Promise<IngressPosition | null> {
    this.#admit();
    return this.#ingress;
  }

  async saveIngressPosition(position: IngressPosition): Promise<void> {
    this.#admit();
    const isOfNewStream = this.#ingress?.stream !== position.stream;
    this.#ingress = { ...position };
    this.#parts.ingress.change(() => this.#ingress);
    if (isOfNewStream) await this.#parts.ingress.flush().catch(() => undefined); // retried and reported
  }

  async ingressAttempts(): Promise<IngressAttempts | null> {
    this.#admit();
    return this.#parts.attempts.data;
  }

  async saveIngressAttempts(attempts: IngressAttempts): Promise<void> {
    this.#admit();
    this.#parts.attempts.change(() => attempts);
    await this.#work(this.#parts.attempts.flush());
  }

  async lastDecision(): Promise<IngressPosts | null> {
    this.#admit();
    return this.#parts.deciding.left;
  }

  noteDecision(posts: IngressPosts | null): void {
    this.#parts.deciding.set(posts);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { rows, ingress, attempts, deciding, tombstones, lock } = this.#parts;
    try {
      await this.#logs.close(); // first: the ingress position may lag the logs, never lead them
      await Promise.allSettled(this.#working);
      await rows.close();
      await ingress.close();
      await attempts.close();
      await tombstones.close();
    } finally {
      deciding.close();
      lock.release();
    }
  }

  /** Throws when the store is closed, and for what is not a conversation id. */
  #admit(conversation?: string): void {
    if (this.#closing !== null) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }

  /** Reports the same damage once; each caller that opens the conversation gets the error. */
  #report(event: StoreEvent): void {
    if (event.type === 'log-quarantined') {
      const damage = `${event.line} ${event.reason}`;
      if (this.#quarantined.get(event.conversation) === damage) return;
      this.#quarantined.set(event.conversation, damage);
    }
    this.#parts.log(event);
  }

  async #work<T>(change: Promise<T>): Promise<T> {
    this.#working.add(change);
    try {
      return await change;
    } catch (error) {
      throw fullDiskError(error, 'STORE_FULL', `the disk of ${this.#parts.paths.root}`);
    } finally {
      this.#working.delete(change);
    }
  }

  async #hasLog(conversation: string): Promise<boolean> {
    const found = await orNullIfMissing(stat(this.#parts.paths.log(conversation)));
    return found !== null && found.size > 0;
  }
}
