import { randomUUID } from 'node:crypto';
import type {
  AuditRecord,
  BackupFacts,
  BackupMark,
  ConversationRow,
  IngressAttempts,
  IngressPosition,
  IngressPosts,
  ToolRecords,
} from '../port.ts';
import { requireOutputId } from '../rules.ts';

/** The state of a memory store, and the tool records in it. */

export interface MemoryDisk {
  readonly id: string;
  readonly logs: Map<string, string[]>;
  readonly rows: Map<string, ConversationRow>;
  readonly states: Map<string, string>;
  readonly marks: Set<string>;
  readonly audits: Map<string, AuditRecord[]>;
  /** By conversation, then by entry. */
  readonly outputs: Map<string, Map<string, string>>;
  readonly definitions: Map<string, string>;
  marksComplete: boolean;
  ingress: IngressPosition | null;
  attempts: IngressAttempts | null;
  deciding: IngressPosts | null;
  backup: BackupFacts | null;
  readonly deleted: Map<string, IngressPosition>;
  /** True while a store uses it. */
  inUse: boolean;
}

export function createMemoryDisk(): MemoryDisk {
  return {
    id: randomUUID(),
    logs: new Map(),
    rows: new Map(),
    states: new Map(),
    marks: new Set(),
    audits: new Map(),
    outputs: new Map(),
    definitions: new Map(),
    marksComplete: false,
    ingress: null,
    attempts: null,
    deciding: null,
    backup: null,
    deleted: new Map(),
    inUse: false,
  };
}

export function memoryBackupMark(disk: MemoryDisk): BackupMark {
  return {
    get: async () => disk.backup,
    async put(facts) {
      disk.backup = { ...facts };
    },
    async remove() {
      disk.backup = null;
    },
  };
}

export function memoryToolRecords(disk: MemoryDisk): ToolRecords {
  return {
    async append(conversation, records) {
      disk.audits.set(conversation, [...(disk.audits.get(conversation) ?? []), ...structuredClone(records)]);
    },
    read: async (conversation) => ({
      records: structuredClone(disk.audits.get(conversation) ?? []),
      unreadable: [],
    }),
    async saveOutput(conversation, entryId, content) {
      requireOutputId(entryId);
      const outputs = disk.outputs.get(conversation) ?? new Map<string, string>();
      disk.outputs.set(conversation, outputs.set(entryId, content));
    },
    async readOutput(conversation, entryId) {
      requireOutputId(entryId);
      return disk.outputs.get(conversation)?.get(entryId) ?? null;
    },
  };
}
