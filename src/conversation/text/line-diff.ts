import { diffArrays } from 'diff';

/** The lines of two texts: in both, in the first one alone, or in the second one alone. */

export interface DiffLine {
  readonly op: 'same' | 'gone' | 'added';
  readonly text: string;
}

/** Above this number of changed lines, all lines of both texts are shown as gone and added. */
const MOST_EDITS = 2_000;

/** Of adjacent changes, lines that are gone come first. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  const changes = diffArrays(left, right, { maxEditLength: MOST_EDITS });
  if (!changes) return [...markedLines('gone', left), ...markedLines('added', right)];
  return changes.flatMap(({ added, removed, value }) =>
    markedLines(added ? 'added' : removed ? 'gone' : 'same', value),
  );
}

export function markedLines(op: DiffLine['op'], lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ op, text }));
}
