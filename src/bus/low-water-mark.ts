import type { Settled } from './settled.ts';

/**
 * How far a stream was read when its messages are settled out of order.
 *
 * LOW-WATER-MARK-1 The mark never passes a message that is under way, and never decreases.
 * LOW-WATER-MARK-2 It is the newest message up to which everything opened is settled.
 */
export class LowWaterMark {
  #value: number;
  /** Opened sequences in ascending order; those before `#head` are settled. */
  #opened: number[] = [];
  #head = 0;
  readonly #settled = new Set<number>();

  /** `start`: everything up to here was settled before. */
  constructor(start: number) {
    this.#value = start;
  }

  get value(): number {
    return this.#value;
  }

  /** How many are under way. */
  get underWay(): number {
    return this.#opened.length - this.#head - this.#settled.size;
  }

  /** The oldest under way, or null. */
  get oldest(): number | null {
    return this.#opened[this.#head] ?? null;
  }

  /** A message is under way. Sequences come in ascending order; gaps are fine. */
  open(sequence: number): void {
    this.#opened.push(sequence);
  }

  /** The message is settled. True if that moved the mark. */
  settle(sequence: number): boolean {
    this.#settled.add(sequence);
    const before = this.#value;
    for (;;) {
      const oldest = this.#opened[this.#head];
      if (oldest === undefined || !this.#settled.delete(oldest)) break; // LOW-WATER-MARK-1
      this.#value = oldest; // LOW-WATER-MARK-2
      this.#head += 1;
    }
    this.#forgetSettled();
    return this.#value !== before;
  }

  /** Settled messages, as a range with at most `mostOpen` exceptions; the range ends before the next one. */
  settled(mostOpen: number): Settled {
    const open: number[] = [];
    let upTo = this.#value;
    let kept = 0;
    let left = this.#settled.size;
    for (let at = this.#head; left > 0; at += 1) {
      const sequence = this.#opened[at] as number;
      if (this.#settled.has(sequence)) {
        [upTo, kept] = [sequence, open.length];
        left -= 1;
      } else if (open.length === mostOpen) break;
      else open.push(sequence);
    }
    return { upTo, open: open.slice(0, kept) };
  }

  #forgetSettled(): void {
    if (this.#head < 1_024 && this.#head < this.#opened.length) return;
    this.#opened = this.#opened.slice(this.#head);
    this.#head = 0;
  }
}
