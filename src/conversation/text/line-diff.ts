/** The lines of two texts: in both, in the first one alone, or in the second one alone. */

export interface DiffLine {
  readonly op: 'same' | 'gone' | 'added';
  readonly text: string;
}

/** Larger texts are compared as a whole between their common first and last lines: the table grows with both lengths. */
const MOST_CELLS = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  const most = Math.min(left.length, right.length) - start;
  while (end < most && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ op: 'same', text }));
  return [
    ...same(left.slice(0, start)),
    ...between(left.slice(start, left.length - end), right.slice(start, right.length - end)),
    ...same(left.slice(left.length - end)),
  ];
}

/** By the longest common subsequence; of several, lines that are gone come first. */
function between(left: readonly string[], right: readonly string[]): DiffLine[] {
  const gone = (text: string): DiffLine => ({ op: 'gone', text });
  const added = (text: string): DiffLine => ({ op: 'added', text });
  if (left.length * right.length > MOST_CELLS) return [...left.map(gone), ...right.map(added)];
  const width = right.length + 1;
  const longest = new Uint32Array((left.length + 1) * width);
  const at = (row: number, column: number) => longest[row * width + column] ?? 0;
  for (let row = left.length - 1; row >= 0; row--)
    for (let column = right.length - 1; column >= 0; column--)
      longest[row * width + column] =
        left[row] === right[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < left.length || column < right.length) {
    const [one, other] = [left[row], right[column]];
    if (one !== undefined && one === other) {
      lines.push({ op: 'same', text: one });
      row++;
      column++;
    } else if (one !== undefined && (other === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push(gone(one));
      row++;
    } else {
      lines.push(added(other ?? ''));
      column++;
    }
  }
  return lines;
}
