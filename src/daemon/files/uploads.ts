import { type AnswerOf, MOST_PIECE_BYTES, type RequestOf } from '../../bus/index.ts';
import type { FilePart } from '../../conversation/index.ts';
import type { Files, Incoming } from './files.ts';

/**
 * Files that arrive in pieces, one request each.
 *
 * UPLOADS-1  A piece at another offset than the number of bytes that have arrived changes nothing; the answer says how many have.
 *            So a client repeats any piece, and continues where it was after a lost connection.
 * UPLOADS-2  An upload belongs to its publisher. It is known for some minutes after its last piece, also when it is complete. An
 *            upload that is refused, or of a daemon that ended, begins again at 0.
 */

const KNOWN_MS = 10 * 60_000;
/** With more, the oldest complete one is forgotten. */
const MOST_KNOWN = 1_000;

interface Upload {
  readonly incoming: Promise<Incoming>;
  /** The pieces one after the other. */
  last: Promise<unknown>;
  /** Set when it is complete. */
  file?: FilePart;
  readonly expiry: NodeJS.Timeout;
}

type Piece = RequestOf<'upload'>;

export class Uploads {
  readonly #files: Files;
  /** By publisher and id. */
  readonly #uploads = new Map<string, Upload>();

  constructor(files: Files) {
    this.#files = files;
  }

  /** Throws the refusal. */
  async take(piece: Piece, publisher: string): Promise<AnswerOf<'upload'>> {
    const key = `${publisher}\n${piece.upload}`;
    const upload = this.#uploads.get(key) ?? this.#begin(key, piece, publisher);
    if (upload === null) return { received: 0 };
    upload.expiry.refresh();
    const answer = upload.last.then(() => this.#add(upload, piece));
    upload.last = answer.catch(() => undefined);
    try {
      const answered = await answer;
      if (upload.file && this.#uploads.size > MOST_KNOWN) await this.#forgetComplete();
      return answered;
    } catch (error) {
      await this.#end(key, upload);
      throw error;
    }
  }

  #begin(key: string, { offset, size }: Piece, publisher: string): Upload | null {
    if (offset > 0) return null;
    const incoming = this.#files.begin({ publisher }, { size });
    incoming.catch(() => undefined); // its piece gets the error
    const expiry = setTimeout(() => void this.#end(key, upload), KNOWN_MS).unref();
    const upload: Upload = { incoming, last: incoming, expiry };
    this.#uploads.set(key, upload);
    return upload;
  }

  async #add(upload: Upload, { offset, data, last }: Piece): Promise<AnswerOf<'upload'>> {
    const incoming = await upload.incoming;
    if (upload.file) return { received: incoming.size, file: upload.file };
    const bytes = Buffer.from(data, 'base64');
    if (offset !== incoming.size) return { received: incoming.size };
    await incoming.write(bytes);
    if (!last) return { received: incoming.size };
    upload.file = await incoming.finish(last, last.name);
    await incoming.close();
    return { received: incoming.size, file: upload.file };
  }

  async #forgetComplete(): Promise<void> {
    const [oldest] = [...this.#uploads].filter(([, { file }]) => file);
    if (oldest) await this.#end(...oldest);
  }

  async #end(key: string, upload: Upload): Promise<void> {
    clearTimeout(upload.expiry);
    if (this.#uploads.get(key) === upload) this.#uploads.delete(key);
    await upload.incoming.then((incoming) => incoming.close()).catch(() => undefined);
  }
}

/** Leaves room for the other fields of the answer. */
const BASE64_SHARE = 0.7;

/** A piece of a stored file; `room`: the largest answer, in bytes. */
export async function pieceOf(
  files: Files,
  { conversation, sha256, offset = 0, limit = MOST_PIECE_BYTES }: RequestOf<'blob'>,
  room: number,
): Promise<AnswerOf<'blob'>> {
  const { size, mediaType, read } = await files.find(conversation, sha256);
  const most = Math.min(limit, MOST_PIECE_BYTES, Math.floor(room * BASE64_SHARE));
  const pieces: Uint8Array[] = [];
  let left = most;
  for await (const bytes of (await read(offset)) ?? []) {
    pieces.push(bytes.subarray(0, left));
    left -= bytes.length;
    if (left <= 0) break;
  }
  return { data: Buffer.concat(pieces).toString('base64'), size, mediaType };
}
