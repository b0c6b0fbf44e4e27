/** How the preview ends that a log has of a text that it cannot hold. */
const FILE = /\n\[Full output: [^\n]+\]$/;

/**
 * One text that is told while it is made. Live text comes earlier what an entry will say, and never differently: what
 * another attempt says in other words waits for the entry.
 */
export class IncrementalText {
  #told = '';
  /** Of the attempt that runs. */
  #heard = '';
  /** What was heard begins with what was told, and all of it was told. */
  #isInStep = true;

  get told(): string {
    return this.#told;
  }

  /** Another attempt at it begins. */
  restart(): void {
    this.#heard = '';
    this.#isInStep = this.#told === '';
  }

  /** What can be told now. */
  hear(delta: string): string {
    this.#heard += delta;
    if (!this.#isInStep) {
      if (this.#heard.length <= this.#told.length || !this.#heard.startsWith(this.#told)) return '';
      this.#isInStep = true;
      const more = this.#heard.slice(this.#told.length);
      this.#told = this.#heard;
      return more;
    }
    this.#told = this.#heard;
    return delta;
  }

  /** The entry is here: what is still to be said, or what is to be said instead. */
  end(whole: string): Rest {
    if (whole.startsWith(this.#told)) return { isMore: true, words: whole.slice(this.#told.length) };
    const file = FILE.exec(whole);
    const isPreview = file !== null && this.#told.startsWith(whole.slice(0, file.index));
    return isPreview ? { isMore: true, words: file[0] } : { isMore: false, words: whole };
  }
}

export interface Rest {
  /** The words go on where those before ended; else they stand in their place. */
  readonly isMore: boolean;
  readonly words: string;
}
