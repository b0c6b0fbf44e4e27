import { headers, type KV, type MsgHdrs, nuid, type ObjectStore, StorageType } from 'nats';
import { hasCode, InOrder, jsonBytes, messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { AuditRecord } from '../port.ts';
import type { AuditLog, Documents, Durability } from '../storage.ts';
import {
  type Broker,
  EXPECTED_HEADER,
  maxBody,
  openBucket,
  type PublishOutcome,
  publish,
  requireConnection,
  requireStored,
  storeError,
} from './broker.ts';
import { lastMessage, purgeSubject, readRange, type StoredMessage, subjectsOf } from './reader.ts';
import type { StoreNames } from './streams.ts';

/**
 * Documents in one key-value bucket, as JSON, so that `nats kv` shows them.
 *
 * BUCKET-DOCUMENTS-1 A removed document leaves nothing in the bucket, not even a delete marker.
 * BUCKET-DOCUMENTS-2 A change that depends on the stored value is compare-and-set. Single reads ask the leader, since a replica
 *                    may lag. A list of values has each document that exists during the whole read, also if it changes meanwhile.
 * BUCKET-DOCUMENTS-3 A durable document that is too large for a message is an object of the same name. Its key is durable before
 *                    the object, so that every stored object can be found and removed. Its parts may come from a replica that
 *                    lags: a damaged one is read again before it is reported.
 * BUCKET-DOCUMENTS-4 A derived document is saved at once. A failure is reported: it lags until the next save.
 */

/** Missing answers after which a change fails. */
const MOST_UNKNOWN = 3;
const OBJECT_HEADER = 'Parley-Object';
const MAX_READS = 3;
const READ_PAUSE_MS = 300;

type ReportUnsaved = (key: string, reason: string) => void;

export class BucketDocuments implements Documents {
  readonly #broker: Broker;
  readonly #objects: ObjectStore;
  readonly #stream: string;
  readonly #prefix: string;
  readonly #report: ReportUnsaved;
  readonly #order = new InOrder();

  /** `mayCreate`: makes a bucket that is missing. */
  static async open(
    broker: Broker,
    names: StoreNames,
    { mayCreate, report = () => undefined }: { readonly mayCreate: boolean; readonly report?: ReportUnsaved },
  ): Promise<BucketDocuments> {
    const { views } = broker.jetstream;
    try {
      await requireConnection(broker);
      const options = { storage: StorageType.File };
      const open = (): Promise<KV> =>
        mayCreate
          ? views.kv(names.stateBucket, { ...options, history: 1 })
          : views.kv(names.stateBucket, { bindOnly: true });
      await openBucket(open);
      const objects = await openBucket(() => views.os(names.outputBucket, options));
      return new BucketDocuments(broker, names.stateBucket, objects, report);
    } catch (error) {
      throw storeError(error, `open buckets ${names.stateBucket} and ${names.outputBucket}`);
    }
  }

  private constructor(broker: Broker, bucket: string, objects: ObjectStore, report: ReportUnsaved) {
    this.#broker = broker;
    this.#objects = objects;
    this.#report = report;
    this.#stream = `KV_${bucket}`;
    this.#prefix = `$KV.${bucket}.`;
  }

  put(key: string, value: unknown, durability: Durability): Promise<void> {
    const body = jsonBytes(value);
    return this.#order.run(key, async () => {
      const outcome = await this.#publish(key, body, durability, headers());
      try {
        requireStored(outcome, `save ${key}`);
      } catch (error) {
        if (durability === 'durable') throw error;
        this.#report(key, messageOf(error));
      }
    });
  }

  change(key: string, next: (known: unknown) => unknown): Promise<void> {
    return this.#order.run(key, async () => {
      for (let unknown = 0; ; ) {
        const found = await lastMessage(this.#broker, this.#stream, this.#prefix + key);
        const value = next(found && (await this.#valueOf(key, found)));
        if (value === null) return;
        const made = headers();
        made.set(EXPECTED_HEADER, `${found?.sequence ?? 0}`);
        const outcome = await this.#publish(key, jsonBytes(value), 'durable', made);
        if (outcome.kind === 'stored') return;
        if (outcome.kind === 'conflict') continue;
        // A retry is safe: if the value was stored after all, `next` gets it.
        if (outcome.kind === 'refused' || ++unknown >= MOST_UNKNOWN)
          throw storeError(outcome.cause, `save ${key}`);
      }
    });
  }

  async #publish(
    key: string,
    body: Uint8Array,
    durability: Durability,
    made: MsgHdrs,
  ): Promise<PublishOutcome> {
    const subject = this.#prefix + key;
    if (durability === 'derived' || body.length <= maxBody(this.#broker))
      return publish(this.#broker, this.#stream, { subject, body, headers: made });
    made.set(OBJECT_HEADER, '1');
    const pointer = jsonBytes({ bytes: body.length });
    const outcome = await publish(this.#broker, this.#stream, { subject, body: pointer, headers: made });
    if (outcome.kind !== 'stored') return outcome;
    try {
      await this.#objects.putBlob({ name: key }, body);
      return outcome;
    } catch (cause) {
      return { kind: 'refused', cause };
    }
  }

  async get(key: string): Promise<unknown> {
    const found = await lastMessage(this.#broker, this.#stream, this.#prefix + key);
    return found && this.#valueOf(key, found);
  }

  async #valueOf(key: string, message: StoredMessage): Promise<unknown> {
    const { headers: stored, body } = message;
    if ((stored?.get('KV-Operation') ?? '') !== '') return null; // removed by an operator, as `nats kv del` does
    if (!isObject(message)) return JSON.parse(Buffer.from(body).toString());
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#object(key);
      } catch (error) {
        const isDamaged = hasCode(error, 'OUTPUT_CORRUPT');
        if (!isDamaged || attempt === MAX_READS) throw storeError(error, `read ${key}`);
        await sleep(READ_PAUSE_MS, this.#broker.signal);
      }
    }
  }

  async #object(key: string): Promise<unknown> {
    try {
      await requireConnection(this.#broker);
      const info = await this.#objects.info(key);
      if (info === null || info.deleted) return null;
      const blob = await this.#objects.getBlob(key);
      if (blob === null || blob.length !== info.size) throw damaged(key);
      return JSON.parse(Buffer.from(blob).toString());
    } catch (error) {
      if (/sha|digest/i.test(messageOf(error))) throw damaged(key, error);
      throw error;
    }
  }

  remove(key: string): Promise<void> {
    return this.#order.run(
      key,
      async () => void (await purgeSubject(this.#broker, this.#stream, this.#prefix + key)),
    );
  }

  /** A newer value than the compared one stays (BUCKET-DOCUMENTS-2). */
  removeIf(key: string, when: (known: unknown) => boolean): Promise<void> {
    return this.#order.run(key, async () => {
      const subject = this.#prefix + key;
      const found = await lastMessage(this.#broker, this.#stream, subject);
      const known = found && (await this.#valueOf(key, found));
      if (found === null || known === null || !when(known)) return;
      if (isObject(found)) await this.#removeObject(key);
      await purgeSubject(this.#broker, this.#stream, subject, found.sequence);
    });
  }

  /** An object is removed before its key (BUCKET-DOCUMENTS-3). `rests`: those of `keys(start)` that are meant. */
  async removeAll(start: string, rests?: readonly string[]): Promise<void> {
    for (const rest of rests ?? (await this.keys(start))) {
      await this.#removeObject(start + rest);
      await this.remove(start + rest);
    }
  }

  async #removeObject(key: string): Promise<void> {
    try {
      if ((await this.#objects.info(key)) !== null) await this.#objects.delete(key);
    } catch (error) {
      throw storeError(error, `remove ${key}`);
    }
  }

  async keys(start: string): Promise<string[]> {
    const whole = this.#prefix + start;
    const found = await subjectsOf(this.#broker, this.#stream, `${whole}>`);
    return found.map((subject) => subject.slice(whole.length)).sort();
  }

  /**
   * May come from a replica that lags. The range has neither the old nor the new message of what changes during the read: those are
   * read one by one (BUCKET-DOCUMENTS-2).
   */
  async entries(start: string): Promise<ReadonlyMap<string, unknown>> {
    const found = new Map<string, unknown>();
    const whole = this.#prefix + start;
    const large = new Set<string>();
    await readRange(this.#broker, { stream: this.#stream, filter: `${whole}>` }, (message) => {
      const rest = message.subject.slice(whole.length);
      if (isObject(message)) large.add(rest);
      else if (message.body.length > 0) found.set(rest, JSON.parse(Buffer.from(message.body).toString()));
      return true;
    });
    for (const rest of await this.keys(start)) if (!found.has(rest)) large.add(rest);
    for (const rest of large) {
      const value = await this.get(start + rest);
      if (value !== null) found.set(rest, value);
    }
    return found;
  }

  async flush(): Promise<void> {}

  /** Resolves when no change is under way. */
  idle(): Promise<void> {
    return this.#order.idle();
  }
}

function isObject({ headers: stored }: StoredMessage): boolean {
  return (stored?.get(OBJECT_HEADER) ?? '') !== '';
}

function damaged(key: string, cause?: unknown): ParleyError {
  return new ParleyError('OUTPUT_CORRUPT', `the stored object ${key} is damaged`, {
    hint: 'check the disk of the nats-server, and restore the bucket from a backup',
    cause,
  });
}

const BODY_HEADER = 'Parley-Body';

/**
 * Records of tool calls: a record is one message on `parley.audit.<conversation>`.
 *
 * STREAM-AUDIT-1 A record that is too large for a message is a document, which its message names.
 * STREAM-AUDIT-2 A record whose acknowledgement was lost may be stored twice. `append` resolves only if it is stored.
 */
export function createStreamAudit(broker: Broker, names: StoreNames, documents: Documents): AuditLog {
  const stream = names.auditStream;

  async function messageOf(conversation: string, record: AuditRecord) {
    const json = JSON.stringify(record);
    const made = headers();
    if (Buffer.byteLength(json) <= maxBody(broker)) return { body: Buffer.from(json), headers: made };
    const id = nuid.next();
    await documents.put(`record.${conversation}.${id}`, json, 'durable');
    made.set(BODY_HEADER, id);
    const { arguments: _, result: __, ...short } = record;
    return { body: jsonBytes({ ...short, truncated: true }), headers: made };
  }

  return {
    async append(conversation, records) {
      // All are prepared before the first is sent: a large one takes longer, and would be stored after later ones.
      const messages = await Promise.all(records.map((record) => messageOf(conversation, record)));
      const outcomes = await Promise.all(
        messages.map((message) =>
          publish(broker, stream, { subject: names.audit(conversation), ...message }),
        ),
      );
      for (const outcome of outcomes)
        requireStored(outcome, `record a tool call of conversation ${conversation}`);
    },
    async read(conversation) {
      const filter = names.audit(conversation);
      const last = await lastMessage(broker, stream, filter);
      if (last === null) return [];
      const found: { readonly text: string; readonly kept: string }[] = [];
      await readRange(broker, { stream, filter, from: 1, to: last.sequence }, (message) => {
        const text = Buffer.from(message.body).toString();
        found.push({ text, kept: message.headers?.get(BODY_HEADER) ?? '' });
        return true;
      });
      const texts: string[] = [];
      for (const { text, kept } of found)
        texts.push(kept === '' ? text : String(await documents.get(`record.${conversation}.${kept}`)));
      return texts;
    },
  };
}
