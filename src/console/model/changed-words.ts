import type { DiffLine } from '../../conversation/index.ts';

/** The lines of a hunk, with the part of each changed line that differs from the line that it replaces. */

export interface MarkedLine extends DiffLine {
  /** Start and end of the different part in `text`; absent: the whole line. */
  readonly mark?: readonly [number, number];
}

/** The n-th removed line is compared with the n-th added one of the same block. */
export function markedLines(lines: readonly DiffLine[]): MarkedLine[] {
  const marked: MarkedLine[] = [];
  for (let at = 0; at < lines.length; ) {
    const gone = runOf(lines, at, 'gone');
    const added = runOf(lines, at + gone.length, 'added');
    const pairs = gone.map((line, n) => marksOf(line.text, added[n]?.text));
    marked.push(...gone.map((line, n) => withMark(line, pairs[n]?.[0])));
    marked.push(...added.map((line, n) => withMark(line, pairs[n]?.[1])));
    at += gone.length + added.length;
    for (; lines[at]?.op === 'same'; at++) marked.push(lines[at] as DiffLine);
  }
  return marked;
}

function runOf(lines: readonly DiffLine[], from: number, op: DiffLine['op']): readonly DiffLine[] {
  let end = from;
  while (lines[end]?.op === op) end++;
  return lines.slice(from, end);
}

type Mark = readonly [number, number];

/** Undefined: the lines have too little in common. */
function marksOf(before: string, after: string | undefined): readonly [Mark, Mark] | undefined {
  if (after === undefined) return undefined;
  const [one, other] = [[...before], [...after]];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start++;
  let end = 0;
  const most = Math.min(one.length, other.length) - start;
  while (end < most && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  if (start + end < Math.min(one.length, other.length) / 3) return undefined;
  const mark = (letters: string[]): Mark => {
    const head = letters.slice(0, start).join('').length;
    return [head, head + letters.slice(start, letters.length - end).join('').length];
  };
  return [mark(one), mark(other)];
}

function withMark(line: DiffLine, mark: Mark | undefined): MarkedLine {
  return mark ? { ...line, mark } : line;
}
