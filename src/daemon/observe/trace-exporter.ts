import type { Config } from '../../config/index.ts';
import type { Entry } from '../../conversation/index.ts';
import { hasCode, type Log, messageOf, type Releasers, sleep, within } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { LogTraces, openSender, type Span, type SpanSender } from '../../traces/index.ts';

/**
 * Exports the spans of everything that this daemon appends.
 *
 * EXPORTER-1  The logs are the queue: what is kept here is which conversations have unsent spans, and from which index. A
 *             collector that is down costs little memory, and never delays a turn; what it has not got when the daemon ends is not sent.
 * EXPORTER-2  A claim sends again what ended in the minute before it: the daemon that owned the conversation may be gone.
 * EXPORTER-3  Spans are dropped only if the collector refuses them for good: these are counted, and the first refusal is logged;
 *             or if their log is damaged. A log that cannot be read for a moment is read again.
 */
const FLUSH_MS = 2_000;
const MAX_PAUSE_MS = 60_000;
const STOP_MS = 2_000;
const OVERLAP_MS = 60_000;
/** Spans of one request. */
const BATCH = 512;
/** Conversations whose entries are kept in memory for the next flush; of others the log is read. */
const MOST_KEPT = 200;

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
  readonly log: Log;
  /** The entries of a conversation that may not be in memory; null: there is none. */
  readonly read: (conversation: string) => Promise<readonly Entry[] | null>;
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

  /** `entries` returns the whole log. Never throws. */
  appended(conversation: string, [first]: readonly Entry[], entries: ReadEntries): void {
    if (!first) return;
    const claimedAt = first.type === 'claim' ? Date.parse(first.createdAt) : Number.POSITIVE_INFINITY; // EXPORTER-2
    const kept = this.#unsent.size < MOST_KEPT ? entries : null;
    this.#add(conversation, { from: first.index, since: claimedAt - OVERLAP_MS, entries: kept });
    this.#schedule();
  }

  /** From now on no log is read: a conversation that is opened resumes its turns. Idempotent. */
  readNoMore(): void {
    this.#stopping.abort();
  }

  /** Sends what is in memory, for two seconds at most. */
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
    const isStopping = this.#stopping.signal.aborted;
    const work = [...this.#unsent].filter(([, { entries }]) => entries !== null || !isStopping);
    for (const [conversation] of work) this.#unsent.delete(conversation);
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
  }

  async #spansOf(conversation: string, unsent: Unsent): Promise<Span[]> {
    const { from, since, entries: kept } = unsent;
    const { content } = this.#parts;
    try {
      const entries = kept ? kept() : await this.#read(conversation, unsent);
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

  /** Null: there is no log, or it is read again at the next flush. */
  async #read(conversation: string, unsent: Unsent): Promise<readonly Entry[] | null> {
    try {
      return await this.#parts.read(conversation);
    } catch (error) {
      if (hasCode(error, 'LOG_CORRUPT', 'LOG_UNREADABLE')) throw error;
      this.#add(conversation, unsent);
      this.#failed(messageOf(error));
      return null;
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

  /** EXPORTER-3 */
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
}

interface TracesParts {
  readonly log: Log;
  readonly store: ConversationStore;
  readonly releasers: Releasers;
  readonly workers: () => { use(id: string): Promise<{ entries(): readonly Entry[] }> };
}

/** The exporter of a daemon; null: no collector is configured, and nothing of OpenTelemetry is loaded. */
export async function openTraces(
  { traces }: Config,
  { log, store, releasers, workers }: TracesParts,
): Promise<TraceExporter | null> {
  if (traces === null) return null;
  const { url, service, content } = traces;
  const headers = Object.fromEntries(
    Object.entries(traces.headers).map(([name, value]) => [name, value.reveal()]),
  );
  const exporter = new TraceExporter({
    sender: await openSender({ url, service, headers }),
    content,
    log,
    read: async (id) => ((await store.exists(id)) ? (await workers().use(id)).entries() : null),
  });
  releasers.add('traces', () => exporter.stop()); // after the conversations: their last spans are sent
  return exporter;
}
