/**
 * Replaces each half of a surrogate pair that stands alone with U+FFFD. Pure; the result does not depend on where the
 * text was cut: a first half at the end is held back until the next piece.
 */
export class WholeCharacters {
  #held = '';

  push(piece: string): string {
    if (piece === '') return '';
    const text = this.#held + piece;
    this.#held = /[\uD800-\uDBFF]$/.test(text) ? text.slice(-1) : '';
    return whole(this.#held === '' ? text : text.slice(0, -1));
  }

  /** What was held back: nothing more comes. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    return whole(held);
  }
}

const LONE_HALF = /\p{Surrogate}/gu;

function whole(text: string): string {
  return text.replaceAll(LONE_HALF, '\uFFFD');
}
