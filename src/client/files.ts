import { createHash } from 'node:crypto';
import { MOST_PIECE_BYTES } from '../bus/index.ts';
import type { FilePart } from '../conversation/index.ts';
import { ParleyError, sleep } from '../kernel/index.ts';
import { isUnreachable } from './requests.ts';
import type { AnswerOf, RequestOf } from './verbs.ts';

/**
 * Sends and receives files in pieces.
 *
 * CLIENT-FILES-1 A piece whose answer was lost is sent again. While the daemon does not answer, the upload waits for it, and then
 *    continues where it was.
 * CLIENT-FILES-2 An upload whose daemon ended begins again, if the content can be read again.
 */

/** What is sent. A stream is read once; a function returns a new one each time. */
export type FileContent = Uint8Array | Blob | AsyncIterable<Uint8Array> | (() => AsyncIterable<Uint8Array>);

export interface UploadOptions {
  /** Agents and people are shown it. */
  readonly name?: string;
  readonly publisher?: string;
  readonly signal?: AbortSignal;
}

export interface DownloadOptions {
  /** For credentials that may act as this publisher alone. */
  readonly publisher?: string;
  readonly signal?: AbortSignal;
}

type Send = <V extends 'upload' | 'blob'>(
  verb: V,
  body: RequestOf<V>,
  options: { signal?: AbortSignal },
) => Promise<AnswerOf<V>>;

/** The bytes may take this share of a message's payload; the rest is for the other fields. */
const PAYLOAD_SHARE = 0.7;
const MOST_BEGINNINGS = 5;
const PAUSE_MS = 1_000;
const PATIENCE_MS = 60_000;

export interface Pieces {
  readonly send: Send;
  /** Bytes that one message may hold. */
  readonly maxPayload: number;
}

export async function upload(
  pieces: Pieces,
  id: string,
  content: FileContent,
  { name, publisher, ...options }: UploadOptions,
): Promise<FilePart> {
  const isRepeatable =
    typeof content === 'function' || content instanceof Uint8Array || content instanceof Blob;
  for (let beginnings = 1; ; beginnings++) {
    const file = await sendOnce(pieces, { upload: id, publisher }, content, name, options);
    if (file) return file;
    if (isRepeatable && beginnings < MOST_BEGINNINGS) continue;
    throw new ParleyError('BLOB_INCOMPLETE', 'the daemon lost the beginning of the upload', {
      hint: 'send the whole file again',
    });
  }
}

/** Null: the daemon does not have the pieces that were sent (CLIENT-FILES-2). */
async function sendOnce(
  { send, maxPayload }: Pieces,
  who: Pick<RequestOf<'upload'>, 'upload' | 'publisher'>,
  content: FileContent,
  name: string | undefined,
  options: { signal?: AbortSignal },
): Promise<FilePart | null> {
  const hash = createHash('sha256');
  const most = Math.min(MOST_PIECE_BYTES, Math.floor(maxPayload * PAYLOAD_SHARE * 0.75));
  const known =
    content instanceof Uint8Array ? content.length : content instanceof Blob ? content.size : undefined;
  let offset = 0;
  for await (const { bytes, isLast } of inPieces(streamOf(content), most)) {
    const size = offset + bytes.length;
    hash.update(bytes);
    const last = isLast ? { sha256: hash.digest('hex'), size, ...(name && { name }) } : undefined;
    const data = bytes.toString('base64');
    const piece = { ...who, offset, data, size: known, last };
    const { received, file } = await untilReachable(() => send('upload', piece, options), options.signal);
    if (file) return file;
    if (received !== size) return null;
    offset = size;
  }
  return null;
}

/** CLIENT-FILES-1 */
async function untilReachable<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const since = performance.now();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnreachable(error) || performance.now() - since > PATIENCE_MS) throw error;
      await sleep(PAUSE_MS, signal);
      signal?.throwIfAborted();
    }
  }
}

function streamOf(content: FileContent): AsyncIterable<Uint8Array> {
  if (typeof content === 'function') return content();
  if (content instanceof Blob) return content.stream();
  return content instanceof Uint8Array ? one(content) : content;
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Pieces of this size; the last one may be smaller, and is empty for an empty file. */
async function* inPieces(
  content: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ readonly bytes: Buffer; readonly isLast: boolean }> {
  let rest = Buffer.alloc(0);
  for await (const bytes of content) {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length > size) {
      yield { bytes: rest.subarray(0, size), isLast: false };
      rest = rest.subarray(size);
    }
  }
  yield { bytes: rest, isLast: true };
}

/** Throws `BLOB_DAMAGED` at the end if the bytes do not have this hash. */
export async function* download(
  { send }: Pieces,
  conversation: string,
  sha256: string,
  { publisher, ...options }: DownloadOptions,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for (let offset = 0, all = 1; offset < all; ) {
    const asked = { conversation, sha256, offset, publisher };
    const { data, size } = await untilReachable(() => send('blob', asked, options), options.signal);
    const bytes = Buffer.from(data, 'base64');
    all = size;
    offset += bytes.length;
    hash.update(bytes);
    if (bytes.length === 0) break;
    yield bytes;
  }
  if (hash.digest('hex') === sha256) return;
  throw new ParleyError('BLOB_DAMAGED', `the bytes that arrived do not have the SHA-256 ${sha256}`, {
    hint: 'do not use them; `parley fsck` checks what is stored',
  });
}
