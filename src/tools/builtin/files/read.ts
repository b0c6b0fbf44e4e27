import type { FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import type { ToolFile, ToolOutcome } from '../../../agents/tool-port.ts';
import { ATTACH, filesOf, showBytes } from '../../../conversation/index.ts';
import { messageOf, ParleyError, readFrom } from '../../../kernel/index.ts';
import { completed } from '../../toolbox.ts';
import { wholeCharacters } from '../text.ts';
import { defineTool, FILES_TIMEOUT_MS, PATH, READS, type ToolContext } from '../tool.ts';
import { type Named, parsePath, pathRefused, quoted } from './names.ts';
import { openFile, openSandbox } from './sandbox.ts';

/**
 * Reads a file page by page, or gives it whole: a picture or PDF to the model, any file to the agent's next answer.
 *
 * BUILTIN-READ-1 A file that fits in one page is returned byte for byte, with nothing added. All pages together are the file.
 * BUILTIN-READ-2 A page that is not the last ends with a note on how to continue. A line longer than a page is read by offset.
 * BUILTIN-READ-3 Only one page of a text of the project is in memory; everything else is there as a whole.
 */
/** A page: with its note it is below the 51,200 bytes of a result that enters the log unchanged. */
const READ_BYTES = 50_000;
const READ_LINES = 2_000;
/** Bytes at the start that are searched for null bytes, which mark a file that is not text. */
export const PROBE_BYTES = 8_192;

const schema = z.strictObject({
  path: PATH.describe(
    '@project/…, the @blob/… path of a file in a message, or the @state/… path in the preview of a large result',
  ),
  from: z.int().min(1).optional().describe('first line to read, counted from 1'),
  lines: z.int().min(1).optional().describe(`maximum number of lines; default ${READ_LINES}`),
  offset: z
    .int()
    .min(0)
    .optional()
    .describe('byte to start at, instead of a line; the note at the end of the previous page gives it'),
});

export const readTool = defineTool({
  name: 'fs_read',
  description:
    'Read a text file. Returns its lines unchanged, at most 2,000 and about 50 KB per call; if there is more, a note at the end says how to continue. Read before you change something, and only the part that you need. Shows pictures and PDFs as files. Also reads the files of messages by their @blob/ path, and large results of earlier calls by their @state/ path.',
  risk: 'safe',
  subject: READS,
  timeoutMs: FILES_TIMEOUT_MS,
  schema,
  run: async (given, context) => {
    if (given.from !== undefined && given.offset !== undefined) {
      throw new ParleyError('INVALID_ARGUMENTS', 'give either from or offset');
    }
    const named = parsePath(given.path);
    if (named.kind === 'output') {
      if (!(await isOwnOutput(named, context)))
        throw pathRefused(given.path, 'that is an output of another conversation');
      const text = await context.outputs(context.conversation, named.entry).catch((error: unknown) => {
        context.log.error({ err: error }, messageOf(error)); // it names the file
        const message = `${quoted(given.path)} cannot be read; the log of the daemon has the reason`;
        throw new ParleyError('OUTPUT_UNREADABLE', message);
      });
      if (text === null)
        throw new ParleyError('NOT_FOUND', `there is no stored output ${quoted(given.path)}`);
      return completed(await page(Buffer.from(text), given, context.signal));
    }
    if (named.kind === 'blob') {
      const file = await fileOfMessage(given.path, named.hash, context);
      if (kindOf(file.bytes) !== 'text') return withFile(given.path, file);
      return completed(await page(file.bytes, given, context.signal));
    }
    if (named.asFolder) throw pathRefused(given.path, 'a path that ends with "/" is a folder');
    const file = await openFile(openSandbox(context), named.names);
    try {
      if (kindOf(await readAt(file, 0, PROBE_BYTES)) === 'shown')
        return withFile(given.path, await wholeFile(file, given.path, named.names, context));
      await refuseBinary(file, given.path);
      return completed(await page(file, given, context.signal));
    } finally {
      await file.close();
    }
  },
});

export const attachTool = defineTool({
  name: ATTACH,
  description:
    'Attach a file to your next message, for the people and agents who read it: a file of the project, or one of an earlier message by its @blob/ path. Call it before you write that message; several times for several files.',
  risk: 'safe',
  subject: READS,
  timeoutMs: FILES_TIMEOUT_MS,
  schema: z.strictObject({ path: PATH.describe('@project/…, or the @blob/… path of a file in a message') }),
  run: async ({ path }, context) => {
    const named = parsePath(path);
    if (named.kind === 'blob') return attached(path, await fileOfMessage(path, named.hash, context));
    if (named.kind !== 'project' || named.asFolder) throw pathRefused(path, 'that is no file to attach');
    const file = await openFile(openSandbox(context), named.names);
    try {
      return attached(path, await wholeFile(file, path, named.names, context));
    } finally {
      await file.close();
    }
  },
});

function attached(path: string, file: ToolFile): ToolOutcome {
  return withFile(path, file, ' is attached to your next message.');
}

function withFile(path: string, file: ToolFile, more = ''): ToolOutcome {
  return completed(`[file 1: ${path}, ${showBytes(file.bytes.length)}]${more}`, [file]);
}

type WholeFile = ToolFile & { readonly bytes: Buffer };

/** Only outputs of the own conversation are readable: those of copied entries too, by the path that their texts have (`fork`). */
async function isOwnOutput(
  { owner, entry }: Extract<Named, { kind: 'output' }>,
  { conversation, conversations }: ToolContext,
): Promise<boolean> {
  if (owner === conversation) return true;
  try {
    const entries = await conversations.entriesOf(conversation);
    return entries.some(({ id, copiedFrom }) => id === entry && copiedFrom === owner);
  } catch {
    return false; // it is being deleted
  }
}

/** The newest file of this conversation whose hash begins so. */
async function fileOfMessage(
  path: string,
  hash: string,
  { conversation, conversations, blobs }: ToolContext,
): Promise<WholeFile> {
  const files = (await conversations.entriesOf(conversation)).flatMap((entry) => filesOf(entry));
  const file = files.findLast(({ sha256 }) => sha256.startsWith(hash));
  const bytes = file && (await blobs(file.sha256));
  if (!bytes)
    throw new ParleyError('NOT_FOUND', `no message of this conversation has the file ${quoted(path)}`);
  return {
    bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
    name: file.name,
    mediaType: file.mediaType,
  };
}

async function wholeFile(
  file: FileHandle,
  path: string,
  names: readonly string[],
  { maxFileBytes }: ToolContext,
): Promise<WholeFile> {
  const { size } = await file.stat();
  if (size <= maxFileBytes) return { bytes: await readAt(file, 0, size), name: names.at(-1) };
  const message = `${quoted(path)}: ${showBytes(size)} are more than the ${showBytes(maxFileBytes)} of a file in a message`;
  throw new ParleyError('TOO_LARGE', message);
}

/** PNG, JPEG, GIF, WebP, PDF. */
const SHOWN = /^(?:\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP|%PDF-)/s;

/** `shown`: a model may take it as it is. */
function kindOf(bytes: Buffer): 'text' | 'shown' | 'binary' {
  if (SHOWN.test(bytes.toString('latin1', 0, 16))) return 'shown';
  return bytes.subarray(0, PROBE_BYTES).includes(0) ? 'binary' : 'text';
}

export async function refuseBinary(handle: FileHandle, path: string): Promise<void> {
  const probe = await readAt(handle, 0, PROBE_BYTES);
  if (!probe.includes(0)) return;
  const { size } = await handle.stat();
  throw new ParleyError('BINARY_FILE', `${quoted(path)} is not text (${size} bytes)`);
}

const LINE_FEED = 0x0a;
const CHUNK_BYTES = 64 * 1024;

/** A stored output is in memory. */
type Source = FileHandle | Buffer;

async function page(handle: Source, given: z.infer<typeof schema>, signal: AbortSignal): Promise<string> {
  const { from = 1, lines = READ_LINES, offset } = given;
  const start = offset ?? (await startOfLine(handle, from, signal));
  const bytes = await readAt(handle, start, READ_BYTES + 1);
  if (bytes.length === 0 && start > 0) {
    throw offset === undefined ? pastTheEnd(from, from - 1) : await offsetPastTheEnd(handle, offset);
  }
  const { length, count } = cut(bytes, Math.min(lines, READ_LINES));
  const shown = bytes.subarray(0, length);
  const text = shown.toString('utf8');
  const notes: string[] = [];
  if (length < bytes.length) {
    const next = offset === undefined && count > 0 ? `from: ${from + count}` : `offset: ${start + length}`;
    notes.push(`[there is more: continue with ${next}]`);
  }
  if (text.includes('\ufffd') && !shown.includes('\ufffd')) {
    notes.push('[bytes that are not UTF-8 are shown as \ufffd]');
  }
  if (notes.length === 0) return text;
  return `${text}${text.endsWith('\n') ? '' : '\n'}${notes.join('\n')}`;
}

/** The length of the page: whole lines, or whole characters of a line longer than a page. */
function cut(bytes: Buffer, lines: number): { readonly length: number; readonly count: number } {
  let length = 0;
  let count = 0;
  while (count < lines) {
    const at = bytes.indexOf(LINE_FEED, length);
    if (at < 0 || at >= READ_BYTES) break;
    length = at + 1;
    count += 1;
  }
  if (count === lines) return { length, count };
  if (bytes.length <= READ_BYTES) return { length: bytes.length, count };
  return count > 0 ? { length, count } : { length: wholeCharacters(bytes, READ_BYTES), count };
}

/** The offset of line `from`; the end of the file for the line after the last. */
async function startOfLine(handle: Source, from: number, signal: AbortSignal): Promise<number> {
  let line = 1;
  let last = LINE_FEED;
  for (let position = 0; line < from; ) {
    signal.throwIfAborted();
    const chunk = await readAt(handle, position, CHUNK_BYTES);
    if (chunk.length === 0) throw pastTheEnd(from, last === LINE_FEED ? line - 1 : line);
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, at + 1)) {
      line += 1;
      if (line === from) return position + at + 1;
    }
    last = chunk.at(-1) ?? last;
    position += chunk.length;
  }
  return 0;
}

/** Up to `length` bytes; fewer only at the end of the file. */
export async function readAt(handle: Source, position: number, length: number): Promise<Buffer> {
  if (Buffer.isBuffer(handle)) return handle.subarray(position, position + length);
  return readFrom(handle, position, length);
}

function pastTheEnd(line: number, count: number): ParleyError {
  const lines = count === 1 ? '1 line' : `${count} lines`;
  return new ParleyError('PAST_THE_END', `line ${line} is past the end: the file has ${lines}`);
}

async function offsetPastTheEnd(handle: Source, offset: number): Promise<ParleyError> {
  const size = Buffer.isBuffer(handle) ? handle.length : (await handle.stat()).size;
  return new ParleyError('PAST_THE_END', `offset ${offset} is past the end: the file has ${size} bytes`);
}
