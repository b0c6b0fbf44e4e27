import pc from 'picocolors';
import stringWidth from 'string-width';
import { ParleyError } from '../../client/index.ts';
import { escapeHidden, fullDiskError, type Refusal } from '../../kernel/index.ts';

/** Text on a terminal: what is harmless, tables, colours, failures. Pure. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Embeddings, overrides and isolates of text direction: they show a command in another order than it runs. */
const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text of another author, made harmless: it cannot move the cursor, set a title or reorder what is shown. */
export function printable(text: string): string {
  return text
    .replace(/\r\n|[\u2028\u2029]/g, '\n')
    .replace(CONTROL, '')
    .replace(DIRECTION, '');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the palette writes these
const COLOUR = /(\u001b\[[\d;]*m)/;

/** What is printed on a terminal, with the colours of Parley and no other control character. */
export function onTerminal(text: string): string {
  const parts = text.split(COLOUR);
  return parts.map((part, at) => (at % 2 ? part : part.replace(CONTROL, '').replace(DIRECTION, ''))).join('');
}

/** Before each later line of a text, so that none looks like a line of another author. */
export const HANGING = '  ';

/** All but the first line set in: they cannot be taken for lines of another author. */
export function hang(text: string, by: string = HANGING): string {
  return text.replace(/\n(?=[^\n])/g, `\n${by}`);
}

export function indent(text: string, by: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : by + line))
    .join('\n');
}

/** The first line, at most `length` characters, with an ellipsis for what was cut. */
export function firstLine(text: string, length: number): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  const characters = [...line];
  const cut = characters.length > length;
  if (!cut && line.length === text.trim().length) return line;
  return `${characters.slice(0, length).join('')}…`;
}

/** Local time, `20:39:00`. */
export function clockTime(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? '--:--:--' : date.toTimeString().slice(0, 8);
}

/** Local date and time, `2026-11-22 05:00:07`. */
export function dateTime(iso: string): string {
  const date = new Date(iso);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return Number.isNaN(local.getTime()) ? '-' : local.toISOString().slice(0, 19).replace('T', ' ');
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Rows in aligned columns under their headings; the last column runs free. Paint is applied after measuring. */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  paintHeading: (text: string) => string = (text) => text,
): string {
  const cells = rows.map((row) => row.map((cell) => printable(cell).replaceAll('\n', ' ')));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => stringWidth(row[column] ?? ''))),
  );
  const padded = (cell: string, width = 0) => cell + ' '.repeat(Math.max(0, width - stringWidth(cell)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padded(cell, widths[column])))
      .join('  ')
      .trimEnd();
  return [paintHeading(line(headings)), ...cells.map(line)].join('\n');
}

/** The colours of one output; all of them do nothing where colour is off. */
export type Palette = ReturnType<typeof pc.createColors>;

export const createPalette = (enabled: boolean): Palette => pc.createColors(enabled);

/** On a terminal only, and not where NO_COLOR asks for none or the terminal can do none. */
export function wantsColour(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
}

const VOICES = ['cyan', 'magenta', 'green', 'yellow', 'blue'] as const;

/** The same agent has the same colour, whatever else is on the screen. */
export function voiceOf(slug: string, palette: Palette): (text: string) => string {
  let sum = 0;
  for (const character of slug) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 9_973;
  const colour = palette[VOICES[sum % VOICES.length] ?? 'cyan'];
  return (text) => palette.bold(colour(text));
}

/** An error for people (two lines) and for programs (one JSON value). */
export type Failure = Omit<Refusal, 'retryAfter'>;

export function failureOf(thrown: unknown): Failure {
  const error = fullDiskError(thrown, 'DISK_FULL', 'a disk');
  if (error instanceof ParleyError) {
    const { code, message, hint } = error;
    return hint === undefined ? { code, message } : { code, message, hint };
  }
  return {
    code: 'UNEXPECTED',
    message: error instanceof Error ? error.message : String(error),
    hint: 'this is a fault of Parley itself: run it again with --verbose and report what it prints',
  };
}

export function renderFailure({ message, hint }: Failure): string {
  const first = `parley: ${message}`;
  return escapeHidden(hint === undefined ? first : `${first}\n${hint.replace(/^/gm, '  ')}`);
}
