/** The end of a preview of a large text in the log. */
const FILE = /\n\[Full output: [^\n]+\]$/;

/**
 * One text, sent while it is generated. Live text is a prefix of its entry: if a retry produces another text, nothing is
 * sent until the entry arrives.
 */
export class IncrementalText {
  #sent = '';
  /** The text of the running attempt. */
  #received = '';
  /** All received text was sent. */
  #isInStep = true;

  get sent(): string {
    return this.#sent;
  }

  /** A retry starts. */
  restart(): void {
    this.#received = '';
    this.#isInStep = this.#sent === '';
  }

  /** Returns the text to send now. */
  add(delta: string): string {
    this.#received += delta;
    if (!this.#isInStep) {
      if (this.#received.length <= this.#sent.length || !this.#received.startsWith(this.#sent)) return '';
      this.#isInStep = true;
      const more = this.#received.slice(this.#sent.length);
      this.#sent = this.#received;
      return more;
    }
    this.#sent = this.#received;
    return delta;
  }

  /** The entry arrived: returns the rest of the text, or its replacement. */
  end(whole: string): Rest {
    if (whole.startsWith(this.#sent)) return { isMore: true, words: whole.slice(this.#sent.length) };
    const file = FILE.exec(whole);
    const isPreview = file !== null && this.#sent.startsWith(whole.slice(0, file.index));
    return isPreview ? { isMore: true, words: file[0] } : { isMore: false, words: whole };
  }
}

export interface Rest {
  /** True: `words` continue the sent text; false: they replace it. */
  readonly isMore: boolean;
  readonly words: string;
}
