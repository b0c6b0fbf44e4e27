import { Readable } from 'node:stream';
import {
  contentOf,
  type FilePart,
  fileLine,
  filesOf,
  type OwnPublisher,
  type Part,
  readDataUrl,
  UNKNOWN_TYPE,
} from '../conversation/index.ts';
import { cut, isBase64, sha256Of } from '../kernel/index.ts';
import { digest } from './client-ids.ts';
import type { Request } from './context.ts';
import { fetchFile } from './fetch.ts';
import { refusedField } from './fields.ts';
import { ownUrl } from './guard/hosts.ts';

/**
 * Files in messages of the standard protocols.
 *
 * GATEWAY-FILES-1 A message is read whole before a byte of it is stored or fetched.
 * GATEWAY-FILES-2 What a protocol cannot carry is named in its texts by one line, never dropped.
 * GATEWAY-FILES-3 An address of this daemon names a stored file: a client that sends one back sends no bytes and nothing is fetched.
 */

/** A file as a client sends it: with its bytes, or where they are. */
export type SentFile = SentAs & ({ readonly bytes: Uint8Array } | { readonly url: string });
interface SentAs {
  readonly type: 'sent';
  /** The field of the request, for refusals. */
  readonly where: string;
  readonly name?: string | undefined;
  /** What its protocol says it must be. */
  readonly expects?: 'image' | 'audio' | undefined;
}
/** A part of a message as the log has it, or a file that is not stored yet. */
export type SentPart = Part | SentFile;

/** Most parts of one message that are stored. A post has the same limit. */
const MOST_PARTS = 64;

export function sentFile(url: string, as: Omit<SentAs, 'type'>): SentFile {
  const { where, expects } = as;
  if (/^https?:/i.test(url)) return { ...as, type: 'sent', url };
  const data = readDataUrl(url);
  if (data === null) {
    const seen = JSON.stringify(cut(url, 60));
    throw refusedField(where, `expected a data URL in base64, or a URL of http or https, got ${seen}`);
  }
  const { mediaType, base64 } = data;
  if (expects && !mediaType.startsWith(`${expects}/`) && mediaType !== UNKNOWN_TYPE)
    throw refusedField(where, `expected ${expects}/…, got ${cut(mediaType, 60)}`);
  return { ...as, type: 'sent', bytes: decoded(base64, where) };
}

function decoded(base64: string, where: string): Uint8Array {
  if (base64 === '') throw refusedField(where, 'the file has no bytes');
  if (isBase64(base64)) return Buffer.from(base64, 'base64');
  const wanted = 'expected letters, digits, + and /, with = at the end only';
  throw refusedField(where, `the base64 is broken: ${wanted}`);
}

/** A short name for the same bytes, or the same address: equal wherever a client repeats the file. */
export function referenceOf(url: string): string {
  const data = readDataUrl(url);
  return (data === null ? digest(url) : sha256Of(Buffer.from(data.base64, 'base64'))).slice(0, 12);
}

/** Stores what is not stored yet, in order. `anonymous`: the publisher of a caller without one. */
export async function keepParts(
  parts: readonly SentPart[],
  context: Request,
  anonymous: OwnPublisher,
): Promise<Part[]> {
  const last = parts[MOST_PARTS];
  if (last)
    throw refusedField('where' in last ? last.where : 'parts', `a message has at most ${MOST_PARTS} parts`);
  const kept: Part[] = [];
  for (const part of parts) kept.push(part.type === 'sent' ? await keep(part, context, anonymous) : part);
  return kept;
}

async function keep(sent: SentFile, context: Request, anonymous: OwnPublisher): Promise<FilePart> {
  const { identity, routes } = context.var;
  const { where, name, expects } = sent;
  const own = 'url' in sent ? storedAt(sent.url, baseOf(context)) : null;
  if (own !== null)
    return { type: 'file', sha256: own, ...(name && { name }), mediaType: UNKNOWN_TYPE, size: 0 };
  const options = { ...routes.fetch, maxBytes: routes.maxFileBytes, signal: context.req.raw.signal };
  const bytes = 'bytes' in sent ? sent.bytes : await fetchFile(sent.url, options);
  const publisher = identity.publisher ?? anonymous;
  const file = await routes
    .daemon(context)
    .keepFile(Readable.from([bytes]), { name, publisher }, { size: bytes.length });
  if (expects === undefined || file.mediaType.startsWith(`${expects}/`)) return file;
  throw refusedField(where, `expected ${expects}/…, and the bytes are ${file.mediaType}`);
}

export function postOf(parts: readonly Part[]): {
  readonly content: string;
  readonly parts?: readonly Part[];
} {
  const hasFiles = parts.some(({ type }) => type === 'file');
  return { content: contentOf(parts), ...(hasFiles && { parts }) };
}

/** This daemon as its client knows it (HOSTS-3). */
export function baseOf({ req, var: { routes } }: Request): string {
  return ownUrl(req.header('host'), routes.known);
}

const OWN_PATH = String.raw`/api/conversations/[\w-]{1,128}/blobs/`;

/** GATEWAY-FILES-3; null: elsewhere. */
function storedAt(url: string, base: string): string | null {
  if (!url.startsWith(`${base}/`)) return null;
  return new RegExp(`^${OWN_PATH}([0-9a-f]{64})$`).exec(url.slice(base.length))?.[1] ?? null;
}

export type AddressOf = (file: FilePart) => string;

/** Where readers of a conversation get its files. */
export function addressOf(base: string, conversation: string): AddressOf {
  return ({ sha256 }) => `${base}/api/conversations/${conversation}/blobs/${sha256}`;
}

/** GATEWAY-FILES-2: the files of an entry, each in one line, with its address if that is known; empty: none. */
export function fileLines(entry: Parameters<typeof filesOf>[0], address?: AddressOf): string {
  const lines = filesOf(entry).map((file) => fileLine(file) + (address ? ` ${address(file)}` : ''));
  return lines.join('\n');
}

/** What `fileLines` writes, without addresses: a client may know this daemon by several names. */
export function withoutAddresses(text: string): string {
  return text.replaceAll(new RegExp(` \\S+${OWN_PATH}[0-9a-f]{64}`, 'g'), '');
}
