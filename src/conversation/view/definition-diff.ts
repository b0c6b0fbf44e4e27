import { diffHunks, type Hunk } from '../text/line-diff.ts';
import type { ReportedDefinition } from './view-report.ts';

/**
 * The differences between two definitions, part by part and line by line.
 *
 * DEFINITION-DIFF-1 Parts are compared by their hashes. The lines are known for parts whose texts both reports contain.
 * DEFINITION-DIFF-2 Every changed line is in a hunk once, with at most three unchanged lines around it. Above 1,000
 *                   changed lines, all lines of the part are shown as removed and added.
 */

/** A part of a definition that differs between two requests. */
export interface PartDifference {
  /** `persona`, `model`, `tool.<name>`. */
  readonly part: string;
  readonly op: 'changed' | 'gone' | 'added';
  /** Absent: a text is unknown. */
  readonly hunks?: readonly Hunk[];
}

export function diffDefinitions(before: ReportedDefinition, after: ReportedDefinition): PartDifference[] {
  const names = [...new Set([...Object.keys(before.parts), ...Object.keys(after.parts)])].sort();
  return names.flatMap((part): PartDifference[] => {
    const [old, now] = [before.parts[part], after.parts[part]];
    if (old === now) return [];
    const op = old === undefined ? 'added' : now === undefined ? 'gone' : 'changed';
    const [from, to] = [linesOf(before, part), linesOf(after, part)];
    return [from === null || to === null ? { part, op } : { part, op, hunks: diffHunks(from, to) }];
  });
}

/** Null: the report does not contain the text. A part that does not exist has no lines. */
function linesOf({ parts, texts }: ReportedDefinition, part: string): string | null {
  if (parts[part] === undefined) return '';
  const text = texts?.[part];
  return text === undefined ? null : `${readable(text)}\n`;
}

/** A JSON text for people: a string as it is, anything else indented, with the line breaks of its strings. */
function readable(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'string') return value;
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => {
      const indent = `\n${' '.repeat(line.search(/\S|$/) + 2)}`;
      return line.replaceAll(/\\[^n]|\\n/g, (found) => (found === '\\n' ? indent : found));
    })
    .join('\n');
}
