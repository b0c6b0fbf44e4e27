import { foldCase, type Refusal, refusal } from '../../kernel/index.ts';
import { reportedText } from '../log/answer.ts';
import { type Entry, type MessageEntry, wireCallId } from '../log/entry.ts';
import { fileLine, filesOf } from '../log/parts.ts';
import { rangesOf, rangesText } from '../log/ranges.ts';
import { attribution, escapeMarkers, escapeRecalled } from '../text/text.ts';
import { AgentView, type ViewPolicy } from '../view/view.ts';

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
      : yield* searchLog(log, range, request.query, request.to);
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
  const skipped: number[] = [];
  let space = RECALL_CHARACTERS;
  let next: object | null = null;
  for (let index = from; index <= to && next === null; index++) {
    if ((index - from) % STEP === STEP - 1) yield;
    const entry = log.read(index);
    const start = index === from ? offset : 0;
    if (start > 0 && start >= (entry?.text.length ?? 0)) return pastTheText(index, start, entry);
    if (entry === null) {
      skipped.push(index);
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
  const unshown = rangesText(rangesOf(skipped, () => false));
  if (unshown !== '') lines.push(`--- entries with nothing that you can be shown: ${unshown}`);
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

const MOST_HITS = 20;
const MOST_TERMS = 16;
/** Characters to search before the generator yields. */
const STEP_CHARACTERS = 64 * 1024;
/** More occurrences in one entry do not change its rank. */
const MOST_OCCURRENCES = 20;
const SNIPPET = 240;
/** The usual constants of BM25, k1 and b. */
const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

interface Term {
  /** In folded case: one word, or those of a phrase. Searched for as text, not as a pattern. */
  readonly words: readonly string[];
  readonly required: boolean;
}

interface Hit {
  readonly index: number;
  readonly length: number;
  /** Occurrences of each term. */
  readonly counts: readonly number[];
}

/** The result of a scan: the hits, and the totals that their rank depends on. */
interface Scan {
  readonly hits: Hit[];
  /** For each term, the number of hits that contain it. */
  readonly holders: number[];
  entries: number;
  characters: number;
}

/**
 * Finds the entries of a range that contain certain words: the best first (BM25), the newer first among equals.
 *
 * RECALL-SEARCH-1 Case is ignored. A match inside a longer word counts half, since some languages form compounds.
 * RECALL-SEARCH-2 A quoted phrase must be in the entry, word after word, with any blanks between; of the other words one
 *                 is enough.
 * RECALL-SEARCH-3 Memory: nothing is kept of an entry that does not match, and only counts of one that does.
 * RECALL-SEARCH-4 The answer does not contain the length of the log, which grows with each search: a loop of them has equal
 *                 results (REPEATED-CALLS-1).
 */
function* searchLog(
  log: RecalledLog,
  range: IndexRange,
  query: string,
  end: number | string = 'the newest',
): Generator<void, string | Refusal> {
  const terms = termsOf(query);
  if (terms.length === 0) return refusal('INVALID_ARGUMENTS', 'query: there is no word in it');
  if (terms.length > MOST_TERMS) {
    return refusal('INVALID_ARGUMENTS', `query: ${terms.length} words are more than ${MOST_TERMS}`);
  }
  const scan = yield* scanLog(log, range, terms);
  const best = bestOf(scan);
  const where = range.from === end ? `in entry ${end}` : `in entries ${range.from} to ${end}`;
  const sought = JSON.stringify(query);
  const [first] = best;
  if (!first) return `--- recall found ${sought} nowhere ${where} that you can be shown`;
  const lines = best.flatMap(({ index, leading }) => {
    const entry = log.readOnce(index);
    return entry ? [snippetOf(entry, terms[leading])] : [];
  });
  const count = scan.hits.length === 1 ? '1 entry' : `${scan.hits.length} entries`;
  const shown = scan.hits.length > best.length ? `; the best ${best.length}` : '';
  return [
    `--- recall found ${sought} in ${count} of those ${where}${shown}:`,
    ...lines,
    `--- recall reads one in full: call it with ${JSON.stringify({ from: first.index, to: first.index })}`,
  ].join('\n');
}

/** Words and phrases, each once. */
function termsOf(query: string): Term[] {
  const terms = new Map<string, Term>();
  for (const [, phrase, word] of foldCase(query).matchAll(/["“”]([^"“”]*)["“”]|([^\s"“”]+)/gu)) {
    const words = (phrase ?? trimmed(word ?? '')).split(/\s+/u).filter((one) => one !== '');
    if (words.length === 0) continue;
    const required = phrase !== undefined;
    terms.set(`${required} ${words.join(' ')}`, { words, required });
  }
  return [...terms.values()];
}

/** Removes punctuation around a word, unless the word is only punctuation. */
function trimmed(word: string): string {
  return word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') || word;
}

function* scanLog(log: RecalledLog, range: IndexRange, terms: readonly Term[]): Generator<void, Scan> {
  const scan: Scan = { hits: [], holders: terms.map(() => 0), entries: 0, characters: 0 };
  let steps = 0;
  let characters = 0;
  for (let index = range.from; index <= range.to; index++) {
    if (++steps >= STEP || characters >= STEP_CHARACTERS) {
      yield;
      steps = 0;
      characters = 0;
    }
    const entry = log.readOnce(index);
    if (entry === null) continue;
    const text = foldCase(entry.label + entry.text);
    characters += text.length;
    scan.entries++;
    scan.characters += text.length;
    const counts = countsIn(text, terms);
    if (counts === null) continue;
    scan.hits.push({ index, length: text.length, counts });
    counts.forEach((count, term) => {
      if (count > 0) scan.holders[term] = (scan.holders[term] ?? 0) + 1;
    });
  }
  return scan;
}

/** Null: no match (RECALL-SEARCH-2). */
function countsIn(text: string, terms: readonly Term[]): number[] | null {
  let matches = false;
  const counts: number[] = [];
  for (const term of terms) {
    const count = occurrences(text, term);
    if (count > 0) matches = true;
    else if (term.required) return null;
    counts.push(count);
  }
  return matches ? counts : null;
}

function occurrences(text: string, term: Term): number {
  let count = 0;
  let from = 0;
  for (let seen = 0; seen < MOST_OCCURRENCES; seen++) {
    const found = find(text, term, from);
    if (!found) break;
    const isPart = isOfAWord(text, found.start - 1) || isOfAWord(text, found.end);
    count += isPart ? 0.5 : 1;
    from = found.end;
  }
  return count;
}

/** The next occurrence of a term from a position on, in a text in folded case. */
function find(text: string, { words }: Term, from: number): { start: number; end: number } | null {
  const [first = '', ...others] = words;
  for (let start = text.indexOf(first, from); start >= 0; start = text.indexOf(first, start + 1)) {
    let end = start + first.length;
    const follows = others.every((word) => {
      const next = afterBlanks(text, end);
      if (next === end || !text.startsWith(word, next)) return false;
      end = next + word.length;
      return true;
    });
    if (follows) return { start, end };
  }
  return null;
}

function afterBlanks(text: string, at: number): number {
  let end = at;
  while (end < text.length && /\s/u.test(text.charAt(end))) end++;
  return end;
}

const WORD_CHARACTER = /[\p{L}\p{N}_]/u;

/** Whether a position of a text in folded case is part of a word. */
function isOfAWord(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  if (unit >= 0x80) return WORD_CHARACTER.test(text.charAt(at));
  return (unit >= 0x61 && unit <= 0x7a) || (unit >= 0x30 && unit <= 0x39) || unit === 0x5f;
}

interface RankedHit {
  readonly index: number;
  readonly score: number;
  /** The term with the highest score. */
  readonly leading: number;
}

/** Hits come in log order: among equals the newer one goes first. */
function bestOf({ hits, entries, characters, holders }: Scan): RankedHit[] {
  const average = characters / Math.max(1, entries);
  const weights = holders.map((count) => Math.log(1 + (entries - count + 0.5) / (count + 0.5)));
  const ranked = hits.map((hit) => rank(hit, weights, average));
  return ranked.sort((one, other) => other.score - one.score || other.index - one.index).slice(0, MOST_HITS);
}

function rank({ index, length, counts }: Hit, weights: readonly number[], average: number): RankedHit {
  const slowness = SATURATION * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * length) / average);
  const scores = counts.map(
    (count, term) => ((weights[term] ?? 0) * count * (SATURATION + 1)) / (count + slowness),
  );
  const score = scores.reduce((sum, one) => sum + one, 0);
  return { index, score, leading: scores.indexOf(Math.max(...scores)) };
}

/** One line around the first occurrence of the term. */
function snippetOf(entry: RecalledEntry, term: Term | undefined): string {
  const { text } = entry;
  const found = term ? (find(foldCase(text), term, 0)?.start ?? 0) : 0;
  const from = text.length <= SNIPPET ? 0 : Math.max(0, Math.min(found - SNIPPET / 3, text.length - SNIPPET));
  const words = text.slice(from, from + SNIPPET).replace(/[\s\p{Cc}]+/gu, ' ');
  const cut = words.replace(/^\p{Surrogate}|\p{Surrogate}$/gu, '');
  return `${headingOf(entry)}${from > 0 ? '… ' : ''}${cut}${from + SNIPPET < text.length ? ' …' : ''}`;
}

export interface RecalledEntry {
  readonly index: number;
  readonly createdAt: string;
  /** The author, with a colon and a blank; empty for a notice, which contains its own heading. */
  readonly label: string;
  /** In full. */
  readonly text: string;
}

/** Both ends included. */
export interface IndexRange {
  readonly from: number;
  readonly to: number;
}

/** Entries to process before the generator yields. */
const STEP = 500;

const RECALL = 'recall';

/**
 * One conversation's log, as one agent may read it entry by entry.
 *
 * RECALLED-LOG-1 It contains what the agent's views contain, or will contain without being named first: nothing withheld
 *                (V1), nothing hidden (V5), no call or result of another agent (L18).
 * RECALLED-LOG-2 The words are those of the view. Own results and reported calls are complete even if the view shortens or omits them.
 * RECALLED-LOG-3 No line of an entry can pass for one of `recall` itself (L17).
 */
class RecalledLog {
  readonly #entries: readonly Entry[];
  readonly #policy: ViewPolicy;
  readonly #view: AgentView;

  constructor(entries: readonly Entry[], agent: string, policy: ViewPolicy) {
    this.#entries = entries;
    this.#policy = policy;
    this.#view = new AgentView(entries, agent, policy);
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Folds the log. Run it to its end before the first read. */
  *fold(): Generator<void, void> {
    for (let to = 0; to < this.#entries.length; yield) {
      to = Math.min(to + STEP, this.#entries.length);
      this.#view.catchUp(to);
    }
  }

  /** Null: this agent cannot be shown the entry (RECALLED-LOG-1). */
  read(index: number): RecalledEntry | null {
    const entry = this.#entries[index];
    if (!entry) return null;
    if (entry.type === 'message' && entry.role === 'tool') return this.#readResult(entry);
    if (!this.#view.knowledge.knows(entry)) return null;
    const words = this.#view.renderEntry(index);
    if (!words) return null;
    if (words.role === 'assistant') return this.#readOwn(entry, true);
    const name = attribution(entry.author, this.#policy.otherAgentsAs);
    const content =
      entry.type === 'message' && entry.reported ? name + wordsOf(entry) : (words.content ?? '');
    // A message without attribution cannot begin like one: that would have been escaped.
    if (content.startsWith(name)) return recalled(entry, name, content.slice(name.length));
    return recalled(entry, entry.type === 'message' ? `${entry.author.kind}: ` : '', content);
  }

  /** Like `read`, without earlier recalls of the agent: a search would find each word that they repeat. */
  readOnce(index: number): RecalledEntry | null {
    const entry = this.#entries[index];
    const found = this.read(index);
    if (!found || entry?.type !== 'message') return found;
    if (entry.role === 'tool') return this.#callOf(entry)?.function.name === RECALL ? null : found;
    return entry.tool_calls?.some((call) => call.function.name === RECALL)
      ? this.#readOwn(entry, false)
      : found;
  }

  #readOwn(entry: Entry, withRecalls: boolean): RecalledEntry | null {
    if (entry.type !== 'message') return null;
    const calls = (entry.tool_calls ?? []).map(({ function: { name, arguments: given } }, position) =>
      name === RECALL && !withRecalls
        ? ''
        : `call ${wireCallId({ index: entry.index, position })}: ${name} ${given}`,
    );
    const lines = [wordsOf(entry), ...calls.map(escapeMarkers)].filter((line) => line !== '');
    return recalled(entry, 'you: ', lines.join('\n'));
  }

  /** Only the result that the view shows after the call (V7). */
  #readResult(entry: MessageEntry): RecalledEntry | null {
    const call = this.#callOf(entry);
    if (!call || !entry.call) return null;
    const label = `result of ${wireCallId(entry.call)}, ${call.function.name}: `;
    return recalled(entry, label, escapeMarkers(entry.content ?? ''));
  }

  /** The own call that this entry answers. */
  #callOf({ index, call: place }: MessageEntry) {
    if (!place) return undefined;
    const asked = this.#entries[place.index];
    if (asked?.type !== 'message' || !this.#view.knowledge.knows(asked)) return undefined;
    if (this.#view.knowledge.resultsOf(place.index)[place.position] !== index) return undefined; // L18, V7
    return asked.tool_calls?.[place.position];
  }
}

/** With all that it reports (RECALLED-LOG-2). */
function wordsOf({ content, reported }: MessageEntry): string {
  return escapeMarkers(
    [content ?? '', reportedText(reported, true)].filter((text) => text !== '').join('\n'),
  );
}

function recalled(entry: Entry, label: string, text: string): RecalledEntry {
  const { index, createdAt } = entry;
  const files = filesOf(entry).map(fileLine);
  const lines = [text, ...files].filter((line) => line !== '');
  return { index, createdAt, label, text: escapeRecalled(lines.join('\n')) };
}

/** The beginning of an entry's first line. Its text follows on the same line, so that no text can imitate a heading. */
function headingOf({ index, createdAt, label }: RecalledEntry): string {
  return `--- entry ${index} · ${createdAt} · ${label}`;
}
