import { readdir, stat } from 'node:fs/promises';
import { fullDiskError } from '../../kernel/index.ts';
import type {
  ConversationRow,
  ConversationStore,
  Deletion,
  IngressAttempts,
  IngressPosition,
  IngressPosts,
  OpenedLog,
  Removed,
  ToolRecords,
} from '../port.ts';
import { byId, logAlreadyOpen, requireConversationId, storeClosed } from '../rules.ts';
import { DecisionNote } from './decision-note.ts';
import { enterFolders, reportShared } from './directory/folders.ts';
import { enterFormat, type StoredFormat } from './directory/format.ts';
import { identityOf } from './directory/identity.ts';
import type { FileLock } from './directory/lock.ts';
import { Marks } from './directory/marks.ts';
import { refuseUnfinishedMigration } from './directory/migration-mark.ts';
import { idOf, type StorePaths, storePaths } from './directory/paths.ts';
import { takeDirectory } from './directory/take-directory.ts';
import { type LazyDocument, openLazyDocument, StateDocuments } from './documents.ts';
import { orNullIfMissing } from './log/durable.ts';
import { openFileLog } from './log/file-log.ts';
import type { StoreEvent, StoreLog } from './log/log-file.ts';
import { type LogFiles, nodeLogFiles } from './log/log-file.ts';
import { parseIngressAttempts, parseIngressPosition, parseRows } from './projections.ts';
import { Tombstones } from './tombstones.ts';
import { createToolFiles, removeConversation, sweepRemoved } from './tool-files.ts';

/**
 * The store of one machine: a directory of logs and projections, owned by one process.
 *
 * FILE-STORE-1 One owner: the kernel's lock on `LOCK` is held from before the first read until after the last write.
 * FILE-STORE-2 A log has one writer: a conversation is opened once at a time.
 * FILE-STORE-3 Nothing here reads a log except `open`.
 * FILE-STORE-4 A conversation is deleted by renaming its directory, so that it is there whole or not at all; what its posts in
 *    the ingress stream are worth from then on is durable before.
 */

export interface FileStoreOptions {
  /** Told what was mended or could not be saved. */
  readonly log?: StoreLog;
  /** The file operations of the logs; a test makes them fail. */
  readonly files?: LogFiles;
  /** What is written; a test stands for another version of Parley. */
  readonly format?: StoredFormat;
  /** Opened by whoever moves conversations into it; else a move that is under way refuses everybody. */
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
    await enterFormat(directory, log, options.format);
    const id = await identityOf(directory);
    await sweepRemoved(paths);
    const present = await enterFolders(paths, log);
    const rows = await openLazyDocument({ path: paths.rows, empty: { rows: [] }, parse: parseRows, log });
    const ingress = await openLazyDocument<IngressPosition | null>({
      path: paths.ingress,
      empty: null,
      parse: parseIngressPosition,
      log,
    });
    const attempts = await openLazyDocument<IngressAttempts | null>({
      path: paths.attempts,
      empty: null,
      parse: parseIngressAttempts,
      log,
    });
    const tombstones = await Tombstones.open(paths.deleted, log);
    reportShared(rows.data.rows, present, paths, log);
    const kept = rows.data.rows.filter((row) => present.has(row.id));
    if (kept.length < rows.data.rows.length) rows.change(() => ({ rows: kept }));
    const files = options.files ?? nodeLogFiles;
    const deciding = new DecisionNote(paths.deciding, log);
    return new FileStore(
      { id, paths, log, lock, ingress, attempts, deciding, tombstones, rows, files },
      kept,
    );
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
  readonly rows: LazyDocument<{ rows: ConversationRow[] }>;
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
  readonly #parts: StoreParts;
  readonly #rows = new Map<string, ConversationRow>();
  #ingress: IngressPosition | null;
  readonly #marks: Marks;
  readonly #states = new StateDocuments();
  /** The damage of each conversation that was told. */
  readonly #quarantined = new Map<string, string>();
  readonly #open = new Map<string, Promise<OpenedLog>>();
  readonly #deleting = new Map<string, Promise<Removed>>();
  /** Changes under way: the directory is not given up before they end (FILE-STORE-1). */
  readonly #working = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  constructor(parts: StoreParts, rows: readonly ConversationRow[]) {
    this.#parts = parts;
    this.id = parts.id;
    this.toolRecords = createToolFiles(parts.paths);
    for (const row of rows) this.#rows.set(row.id, row);
    this.#ingress = parts.ingress.data;
    this.#marks = new Marks(parts.paths.marks);
  }

  async open(conversation: string): Promise<OpenedLog> {
    this.#admit(conversation);
    await this.#deleting.get(conversation);
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const { paths, files } = this.#parts;
    const log = (event: StoreEvent) => this.#report(event);
    const opening = openFileLog({
      conversation,
      path: paths.log(conversation),
      files,
      log,
      onClosed: () => this.#open.delete(conversation),
    });
    this.#open.set(conversation, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(conversation);
      throw error;
    }
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return this.#hasLog(conversation);
  }

  async delete(conversation: string, upTo: IngressPosition | null = null): Promise<Removed> {
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const underWay = this.#deleting.get(conversation);
    if (underWay !== undefined) return underWay;
    const deleting = this.#delete(conversation, upTo).finally(() => this.#deleting.delete(conversation));
    this.#deleting.set(conversation, deleting);
    return this.#work(deleting);
  }

  async #delete(conversation: string, upTo: IngressPosition | null): Promise<Removed> {
    const { paths, rows, tombstones } = this.#parts;
    if (upTo !== null) await tombstones.put(conversation, upTo);
    const removed = await removeConversation(paths, conversation); // FILE-STORE-4
    await this.#marks.remove(conversation, async () => undefined);
    if (this.#rows.delete(conversation)) this.#rowsChanged();
    await rows.flush(); // a row holds a title
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
    return this.#sortedRows();
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    this.#rows.set(row.id, { ...row });
    this.#rowsChanged();
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
    this.#ingress = { ...position };
    this.#parts.ingress.change(() => this.#ingress);
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
      const opened = await Promise.allSettled(this.#open.values());
      const logs = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value.log] : []));
      // Logs first: the ingress position may lag them, never lead them.
      await Promise.allSettled(logs.map((log) => log.close()));
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

  /** The door: refuses when closed, and what is not a conversation id. */
  #admit(conversation?: string): void {
    if (this.#closing !== null) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }

  /** The same damage is told once: whoever asks for the conversation is told each time. */
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

  #rowsChanged(): void {
    this.#parts.rows.change(() => ({ rows: this.#sortedRows() }));
  }

  #sortedRows(): ConversationRow[] {
    return [...this.#rows.values()].sort(byId);
  }
}
