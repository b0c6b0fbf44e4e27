import { createHash } from 'node:crypto';
import { afterEach } from 'vitest';
import { decodeRequest, statusOf } from '../../../src/bus/index.ts';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/port.ts';
import type { Entry, MessageEntry } from '../../../src/conversation/index.ts';
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
  /** Files that were stored, in order. Their type is taken from a signature: PNG, JPEG, WAV, PDF. */
  readonly kept: {
    bytes: Uint8Array;
    name?: string | undefined;
    mediaType?: string | undefined;
    publisher: string;
  }[];
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
  const kept: FakeDaemon['kept'] = [];
  const watching = new Map<string, Set<(arrival: Arrival) => void>>();
  const daemon: FakeDaemon = {
    asked,
    logs,
    kept,
    async keepFile(content, { name, publisher }) {
      const pieces: Uint8Array[] = [];
      for await (const piece of content) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      kept.push({ bytes, name, publisher });
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      return { type: 'file', sha256, ...(name && { name }), mediaType: typeOf(bytes), size: bytes.length };
    },
    async findFile() {
      throw new ParleyError('NOT_FOUND', 'there is no such file');
    },
    measurements: [],
    isConnected: true,
    isWritable: async () => true,
    answer: (request) => fromLogs(request, logs),
    async request(request) {
      asked.push(request);
      return daemon.answer(request);
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

const SIGNATURES = {
  'image/png': '89504e47',
  'image/jpeg': 'ffd8ff',
  'audio/wav': '52494646',
  'application/pdf': '25504446',
};

function typeOf(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 4)).toString('hex');
  return Object.entries(SIGNATURES).find(([, signature]) => start.startsWith(signature))?.[0] ?? 'text/plain';
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
    known: { hosts: [], origins: [], publicUrl: null },
    maxBodyBytes: 10_000,
    maxHistoryBytes: 10_000,
    maxFileBytes: 10_000,
    fetch: { hosts: [] },
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

/** Gateways that are closed after each test. Their daemon has the agent pm, appends what is posted, and lists its logs. */
export function gatewaysWithPosts() {
  const open: Gateway[] = [];
  afterEach(async () => {
    for (const gateway of open.splice(0)) await gateway.close();
  });
  return async (options: Partial<GatewayOptions> = {}) => {
    const daemon = createFakeDaemon();
    const fromLogs = daemon.answer;
    daemon.answer = (request) => {
      if (request.endpoint === 'agents')
        return { ok: true, body: { agents: [{ slug: 'pm', name: 'Pam', description: 'leads' }] } };
      if (request.endpoint === 'conversations') {
        const rows = [...daemon.logs].map(([id, log]) => ({ id, updatedAt: log.at(-1)?.createdAt ?? '' }));
        return { ok: true, body: { conversations: rows, next: null } };
      }
      if (request.endpoint !== 'post') return fromLogs(request);
      const { conversation, content, ...more } = request.body as MessageEntry & { conversation: string };
      const [entry] = daemon.append(conversation, content ?? '');
      const { parts, meta } = more;
      Object.assign(entry ?? {}, { to: ['pm'], ...(parts && { parts }), ...(meta && { meta }) });
      return { ok: true, body: { index: entry?.index, agents: ['pm'], duplicate: false } };
    };
    const opened = await openGateway(options, daemon);
    open.push(opened.gateway);
    return opened;
  };
}

/** The events of AG-UI in the text of an answer. */
// biome-ignore lint/suspicious/noExplicitAny: read as a program would
export const eventsOf = (text: string): { type: string; [field: string]: any }[] =>
  text
    .split('\n')
    .flatMap((line) => (line.startsWith('data:') ? [JSON.parse(line.slice('data:'.length))] : []));
