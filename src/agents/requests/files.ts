import {
  type FilePart,
  fileLine,
  showBytes,
  unseenFileLine,
  type ViewMessage,
} from '../../conversation/index.ts';
import { errnoOf, messageOf, ParleyError, type Refusal, refusal } from '../../kernel/index.ts';
import { DIALECTS } from '../../models/dialects.ts';
import type { FileKind, WireForm } from '../dialect-port.ts';
import type { WireFile, WireTool } from '../model-port.ts';

/**
 * Files of messages in requests.
 *
 * REQUEST-FILES-1 Each file has its line in the text. If the model is not shown the file, the line says why, and which tool reads it. No
 *    text of an author contains such a line (L17).
 * REQUEST-FILES-2 What a message shows depends on it, the form and the tools only, so that its bytes never change (ASSEMBLE-3). No
 *    message shows more than fits one request.
 * REQUEST-FILES-3 The cached bytes of histories contain references. Base64 is kept in one bounded cache for all conversations.
 */

/** What decides how files are shown, besides the message. */
export interface FileView {
  readonly form: WireForm;
  readonly tools: readonly WireTool[];
}

/** The tool that reads the files of a conversation. */
const READER = 'fs_read';

/** The message with the lines of its files, and with those files that the model is shown. */
export function withShownFiles<M extends ViewMessage>(message: M, { form, tools }: FileView): M {
  if (!message.files) return message;
  const reader = readerOf(tools);
  const judged = judge(message, form);
  const shown = judged.flatMap(({ file, why }): WireFile[] => {
    const rule = ruleOf(file, form);
    if (why !== null) return [];
    return [rule ? { ...file, tokens: Math.ceil(rule.tokens(file)) } : file];
  });
  const lines = judged.map(({ file, why }) => {
    if (why === null) return fileLine(file);
    return unseenFileLine(file, `${why === DROPPED ? why : `not shown: ${why}`}${reader}`);
  });
  const { files: _, ...others } = message;
  const content = [message.content ?? '', ...lines].filter((line) => line !== '').join('\n');
  return { ...others, content, ...(shown.length > 0 && { files: shown }) } as M;
}

/** The files that the model is not shown, and why; without those that a reduction took out. For a person. */
export function unseenFiles(message: ViewMessage, { form, tools }: FileView) {
  return judge(message, form).flatMap(({ file, why }) =>
    why === null || why === DROPPED
      ? []
      : [{ file, why: why.replace('your model', 'its model') + readerOf(tools) }],
  );
}

const readerOf = (tools: readonly WireTool[]) =>
  tools.some((tool) => tool.function.name === READER) ? `; ${READER} reads it` : '';

const DROPPED = 'not shown any more';

/** Each file, and why the model is not shown it; null: it is. */
function judge({ files = [] }: ViewMessage, form: WireForm) {
  const { most, maxBytes } = fileLimits(form);
  let [count, bytes] = [0, 0];
  return files.map(({ isDropped, ...file }) => {
    const isOver = count >= most || bytes + file.size > maxBytes;
    const why = refused(file, form) ?? (isDropped ? DROPPED : isOver ? 'too much for one request' : null);
    if (why === null) [count, bytes] = [count + 1, bytes + file.size];
    return { file, why };
  });
}

/** The limits of the files of a whole request. */
export function fileLimits(form: WireForm): { readonly most: number; readonly maxBytes: number } {
  if (form.accepts === 'references') return NO_LIMITS;
  const { most, maxBytes } = DIALECTS[form.dialect].files;
  return { most: Math.min(most, form.maxFiles ?? most), maxBytes };
}

const NO_LIMITS = { most: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

function ruleOf({ mediaType }: FilePart, { accepts = [], dialect }: WireForm) {
  if (accepts === 'references') return undefined;
  const { kinds } = DIALECTS[dialect].files;
  const kind = accepts.find((one: FileKind) => kinds[one]?.types.includes(mediaType));
  return kind && kinds[kind];
}

/** Null: the model takes the file. */
function refused(file: FilePart, form: WireForm): string | null {
  if (form.accepts === 'references') return null;
  const { size, width = 0, height = 0 } = file;
  const rule = ruleOf(file, form);
  if (rule === undefined) return 'your model takes no such files';
  if (size === 0) return 'it is empty';
  if (size > rule.maxBytes) return `your model takes at most ${showBytes(rule.maxBytes)}`;
  const { maxSide = Number.POSITIVE_INFINITY } = rule;
  if (Math.max(width, height) > maxSide) return `your model takes at most ${maxSide} pixels a side`;
  return null;
}

/** The content of a stored file, verified (`BLOB_DAMAGED`); null: it is not stored. A `ParleyError` passes with time. */
export type ReadFile = (sha256: string) => Promise<AsyncIterable<Uint8Array> | null>;

/** Base64, as bytes, by SHA-256. */
export type FileContents = ReadonlyMap<string, Uint8Array>;

/** A refusal: one of them is missing, damaged or cannot be read. */
export type LoadedFiles = FileContents | Refusal;

export const NO_FILES: FileContents = new Map();

const CACHE_BYTES = 64 * 1024 * 1024;

/** REQUEST-FILES-3: the files that were used last. */
export class FileCache {
  readonly #read: ReadFile;
  readonly #maxBytes: number;
  readonly #known = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(read: ReadFile, maxBytes = CACHE_BYTES) {
    this.#read = read;
    this.#maxBytes = maxBytes;
  }

  /** Rejects if the store does not answer. */
  async load(files: readonly FilePart[]): Promise<LoadedFiles> {
    const contents = new Map<string, Uint8Array>();
    for (const file of files) {
      if (contents.has(file.sha256)) continue;
      const found = this.#take(file.sha256) ?? (await this.#readFile(file));
      if ('code' in found) return found;
      contents.set(file.sha256, found);
      this.#keep(file.sha256, found);
    }
    return contents;
  }

  async #readFile(file: FilePart): Promise<Uint8Array | Refusal> {
    try {
      const pieces = await this.#read(file.sha256);
      if (pieces === null) return unreadable('MISSING_BLOB', file, 'is not stored');
      const bytes: Uint8Array[] = [];
      for await (const piece of pieces) bytes.push(piece);
      return Buffer.from(Buffer.concat(bytes).toString('base64'), 'latin1');
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'BLOB_DAMAGED') return unreadable('BLOB_DAMAGED', file, 'is damaged');
      if (error instanceof ParleyError && code !== 'BLOB_RECORD_UNREADABLE') throw error; // the store does not answer
      return unreadable(
        'BLOB_UNREADABLE',
        file,
        `cannot be read: ${messageOf(error)}`,
        'let the daemon read it',
      );
    }
  }

  #take(sha256: string): Uint8Array | undefined {
    const found = this.#known.get(sha256);
    if (found && this.#known.delete(sha256)) this.#bytes -= found.length;
    return found;
  }

  #keep(sha256: string, content: Uint8Array): void {
    this.#take(sha256); // another request read it meanwhile
    this.#known.set(sha256, content);
    this.#bytes += content.length;
    for (const [oldest] of this.#known) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#take(oldest);
    }
  }
}

/** The next step is part of the message: an answer that failed shows no other text. */
function unreadable(
  code: string,
  file: FilePart,
  what: string,
  first = 'upload the same file again',
): Refusal {
  return refusal(
    code,
    `the request was not sent: ${fileLine(file)} ${what} (SHA-256 ${file.sha256}); ${first}, or restore it from a backup, then ask again`,
  );
}
