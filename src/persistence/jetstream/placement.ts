/**
 * Where each durable entry of a log stands in the stream: for each append the index of its first entry and its
 * sequence, which is all that is kept of a log in memory.
 */
export class Placement {
  readonly #starts: number[] = [];
  readonly #sequences: number[] = [];
  #length = 0;
  /** The subject's last sequence, messages that are no appends included; 0: there is none. */
  lastSequence = 0;

  /** Durable entries. */
  get length(): number {
    return this.#length;
  }

  add(sequence: number, length: number): void {
    this.#starts.push(this.#length);
    this.#sequences.push(sequence);
    this.#length = length;
    this.lastSequence = sequence;
  }

  /** The append that holds this entry. */
  appendOf(index: number): { readonly start: number; readonly sequence: number } {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return { start: this.#starts[low] ?? 0, sequence: this.#sequences[low] ?? 0 };
  }
}
