/**
 * Separates reasoning from text for servers that send both as content: `<think>…</think>` at the start of an answer.
 * Anywhere else the tag is text. The result does not depend on where the text was split.
 */
export interface Split {
  readonly text: string;
  readonly reasoning: string;
}

const OPENING = /^\s*<(think|thinking)>/;
const NOTHING: Split = { text: '', reasoning: '' };

export class ThinkTag {
  /** `undecided`: the text so far may be the start of the tag. `after`: only blanks since the closing tag. */
  #state: 'undecided' | 'thinking' | 'after' | 'text' = 'undecided';
  #closing = '';
  #held = '';

  /** Returns the part that is certain. */
  push(piece: string): Split {
    if (piece === '') return NOTHING;
    if (this.#state === 'text') return { text: piece, reasoning: '' };
    this.#held += piece;
    if (this.#state === 'undecided') return this.#decide();
    return this.#state === 'thinking' ? this.#think() : this.#after();
  }

  /** Returns what was held back, at the end of the text. */
  end(): Split {
    const held = this.#held;
    this.#held = '';
    if (this.#state === 'after') return NOTHING;
    return this.#state === 'thinking' ? { text: '', reasoning: held } : { text: held, reasoning: '' };
  }

  #decide(): Split {
    const [opening, name] = OPENING.exec(this.#held) ?? [];
    if (opening !== undefined) {
      this.#state = 'thinking';
      this.#closing = `</${name}>`;
      this.#held = this.#held.slice(opening.length);
      return this.#think();
    }
    if (mayBegin(this.#held.trimStart(), ['<think>', '<thinking>'])) return NOTHING;
    return this.#release();
  }

  #think(): Split {
    const end = this.#held.indexOf(this.#closing);
    if (end === -1) {
      const kept = openEnd(this.#held, this.#closing);
      const reasoning = this.#held.slice(0, this.#held.length - kept);
      this.#held = this.#held.slice(reasoning.length);
      return { text: '', reasoning };
    }
    const reasoning = this.#held.slice(0, end);
    this.#held = this.#held.slice(end + this.#closing.length);
    this.#state = 'after';
    return { reasoning, text: this.#after().text };
  }

  #after(): Split {
    this.#held = this.#held.trimStart();
    return this.#held === '' ? NOTHING : this.#release();
  }

  #release(): Split {
    this.#state = 'text';
    const text = this.#held;
    this.#held = '';
    return { text, reasoning: '' };
  }
}

function mayBegin(text: string, tags: readonly string[]): boolean {
  return tags.some((tag) => tag.startsWith(text));
}

/** The number of characters at the end that may be the start of the tag. */
function openEnd(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
