import type { Entry } from '../../conversation/index.ts';

/**
 * The entries of one answer: as many as fit.
 *
 * PAGING-1 Never more bytes than `room`, as long as an entry without its long texts fits.
 * PAGING-2 At least one, if there is one: an entry that fits no answer must not hide those after it.
 */

/** Characters that are kept of a long text, at most and at least. */
const MOST_SHOWN = 32_768;
const LEAST_SHOWN = 256;

export function pageOf(found: readonly Entry[], room: number): readonly Entry[] {
  let left = room;
  const fitting = found.findIndex((entry) => {
    left -= sizeOf(entry) + 1;
    return left < 0;
  });
  if (fitting < 0) return found;
  const [first] = found;
  return fitting === 0 && first ? [shortened(first, room)] : found.slice(0, fitting);
}

/** An entry with its long texts cut, and `truncated`: the log has it complete. */
function shortened(entry: Entry, room: number): Entry {
  for (let shown = MOST_SHOWN; ; shown /= 2) {
    const short = cutTo(entry, shown);
    if (shown <= LEAST_SHOWN || sizeOf(short) < room) return short as Entry;
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

export function sizeOf(value: object | string): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Items for one append each, of at most so many bytes; a larger item is a batch of its own. */
export function batchesOf<T extends object | string>(items: readonly T[], most: number): T[][] {
  const batches: T[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const bytes = sizeOf(item);
    if (size + bytes > most) {
      batches.push([]);
      size = 0;
    }
    size += bytes;
    batches.at(-1)?.push(item);
  }
  return batches;
}
