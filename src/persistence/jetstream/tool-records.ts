import { headers, type MsgHdrs, nuid, type ObjectStore, StorageType } from 'nats';
import { messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { AuditRecord, AuditTrail, Removed, ToolRecords } from '../port.ts';
import { requireConversationId, requireOutputId } from '../rules.ts';
import { HEADER_RESERVE } from './append-message.ts';
import { type Broker, openBucket, publish, requireConnection, storeError } from './broker.ts';
import type { Documents } from './documents.ts';
import { lastMessage, purgeSubject, readRange } from './reader.ts';
import type { StoreNames } from './streams.ts';

/**
 * Records and outputs of tool calls: a record is one message on `parley.audit.<conversation>`, an output is an object.
 *
 * TOOL-RECORDS-1 The key of an output is durable before the output, so that every stored output can be found and deleted.
 * TOOL-RECORDS-2 A record that is too large for a message is stored as an output, and its message names that.
 * TOOL-RECORDS-3 A record whose acknowledgement was lost may be stored twice. `append` resolves only if it is stored.
 * TOOL-RECORDS-4 Parts of an output may come from a replica that lags: a damaged output is read again before it is reported.
 */

const BODY_HEADER = 'Parley-Body';
/** For outputs that are the body of a record (TOOL-RECORDS-2). */
const RECORD_PREFIX = 'record-';
const MAX_READS = 3;
const READ_PAUSE_MS = 300;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface StreamToolRecords extends ToolRecords {
  deleteAll(conversation: string): Promise<Removed>;
  /** The entries that have an output, in order. */
  outputs(conversation: string): Promise<string[]>;
}

export async function openToolRecords(
  broker: Broker,
  names: StoreNames,
  documents: Documents,
): Promise<StreamToolRecords> {
  try {
    const options = { storage: StorageType.File };
    const outputs = await openBucket(() => broker.jetstream.views.os(names.outputBucket, options));
    return new JetStreamToolRecords(broker, names, documents, outputs);
  } catch (error) {
    throw storeError(error, `open bucket ${names.outputBucket}`);
  }
}

interface Message {
  readonly body: Uint8Array;
  readonly headers: MsgHdrs;
}

class JetStreamToolRecords implements StreamToolRecords {
  readonly #broker: Broker;
  readonly #names: StoreNames;
  readonly #documents: Documents;
  readonly #outputs: ObjectStore;

  constructor(broker: Broker, names: StoreNames, documents: Documents, outputs: ObjectStore) {
    this.#broker = broker;
    this.#names = names;
    this.#documents = documents;
    this.#outputs = outputs;
  }

  async append(conversation: string, records: readonly AuditRecord[]): Promise<void> {
    requireConversationId(conversation);
    // All are prepared before the first is sent: a large one takes longer, and would be stored after later ones.
    const messages = await Promise.all(records.map((record) => this.#messageOf(conversation, record)));
    await Promise.all(messages.map((message) => this.#send(conversation, message)));
  }

  async #messageOf(conversation: string, record: AuditRecord): Promise<Message> {
    const maxBytes = (this.#broker.connection.info?.max_payload ?? 1024 ** 2) - HEADER_RESERVE;
    const json = JSON.stringify(record);
    const body = encoder.encode(json);
    const made = headers();
    let sent = body;
    if (body.length > maxBytes) {
      const id = `${RECORD_PREFIX}${nuid.next()}`; // TOOL-RECORDS-2
      await this.saveOutput(conversation, id, json);
      made.set(BODY_HEADER, id);
      const { arguments: _, result: __, ...short } = record;
      sent = encoder.encode(JSON.stringify({ ...short, truncated: true }));
    }
    return { body: sent, headers: made };
  }

  async #send(conversation: string, message: Message): Promise<void> {
    const { auditStream } = this.#names;
    const subject = this.#names.audit(conversation);
    const outcome = await publish(this.#broker, auditStream, { subject, ...message });
    if (outcome.kind === 'stored') return;
    const cause = outcome.kind === 'conflict' ? new Error('the server saw a conflict') : outcome.cause;
    throw storeError(cause, `record a tool call of conversation ${conversation}`);
  }

  async read(conversation: string): Promise<AuditTrail> {
    requireConversationId(conversation);
    const [stream, filter] = [this.#names.auditStream, this.#names.audit(conversation)];
    const last = await lastMessage(this.#broker, stream, filter);
    if (last === null) return { records: [], unreadable: [] };
    const found: { readonly record: unknown; readonly kept: string }[] = [];
    await readRange(this.#broker, { stream, filter, from: 1, to: last.sequence }, (message) => {
      found.push({ record: parsed(message.body), kept: message.headers?.get(BODY_HEADER) ?? '' });
      return true;
    });
    const records: AuditRecord[] = [];
    const unreadable: number[] = [];
    for (const [at, { record, kept }] of found.entries()) {
      const whole = kept === '' ? record : JSON.parse((await this.readOutput(conversation, kept)) ?? 'null');
      if (isRecord(whole)) records.push(whole);
      else unreadable.push(at + 1);
    }
    return { records, unreadable };
  }

  async saveOutput(conversation: string, entryId: string, content: string): Promise<void> {
    requireConversationId(conversation);
    requireOutputId(entryId);
    await this.#documents.put(keyOf(conversation, entryId), Buffer.byteLength(content)); // TOOL-RECORDS-1
    try {
      await requireConnection(this.#broker);
      await this.#outputs.putBlob({ name: nameOf(conversation, entryId) }, encoder.encode(content));
    } catch (error) {
      throw storeError(error, `keep an output of conversation ${conversation}`);
    }
  }

  async readOutput(conversation: string, entryId: string): Promise<string | null> {
    requireConversationId(conversation);
    requireOutputId(entryId);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#readOutput(nameOf(conversation, entryId));
      } catch (error) {
        const isDamaged = error instanceof ParleyError && error.code === 'OUTPUT_CORRUPT';
        if (!isDamaged || attempt === MAX_READS)
          throw storeError(error, `read an output of conversation ${conversation}`);
        await sleep(READ_PAUSE_MS, this.#broker.signal); // TOOL-RECORDS-4
      }
    }
  }

  async #readOutput(name: string): Promise<string | null> {
    try {
      await requireConnection(this.#broker);
      const info = await this.#outputs.info(name);
      if (info === null || info.deleted) return null;
      if (info.size === 0) return '';
      const blob = await this.#outputs.getBlob(name);
      if (blob === null || blob.length !== info.size) throw damagedOutput(name);
      return decoder.decode(blob);
    } catch (error) {
      if (/sha|digest/i.test(messageOf(error))) throw damagedOutput(name, error);
      throw error;
    }
  }

  async outputs(conversation: string): Promise<string[]> {
    requireConversationId(conversation);
    const ids = await this.#documents.keys(`output.${conversation}.`);
    return ids.filter((id) => !id.startsWith(RECORD_PREFIX)).sort();
  }

  async deleteAll(conversation: string): Promise<Removed> {
    const records = await purgeSubject(
      this.#broker,
      this.#names.auditStream,
      this.#names.audit(conversation),
    );
    const kept = await this.#documents.keys(`output.${conversation}.`);
    for (const entryId of kept) {
      try {
        const name = nameOf(conversation, entryId);
        if ((await this.#outputs.info(name)) !== null) await this.#outputs.delete(name);
      } catch (error) {
        throw storeError(error, `delete an output of conversation ${conversation}`);
      }
      await this.#documents.remove(keyOf(conversation, entryId));
    }
    return { records, outputs: kept.filter((id) => !id.startsWith(RECORD_PREFIX)).length };
  }
}

function keyOf(conversation: string, entryId: string): string {
  return `output.${conversation}.${entryId}`;
}

function nameOf(conversation: string, entryId: string): string {
  return `${conversation}/${entryId}`;
}

function damagedOutput(name: string, cause?: unknown): ParleyError {
  return new ParleyError('OUTPUT_CORRUPT', `the stored output ${name} is damaged`, {
    hint: 'check the disk of the nats-server, and restore the bucket from a backup',
    cause,
  });
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    return null; // not a record: `read` reports it as unreadable
  }
}

/** Other programs may have published on the subject. */
function isRecord(value: unknown): value is AuditRecord {
  if (typeof value !== 'object' || value === null || !('type' in value) || !('call' in value)) return false;
  return typeof value.type === 'string' && typeof value.call === 'object' && value.call !== null;
}
