import { headers, type KV, StorageType } from 'nats';
import { EXPECTED_HEADER } from './append-message.ts';
import { type Broker, type PublishOutcome, publish, requireConnection, storeError } from './broker.ts';
import { lastMessage, purgeSubject, readRange, subjectsOf } from './reader.ts';

/** Answers that do not come, before a change is given up. */
const MOST_UNKNOWN = 3;

/**
 * Small documents, each under a key of tokens with dots between: one bucket, so that `nats kv` shows them.
 *
 * JETSTREAM-DOCUMENTS-1 A document is there or not: what is removed leaves nothing behind, no marker either.
 * JETSTREAM-DOCUMENTS-2 Changes of one key take effect in the order in which they were asked for.
 * JETSTREAM-DOCUMENTS-3 A change that depends on the stored value is compare-and-set. Reads ask the leader: a replica may lag.
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
      return new Documents(broker, await broker.jetstream.views.kv(bucket, options), bucket);
    } catch (error) {
      throw storeError(error, `open bucket ${bucket}`);
    }
  }

  /** A bucket that must be there; nothing is made. */
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

  /** Puts what `next` makes of the stored value (null: there is none), unless it answers null (JETSTREAM-DOCUMENTS-3). */
  change(key: string, next: (known: unknown) => unknown): Promise<void> {
    return this.#inTurn(key, async () => {
      for (let unknown = 0; ; ) {
        const { value: known, revision } = await this.#read(key);
        const value = next(known);
        if (value === null) return;
        const outcome = await this.#putAt(key, JSON.stringify(value), revision);
        if (outcome.kind === 'stored') return;
        if (outcome.kind === 'conflict') continue;
        // Asking again is harmless: a value that was stored after all is read, and `next` decides on it.
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

  /** What stands behind `start` in the keys that begin with it. */
  async keys(start: string): Promise<string[]> {
    const whole = this.#prefix + start;
    const found = await subjectsOf(this.#broker, this.#stream, `${whole}>`);
    return found.map((subject) => subject.slice(whole.length));
  }

  async values(start: string): Promise<unknown[]> {
    return [...(await this.entries(start)).values()];
  }

  /** By what stands behind `start` in the keys that begin with it. */
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
      .catch(() => undefined)
      .then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    this.#tails.set(key, tail);
    return working;
  }
}
