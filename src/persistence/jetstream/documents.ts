import { headers, type KV, StorageType } from 'nats';
import { coalesce, messageOf, sleep } from '../../kernel/index.ts';
import type { IngressPosition } from '../port.ts';
import { EXPECTED_HEADER } from './append-message.ts';
import {
  type Broker,
  openBucket,
  type PublishOutcome,
  publish,
  requireConnection,
  storeError,
} from './broker.ts';
import { lastMessage, purgeSubject, readRange, subjectsOf } from './reader.ts';

/** Missing answers after which a change fails. */
const MOST_UNKNOWN = 3;

/**
 * Small JSON documents in one key-value bucket, so that `nats kv` shows them. Keys are tokens with dots between them.
 *
 * JETSTREAM-DOCUMENTS-1 A removed document leaves nothing in the bucket, not even a delete marker.
 * JETSTREAM-DOCUMENTS-2 Changes of one key take effect in the order of the calls.
 * JETSTREAM-DOCUMENTS-3 A change that depends on the stored value is compare-and-set. Single reads ask the leader, since a
 *                       replica may lag.
 */
export class Documents {
  readonly #broker: Broker;
  readonly #bucket: KV;
  readonly #stream: string;
  readonly #prefix: string;
  readonly #tails = new Map<string, Promise<unknown>>();

  static async open(broker: Broker, bucket: string): Promise<Documents> {
    try {
      await requireConnection(broker);
      const options = { history: 1, storage: StorageType.File };
      const opened = await openBucket(() => broker.jetstream.views.kv(bucket, options));
      return new Documents(broker, opened, bucket);
    } catch (error) {
      throw storeError(error, `open bucket ${bucket}`);
    }
  }

  /** Opens an existing bucket; creates nothing. */
  static async bind(broker: Broker, bucket: string): Promise<Documents> {
    try {
      await requireConnection(broker);
      return new Documents(broker, await broker.jetstream.views.kv(bucket, { bindOnly: true }), bucket);
    } catch (error) {
      throw storeError(error, `open bucket ${bucket}`);
    }
  }

  private constructor(broker: Broker, bucket: KV, name: string) {
    this.#broker = broker;
    this.#bucket = bucket;
    this.#stream = `KV_${name}`;
    this.#prefix = `$KV.${name}.`;
  }

  /** Durable when it resolves. */
  put(key: string, value: unknown): Promise<void> {
    const json = JSON.stringify(value);
    return this.#inTurn(key, async () => {
      try {
        await requireConnection(this.#broker);
        await this.#bucket.put(key, json);
      } catch (error) {
        throw storeError(error, `save ${key}`);
      }
    });
  }

  /** Saves `next(stored value)`, where null means no document. Null from `next`: no change (JETSTREAM-DOCUMENTS-3). */
  change(key: string, next: (known: unknown) => unknown): Promise<void> {
    return this.#inTurn(key, async () => {
      for (let unknown = 0; ; ) {
        const { value: known, revision } = await this.#read(key);
        const value = next(known);
        if (value === null) return;
        const outcome = await this.#putAt(key, JSON.stringify(value), revision);
        if (outcome.kind === 'stored') return;
        if (outcome.kind === 'conflict') continue;
        // A retry is safe: if the value was stored after all, `next` gets it.
        if (outcome.kind === 'refused' || ++unknown >= MOST_UNKNOWN)
          throw storeError(outcome.cause, `save ${key}`);
      }
    });
  }

  async get(key: string): Promise<unknown> {
    return (await this.#read(key)).value;
  }

  async #read(key: string): Promise<{ readonly value: unknown; readonly revision: number }> {
    const found = await lastMessage(this.#broker, this.#stream, this.#prefix + key);
    if (found === null) return { value: null, revision: 0 };
    const isRemoved = (found.headers?.get('KV-Operation') ?? '') !== ''; // by an operator, as `nats kv del` does
    const value: unknown = isRemoved ? null : JSON.parse(Buffer.from(found.body).toString());
    return { value, revision: found.sequence };
  }

  #putAt(key: string, json: string, revision: number): Promise<PublishOutcome> {
    const made = headers();
    made.set(EXPECTED_HEADER, `${revision}`);
    const message = { subject: this.#prefix + key, body: Buffer.from(json), headers: made };
    return publish(this.#broker, this.#stream, message);
  }

  remove(key: string): Promise<void> {
    return this.#inTurn(key, async () => {
      await purgeSubject(this.#broker, this.#stream, this.#prefix + key); // JETSTREAM-DOCUMENTS-1
    });
  }

  /** Keys that begin with `start`, without it. */
  async keys(start: string): Promise<string[]> {
    const whole = this.#prefix + start;
    const found = await subjectsOf(this.#broker, this.#stream, `${whole}>`);
    return found.map((subject) => subject.slice(whole.length));
  }

  async values(start: string): Promise<unknown[]> {
    return [...(await this.entries(start)).values()];
  }

  /** Documents whose keys begin with `start`, by the rest of the key. May come from a replica that lags. */
  async entries(start: string): Promise<Map<string, unknown>> {
    const found = new Map<string, unknown>();
    const whole = this.#prefix + start;
    await readRange(this.#broker, { stream: this.#stream, filter: `${whole}>` }, ({ subject, body }) => {
      if (body.length > 0) found.set(subject.slice(whole.length), JSON.parse(Buffer.from(body).toString()));
      return true;
    });
    return found;
  }

  /** Resolves when no change is under way. */
  async idle(): Promise<void> {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values());
  }

  /** JETSTREAM-DOCUMENTS-2 */
  #inTurn(key: string, work: () => Promise<void>): Promise<void> {
    const working = (this.#tails.get(key) ?? Promise.resolve()).then(work);
    const tail = working
      .catch(() => undefined) // the caller of that change gets its error
      .then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    this.#tails.set(key, tail);
    return working;
  }
}

const KEY = 'ingress';
/** Posts settle more often than this; the saved position may lag. */
const SAVE_INTERVAL_MS = 200;

/** How far the ingress stream was read. Saves the newest position at intervals, and skips those before it. */
export class LatestPosition {
  readonly #documents: Documents;
  readonly #closing = new AbortController();
  readonly #save: () => Promise<void>;
  #newest: IngressPosition | null = null;
  #saved: IngressPosition | null = null;
  #saving: Promise<void> = Promise.resolve();

  constructor(documents: Documents, onFailure: (reason: string) => void) {
    this.#documents = documents;
    this.#save = coalesce(async () => {
      await sleep(SAVE_INTERVAL_MS, this.#closing.signal);
      const newest = this.#newest;
      if (newest === this.#saved) return;
      try {
        await documents.put(KEY, newest);
        this.#saved = newest;
      } catch (error) {
        onFailure(messageOf(error));
      }
    });
  }

  async get(): Promise<IngressPosition | null> {
    return this.#newest ?? ((await this.#documents.get(KEY)) as IngressPosition | null);
  }

  async set(position: IngressPosition): Promise<void> {
    const isOfNewStream = this.#newest?.stream !== position.stream;
    this.#newest = { ...position };
    this.#saving = this.#save();
    if (!isOfNewStream) return;
    const isNew = (known: unknown) => (known as IngressPosition | null)?.stream !== position.stream;
    await this.#documents.change(KEY, (known) => (isNew(known) ? position : null)); // another daemon may be further
  }

  /** Saves the newest position. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#saving;
  }
}
