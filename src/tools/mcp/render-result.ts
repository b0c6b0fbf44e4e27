import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { ToolFile } from '../../agents/tool-port.ts';
import { showBytes, UNKNOWN_TYPE } from '../../conversation/index.ts';
import { cut, parseJson, percentDecoded } from '../../kernel/index.ts';

/**
 * Renders the result of a tool as text for a model, with its files.
 *
 * RENDER-RESULT-1 Nothing is dropped silently: pictures, audio and binary resources are files, named where they are by number,
 *    type and size. Other content that is not text is named with its kind.
 * RENDER-RESULT-2 Structured content is left out only if a text is the same: as JSON, or alone in an object, as servers wrap
 *    what is no object: a text under any key, other values in `{"result": …}`.
 * RENDER-RESULT-3 Binary data in structured content is replaced by a line (BLOB-1, BLOB-2), also if a text repeats it as JSON.
 */

/** Parsed loosely: one invalid block must not drop the others. */
export const toolResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});
export type ToolResult = z.infer<typeof toolResult>;

const resource = z.object({
  uri: z.string(),
  mimeType: z.string().optional(),
  text: z.string().optional(),
  blob: z.string().optional(),
});

const block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal('resource'), resource }),
  z.object({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string(),
    mimeType: z.string().optional(),
    description: z.string().optional(),
    size: z.number().optional(),
  }),
]);
type Block = z.infer<typeof block>;

interface Rendered {
  readonly text: string;
  readonly isWords: boolean;
}

export function renderResult(result: ToolResult): {
  readonly text: string;
  readonly files: readonly ToolFile[];
} {
  const known = filesIn(result.content);
  const structured = structuredText(result, known);
  const blocks = result.content
    .map((given) => renderBlock(given, known))
    .map((rendered) =>
      structured !== null && repeats(rendered, result.structuredContent)
        ? { ...rendered, text: structured } // RENDER-RESULT-3
        : rendered,
    );
  const parts = blocks.map(({ text }) => text);
  if (structured !== null && !isSaid(result)) parts.push(structured); // RENDER-RESULT-2
  const files = [...known.values()].map(({ file }) => file);
  return { text: parts.filter((text) => text !== '').join('\n'), files };
}

/** RENDER-RESULT-2 */
function isSaid({ content, structuredContent }: ToolResult): boolean {
  const texts = content.flatMap((given) => {
    const { data } = block.safeParse(given);
    return data?.type === 'text' ? [data.text] : [];
  });
  const [[key, value] = [], more] = Object.entries(Object(structuredContent));
  const isWrapped = more === undefined && (typeof value === 'string' || key === 'result');
  const said = [...texts, texts.join('\n'), texts.join('')].flatMap((text) => [text, ...jsonIn(text)]);
  const lists = [texts, texts.flatMap(jsonIn)];
  return [structuredContent, ...(isWrapped ? [value] : [])].some((known) =>
    [...said, ...lists].some((one) => isDeepStrictEqual(one, known)),
  );
}

/** The value that a text is as JSON; none: it is no JSON. */
function jsonIn(text: string): unknown[] {
  const value = parseJson(text);
  return value === undefined ? [] : [value];
}

/** Null: no structured content. */
function structuredText({ structuredContent }: ToolResult, known: KnownFiles): string | null {
  if (structuredContent === undefined || structuredContent === null) return null;
  return JSON.stringify(withoutBlobs(structuredContent, known));
}

/** The files of a result by their base64, in order, each with the line that stands for it. */
type KnownFiles = ReadonlyMap<string, { readonly file: ToolFile; readonly line: string }>;

function filesIn(content: readonly unknown[]): KnownFiles {
  const known = new Map<string, { file: ToolFile; line: string }>();
  for (const given of content) {
    const { base64 = '', uri, mediaType = UNKNOWN_TYPE } = binaryOf(block.safeParse(given).data);
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.length === 0 || known.has(base64)) continue;
    const facts = [...(uri === undefined ? [] : [uri]), mediaType, showBytes(bytes.length)];
    const name = percentDecoded(uri?.split(/[?#]/)[0]?.split('/').at(-1) ?? '') || undefined;
    const line = `[file ${known.size + 1}: ${facts.join(', ')}]`;
    known.set(base64, { file: { bytes, name, mediaType }, line });
  }
  return known;
}

function binaryOf(known: Block | undefined): {
  base64?: string;
  uri?: string;
  mediaType?: string | undefined;
} {
  if (known?.type === 'image' || known?.type === 'audio')
    return { base64: known.data, mediaType: known.mimeType };
  if (known?.type !== 'resource' || known.resource.blob === undefined) return {};
  const { blob, uri, mimeType } = known.resource;
  return { base64: blob, uri, mediaType: mimeType };
}

/** Whether the text is the structured content as JSON and contains binary data. */
function repeats({ text, isWords }: Rendered, structuredContent: unknown): boolean {
  if (!isWords) return false;
  return jsonIn(text).some(
    (value) =>
      isDeepStrictEqual(value, structuredContent) &&
      !isDeepStrictEqual(value, withoutBlobs(value, new Map())),
  );
}

function renderBlock(given: unknown, known: KnownFiles): Rendered {
  const parsed = block.safeParse(given);
  const line = known.get(binaryOf(parsed.data).base64 ?? '')?.line;
  if (line !== undefined) return { text: line, isWords: false };
  return parsed.success ? renderKnown(parsed.data) : { text: `[${kindOf(given)}: not kept]`, isWords: false };
}

function renderKnown(known: Block): Rendered {
  switch (known.type) {
    case 'text':
      return { text: known.text, isWords: true };
    case 'image':
    case 'audio':
      return { text: notShown(known.mimeType, known.data), isWords: false };
    case 'resource':
      return renderResource(known.resource);
    case 'resource_link': {
      const facts = [known.mimeType, known.size === undefined ? undefined : showBytes(known.size)];
      const about = [known.uri, ...facts.filter((fact) => fact !== undefined)].join(', ');
      const words = known.description === undefined ? '' : `: ${known.description}`;
      return { text: `[link to ${known.name} (${about})${words}]`, isWords: false };
    }
  }
}

function renderResource({ uri, mimeType, text, blob }: z.infer<typeof resource>): Rendered {
  if (text !== undefined) return { text: `[${uri}]\n${text}`, isWords: true };
  return { text: notShown(mimeType ?? UNKNOWN_TYPE, blob ?? '', `${uri}, `), isWords: false };
}

/** RENDER-RESULT-1 */
function kindOf(given: unknown): string {
  const kind = typeof given === 'object' && given !== null && 'type' in given ? given.type : undefined;
  return typeof kind === 'string' ? `content of type ${cut(kind, 64)}` : 'content of no type';
}

/** BLOB-2, in characters. */
const LONG = 1_000;
const UNBROKEN = /^[A-Za-z0-9+/_-]+={0,2}$/;
const IN_LINES = /^(?:[A-Za-z0-9+/]{60,76}\r?\n)+[A-Za-z0-9+/]*={0,2}\s*$/;
const MIXED = [/[a-z]/, /[A-Z]/, /[0-9]/];
const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s;

/** The placeholder of data that is neither shown nor stored. */
function notShown(mimeType: string, base64: string, before = ''): string {
  return `[${before}${mimeType}, ${showBytes(Buffer.byteLength(base64.replaceAll(/\s/g, ''), 'base64'))}: not kept]`;
}

/**
 * Binary data in structured content, replaced by its type and size: a model cannot read base64, and a picture is
 * hundreds of thousands of tokens.
 *
 * BLOB-1  Data with a declared type is replaced at any size, also if it repeats a block of the content.
 * BLOB-2  A string without a type is replaced only if it is clearly base64: long, without words, not hex.
 */
function withoutBlobs(value: unknown, known: KnownFiles): unknown {
  if (typeof value === 'string') return textWithoutBlob(value, known);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((one) => withoutBlobs(one, known));
  const typed = typedBlob(value as Record<string, unknown>, known);
  if (typed !== null) return typed;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutBlobs(one, known)]));
}

/** BLOB-1: a block of content, or a resource. */
function typedBlob({ mimeType, data, blob, uri }: Record<string, unknown>, known: KnownFiles): string | null {
  const base64 = blob ?? data;
  if (typeof mimeType !== 'string' || typeof base64 !== 'string' || base64 === '') return null;
  if (/^(text\/|application\/json)/.test(mimeType) && blob === undefined) return null;
  if (!UNBROKEN.test(base64) && !IN_LINES.test(base64)) return null;
  return known.get(base64)?.line ?? notShown(mimeType, base64, typeof uri === 'string' ? `${uri}, ` : '');
}

function textWithoutBlob(text: string, known: KnownFiles): string {
  const [, urlType, urlData] = DATA_URL.exec(text) ?? [];
  const line = known.get(urlData ?? text)?.line;
  if (line !== undefined) return line;
  if (urlData !== undefined) return notShown(urlType || 'base64', urlData);
  return isBase64(text) ? notShown('base64', text) : text;
}

function isBase64(text: string): boolean {
  if (text.length < LONG || !(UNBROKEN.test(text) || IN_LINES.test(text))) return false;
  return MIXED.every((kind) => kind.test(text));
}
