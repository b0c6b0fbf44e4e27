import { setMaxListeners } from 'node:events';
import { createSubjects } from '../../../src/bus/index.ts';
import { closeConnection, type NatsConnection, openNats } from '../../../src/bus/nats/index.ts';
import { connect, type ParleyClient, ParleyError } from '../../../src/client/index.ts';
import { sleep } from '../../../src/kernel/index.ts';
import type { PlannedPost } from '../posts-plan.ts';

/**
 * The publishers of a run. Each posts the messages of a conversation one after the other.
 *
 * PUBLISHERS-1 An unacknowledged message is posted again with the same id until it is acknowledged.
 * PUBLISHERS-2 A message is posted after the previous one was acknowledged, so that the log has them in this order.
 * PUBLISHERS-3 The number of concurrent requests is limited, because floods are not part of this test.
 */

export interface Acknowledged {
  readonly post: PlannedPost;
  /** The index from the daemon; null: the server acknowledged it, and the daemon was not asked. */
  readonly index: number | null;
}

export interface Publishers {
  readonly acknowledged: readonly Acknowledged[];
  /** Posts that were sent, including repetitions. */
  readonly sent: number;
  /** Permanent refusals. There should be none. */
  readonly refused: readonly {
    readonly post: PlannedPost;
    readonly code: string;
    readonly message: string;
  }[];
  /** Begins the next batch of those that are posted in batches. */
  nextBatch(): void;
  /** From now on messages do not wait for their time. */
  hurry(): void;
  /** From now on no further message begins. */
  enough(): void;
  /** Resolves when every message was acknowledged or refused, or the signal aborts. */
  readonly done: Promise<void>;
  close(): Promise<void>;
}

/** Codes of faults that end. All others are refusals. */
const RETRYABLE =
  /^(DAEMON_|NATS_|BROKER_|INTERNAL|BUS_|CONNECTION_|REQUEST_|STORE_|LOG_(UNAVAILABLE|WRITE)|CONVERSATION_MOVED|TIMEOUT|STOPPING)/;
/** Before the second attempt, doubled before each further one, so that waiting publishers cause no flood. */
const PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 2_000;
const TIMEOUT_MS = 3_000;
/** PUBLISHERS-3 */
const MAX_CONCURRENT = 48;

interface Ways {
  readonly client: ParleyClient;
  readonly connection: NatsConnection;
}

export async function createPublishers(
  natsUrl: string,
  posts: readonly PlannedPost[],
  signal: AbortSignal,
): Promise<Publishers> {
  const ways = new Map<string, Ways>();
  for (const name of new Set(posts.map(({ publisher }) => publisher))) {
    const requests = { attempts: 1, timeoutMs: TIMEOUT_MS };
    const client = await connect({ url: natsUrl, name, waitForServer: true, requests });
    ways.set(name, { client, connection: await openNats({ url: natsUrl, name, waitForServer: true }) });
  }
  const sender = new Sender(ways, signal);
  const lines = new Map<string, PlannedPost[]>();
  for (const post of posts) {
    const key = `${post.publisher} ${post.conversation}`;
    lines.set(key, [...(lines.get(key) ?? []), post]);
  }
  const done = Promise.all([...lines.values()].map((line) => sender.postAll(line))).then(() =>
    sender.repeated(),
  );
  return {
    acknowledged: sender.acknowledged,
    get sent() {
      return sender.sent;
    },
    refused: sender.refused,
    nextBatch: () => sender.batches.next(),
    hurry: () => sender.hurry.abort(),
    enough() {
      sender.isEnough = true;
      sender.hurry.abort();
    },
    done,
    async close() {
      for (const { client, connection } of ways.values()) {
        await client.close();
        await closeConnection(connection);
      }
    },
  };
}

type Outcome =
  | { readonly kind: 'acknowledged'; readonly index: number | null }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'unsure' };

class Sender {
  readonly acknowledged: Acknowledged[] = [];
  readonly refused: { readonly post: PlannedPost; readonly code: string; readonly message: string }[] = [];
  readonly hurry = new AbortController();
  readonly batches: Batches;
  sent = 0;
  isEnough = false;
  readonly #ways: ReadonlyMap<string, Ways>;
  readonly #signal: AbortSignal;
  readonly #subjects = createSubjects();
  readonly #startedAt = performance.now();
  readonly #repetitions: Promise<void>[] = [];
  #waiting = 0;
  readonly #queue: (() => void)[] = [];

  constructor(ways: ReadonlyMap<string, Ways>, signal: AbortSignal) {
    this.#ways = ways;
    this.#signal = signal;
    this.batches = new Batches(this.hurry.signal);
    setMaxListeners(0, this.hurry.signal, signal); // One listener for each waiting publisher: many are no leak.
    signal.addEventListener('abort', () => this.hurry.abort(), { once: true });
  }

  async postAll(line: readonly PlannedPost[]): Promise<void> {
    for (const post of line) {
      await this.batches.begun(post.batch ?? 0);
      await sleep(Math.max(0, this.#startedAt + post.atMs - performance.now()), this.hurry.signal);
      if (this.isEnough || !(await this.#inTurn(() => this.#retry(post)))) return; // PUBLISHERS-2
      for (const afterMs of post.again) this.#repetitions.push(this.#repeat(post, afterMs));
    }
  }

  /** PUBLISHERS-3 */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    while (this.#waiting >= MAX_CONCURRENT) await new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#waiting += 1;
    try {
      return await work();
    } finally {
      this.#waiting -= 1;
      this.#queue.shift()?.();
    }
  }

  async repeated(): Promise<void> {
    await Promise.all(this.#repetitions);
  }

  /** PUBLISHERS-1. False: the run is over. */
  async #retry(post: PlannedPost): Promise<boolean> {
    for (let pauseMs = PAUSE_MS; !this.#signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const outcome = await this.#attempt(post, post.way);
      if (outcome.kind === 'acknowledged') {
        this.acknowledged.push({ post, index: outcome.index });
        return true;
      }
      if (outcome.kind === 'refused') {
        this.refused.push({ post, code: outcome.code, message: outcome.message });
        return true;
      }
      await sleep(pauseMs, this.#signal);
    }
    return false;
  }

  /** Posts once more on the stream, where a repetition overtakes no earlier post. The log must not change. */
  async #repeat(post: PlannedPost, afterMs: number): Promise<void> {
    await sleep(afterMs, this.hurry.signal);
    const outcome = await this.#attempt(post, 'stream');
    if (outcome.kind === 'acknowledged') this.acknowledged.push({ post, index: outcome.index });
    if (outcome.kind === 'refused') this.refused.push({ post, code: outcome.code, message: outcome.message });
  }

  async #attempt(post: PlannedPost, way: PlannedPost['way']): Promise<Outcome> {
    const { id, conversation, publisher, content, delivery } = post;
    const { client, connection } = this.#ways.get(publisher) ?? {};
    if (!client || !connection) return { kind: 'unsure' };
    this.sent += 1;
    try {
      if (way === 'api') {
        const { index } = await client.post({ id, conversation, publisher, content, delivery });
        return { kind: 'acknowledged', index };
      }
      const body = Buffer.from(JSON.stringify({ id, content, delivery }));
      const subject = this.#subjects.in(publisher, conversation);
      await connection.jetstream().publish(subject, body, { timeout: TIMEOUT_MS });
      return { kind: 'acknowledged', index: null };
    } catch (error) {
      if (!(error instanceof ParleyError) || RETRYABLE.test(error.code)) return { kind: 'unsure' };
      return { kind: 'refused', code: error.code, message: error.message };
    }
  }
}

/** The batches of posts that were requested; all of them once the run hurries. */
export class Batches {
  #asked = 0;
  readonly #waiting = new Map<number, (() => void)[]>();

  constructor(hurry: AbortSignal) {
    hurry.addEventListener('abort', () => this.#upTo(Number.POSITIVE_INFINITY), { once: true });
  }

  next(): void {
    this.#upTo(this.#asked + 1);
  }

  /** Resolves when this many were requested. */
  async begun(batch: number): Promise<void> {
    if (batch <= this.#asked) return;
    await new Promise<void>((resolve) => {
      this.#waiting.set(batch, [...(this.#waiting.get(batch) ?? []), resolve]);
    });
  }

  #upTo(batch: number): void {
    this.#asked = batch;
    for (const [waits, resolves] of this.#waiting) {
      if (waits > batch) continue;
      this.#waiting.delete(waits);
      for (const resolve of resolves) resolve();
    }
  }
}
