import {
  type Entry,
  eventText,
  fileLine,
  filesOf,
  type LiveChunk,
  type MessageEntry,
  splitMessage,
} from '../../client/index.ts';
import { concernsPeople, endNotices, oneLine, questions, renderModelFailure, toolCalls } from './entry.ts';
import { HANGING, hang, type Palette, printable } from './text.ts';

export interface TranscriptOptions {
  readonly palette: Palette;
  /** The text before an agent's answer; may be empty. */
  readonly label: (agent: string) => string;
  /** Tool calls and notices too, not words alone. */
  readonly details: boolean;
  /** Exempts the agents without a label from TRANSCRIPT-4: a program reads their words unchanged. */
  readonly verbatim?: boolean;
}

/** The words of one model call, as far as they are known. */
interface Speech {
  readonly agent: string;
  readonly turnId: string;
  readonly call: string;
  /** Whole from its first chunk up to `next` (TRANSCRIPT-3). */
  text: string;
  next: number;
  broken: boolean;
}

/**
 * Turns entries and live chunks into the text of a conversation as it happens.
 *
 * TRANSCRIPT-1 Every word of an answer appears once: what was shown live is not repeated when its entry arrives, and
 *    what the live feed lost is added from the entry.
 * TRANSCRIPT-2 One answer streams at a time: the output of other agents waits until that answer is complete.
 * TRANSCRIPT-3 Only an unbroken beginning is shown live: after a lost chunk the rest waits for the entry.
 * TRANSCRIPT-4 Every line at the left margin begins with its author or a mark of Parley: later lines of a text are set in.
 *
 * Each function returns what to write next.
 */
export class Transcript {
  readonly #options: TranscriptOptions;
  /** The unfinished call of each turn; a newer call of the same turn takes its place. */
  readonly #speeches = new Map<string, Speech>();
  /** Calls and turns of which no chunk is news any more. */
  readonly #finished = new Set<string>();
  readonly #waiting: string[] = [];
  /** `atLineStart`: the last character that was printed is a newline. */
  #floor: { readonly speech: Speech; shown: string; atLineStart: boolean } | null = null;

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  /** True while an answer is on the screen unfinished. */
  get speaking(): boolean {
    return this.#floor !== null;
  }

  live(agent: string, chunk: LiveChunk): string {
    if (this.#finished.has(chunk.call) || this.#finished.has(chunk.turnId)) return '';
    const { speech, before } = this.#speechOf(agent, chunk);
    speech.broken ||= chunk.n !== speech.next;
    speech.next++;
    if (speech.broken || chunk.type !== 'text' || chunk.delta === '') return before;
    speech.text += chunk.delta;
    if (this.#floor === null) return before + this.#take(speech);
    if (this.#floor.speech !== speech) return before; // TRANSCRIPT-2
    this.#floor.shown += chunk.delta;
    return before + this.#next(this.#floor, chunk.delta);
  }

  entry(entry: Entry): string {
    if (entry.type === 'message') return this.#message(entry);
    const over = entry.type === 'turn-ended' && entry.outcome !== 'waiting';
    const before = over ? this.#endTurn(entry.turnId) : '';
    if (!this.#options.details || !concernsPeople(entry)) return before;
    return before + this.#say(`${this.#options.palette.dim(`· ${hang(printable(eventText(entry)))}`)}\n`);
  }

  /** Ends an open line and returns the output that waits. An answer that continues afterwards is printed again. */
  close(): string {
    this.#speeches.clear();
    return this.#floor === null ? '' : `\n${this.#yieldFloor()}`;
  }

  #message(entry: MessageEntry): string {
    if (entry.role === 'tool') return '';
    if (entry.author.kind === 'agent') return this.#answer(entry);
    const name = this.#options.palette.bold(oneLine(entry.author.name));
    const said = [entry.content ?? '', ...filesOf(entry).map(fileLine)].filter((part) => part !== '');
    return this.#say(`${name}: ${hang(printable(said.join('\n')))}\n`);
  }

  #answer(entry: MessageEntry): string {
    const { palette, details } = this.#options;
    const agent = entry.author.id;
    const speech = this.#speeches.get(entry.turnId ?? '');
    if (speech) this.#finish(speech);
    const { text, failure } = splitMessage(entry);
    const below = [
      ...filesOf(entry).map((file) => palette.dim(printable(fileLine(file)))),
      ...(failure ? [renderModelFailure(failure, palette)] : []),
      ...questions(entry, palette),
      ...(details ? [...toolCalls(entry, palette), ...endNotices(entry, palette)] : []),
    ].map((line) => `${line}\n`);
    if (speech && this.#floor?.speech === speech) {
      const { shown } = this.#floor;
      // TRANSCRIPT-1: the shown text is the beginning of the answer, unless the call was repeated while this was offline.
      const rest = text.startsWith(shown)
        ? this.#next(this.#floor, text.slice(shown.length))
        : `\n${this.#labelled(agent, text)}`;
      return `${rest}\n${below.join('')}${this.#yieldFloor()}`;
    }
    const words = text === '' ? '' : `${this.#labelled(agent, text)}\n`;
    return this.#say(words + below.join(''));
  }

  /** TRANSCRIPT-2: said at once, or when the floor is free. */
  #say(text: string): string {
    if (this.#floor === null) return text;
    this.#waiting.push(text);
    return '';
  }

  #take(speech: Speech): string {
    this.#floor = { speech, shown: speech.text, atLineStart: printable(speech.text).endsWith('\n') };
    return this.#labelled(speech.agent, speech.text);
  }

  /** The first words of an agent, or all of them (TRANSCRIPT-4). */
  #labelled(agent: string, text: string): string {
    const label = this.#options.label(agent);
    return label + (this.#isVerbatim(label) ? printable(text) : hang(printable(text)));
  }

  /** More of what is on the screen (TRANSCRIPT-4). */
  #next(floor: { readonly speech: Speech; atLineStart: boolean }, delta: string): string {
    const text = printable(delta);
    if (text === '' || this.#isVerbatim(this.#options.label(floor.speech.agent))) return text;
    const before = floor.atLineStart && !text.startsWith('\n') ? HANGING : '';
    floor.atLineStart = text.endsWith('\n');
    return before + hang(text);
  }

  #isVerbatim(label: string): boolean {
    return label === '' && this.#options.verbatim === true;
  }

  /** The output that waited, then that of an agent that has begun to stream meanwhile. */
  #yieldFloor(): string {
    this.#floor = null;
    const waited = this.#waiting.splice(0).join('');
    for (const speech of this.#speeches.values()) {
      if (speech.text !== '') return waited + this.#take(speech);
    }
    return waited;
  }

  #speechOf(agent: string, { turnId, call }: LiveChunk): { speech: Speech; before: string } {
    const known = this.#speeches.get(turnId);
    if (known?.call === call) return { speech: known, before: '' };
    const before = known ? this.#abandon(known) : '';
    const speech = { agent, turnId, call, text: '', next: 0, broken: false };
    this.#speeches.set(turnId, speech);
    return { speech, before };
  }

  /** The call was repeated, for example after a crash: no entry will contain what it streamed so far. */
  #abandon(speech: Speech): string {
    this.#finish(speech);
    if (this.#floor?.speech !== speech) return '';
    return `${this.#options.palette.dim(' … (repeated)')}\n${this.#yieldFloor()}`;
  }

  #endTurn(turnId: string): string {
    const speech = this.#speeches.get(turnId);
    if (speech) this.#finish(speech);
    this.#finished.add(turnId);
    return speech && this.#floor?.speech === speech ? `\n${this.#yieldFloor()}` : '';
  }

  #finish(speech: Speech): void {
    this.#finished.add(speech.call);
    this.#speeches.delete(speech.turnId);
  }
}
