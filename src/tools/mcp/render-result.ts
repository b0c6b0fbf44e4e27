import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { showBytes, UNKNOWN_TYPE } from '../../conversation/index.ts';
import { cut, parseJson } from '../../kernel/index.ts';

/**
 * Renders the result of a tool as text for a model.
 *
 * RENDER-RESULT-1 Nothing is dropped silently: content that is not text is named with its kind and size.
 * RENDER-RESULT-2 Structured content is left out only if a text is the same: as JSON, or alone in an object, as servers wrap
 *    what is no object: a text under any key, other values in `{"result": …}`.
 * RENDER-RESULT-3 Binary data in structured content is removed (BLOB-1, BLOB-2), also if a text repeats it as JSON.
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

export function renderResult(result: ToolResult): string {
  const structured = structuredText(result);
  const blocks = result.content
    .map((given) => renderBlock(given))
    .map((rendered) =>
      structured !== null && repeats(rendered, result.structuredContent)
        ? { ...rendered, text: structured } // RENDER-RESULT-3
        : rendered,
    );
  const parts = blocks.map(({ text }) => text);
  if (structured !== null && !isSaid(result)) parts.push(structured); // RENDER-RESULT-2
  return parts.filter((text) => text !== '').join('\n');
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
function structuredText({ content, structuredContent }: ToolResult): string | null {
  if (structuredContent === undefined || structuredContent === null) return null;
  return JSON.stringify(withoutBlobs(structuredContent, blobsOf(content)));
}

/** The binary data of a result's blocks, with their types. */
function blobsOf(content: readonly unknown[]): ReadonlyMap<string, string> {
  const known = content.flatMap((given) => {
    const { data } = block.safeParse(given);
    if (data?.type === 'image' || data?.type === 'audio') return [[data.data, data.mimeType] as const];
    if (data?.type !== 'resource' || data.resource.blob === undefined) return [];
    return [[data.resource.blob, data.resource.mimeType ?? UNKNOWN_TYPE] as const];
  });
  return new Map(known);
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

function renderBlock(given: unknown): Rendered {
  const parsed = block.safeParse(given);
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

/**
 * Binary data in structured content, replaced by its type and size: a model cannot read base64, and a picture is
 * hundreds of thousands of tokens.
 *
 * BLOB-1  Data with a declared type is replaced at any size, also if it repeats a block of the content.
 * BLOB-2  A string without a type is replaced only if it is clearly base64: long, without words, not hex.
 */

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

/** `known`: the data of the content's blocks, with their types. */
function withoutBlobs(value: unknown, known: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return textWithoutBlob(value, known);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((one) => withoutBlobs(one, known));
  const typed = typedBlob(value as Record<string, unknown>);
  if (typed !== null) return typed;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withoutBlobs(one, known)]));
}

/** BLOB-1: a block of content, or a resource. */
function typedBlob({ mimeType, data, blob, uri }: Record<string, unknown>): string | null {
  const base64 = blob ?? data;
  if (typeof mimeType !== 'string' || typeof base64 !== 'string' || base64 === '') return null;
  if (/^(text\/|application\/json)/.test(mimeType) && blob === undefined) return null;
  if (!UNBROKEN.test(base64) && !IN_LINES.test(base64)) return null;
  return notShown(mimeType, base64, typeof uri === 'string' ? `${uri}, ` : '');
}

function textWithoutBlob(text: string, known: ReadonlyMap<string, string>): string {
  const [, urlType, urlData] = DATA_URL.exec(text) ?? [];
  if (urlData !== undefined) return notShown(urlType || 'base64', urlData);
  const mimeType = known.get(text);
  if (mimeType !== undefined) return notShown(mimeType, text);
  return isBase64(text) ? notShown('base64', text) : text;
}

function isBase64(text: string): boolean {
  if (text.length < LONG || !(UNBROKEN.test(text) || IN_LINES.test(text))) return false;
  return MIXED.every((kind) => kind.test(text));
}
