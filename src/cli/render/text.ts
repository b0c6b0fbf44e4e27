/** Small things about text on a terminal. Pure. */

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
  if (Number.isNaN(date.getTime())) return '--:--:--';
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;
