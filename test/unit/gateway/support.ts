import { decodeRequest, statusOf } from '../../../src/bus/index.ts';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/port.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import {
  type Arrival,
  type Gateway,
  type GatewayOptions,
  type GatewayPort,
  type Measurements,
  startGateway,
} from '../../../src/gateway/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';

/** A daemon controlled by the test, served by a real HTTP server on loopback. */
export interface FakeDaemon extends GatewayPort {
  readonly asked: ApiRequest[];
  /** Answers of the next requests, `{}` by default. */
  answer: (request: ApiRequest) => ApiAnswer | Promise<ApiAnswer>;
  measurements: Measurements;
  isConnected: boolean;
  isWritable: () => Promise<boolean>;
  /** Logs by conversation. The verb `entries` reads them unless `answer` is set. */
  readonly logs: Map<string, Entry[]>;
  publish(conversation: string, arrival: Arrival): void;
  /** Appends messages, and reports who subscribes. */
  append(conversation: string, ...contents: readonly string[]): Entry[];
  watchers(conversation: string): number;
}

export function createFakeDaemon(): FakeDaemon {
  const asked: ApiRequest[] = [];
  const logs = new Map<string, Entry[]>();
  const watching = new Map<string, Set<(arrival: Arrival) => void>>();
  const daemon: FakeDaemon = {
    asked,
    logs,
    measurements: [],
    isConnected: true,
    isWritable: async () => true,
    answer: (request) => fromLogs(request, logs),
    async request(request) {
      asked.push(request);
      return daemon.answer(request);
    },
    async keepFile(content, { name }) {
      let size = 0;
      for await (const bytes of content) size += bytes.length;
      return { type: 'file', sha256: '0'.repeat(64), mediaType: 'text/plain', size, ...(name && { name }) };
    },
    async findFile() {
      throw new ParleyError('NOT_FOUND', 'there is no such file');
    },
    subscribe(conversation, onArrival) {
      const own = watching.get(conversation) ?? new Set();
      watching.set(conversation, own.add(onArrival));
      return () => void own.delete(onArrival);
    },
    liveSoFar: () => [],
    measure: async () => daemon.measurements,
    publish(conversation, arrival) {
      for (const watcher of watching.get(conversation) ?? []) watcher(arrival);
    },
    append(conversation, ...contents) {
      const log = logs.get(conversation) ?? [];
      logs.set(conversation, log);
      const entries = contents.map((content, place) => messageEntry(log.length + place, content));
      log.push(...entries);
      daemon.publish(conversation, { kind: 'entries', entries });
      return entries;
    },
    watchers: (conversation) => watching.get(conversation)?.size ?? 0,
  };
  return daemon;
}

function fromLogs({ endpoint, body }: ApiRequest, logs: ReadonlyMap<string, Entry[]>): ApiAnswer {
  if (endpoint === 'conversations') return { ok: true, body: { conversations: [], next: null } };
  if (endpoint !== 'entries') return { ok: true, body: {} };
  const {
    conversation,
    from = 0,
    limit = 1_000,
  } = body as { conversation: string; from?: number; limit?: number };
  const log = logs.get(conversation);
  if (!log) return { ok: false, refusal: { code: 'NOT_FOUND', message: 'there is no such conversation' } };
  return { ok: true, body: { conversation, length: log.length, entries: log.slice(from, from + limit) } };
}

export function messageEntry(index: number, content: string): Entry {
  return {
    index,
    id: `id-${index}`,
    createdAt: '2026-11-21T20:39:00.000Z',
    type: 'message',
    role: 'user',
    author: { kind: 'person', id: 'alice', name: 'alice' },
    content,
  };
}

export async function openGateway(
  options: Partial<GatewayOptions> = {},
  daemon = createFakeDaemon(),
): Promise<{ gateway: Gateway; daemon: FakeDaemon; faults: unknown[]; close(): Promise<void> }> {
  const faults: unknown[] = [];
  const gateway = await startGateway({
    host: '127.0.0.1',
    port: 0,
    tokens: [],
    ownToken: null,
    known: { hosts: [], origins: [], publicUrl: null },
    maxBodyBytes: 10_000,
    maxHistoryBytes: 10_000,
    requestsPerSecond: 1_000,
    readers: 1_000,
    readersPerCaller: 1_000,
    heartbeatMs: 60_000,
    consoleFolder: '/nowhere',
    wire: { decode: decodeRequest, statusOf },
    version: '1.2.3',
    onFault: (error) => void faults.push(error),
    ...options,
  });
  gateway.open(daemon);
  return { gateway, daemon, faults, close: () => gateway.close() };
}
