/** Ranges of entry indexes, both ends included, ascending: how the log names many entries. */
export type Ranges = readonly (readonly [number, number])[];

/** The indexes that ranges name. */
export function expand(ranges: Ranges): number[] {
  return ranges.flatMap(([from, to]) =>
    Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at),
  );
}

/** Ranges that name `indexes`, and nothing of what lies between them that `mayJoin` refuses. */
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
