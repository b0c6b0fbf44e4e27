/**
 * Separates reasoning from text for servers that send both as content: blocks of `<think>…</think>`, or of
 * another pair of tags in `CLOSING`, at the start of an answer. Anywhere else a tag is text. The result does not depend on where the
 * text was split.
 */
export interface Split {
  readonly text: string;
  readonly reasoning: string;
}

/** By opening tag. `<thought>`: Gemini and Gemma. `[THINK]`: Magistral. `<seed:think>`: Seed-OSS. */
const CLOSING: Readonly<Record<string, string>> = {
  '<think>': '</think>',
  '<thinking>': '</thinking>',
  '<thought>': '</thought>',
  '<seed:think>': '</seed:think>',
  '[THINK]': '[/THINK]',
};
const OPENINGS = Object.keys(CLOSING);
const NOTHING: Split = { text: '', reasoning: '' };

export class ThinkTag {
  /** `undecided`: the text so far may be the start of a tag. `after`: the same, after a closing tag. */
  #state: 'undecided' | 'thinking' | 'after' | 'text' = 'undecided';
  #closing = '';
  #held = '';
  /** Before the next reasoning: a block begins after another one. */
  #separator = '';
  #hasReasoning = false;

  /** Returns the part that is certain. A loop: an answer can have any number of blocks. */
  push(piece: string): Split {
    if (piece === '') return NOTHING;
    this.#held += piece;
    let reasoning = '';
    while (this.#state !== 'text') {
      if (this.#state === 'thinking') {
        const end = this.#held.indexOf(this.#closing);
        if (end === -1) {
          const kept = openEnd(this.#held, this.#closing);
          return { text: '', reasoning: reasoning + this.#take(this.#held.length - kept) };
        }
        reasoning += this.#take(end);
        this.#held = this.#held.slice(this.#closing.length);
        this.#state = 'after';
      } else if (!this.#decide()) return { text: '', reasoning };
    }
    const text = this.#held;
    this.#held = '';
    return { text, reasoning };
  }

  /** Returns what was held back, at the end of the text. */
  end(): Split {
    const { length } = this.#held;
    if (this.#state === 'thinking') return { text: '', reasoning: this.#take(length) };
    const text = this.#held;
    this.#held = '';
    return { text, reasoning: '' };
  }

  /** False: the text so far may be the start of a tag. */
  #decide(): boolean {
    if (this.#state === 'after') this.#held = this.#held.trimStart();
    const start = this.#held.trimStart();
    const opening = OPENINGS.find((tag) => start.startsWith(tag));
    if (opening === undefined) {
      if (OPENINGS.some((tag) => tag.startsWith(start))) return false;
      this.#state = 'text';
      return true;
    }
    this.#state = 'thinking';
    this.#closing = CLOSING[opening] ?? '';
    this.#held = start.slice(opening.length);
    this.#separator = this.#hasReasoning ? '\n\n' : '';
    return true;
  }

  /** Removes that many characters of reasoning from the held text. */
  #take(length: number): string {
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    if (taken === '') return '';
    const reasoning = this.#separator + taken;
    this.#separator = '';
    this.#hasReasoning = true;
    return reasoning;
  }
}

/** The number of characters at the end that may be the start of the tag. */
function openEnd(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
