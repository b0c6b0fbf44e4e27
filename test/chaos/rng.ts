/** Pseudo-random numbers from a seed (mulberry32), the same on every machine. */
export interface Rng {
  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** A whole number, both ends included. */
  between(lowest: number, highest: number): number;
  pick<T>(from: readonly T[]): T;
}

/** `name` separates the generators of one seed, so that an additional number of one does not change another. */
export function rng(seed: number, name: string): Rng {
  let state = (seed ^ hash(name)) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (lowest: number, highest: number) => lowest + Math.floor(next() * (highest - lowest + 1));
  return {
    next,
    between,
    pick<T>(from: readonly T[]): T {
      const picked = from[between(0, from.length - 1)];
      if (picked === undefined) throw new RangeError('the list is empty');
      return picked;
    },
  };
}

/** FNV-1a, 32 bits. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}
