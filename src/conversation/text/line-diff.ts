import { diffArrays, structuredPatch } from 'diff';

/** The lines of two texts: in both, in the first one alone, or in the second one alone. */

export interface DiffLine {
  readonly op: 'same' | 'gone' | 'added';
  readonly text: string;
  /** From 1: in the second text, of a line that is gone in the first one. Absent: not known. */
  readonly number?: number;
}

/** Adjacent changed lines with the unchanged ones around them. */
export interface Hunk {
  /** The numbers of its first line, from 1. */
  readonly before: number;
  readonly after: number;
  readonly lines: readonly DiffLine[];
}

/** Above this number of changed lines, all lines of both texts are shown as gone and added. */
const MOST_EDITS = 1_000;

/** Compares two texts by lines. Of adjacent changes, lines that are gone come first. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  const changes = diffArrays(left, right, { maxEditLength: MOST_EDITS });
  if (!changes) return [...markedLines('gone', left), ...markedLines('added', right)];
  return changes.flatMap(({ added, removed, value }) =>
    markedLines(added ? 'added' : removed ? 'gone' : 'same', value),
  );
}

function markedLines(op: DiffLine['op'], lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ op, text }));
}

const OPS = { ' ': 'same', '-': 'gone', '+': 'added' } as const;

/** Every changed line once, with at most three unchanged lines around it. */
export function diffHunks(before: string, after: string): Hunk[] {
  const options = { context: 3, maxEditLength: MOST_EDITS };
  const patch = structuredPatch('', '', before, after, undefined, undefined, options);
  if (!patch)
    return [{ before: 1, after: 1, lines: [...allLines(before, 'gone'), ...allLines(after, 'added')] }];
  return patch.hunks.map(({ oldStart, newStart, lines }) => ({
    before: oldStart,
    after: newStart,
    lines: lines.map((line) => ({ op: OPS[line[0] as keyof typeof OPS], text: line.slice(1) })),
  }));
}

function allLines(text: string, op: DiffLine['op']): DiffLine[] {
  return markedLines(op, text.split('\n').slice(0, -1));
}

/** The difference of a file in words: `--- PATH`, `+++ PATH`, and its hunks. */
export function differenceText(path: string, before: string, after: string): string {
  const hunks = diffHunks(ended(before), ended(after)).flatMap((hunk) => {
    const count = (other: DiffLine['op']) => hunk.lines.filter(({ op }) => op !== other).length;
    const head = `@@ -${hunk.before},${count('added')} +${hunk.after},${count('gone')} @@`;
    return [head, ...hunk.lines.map(({ op, text }) => MARKS[op] + text)];
  });
  return [`--- ${path}`, `+++ ${path}`, ...hunks].join('\n');
}

const MARKS = { same: ' ', gone: '-', added: '+' } as const;
const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The lines of a text with hunks as `differenceText` writes them, each as what it is; null: there is no hunk in it. */
export function differenceLines(text: string): DiffLine[] | null {
  let [gone, added, hunks, left, right] = [0, 0, 0, 0, 0];
  const lines = text.split('\n').map((line): DiffLine => {
    const [head, first, before = '1', second, after = '1'] = (gone + added === 0 && HUNK.exec(line)) || [];
    if (head !== undefined) {
      [gone, added, hunks] = [Number(before), Number(after), hunks + 1];
      [left, right] = [Number(first), Number(second)];
    }
    const op = head === undefined && gone + added > 0 ? OPS[(line[0] ?? ' ') as keyof typeof OPS] : undefined;
    if (op === undefined) {
      if (head === undefined) [gone, added] = [0, 0];
      return { op: 'same', text: line };
    }
    if (op !== 'added') gone = Math.max(0, gone - 1);
    if (op !== 'gone') added = Math.max(0, added - 1);
    const number = op === 'gone' ? left : right;
    if (op !== 'added') left += 1;
    if (op !== 'gone') right += 1;
    return { op, text: line.slice(1), number };
  });
  return hunks === 0 ? null : lines;
}
