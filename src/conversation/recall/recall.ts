import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Entry } from '../log/entry.ts';
import { escapeMarkers, escapeRecalled } from '../text/text.ts';
import type { ViewPolicy } from '../view/view-parts.ts';
import { searchLog } from './recall-search.ts';
import { headingOf, type IndexRange, type RecalledEntry, RecalledLog, STEP } from './recalled-log.ts';

/**
 * Lets an agent read its conversation: entries by index, or entries that contain certain words.
 *
 * RECALL-1 An answer always fits into a result that is stored in full, whatever characters it contains.
 * RECALL-2 The answer names entries that this agent cannot be shown, and how to continue after a cut.
 * RECALL-3 Long work is done in steps, so that the caller can run other work between them.
 */

export interface RecallRequest {
  /** First and last index, both included. Default: from the first entry, to the last. */
  readonly from?: number;
  readonly to?: number;
  /** Words to search in that range. */
  readonly query?: string;
  /** Position in the text of entry `from` at which to begin. */
  readonly offset?: number;
}

export type RecallAnswer =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly refusal: Refusal };

/** RECALL-1: a character has at most 3 bytes, so a page stays below 51,200 bytes, above which a result becomes a preview. */
export const RECALL_CHARACTERS = 16_000;

/** Yields after each short step, and returns the answer (RECALL-3). */
export function* recall(
  entries: readonly Entry[],
  agent: string,
  policy: ViewPolicy,
  request: RecallRequest,
): Generator<void, RecallAnswer> {
  const range = rangeOf(request, entries.length);
  if ('code' in range) return { ok: false, refusal: range };
  const log = new RecalledLog(entries, agent, policy);
  yield* log.fold();
  const found =
    request.query === undefined
      ? yield* readRange(log, range, request)
      : yield* searchLog(log, range, request.query);
  return typeof found === 'string' ? { ok: true, text: found } : { ok: false, refusal: found };
}

function rangeOf({ from, to, query, offset }: RecallRequest, length: number): IndexRange | Refusal {
  const last = length - 1;
  const wrong = (message: string) => refusal('INVALID_ARGUMENTS', message);
  if (from === undefined && to === undefined && query === undefined) {
    return wrong(
      `say which entries (from, to) or what to look for (query); the log has entries 0 to ${last}`,
    );
  }
  if (offset !== undefined && (from === undefined || query !== undefined)) {
    return wrong('offset is the place in the entry that from names, and goes with no query');
  }
  const range = { from: from ?? 0, to: Math.min(to ?? last, last) };
  if (to !== undefined && range.from > to) return wrong(`from ${range.from} is greater than to ${to}`);
  if (range.from > last) {
    return refusal('PAST_THE_END', `there is no entry ${range.from}: the log has entries 0 to ${last}`);
  }
  return range;
}

function* readRange(
  log: RecalledLog,
  { from, to }: IndexRange,
  { to: asked, offset = 0 }: RecallRequest,
): Generator<void, string | Refusal> {
  const lines: string[] = [];
  const skipped = new IndexRanges();
  let space = RECALL_CHARACTERS;
  let next: object | null = null;
  for (let index = from; index <= to && next === null; index++) {
    if ((index - from) % STEP === STEP - 1) yield;
    const entry = log.read(index);
    const start = index === from ? offset : 0;
    if (start > 0 && start >= (entry?.text.length ?? 0)) return pastTheText(index, start, entry);
    if (entry === null) {
      skipped.add(index);
      continue;
    }
    const rest = pieceOf(entry, start, Number.POSITIVE_INFINITY);
    if (rest.text.length <= space) {
      lines.push(rest.text);
      space -= rest.text.length + 1;
    } else if (lines.length > 0) {
      next = { from: index, to };
    } else {
      const piece = pieceOf(entry, start, space);
      lines.push(piece.text);
      next = { from: index, to, offset: piece.end };
    }
  }
  if (!skipped.isEmpty) lines.push(`--- entries with nothing that you can be shown: ${skipped}`);
  if (next) lines.push(`--- recall continues: call it again with ${JSON.stringify(next)}`);
  else if (asked !== undefined && asked > to) lines.push(`--- entry ${to} is the last one`);
  return lines.join('\n');
}

function pastTheText(index: number, offset: number, entry: RecalledEntry | null): Refusal {
  const what = entry ? `has ${entry.text.length} characters` : 'holds nothing that you can be shown';
  return refusal('PAST_THE_END', `offset ${offset} is past the end: entry ${index} ${what}`);
}

/** The text of an entry from a position on, with its heading, in at most `space` characters; and the position where it ends. */
function pieceOf(entry: RecalledEntry, start: number, space: number): { text: string; end: number } {
  const { text } = entry;
  const begin = isInsideCharacter(text, start) ? start - 1 : start;
  const mark = begin === 0 ? '' : `(from character ${begin} of ${text.length})\n`;
  const heading = headingOf(entry) + mark;
  const end = cutAt(text, begin, begin + space - heading.length);
  const words = text.slice(begin, end);
  // The piece may begin within a line: text that was harmless there may look like a marker at the start of a line.
  return { text: heading + (begin === 0 ? words : escapeRecalled(escapeMarkers(words))), end };
}

/** Cuts at the end of a line in the second half if there is one, and never within a character. */
function cutAt(text: string, begin: number, limit: number): number {
  if (limit >= text.length) return text.length;
  const line = text.lastIndexOf('\n', limit - 1) + 1;
  if (line > begin + (limit - begin) / 2) return line;
  return isInsideCharacter(text, limit) ? limit - 1 : limit;
}

function isInsideCharacter(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  return unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff;
}

/** Ascending indexes as ranges: `1, 3 to 5`. */
class IndexRanges {
  readonly #ranges: [number, number][] = [];

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  add(index: number): void {
    const last = this.#ranges.at(-1);
    if (last && last[1] === index - 1) last[1] = index;
    else this.#ranges.push([index, index]);
  }

  toString(): string {
    return this.#ranges.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(', ');
  }
}
