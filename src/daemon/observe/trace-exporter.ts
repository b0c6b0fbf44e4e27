import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../config/index.ts';
import type { Entry } from '../../conversation/index.ts';
import {
  type Clock,
  type Log,
  messageOf,
  type Releasers,
  replaceFile,
  sleep,
  systemClock,
  within,
} from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { LogTraces, openSender, type Span, type SpanSender } from '../../traces/index.ts';

/**
 * Exports the spans of everything that this daemon appends.
 *
 * EXPORTER-1  The logs are the queue: what is kept here is which conversations have unsent spans, and from which index. A
 *             collector that is down costs no span and little memory, and never delays a turn.
 * EXPORTER-2  `traces.json` has a time up to which every span of this daemon was sent. A start sends again what ended since then,
 *             less a minute for clocks that differ; the ids are the same (TRACE-IDS-1).
 * EXPORTER-3  A claim sends again what ended in the minute before it: the daemon that owned the conversation may be gone.
 * EXPORTER-4  Spans are dropped only if the collector refuses them for good. They are counted, and the first refusal is logged.
 */
const FLUSH_MS = 2_000;
const MAX_PAUSE_MS = 60_000;
const STOP_MS = 2_000;
const OVERLAP_MS = 60_000;
/** Spans of one request. */
const BATCH = 512;
/** Conversations whose entries are kept in memory for the next flush; of others the log is read. */
const MOST_KEPT = 200;
const FILE = 'traces.json';

type ReadEntries = () => readonly Entry[];

/** The unsent part of a log: from an index, or from a time. */
interface Unsent {
  readonly from: number;
  readonly since: number;
  readonly entries: ReadEntries | null;
}

export interface ExporterParts {
  readonly sender: SpanSender;
  /** Spans contain texts. */
  readonly content: boolean;
  readonly dataDirectory: string;
  readonly log: Log;
  readonly now: Clock;
  /** The entries of a conversation that may not be in memory; null: there is none. */
  readonly read: (conversation: string) => Promise<readonly Entry[] | null>;
  /** Conversations that may have entries since this time. */
  readonly changedSince: (time: number) => Promise<readonly string[]>;
}

export interface SpanCounts {
  readonly sent: number;
  readonly dropped: number;
  /** Conversations with unsent spans. */
  readonly waiting: number;
}

export class TraceExporter {
  readonly #parts: ExporterParts;
  readonly #unsent = new Map<string, Unsent>();
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #failures = 0;
  #sent = 0;
  #dropped = 0;

  constructor(parts: ExporterParts) {
    this.#parts = parts;
  }

  get counts(): SpanCounts {
    return { sent: this.#sent, dropped: this.#dropped, waiting: this.#unsent.size };
  }

  /** EXPORTER-2. Resolves when what was not sent is known. */
  async start(): Promise<void> {
    const { now, changedSince } = this.#parts;
    const upTo = await this.#position();
    if (upTo === null) return this.#savePosition(now()); // older logs are not sent
    const since = upTo - OVERLAP_MS;
    for (const id of await changedSince(since))
      this.#add(id, { from: Number.POSITIVE_INFINITY, since, entries: null });
    this.#schedule();
  }

  /** `entries` returns the whole log. Never throws. */
  appended(conversation: string, [first]: readonly Entry[], entries: ReadEntries): void {
    if (!first) return;
    const claimedAt = first.type === 'claim' ? Date.parse(first.createdAt) : Number.POSITIVE_INFINITY; // EXPORTER-3
    const kept = this.#unsent.size < MOST_KEPT ? entries : null;
    this.#add(conversation, { from: first.index, since: claimedAt - OVERLAP_MS, entries: kept });
    this.#schedule();
  }

  /** From now on no log is read: a conversation that is opened resumes its turns. Idempotent. */
  readNoMore(): void {
    this.#stopping.abort();
  }

  /** Sends what is in memory, for two seconds at most; the next start sends the rest. */
  async stop(): Promise<void> {
    this.readNoMore();
    const finish = async () => {
      await this.#running;
      await this.#flush();
      await this.#parts.sender.close();
    };
    await within(STOP_MS, finish());
  }

  #add(conversation: string, { from, since, entries }: Unsent): void {
    const known = this.#unsent.get(conversation);
    this.#unsent.set(conversation, {
      from: Math.min(from, known?.from ?? from),
      since: Math.min(since, known?.since ?? since),
      entries,
    });
  }

  #schedule(): void {
    if (this.#running || this.#stopping.signal.aborted || this.#unsent.size === 0) return;
    const pause = Math.min(MAX_PAUSE_MS, FLUSH_MS * 2 ** this.#failures);
    this.#running = sleep(pause, this.#stopping.signal)
      .then(() => (this.#stopping.signal.aborted ? undefined : this.#flush()))
      .catch((error: unknown) => this.#failed(messageOf(error)))
      .finally(() => {
        this.#running = null;
        this.#schedule();
      });
  }

  /** Stops at the first batch that cannot be sent (EXPORTER-1). */
  async #flush(): Promise<void> {
    const startedAt = this.#parts.now();
    const isStopping = this.#stopping.signal.aborted;
    const work = [...this.#unsent].filter(([, { entries }]) => entries !== null || !isStopping);
    for (const [conversation] of work) this.#unsent.delete(conversation);
    const isAll = this.#unsent.size === 0;
    let batch: Span[] = [];
    let begun = 0;
    for (const [at, [conversation, unsent]] of work.entries()) {
      batch.push(...(await this.#spansOf(conversation, unsent)));
      if (batch.length < BATCH && at + 1 < work.length) continue;
      if (!(await this.#sendAll(batch))) {
        for (const [id, left] of work.slice(begun)) this.#add(id, { ...left, entries: null });
        return;
      }
      batch = [];
      begun = at + 1;
    }
    if (work.length > 0 && isAll) await this.#savePosition(startedAt);
  }

  async #spansOf(conversation: string, { from, since, entries: kept }: Unsent): Promise<Span[]> {
    const { content, read } = this.#parts;
    try {
      const entries = kept ? kept() : await read(conversation);
      if (entries === null) return [];
      const first = entries.findIndex(
        ({ index, createdAt }) => index >= from || Date.parse(createdAt) >= since,
      );
      return first < 0 ? [] : new LogTraces(conversation, entries, content).spans(first);
    } catch (error) {
      // A damaged log is reported when it is opened; it must not hold back the others.
      this.#parts.log.warn(
        { conversation, error: messageOf(error) },
        'the traces of a log cannot be computed',
      );
      return [];
    }
  }

  /** False: the collector cannot be reached. */
  async #sendAll(spans: readonly Span[]): Promise<boolean> {
    for (let at = 0; at < spans.length; at += BATCH) {
      const batch = spans.slice(at, at + BATCH);
      const outcome = await this.#parts.sender.send(batch);
      if (outcome.kind === 'sent') this.#succeeded(batch.length);
      else if (outcome.isRefused) this.#refused(batch.length, outcome.reason);
      else {
        this.#failed(outcome.reason);
        return false;
      }
    }
    return true;
  }

  #succeeded(spans: number): void {
    if (this.#failures > 0) this.#parts.log.info({}, 'traces are sent again; none is lost');
    this.#failures = 0;
    this.#sent += spans;
  }

  /** EXPORTER-4 */
  #refused(spans: number, reason: string): void {
    if (this.#dropped === 0)
      this.#parts.log.warn({ spans, reason }, 'the collector refuses spans: they are dropped');
    this.#dropped += spans;
  }

  #failed(reason: string): void {
    this.#failures += 1;
    if (this.#failures > 1 || this.#stopping.signal.aborted) return;
    const message = 'traces cannot be sent: trying again; the conversations are not affected';
    this.#parts.log.warn({ reason }, message);
  }

  async #position(): Promise<number | null> {
    try {
      const text = await readFile(join(this.#parts.dataDirectory, FILE), 'utf8');
      const { exportedUpTo } = JSON.parse(text) as { exportedUpTo?: unknown };
      return typeof exportedUpTo === 'string' && !Number.isNaN(Date.parse(exportedUpTo))
        ? Date.parse(exportedUpTo)
        : null;
    } catch {
      return null; // missing or damaged: the export begins now
    }
  }

  async #savePosition(time: number): Promise<void> {
    const text = `${JSON.stringify({ exportedUpTo: new Date(time).toISOString() })}\n`;
    await replaceFile(join(this.#parts.dataDirectory, FILE), text).catch((error: unknown) =>
      this.#parts.log.warn(
        { error: messageOf(error) },
        `${FILE} cannot be written: a restart sends more spans again`,
      ),
    );
  }
}

interface TracedConversations {
  rows(): Promise<readonly { readonly id: string; readonly updatedAt: string; readonly length: number }[]>;
  use(id: string): Promise<{ entries(): readonly Entry[] }>;
}

interface TracesParts {
  readonly log: Log;
  readonly store: ConversationStore;
  readonly releasers: Releasers;
  readonly workers: () => TracedConversations;
}

/** The exporter of a daemon; null: no collector is configured, and nothing of OpenTelemetry is loaded. */
export async function openTraces(
  { traces, daemon }: Config,
  { log, store, releasers, workers }: TracesParts,
): Promise<TraceExporter | null> {
  if (traces === null) return null;
  const { url, service, content } = traces;
  const headers = Object.fromEntries(
    Object.entries(traces.headers).map(([name, value]) => [name, value.reveal()]),
  );
  const exporter = new TraceExporter({
    sender: await openSender({ url, service, headers }),
    ...{ content, log, now: systemClock, dataDirectory: daemon.data },
    read: async (id) => ((await store.exists(id)) ? (await workers().use(id)).entries() : null),
    changedSince: (time) => changedSince(time, store, workers()),
  });
  releasers.add('traces', () => exporter.stop()); // after the conversations: their last spans are sent
  return exporter;
}

/** Released before the conversations are closed: no log is read for traces from then on. */
export async function startTraces(exporter: TraceExporter | null, releasers: Releasers): Promise<void> {
  if (exporter === null) return;
  releasers.add('reading for traces', () => exporter.readNoMore());
  await exporter.start();
}

/** A row can be older than its log if the daemon was killed: where logs are shared, its length shows that. */
async function changedSince(
  time: number,
  { shared }: ConversationStore,
  workers: TracedConversations,
): Promise<string[]> {
  const rows = await workers.rows();
  const newest = (await shared?.all()) ?? new Map();
  const lengths = new Map(rows.map(({ id, length }) => [id, length]));
  const recent = rows.filter(({ updatedAt }) => Date.parse(updatedAt) >= time).map(({ id }) => id);
  const stale = [...newest].flatMap(([id, { length }]) => (lengths.get(id) === length ? [] : [id]));
  return [...new Set([...recent, ...stale])];
}
