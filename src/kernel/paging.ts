/**
 * Lists in messages of a limited size.
 *
 * PAGING-1 Never more bytes than `room`, as long as an item without its long texts fits.
 * PAGING-2 At least one, if there is one: an item that fits no answer must not hide those after it.
 */

/** Characters that are kept of a long text, at most and at least. */
const MOST_SHOWN = 32_768;
const LEAST_SHOWN = 256;

/** The first items, as many as fit. `cutTo`: an item without what is longer than so many characters. */
export function pageOf<T>(
  items: readonly T[],
  room: number,
  cutTo: (item: T, most: number) => T = (item) => item,
): readonly T[] {
  let left = room;
  const fitting = items.findIndex((item) => {
    left -= sizeOf(item) + 1;
    return left < 0;
  });
  const [first] = items;
  if (fitting !== 0 || first === undefined) return fitting < 0 ? items : items.slice(0, fitting);
  for (let most = MOST_SHOWN; ; most /= 2) {
    const short = cutTo(first, most);
    if (most <= LEAST_SHOWN || sizeOf(short) < room) return [short];
  }
}

/** Those that fit together, the first ones before others: one that does not fit hides none after it. */
export function fittingIn<T>(items: readonly T[], room: number): T[] {
  let left = room;
  return items.filter((item) => {
    const size = sizeOf(item) + 1;
    if (size > left) return false;
    left -= size;
    return true;
  });
}

/** JSON as UTF-8. */
export const jsonBytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

export function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Items for one append each, of at most so many bytes; a larger item is a batch of its own. */
export function batchesOf<T>(items: readonly T[], most: number): T[][] {
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
