import type { ContentBlock, PromptCapabilities } from '@agentclientprotocol/sdk';
import { type FilePart, plainName, showBytes, shownName } from '../conversation/index.ts';
import { cut, decodeUtf8, isBase64, percentDecoded, wellFormed } from '../kernel/index.ts';

/**
 * Messages and files as content blocks of the protocol, and blocks as messages and files.
 *
 * ACP-BLOCKS-1 A file is in a block whole or not at all, by its kind and size: a message of the protocol is one line of JSON.
 * ACP-BLOCKS-2 A block with bytes is a file, also an embedded text. The type that its sender says is a hint (MEDIA-TYPE-1).
 */

/** Base64 of them in one request of a model is accepted by its provider. */
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MOST_BYTES = 5_000_000;
/** A longer text would fill the context of a model. */
const MOST_TEXT_BYTES = 100_000;

export const isText = (mediaType: string) =>
  mediaType.startsWith('text/') || mediaType === 'application/json';

function kindOf({ mediaType }: FilePart): 'image' | 'audio' | 'embeddedContext' {
  if (PICTURES.has(mediaType)) return 'image';
  return mediaType.startsWith('audio/') ? 'audio' : 'embeddedContext';
}

/** Why the other side is not given the file; null: `fileBlock` gives it. */
export function blockRefusal(file: FilePart, can: PromptCapabilities): string | null {
  if (!can[kindOf(file)]) return 'your program takes no such files';
  const most = isText(file.mediaType) ? MOST_TEXT_BYTES : MOST_BYTES;
  return file.size > most ? `at most ${showBytes(most)} are shown` : null;
}

/** Rejects if the file cannot be read. */
export async function fileBlock(file: FilePart, content: AsyncIterable<Uint8Array>): Promise<ContentBlock> {
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  const { mediaType: mimeType } = file;
  const uri = `parley://blob/${file.sha256}/${encodeURIComponent(shownName(file))}`;
  const kind = kindOf(file);
  if (kind === 'image') return { type: kind, mimeType, data: bytes.toString('base64'), uri };
  if (kind === 'audio') return { type: kind, mimeType, data: bytes.toString('base64') };
  const text = isText(mimeType) ? decodeUtf8(bytes) : null;
  const resource =
    text === null ? { uri, mimeType, blob: bytes.toString('base64') } : { uri, mimeType, text };
  return { type: 'resource', resource };
}

/** The pictures and the sound in the result of a call; the line of each file is in its text. */
export function heardBlocks(
  files: readonly FilePart[],
  read: (file: FilePart) => Promise<AsyncIterable<Uint8Array>>,
): Promise<ContentBlock[]> {
  const media = files.filter((file) => kindOf(file) !== 'embeddedContext');
  return shownBlocks(media, async function* (file) {
    yield* await read(file);
  });
}

/** The files that an editor is shown: those that are too large, or cannot be read now, have only their line. */
export async function shownBlocks(
  files: readonly FilePart[],
  read: (file: FilePart) => AsyncIterable<Uint8Array>,
): Promise<ContentBlock[]> {
  const blocks: ContentBlock[] = [];
  for (const file of files) {
    if (blockRefusal(file, EVERYTHING) !== null) continue;
    const block = await fileBlock(file, read(file)).catch(() => null);
    if (block) blocks.push(block);
  }
  return blocks;
}

const EVERYTHING: PromptCapabilities = { image: true, audio: true, embeddedContext: true };

/** A file as the other side sends it. */
export interface SentFile {
  readonly name?: string;
  readonly mediaType?: string;
  readonly content: string;
  readonly isBase64: boolean;
}

/** ACP-BLOCKS-2; null: the block has no bytes. */
export function sentFile(block: ContentBlock): SentFile | null {
  if (block.type === 'image' || block.type === 'audio') {
    const name = 'uri' in block && block.uri ? nameIn(block.uri) : undefined;
    return { mediaType: block.mimeType, content: block.data, isBase64: true, ...(name && { name }) };
  }
  if (block.type !== 'resource') return null;
  const { resource } = block;
  const [name, mediaType] = [nameIn(resource.uri), resource.mimeType ?? undefined];
  const about = { ...(name && { name }), ...(mediaType !== undefined && { mediaType }) };
  return 'text' in resource
    ? { ...about, content: resource.text, isBase64: false }
    : { ...about, content: resource.blob, isBase64: true };
}

/** UTF-16 units, as in a post. */
const LONGEST_NAME = 255;

/** The last part of the path in an address. */
function nameIn(uri: string): string {
  const last = uri.split(/[?#]/)[0]?.split('/').at(-1) ?? '';
  return cut(wellFormed(percentDecoded(last)), LONGEST_NAME);
}

/** Null: they are no base64. */
export function bytesOf({ content, isBase64: isEncoded }: SentFile): Uint8Array | null {
  if (!isEncoded) return Buffer.from(content);
  return isBase64(content) ? Buffer.from(content, 'base64') : null;
}

/** The line of a file that is not kept. */
export function notKept(
  { name = '', mediaType = '', content, isBase64: isEncoded }: SentFile,
  why: string,
): string {
  const bytes = isEncoded ? Math.floor((content.length * 3) / 4) : Buffer.byteLength(content);
  const facts = [plainName(name), plainName(mediaType), showBytes(bytes)].filter((fact) => fact !== '');
  return `[file ${facts.join(', ')}: not kept: ${why}]`;
}

export const textBlock = (text: string): ContentBlock => ({ type: 'text', text });

/** UTF-16 units of an attached text that is quoted. A longer one is a file: it would fill each view. */
const LONGEST_QUOTED = 100_000;

/**
 * A prompt as the text of one message and its files. Links stay where they were written; attached texts follow the text, each in a fence,
 * so that nothing in them mentions an agent.
 */
export function postOf(blocks: readonly ContentBlock[]): {
  readonly text: string;
  readonly files: readonly SentFile[];
} {
  const attached: string[] = [];
  const files: SentFile[] = [];
  let text = '';
  let wasText = false;
  for (const block of blocks) {
    const file = sentFile(block);
    if (block.type === 'text') text += `${wasText ? '\n' : ''}${block.text}`;
    else if (block.type === 'resource_link') text += linkTo(block.uri, block.name);
    else if (isQuoted(block)) {
      text += linkTo(block.resource.uri);
      attached.push(`${block.resource.uri}:\n${fenced(block.resource.text)}`);
    } else if (file) files.push(file);
    wasText = block.type === 'text';
  }
  return { text: [text, ...attached].filter((part) => part !== '').join('\n\n'), files };
}

type Quoted = Extract<ContentBlock, { type: 'resource' }> & { readonly resource: { readonly text: string } };

function isQuoted(block: ContentBlock): block is Quoted {
  return (
    block.type === 'resource' && 'text' in block.resource && block.resource.text.length <= LONGEST_QUOTED
  );
}

function linkTo(uri: string, name: string = uri.replace(/.*\/(?=.)/, '')): string {
  return `[${name.replaceAll(/[[\]\n]/g, ' ')}](${uri})`;
}

/** The fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}
