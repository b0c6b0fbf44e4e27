import { headers, nuid } from 'nats';
import { type BlobContents, bytesFrom } from '../storage.ts';
import { type Broker, publish, requireStored } from './broker.ts';
import { maxBody } from './documents.ts';
import { firstAfter, lastMessage, purgeSubject, subjectsOf } from './reader.ts';
import { ANY, type StoreNames } from './streams.ts';

/**
 * The content of blobs: the pieces of one content are the messages of one subject, in order.
 *
 * STREAM-BLOBS-1 Each stored content has a name of its own, so that a removal never meets what another daemon stores (BLOBS-3).
 * STREAM-BLOBS-2 Nothing else refers to the pieces. So those of an interrupted upload are found by their subject.
 * STREAM-BLOBS-3 A piece whose acknowledgement was lost may be there twice; its ordinal says so. Pieces are read from the leader,
 *                one at a time.
 */
const PIECE_BYTES = 128 * 1_024;
const ORDINAL_HEADER = 'Parley-Piece';
const MAX_ATTEMPTS = 3;

export function createStreamBlobs(broker: Broker, names: StoreNames): BlobContents {
  const stream = names.blobStream;

  async function publishPiece(subject: string, body: Uint8Array, ordinal: number): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const made = headers();
      made.set(ORDINAL_HEADER, `${ordinal}`);
      const outcome = await publish(broker, stream, { subject, body, headers: made });
      if (outcome.kind === 'unknown' && attempt < MAX_ATTEMPTS) continue;
      return requireStored(outcome, 'store a file');
    }
  }

  async function* pieces(name: string): AsyncGenerator<Uint8Array> {
    let after = 0;
    for (let ordinal = 0; ; ) {
      const found = await firstAfter(broker, stream, names.blob(name), after);
      if (found === null) return;
      after = found.sequence;
      if (Number(found.headers?.get(ORDINAL_HEADER)) !== ordinal) continue;
      ordinal += 1;
      yield found.body;
    }
  }

  return {
    async put(_, content) {
      const name = nuid.next();
      try {
        let ordinal = 0;
        for await (const piece of inPieces(content, Math.min(PIECE_BYTES, maxBody(broker)))) {
          await publishPiece(names.blob(name), piece, ordinal);
          ordinal += 1;
        }
      } catch (error) {
        await purgeSubject(broker, stream, names.blob(name)).catch(() => undefined); // else a sweep removes it
        throw error;
      }
      return name;
    },
    read: async (name, from = 0) =>
      (await firstAfter(broker, stream, names.blob(name), 0)) === null ? null : bytesFrom(pieces(name), from),
    remove: async (name) => void (await purgeSubject(broker, stream, names.blob(name))),
    async list() {
      const before = names.blob(ANY).length - ANY.length;
      return (await subjectsOf(broker, stream, names.blob(ANY))).map((subject) => subject.slice(before));
    },
    async storedAt(name) {
      const last = await lastMessage(broker, stream, names.blob(name));
      return last?.time ?? null;
    },
  };
}

/** Pieces of this size, except the last one. */
async function* inPieces(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let kept = Buffer.alloc(0);
  for await (const given of content) {
    kept = kept.length === 0 ? Buffer.from(given) : Buffer.concat([kept, given]);
    while (kept.length > size) {
      yield kept.subarray(0, size);
      kept = kept.subarray(size);
    }
  }
  yield kept;
}
