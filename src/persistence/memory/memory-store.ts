import type { Entry } from '../../conversation/index.ts';
import type { WhatIfTexts } from '../index.ts';
import type {
  AppendOutcome,
  BackupMark,
  ConversationLog,
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
import {
  byId,
  directoryInUse,
  isBeyond,
  isCovered,
  logAlreadyOpen,
  logClosed,
  readRange,
  requireConversationId,
  requireTextHash,
  serialiseBatch,
  storeClosed,
} from '../rules.ts';
import { createMemoryDisk, type MemoryDisk, memoryBackupMark, memoryToolRecords } from './memory-disk.ts';

/**
 * A store that lives as long as its `MemoryDisk`. Entries are kept as JSON, so that reads return copies without what JSON
 * loses.
 */

/** Pass the same disk again to open what an earlier, closed store left. */
export function createMemoryStore(disk: MemoryDisk = createMemoryDisk()): ConversationStore {
  if (disk.inUse) throw directoryInUse('(memory)', { pid: process.pid });
  disk.inUse = true;
  return new MemoryStore(disk);
}

class MemoryStore implements ConversationStore {
  readonly id: string;
  readonly isFeed = false;
  readonly shared = null;
  readonly toolRecords: ToolRecords;
  readonly definitions: DefinitionTexts;
  readonly backupMark: BackupMark;
  readonly #disk: MemoryDisk;
  readonly #lastDecision: IngressPosts | null;
  readonly #open = new Map<string, ConversationLog>();
  #closed = false;

  constructor(disk: MemoryDisk) {
    this.#disk = disk;
    this.id = disk.id;
    this.#lastDecision = disk.deciding;
    this.toolRecords = memoryToolRecords(disk);
    this.backupMark = memoryBackupMark(disk);
    this.definitions = {
      async put(texts) {
        for (const [hash, text] of texts) {
          requireTextHash(hash);
          disk.definitions.set(hash, text);
        }
      },
      async get(hash) {
        requireTextHash(hash);
        return disk.definitions.get(hash) ?? null;
      },
    };
  }

  async open(conversation: string): Promise<OpenedLog> {
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    const log = new MemoryLog(conversation, this.#disk.logs, () => this.#open.delete(conversation));
    this.#open.set(conversation, log);
    return { log, entries: await log.read(0), tornTail: null };
  }

  async exists(conversation: string): Promise<boolean> {
    this.#admit(conversation);
    return this.#disk.logs.has(conversation);
  }

  async delete(conversation: string, upTo: IngressPosition | null = null): Promise<Removed> {
    this.#admit(conversation);
    if (this.#open.has(conversation)) throw logAlreadyOpen(conversation);
    if (upTo && !isCovered(upTo, this.#disk.deleted.get(conversation)))
      this.#disk.deleted.set(conversation, { ...upTo });
    const removed = {
      records: this.#disk.audits.get(conversation)?.length ?? 0,
      outputs: this.#disk.outputs.get(conversation)?.size ?? 0,
    };
    this.#disk.logs.delete(conversation);
    this.#disk.states.delete(conversation);
    this.#disk.marks.delete(conversation);
    this.#disk.rows.delete(conversation);
    this.#disk.audits.delete(conversation);
    this.#disk.outputs.delete(conversation);
    return removed;
  }

  async deletedUpTo(conversation: string): Promise<IngressPosition | null> {
    this.#admit(conversation);
    return this.#disk.deleted.get(conversation) ?? null;
  }

  async cutDeletions(end: () => Promise<IngressPosition>): Promise<void> {
    this.#admit();
    const { deleted } = this.#disk;
    const known = [...deleted];
    const last = await end();
    for (const [id, position] of known)
      if (deleted.get(id) === position && isBeyond(position, last)) deleted.set(id, { ...last });
  }

  async deletions(): Promise<Deletion[]> {
    this.#admit();
    return [...this.#disk.deleted].map(([conversation, place]) => ({ conversation, ...place }));
  }

  async markOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    this.#disk.marks.add(conversation);
  }

  async clearOpen(conversation: string): Promise<void> {
    this.#admit(conversation);
    this.#disk.marks.delete(conversation);
  }

  async openMarks(): Promise<string[] | null> {
    this.#admit();
    return this.#disk.marksComplete ? [...this.#disk.marks].sort() : null;
  }

  async initialiseMarks(): Promise<void> {
    this.#admit();
    this.#disk.marksComplete = true;
  }

  async conversations(): Promise<string[]> {
    this.#admit();
    return [...this.#disk.logs.keys()].sort();
  }

  async rows(): Promise<ConversationRow[]> {
    this.#admit();
    return [...this.#disk.rows.values()].sort(byId);
  }

  async saveRow(row: ConversationRow): Promise<void> {
    this.#admit(row.id);
    this.#disk.rows.set(row.id, { ...row });
  }

  async saveState(conversation: string, state: Readonly<Record<string, unknown>>): Promise<void> {
    this.#admit(conversation);
    if (this.#disk.logs.has(conversation)) this.#disk.states.set(conversation, JSON.stringify(state));
  }

  async ingressPosition(): Promise<IngressPosition | null> {
    this.#admit();
    return this.#disk.ingress;
  }

  async saveIngressPosition(position: IngressPosition): Promise<void> {
    this.#admit();
    this.#disk.ingress = { ...position };
  }

  async ingressAttempts(): Promise<IngressAttempts | null> {
    this.#admit();
    return this.#disk.attempts;
  }

  async saveIngressAttempts(attempts: IngressAttempts): Promise<void> {
    this.#admit();
    this.#disk.attempts = structuredClone(attempts);
  }

  async lastDecision(): Promise<IngressPosts | null> {
    this.#admit();
    return this.#lastDecision;
  }

  noteDecision(posts: IngressPosts | null): void {
    this.#disk.deciding = structuredClone(posts);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const log of [...this.#open.values()]) await log.close();
    this.#disk.inUse = false;
  }

  #admit(conversation?: string): void {
    if (this.#closed) throw storeClosed();
    if (conversation !== undefined) requireConversationId(conversation);
  }
}

class MemoryLog implements ConversationLog {
  readonly conversation: string;
  readonly #logs: Map<string, string[]>;
  readonly #onClosed: () => void;
  #closed = false;

  constructor(conversation: string, logs: Map<string, string[]>, onClosed: () => void) {
    this.conversation = conversation;
    this.#logs = logs;
    this.#onClosed = onClosed;
  }

  get length(): number {
    return this.#logs.get(this.conversation)?.length ?? 0;
  }

  async append(expectedLength: number, entries: readonly Entry[]): Promise<AppendOutcome> {
    const json = serialiseBatch(this.conversation, expectedLength, entries);
    if (this.#closed) throw logClosed(this.conversation);
    const length = this.length;
    if (expectedLength !== length) return { kind: 'conflict', length };
    if (json.length > 0) {
      const lines = this.#logs.get(this.conversation) ?? [];
      for (const line of json) lines.push(line);
      this.#logs.set(this.conversation, lines);
    }
    return { kind: 'appended', length: length + json.length };
  }

  async read(from: number, to?: number): Promise<Entry[]> {
    if (this.#closed) throw logClosed(this.conversation);
    const range = readRange(from, to, this.length);
    const lines = this.#logs.get(this.conversation) ?? [];
    return lines.slice(range.from, range.to).map((json) => JSON.parse(json) as Entry);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClosed();
  }
}

/** Results of what-ifs in memory. */
export function createWhatIfTexts(): WhatIfTexts {
  const texts = new Map<string, Map<string, string>>();
  return {
    async put(conversation, id, text) {
      texts.set(conversation, (texts.get(conversation) ?? new Map<string, string>()).set(id, text));
    },
    get: async (conversation, id) => texts.get(conversation)?.get(id) ?? null,
    list: async (conversation) => [...(texts.get(conversation)?.keys() ?? [])].sort(),
    conversations: async () => [...texts.keys()].sort(),
    async remove(conversation) {
      texts.delete(conversation);
    },
  };
}
