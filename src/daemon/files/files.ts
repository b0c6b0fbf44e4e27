import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileTypeFromBuffer } from 'file-type';
import { imageSize } from 'image-size';
import { type AnswerOf, MOST_OF_A_NAME, MOST_PIECE_BYTES, type RequestOf } from '../../bus/index.ts';
import { type FilePart, showBytes, UNKNOWN_TYPE } from '../../conversation/index.ts';
import {
  type Clock,
  cut,
  fullDiskError,
  hasLoneSurrogate,
  InOrder,
  inOneLine,
  makeDirectory,
  type NewId,
  ParleyError,
  type Refusal,
} from '../../kernel/index.ts';
import type { BlobFacts, ConversationStore } from '../../persistence/index.ts';
import { BYTES_OF_ONE, PublisherLimits } from '../ingress/publisher-limits.ts';
import type { Team } from '../team/team.ts';

/**
 * Takes files of people, programs and tools, finds their size, hash and type in their bytes, and stores them.
 *
 * FILES-1  Bytes go to a private temporary file while they are counted and hashed: memory does not grow with a file, and nothing
 *          of a file that is refused or incomplete is kept.
 * FILES-2  A file beyond the limit is refused at its first byte beyond it.
 * FILES-3  Files count against the rate of their publisher, one post for each 256 KiB, and apart from its posts: after a large
 *          file it can still post the message that names it.
 */

/** Files that are on their way at once: in all, and of one publisher. */
const MOST_OPEN = 64;
const MOST_OPEN_OF_ONE = 16;
const PIECE_BYTES = 64 * 1_024;
/** FILES-3: bytes of a file for one byte of a post, and those that count as one post. */
const SHARE = 16;
const BYTES_OF_POST = SHARE * BYTES_OF_ONE;
/** In the data directory. */
const FOLDER = 'incoming';

/** What is known of a file besides its bytes. */
interface About {
  /** As the sender gave it. */
  readonly name?: string | undefined;
  /** The type that the sender says (`findType`). */
  readonly mediaType?: string | undefined;
  /** Whose rate it counts against; absent: nobody's, as of a tool. */
  readonly publisher?: string | undefined;
}

/** What the sender expects to have sent. */
interface Expected {
  readonly sha256?: string | undefined;
  readonly size?: number | undefined;
}

interface StoredFile extends BlobFacts {
  /** Null: it was erased meanwhile. */
  read(from?: number): Promise<AsyncIterable<Uint8Array> | null>;
}

export interface FilesContext {
  readonly store: Pick<ConversationStore, 'blobs'>;
  /** The current one: it is read for each file. */
  readonly team: Pick<Team, 'files' | 'publishers'>;
  readonly now: Clock;
  readonly newId: NewId;
}

export class Files {
  readonly #daemon: FilesContext;
  /** Null: there is no data directory. */
  readonly #folder: string | null;
  readonly #rates: PublisherLimits;
  readonly #open = new Set<Incoming>();

  /** For tests. A daemon uses `open`. `data`: its directory; null: there is none. */
  constructor(daemon: FilesContext, data: string | null) {
    this.#daemon = daemon;
    this.#folder = data === null ? null : join(data, FOLDER);
    this.#rates = new PublisherLimits(() => daemon.team.publishers);
  }

  /** Removes what a daemon that was killed left. */
  static async open(daemon: FilesContext, data: string | null): Promise<Files> {
    const files = new Files(daemon, data);
    if (files.#folder !== null) await rm(files.#folder, { recursive: true, force: true });
    return files;
  }

  /** Stores a whole file. Nothing of it is kept if this rejects. */
  async keep(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    about: About = {},
    expected: Expected = {},
  ): Promise<FilePart> {
    const incoming = await this.begin(about, expected);
    try {
      for await (const bytes of content instanceof Uint8Array ? [content] : content)
        await incoming.write(bytes);
      return await incoming.finish(expected);
    } finally {
      await incoming.close();
    }
  }

  /** A file that arrives in pieces. `close` must follow. Throws if it would be refused: more than is allowed is not read. */
  async begin(about: About, { size = 0 }: Expected = {}): Promise<Incoming> {
    checkName(about.name);
    const { maxBytes } = this.#daemon.team.files;
    if (size > maxBytes) throw tooLarge(maxBytes);
    this.#refuseCrowd(about);
    const counted = Math.max(BYTES_OF_POST, size);
    this.#count(about, counted);
    const incoming: Incoming = new Incoming(about, this.#daemon, {
      count: (bytes) => this.#count(about, bytes - counted),
      onClosed: () => this.#open.delete(incoming),
    });
    this.#open.add(incoming);
    try {
      if (this.#folder !== null) await makeDirectory(this.#folder);
      await incoming.open(join(this.#folder ?? tmpdir(), `parley-${this.#daemon.newId()}`));
      return incoming;
    } catch (error) {
      await incoming.close();
      throw full(error);
    }
  }

  /** A file that the log of this conversation names. Throws `NOT_FOUND`, also if only another conversation names it. */
  async find(conversation: string, sha256: string): Promise<StoredFile> {
    const { blobs } = this.#daemon.store;
    const facts = (await blobs.isIn(conversation, sha256)) && (await blobs.facts(sha256));
    if (facts) return { ...facts, read: (from) => blobs.read(sha256, from) };
    const message = `no message of the conversation ${conversation} has the file ${sha256}`;
    throw new ParleyError('NOT_FOUND', message, { hint: 'its entries name its files by their SHA-256' });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((incoming) => incoming.close()));
  }

  /** FILES-3 */
  #count({ publisher }: About, bytes: number): void {
    if (publisher === undefined || bytes <= 0) return;
    const post = { publisher, bytes: bytes / SHARE, takenAt: this.#daemon.now() };
    const waitMs = this.#rates.count(post);
    if (waitMs > 0) throw tooFast(this.#rates.tooFast(publisher, waitMs), publisher);
  }

  #refuseCrowd({ publisher }: About): void {
    if (publisher === undefined) return;
    const own = [...this.#open].filter((one) => one.about.publisher === publisher).length;
    if (own < MOST_OPEN_OF_ONE && this.#open.size < MOST_OPEN) return;
    const whose = own < MOST_OPEN_OF_ONE ? 'files' : `files of ${publisher}`;
    throw new ParleyError('TOO_MANY_UPLOADS', `too many ${whose} are on their way`, {
      hint: 'send it again when another one has arrived',
    });
  }
}

interface Hooks {
  /** All its bytes against the rate; throws. */
  count(bytes: number): void;
  onClosed(): void;
}

/** One file on its way. */
class Incoming {
  readonly about: About;
  readonly #daemon: FilesContext;
  readonly #hooks: Hooks;
  readonly #measure = new Measure();
  #spool: { readonly path: string; readonly file: FileHandle } | null = null;

  constructor(about: About, daemon: FilesContext, hooks: Hooks) {
    this.about = about;
    this.#daemon = daemon;
    this.#hooks = hooks;
  }

  /** Bytes that have arrived. */
  get size(): number {
    return this.#measure.size;
  }

  async open(path: string): Promise<void> {
    this.#spool = { path, file: await open(path, 'wx+', 0o600) };
  }

  /** One at a time. */
  async write(bytes: Uint8Array): Promise<void> {
    const { maxBytes } = this.#daemon.team.files;
    if (this.size + bytes.length > maxBytes) throw tooLarge(maxBytes);
    try {
      await this.#opened.file.writeFile(bytes);
    } catch (error) {
      throw full(error);
    }
    this.#measure.add(bytes);
  }

  /** Stores it. */
  async finish(expected: Expected, name: string | undefined = this.about.name): Promise<FilePart> {
    const { size } = this;
    const sha256 = this.#measure.sha256();
    const { mediaType: declared } = this.about;
    checkName(name);
    if (size === 0)
      throw new ParleyError('BLOB_EMPTY', 'the file is empty', {
        hint: 'send a file with at least one byte',
      });
    if (expected.size !== undefined && expected.size !== size)
      throw new ParleyError('BLOB_INCOMPLETE', `${size} bytes arrived of ${expected.size}`, {
        hint: 'nothing was kept: send the file again',
      });
    if (expected.sha256 !== undefined && expected.sha256 !== sha256)
      throw new ParleyError('BLOB_WRONG_HASH', `the bytes that arrived have the SHA-256 ${sha256}`, {
        hint: 'nothing was kept: compute the hash of the bytes as they are sent, and send the file again',
      });
    this.#hooks.count(size);
    const { path, file } = this.#opened;
    const { scan: command, environment } = this.#daemon.team.files;
    if (command) await scan({ command, environment }, { path, name });
    const { blobs } = this.#daemon.store;
    const facts = await this.#measure.facts(sha256, { name, declared });
    await blobs.put(facts, () => contentOf(file));
    return { type: 'file', ...((await blobs.facts(sha256)) ?? facts), ...(name && { name }) }; // as it was stored first
  }

  /** Releases it, whether it was stored or not. May be called twice. */
  async close(): Promise<void> {
    const spool = this.#spool;
    this.#spool = null;
    this.#hooks.onClosed();
    await spool?.file.close();
    if (spool) await rm(spool.path, { force: true });
  }

  get #opened() {
    if (this.#spool) return this.#spool;
    throw new ParleyError('BLOB_INCOMPLETE', 'the upload was ended', { hint: 'send the file again' });
  }
}

async function* contentOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, position);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

function checkName(name = ''): void {
  if (name.length <= MOST_OF_A_NAME && !hasLoneSurrogate(name)) return;
  throw new ParleyError('INVALID_FIELD', 'the name of the file is too long, or holds half of a character', {
    hint: `give at most ${MOST_OF_A_NAME} characters`,
  });
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError('BLOB_TOO_LARGE', `a file may have ${showBytes(maxBytes)}`, {
    hint: 'send a smaller one, or raise blobs.maxBytes in parley.yaml',
  });
}

/** As a post would be refused. */
function tooFast({ code, hint, retryAfter }: Refusal, publisher: string): ParleyError {
  const message = `${publisher} has sent more files than its rate of posts allows (each 256 KiB of a file count as a post)`;
  return new ParleyError(code, message, { hint, retryAfter });
}

function full(error: unknown): unknown {
  return fullDiskError(error, 'STORE_FULL', 'the disk for uploads');
}

/**
 * The command of `blobs.scan`, which decides whether a file is kept: it gets the path as its last argument, and the name that
 * the sender gave as PARLEY_FILE_NAME. Exit code 0 accepts. A command that cannot run, or not in time, accepts nothing.
 */
interface Scan {
  readonly command: readonly string[];
  /** The variables that commands of tools get, too. */
  readonly environment: Readonly<Record<string, string>>;
}

const TIME_LIMIT_MS = 60_000;
const MOST_OUTPUT_BYTES = 1_024 * 1_024;
const MOST_SHOWN = 200;

/** Throws `BLOB_REFUSED` with the first line that the command printed. */
async function scan(
  { command: [program = '', ...args], environment }: Scan,
  { path, name = '' }: { readonly path: string; readonly name?: string | undefined },
): Promise<void> {
  const env = { ...environment, PARLEY_FILE_NAME: name.replaceAll('\0', '') };
  const limits = { timeout: TIME_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: MOST_OUTPUT_BYTES } as const;
  const fault = await new Promise<string | null>((resolve) => {
    const child = execFile(program, [...args, path], { ...limits, env }, (error, stdout, stderr) => {
      if (error === null) return resolve(null);
      const said = `${stdout}\n${stderr}`.split('\n').find((line) => line.trim() !== '');
      if (error.killed && error.signal) resolve(`the scan did not end in ${TIME_LIMIT_MS / 1_000} s`);
      else if (typeof error.code === 'number') resolve(said ?? `the scan ended with exit code ${error.code}`);
      else resolve(`the scan could not run: ${error.message}`);
    });
    child.stdin?.end(); // a command that reads it must end
  });
  if (fault === null) return;
  throw new ParleyError('BLOB_REFUSED', `the file is refused: ${cut(inOneLine(fault), MOST_SHOWN)}`, {
    hint: 'blobs.scan in parley.yaml names the command that decides',
  });
}

const KNOWN_MS = 10 * 60_000;
/** With more, the oldest complete one is forgotten. */
const MOST_KNOWN = 1_000;

interface Upload {
  readonly incoming: Promise<Incoming>;
  /** Set when it is complete. */
  file?: FilePart;
  readonly expiry: NodeJS.Timeout;
}

type Piece = RequestOf<'upload'>;

/**
 * Files that arrive in pieces, one request each.
 *
 * UPLOADS-1  A piece at another offset than the number of bytes that have arrived changes nothing; the answer says how many have.
 *            So a client repeats any piece, and continues where it was after a lost connection.
 * UPLOADS-2  An upload belongs to its publisher. It is known for some minutes after its last piece, also when it is complete. An
 *            upload that is refused, or of a daemon that ended, begins again at 0.
 */
export class Uploads {
  readonly #files: Files;
  /** By publisher and id. */
  readonly #uploads = new Map<string, Upload>();
  readonly #order = new InOrder();

  constructor(files: Files) {
    this.#files = files;
  }

  /** Throws the refusal. */
  async take(piece: Piece, publisher: string): Promise<AnswerOf<'upload'>> {
    const key = `${publisher}\n${piece.upload}`;
    const upload = this.#uploads.get(key) ?? this.#begin(key, piece, publisher);
    if (upload === null) return { received: 0 };
    upload.expiry.refresh();
    try {
      const answered = await this.#order.run(key, () => this.#add(upload, piece));
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
    const upload: Upload = { incoming, expiry };
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

/** What is known of a file from its bytes, which come in pieces. */
class Measure {
  size = 0;
  readonly #hash = createHash('sha256');
  readonly #beginning: Uint8Array[] = [];
  /** Null: it is no text. */
  #text: InstanceType<typeof TextDecoder> | null = new TextDecoder('utf-8', { fatal: true });

  add(bytes: Uint8Array): void {
    if (this.size < BEGINNING_BYTES) this.#beginning.push(bytes.slice(0, BEGINNING_BYTES - this.size));
    this.#hash.update(bytes);
    this.size += bytes.length;
    try {
      if (bytes.includes(0)) this.#text = null;
      this.#text?.decode(bytes, { stream: true });
    } catch {
      this.#text = null;
    }
  }

  /** Once, at the end. */
  sha256(): string {
    return this.#hash.digest('hex');
  }

  async facts(
    sha256: string,
    named: { readonly name?: string | undefined; readonly declared?: string | undefined },
  ): Promise<BlobFacts> {
    const beginning = Buffer.concat(this.#beginning);
    return { sha256, size: this.size, ...(await findType({ beginning, isText: this.#isText(), ...named })) };
  }

  #isText(): boolean {
    try {
      this.#text?.decode();
      return this.#text !== null;
    } catch {
      return false; // it ends within a character
    }
  }
}

export async function measured(
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  named: { readonly name?: string | undefined; readonly declared?: string | undefined } = {},
): Promise<BlobFacts> {
  const measure = new Measure();
  for await (const bytes of content) measure.add(bytes);
  return measure.facts(measure.sha256(), named);
}

/** Bytes of the beginning that are enough: all that is known of a file is found in them. */
const BEGINNING_BYTES = 512 * 1_024;

/** Text that no program runs, by the end of its name. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  json: 'application/json',
  markdown: 'text/markdown',
  md: 'text/markdown',
};
/** Formats that are text, too (MEDIA-TYPE-2). */
const MARKUP = new Set(['application/xml']);
const MEASURED = new Set(['image/gif', 'image/jpeg', 'image/png', 'image/webp']);
/** Orientations of EXIF: from this one on the picture is shown turned by a quarter. */
const FIRST_TURNED = 5;

interface FoundType {
  readonly mediaType: string;
  /** Pixels, as it is shown. */
  readonly width?: number;
  readonly height?: number;
}

interface Content {
  readonly beginning: Uint8Array;
  /** All of it is UTF-8 without NUL. */
  readonly isText: boolean;
  readonly name?: string | undefined;
  /** As the sender says. Used for text alone, where it means no more than a name. */
  readonly declared?: string | undefined;
}

/**
 * What bytes are, by their content. Neither the name nor the sender makes them a picture.
 *
 * MEDIA-TYPE-1  Only the beginning is read, and of an archive at most a mebibyte of one entry is expanded: what a file
 *               expands to costs nothing.
 * MEDIA-TYPE-2  Text is text, also if a browser would run it: HTML and SVG are `text/plain`.
 */
export async function findType({ beginning, isText, name = '', declared }: Content): Promise<FoundType> {
  const found = await fileTypeFromBuffer(beginning).catch(() => undefined); // a damaged file has no type
  if (found && !(isText && MARKUP.has(found.mime)))
    return { mediaType: found.mime, ...(MEASURED.has(found.mime) && measure(beginning)) };
  if (!isText) return { mediaType: UNKNOWN_TYPE };
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
  const harmless = Object.values(TEXT_TYPES).find((type) => type === declared?.split(';')[0]);
  return { mediaType: (Object.hasOwn(TEXT_TYPES, ending) && TEXT_TYPES[ending]) || harmless || 'text/plain' };
}

/** Nothing for a damaged picture, or one whose size is not in its beginning. */
function measure(beginning: Uint8Array): Omit<FoundType, 'mediaType'> {
  try {
    const { width, height, orientation = 1 } = imageSize(beginning);
    if (!(width > 0 && height > 0)) return {};
    return orientation < FIRST_TURNED ? { width, height } : { width: height, height: width };
  } catch {
    return {};
  }
}
