/** Ranges of entry indexes, both ends included, ascending. */
export type Ranges = readonly (readonly [number, number])[];

/** The indexes within ranges. */
export function expand(ranges: Ranges): number[] {
  return ranges.flatMap(([from, to]) =>
    Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at),
  );
}

/** Ascending, disjoint, and before `index`. Check this first: listing other ranges may take unbounded time. */
export function isBefore(ranges: Ranges, index: number): boolean {
  return ranges.every(([from, to], at) => from > (ranges[at - 1]?.[1] ?? -1) && to >= from && to < index);
}

/** Ranges that contain `indexes`. Two neighbours are joined only if `mayJoin` accepts each index between them. */
export function rangesOf(indexes: Iterable<number>, mayJoin: (index: number) => boolean): [number, number][] {
  const ranges: [number, number][] = [];
  for (const index of [...new Set(indexes)].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && joins(last[1] + 1, index, mayJoin)) last[1] = index;
    else ranges.push([index, index]);
  }
  return ranges;
}

function joins(from: number, to: number, mayJoin: (index: number) => boolean): boolean {
  for (let index = from; index < to; index++) if (!mayJoin(index)) return false;
  return true;
}

/** `1, 3 to 5`. */
export function rangesText(ranges: Ranges): string {
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(', ');
}

/** Whether ranges contain an index, without listing them. */
export function isWithin(ranges: Ranges): (index: number) => boolean {
  const joined: [number, number][] = [];
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return (index) => {
    let [low, high] = [0, joined.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((joined[middle]?.[0] ?? 0) <= index) low = middle + 1;
      else high = middle;
    }
    return index <= (joined[low - 1]?.[1] ?? -1);
  };
}

/** Removes the last place of an index from a list. False: it is not in the list. */
export function remove(list: number[], index: number): boolean {
  const at = list.lastIndexOf(index);
  if (at < 0) return false;
  list.splice(at, 1);
  return true;
}

/** Replaces the first entry that is gone with `by`, and removes the others. */
export function replace(list: number[], isGone: (index: number) => boolean, by: number): void {
  const at = list.findIndex(isGone);
  if (at < 0) return;
  const kept = list.slice(at).filter((index) => !isGone(index));
  list.splice(at, list.length - at, by, ...kept);
}
