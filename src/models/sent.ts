import type { WireForm } from '../agents/dialect-port.ts';
import { type AnswerBlock, blocksOf, type ViewMessage } from '../conversation/index.ts';
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
