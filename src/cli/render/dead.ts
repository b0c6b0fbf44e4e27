import type { DeadLetterDetail, DeadLetterSummary } from '../../client/index.ts';
import type { Palette } from './palette.ts';
import { renderTable } from './table.ts';
import { firstLine, indent, plural, printable } from './text.ts';

const HEADINGS = ['NO', 'REFUSED', 'PUBLISHER', 'CONVERSATION', 'SIZE', 'CODE', 'REASON'];
const REASON_WIDTH = 80;

export function deadLetterTable(
  letters: readonly DeadLetterSummary[],
  paintHeading: (text: string) => string,
): string {
  const rows = letters.map(({ sequence, at, publisher, conversation, size, code, reason }) => [
    String(sequence),
    timeOf(at),
    publisher,
    conversation,
    String(size),
    code,
    firstLine(reason, REASON_WIDTH),
  ]);
  return renderTable(HEADINGS, rows, paintHeading);
}

/** One letter: why it was refused, what to do, and what was posted. */
export function deadLetterLines(letter: DeadLetterDetail, palette: Palette): string[] {
  const { sequence, at, publisher, conversation, code, reason, hint, id, size, ingress } = letter;
  const place = ingress === undefined ? '' : `, message ${ingress.sequence} of the ingress stream`;
  const body = letter.truncated
    ? `the beginning of ${plural(size, 'byte')}; the rest was cut${place}`
    : `${plural(size, 'byte')}${place}`;
  return [
    palette.bold(`${sequence}  ${publisher} → ${conversation}  ${timeOf(at)}`),
    `${palette.red(printable(code))}  ${printable(reason)}`,
    ...(hint === undefined ? [] : [indent(printable(hint), '  ')]),
    ...(id === undefined ? [] : [`id ${printable(id)}`]),
    palette.dim(body),
    '',
    printable(letter.original),
  ];
}

function timeOf(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}
