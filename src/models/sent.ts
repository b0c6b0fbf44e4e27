import type { FileRule, WireForm } from '../agents/dialect-port.ts';
import {
  type AnswerBlock,
  blocksOf,
  type FilePart,
  shownName,
  type ViewMessage,
} from '../conversation/index.ts';
import { isReadable, readArguments, wellFormed } from '../kernel/index.ts';

/** What the encoders of all dialects make of an answer that is sent back, so that the strictest reader accepts it (DIALECT-4). */

/** The blocks of an own message: with what only their model understands, if `form` is for that model. */
export function ownBlocks(message: ViewMessage, form: WireForm): readonly AnswerBlock[] {
  return blocksOf(message, form.boundTo).flatMap(readable);
}

/** DIALECT-6 */
function readable(block: AnswerBlock): AnswerBlock[] {
  if (block.opaque === undefined || isReadable(block.opaque)) return [block];
  if (block.type === 'opaque') return [];
  const { opaque: _, ...plain } = block;
  return [plain];
}

/** Some providers want a letter or `_` first (DIALECT-4). */
export function wireName(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_');
  return (/^[a-z_]/i.test(plain) ? plain : `_${plain}`).slice(0, 64);
}

/** As the model wrote them, if every reader accepts that; else the result that follows says what was wrong (DIALECT-4). */
export function wireArguments(given: string): string {
  const text = wellFormed(given);
  if (!readArguments(text).ok) return JSON.stringify({ unreadable: text });
  return text.trim() === '' ? '{}' : text.replaceAll(ESCAPE, wholeEscape);
}

/** A whole pair, half a pair, or any other escape of a JSON text. */
const ESCAPE = /\\(?:ud[89ab]..\\ud[c-f]..|u(d[89a-f]..)|.)/gi;

function wholeEscape(given: string, half: string | undefined): string {
  return half === undefined ? given : '\\ufffd';
}

export const IMAGE_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

const MIB = 1024 * 1024;

/**
 * What the encoders of all dialects make of files. `docs/guides/model-providers.md` gives the sources of the limits.
 *
 * As base64 within 32 MB, the least of the limits.
 */
export const FILES_OF_REQUEST = { most: 20, maxBytes: 20 * MIB } as const;

/** A page has about 50 kB, 1,000 tokens of text, and a picture of it; providers take 100 pages or more. */
export const PDF: FileRule = {
  types: ['application/pdf'],
  maxBytes: FILES_OF_REQUEST.maxBytes,
  tokens: ({ size }) => Math.min(150_000, 1_500 + size / 30),
};

/** As OpenAI counts: squares of 512 pixels, after the shorter side is reduced to 768 and the longer one to 2,048. */
export function tilesOf({ width = 2_048, height = 768 }: FilePart): number {
  const within = Math.min(1, 2_048 / Math.max(width, height));
  const scale = within * Math.min(1, 768 / (within * Math.min(width, height)));
  return 85 + 170 * Math.ceil((scale * width) / 512) * Math.ceil((scale * height) / 512);
}

/** Providers want the ending of a name. */
export function documentName(file: FilePart): string {
  const name = shownName(file).replaceAll('/', '_');
  return /\.pdf$/i.test(name) ? name : `${name}.pdf`;
}
