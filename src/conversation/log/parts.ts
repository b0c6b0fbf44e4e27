import { plainName } from '../text/look-alikes.ts';
import { escapeTokens } from '../text/text.ts';
import type { Entry, FilePart, MessageEntry, Part } from './entry.ts';

export type { FilePart, Part } from './entry.ts';

/**
 * The parts of a message that is more than one text (docs/spec/entries.md).
 *
 * PARTS-1 `content` is the texts of the parts, joined by line breaks: what reads only text needs nothing else.
 * PARTS-2 An entry names bytes by their SHA-256 and never contains them. They are durable before an entry names them.
 * PARTS-3 `mediaType`, `size`, `width` and `height` are what the daemon found in the bytes; `name` is as the sender gave it.
 */

/** The files of an entry or a message, in order. */
export function filesOf(
  entry: Entry | { readonly parts?: readonly Part[] | undefined },
): readonly FilePart[] {
  const parts = 'parts' in entry ? entry.parts : undefined;
  return parts?.filter((part) => part.type === 'file') ?? [];
}

/** By hash, each file that these entries name, and the index of the first one that does. */
export function filesIn(entries: readonly Entry[]): Map<string, readonly [index: number, file: FilePart]> {
  const found = new Map<string, readonly [number, FilePart]>();
  for (const entry of entries)
    for (const file of filesOf(entry))
      if (!found.has(file.sha256)) found.set(file.sha256, [entry.index, file]);
  return found;
}

/** PARTS-1 */
export function contentOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** The parts of a message with this text and these files; undefined: it has no files. */
export function partsOf(text: string, files: readonly FilePart[] = []): Part[] | undefined {
  if (files.length === 0) return undefined;
  return [...(text === '' ? [] : [{ type: 'text', text } as const]), ...files];
}

/** The media type of bytes that no rule knows. */
export const UNKNOWN_TYPE = 'application/octet-stream';

/** Digits of a hash that name a file within one conversation, as in `@blob/3fa98c01be22`. */
const SHORT = 12;

function blobPath({ sha256 }: Pick<FilePart, 'sha256'>): string {
  return `@blob/${sha256.slice(0, SHORT)}`;
}

/** The name of a file in one line; without a name, its type. */
export function shownName({ name, mediaType }: FilePart): string {
  return plainName(name ?? '') || mediaType;
}

const BLOB_PATH = new RegExp(`^@blob/([0-9a-f]{${SHORT},64})$`);

/** The beginning of the hash that a path of this form names; null: it has another form. */
export function hashInPath(path: string): string | null {
  return BLOB_PATH.exec(path)?.[1] ?? null;
}

/** A file in one line, for agents and for displays without pictures: `[file plan.png: image/png, 120 kB, @blob/3fa98c01be22]` (L17). */
export function fileLine(file: FilePart): string {
  return lineOf(file, '');
}

/** The line of a file whose content is not there to see, and why. */
export function unseenFileLine(file: FilePart, why: string): string {
  return lineOf(file, `; ${why}`);
}

function lineOf(file: FilePart, note: string): string {
  const [name, type] = [file.name ?? '', file.mediaType].map((text) => escapeTokens(plainName(text)));
  const facts = `${type}, ${showBytes(file.size)}, ${blobPath(file)}`;
  return `[file${name && ` ${name}`}: ${facts}${note}]`;
}

/** The text of a message and its files, each in one line. */
export function withFileLines(entry: {
  readonly content: string | null;
  readonly parts?: readonly Part[] | undefined;
}): string {
  return [entry.content ?? '', ...filesOf(entry).map(fileLine)].filter((line) => line !== '').join('\n');
}

export function showBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 999_500 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** The path of the stored output of an entry, as its text shows it. */
export function outputPath(conversation: string, entry: string): string {
  return `@state/logs/tool-results/${conversation}/${entry}.json`;
}

const STORED = /@state\/logs\/tool-results\/[\w-]{1,128}\/([\w-]{1,128})\.json/g;

/** The outputs of entries that the reasoning of an answer and the arguments of its calls name. */
export function outputsBeside({ reasoning = '', tool_calls: calls = [] }: MessageEntry): string[] {
  const texts = [reasoning, ...calls.map((call) => call.function.arguments)];
  return texts.flatMap((text) => [...text.matchAll(STORED)].map(([, id = '']) => id));
}
