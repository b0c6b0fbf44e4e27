import type { Entry } from '../../conversation/index.ts';

/**
 * The entries of one answer: as many as fit.
 *
 * P1 Never more bytes than there is room for, as long as an entry without its long texts fits.
 * P2 One at least, if there is one: an entry that fits no answer must not hide what comes after it.
 */

/** Characters of a long text that are shown, at most and at least: what is shorter says what the entry is. */
const MOST_SHOWN = 32_768;
const LEAST_SHOWN = 256;

export function pageOf(found: readonly Entry[], room: number): readonly object[] {
  let left = room;
  const fitting = found.findIndex((entry) => {
    left -= sizeOf(entry) + 1;
    return left < 0;
  });
  if (fitting < 0) return found;
  const [first] = found;
  return fitting === 0 && first ? [shortened(first, room)] : found.slice(0, fitting);
}

/** An entry with its long texts cut, and `truncated`: the log has the whole. */
function shortened(entry: Entry, room: number): object {
  for (let shown = MOST_SHOWN; ; shown /= 2) {
    const short = cutTo(entry, shown);
    if (shown <= LEAST_SHOWN || sizeOf(short) < room) return short;
  }
}

function cutTo(entry: Entry, shown: number): object {
  const cut = Object.entries(entry).map(([key, value]) => {
    if (typeof value === 'string') return [key, value.slice(0, shown).replace(/\p{Surrogate}$/u, '')];
    const isLarge = JSON.stringify(value ?? null).length > shown;
    return isLarge ? [key, undefined] : [key, value];
  });
  return { ...Object.fromEntries(cut), truncated: true };
}

function sizeOf(entry: object): number {
  return Buffer.byteLength(JSON.stringify(entry));
}
