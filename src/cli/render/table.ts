import { printable } from './text.ts';

/** Rows in aligned columns under their headings; the last column runs free. Paint is applied after measuring. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  paintHeading: (text: string) => string = (text) => text,
): string {
  const cells = rows.map((row) => row.map((cell) => printable(cell).replaceAll('\n', ' ')));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [paintHeading(line(headings)), ...cells.map(line)].join('\n');
}
