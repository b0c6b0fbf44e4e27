import type { DiffLine } from '../../conversation/index.ts';
import { shortLine } from '../../conversation/text/text.ts';
import { escapeHidden, visibleArguments } from '../../kernel/hidden.ts';
import { parseJson } from '../../kernel/json.ts';

/** Numbers, times, texts and differences for people. */

export { shortLine };

export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  const whole = Math.round(seconds);
  if (whole < 60) return `${seconds < 10 ? seconds.toFixed(1) : whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function roughly(milliseconds: number): string {
  const units = Object.entries({ d: 86_400_000, h: 3_600_000, min: 60_000, s: 1_000 });
  const [unit, length] = units.find(([, least]) => milliseconds >= least) ?? ['ms', 1];
  return `${Math.round(milliseconds / length)} ${unit}`;
}

export function count(number: number): string {
  return number.toLocaleString('en');
}

/** As in the command line: a dash for no cost, and an unknown cost is never shown as zero. */
export function money(usd: number, unpricedCalls = 0): string {
  const known = usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`;
  if (unpricedCalls > 0) return usd === 0 ? 'unknown' : `${known} + unknown`;
  return usd === 0 ? '-' : known;
}

/** The same where nothing beside it says that it is a cost. */
export function costText(usd: number, unpricedCalls = 0): string {
  const cost = money(usd, unpricedCalls);
  return cost === 'unknown' ? 'cost unknown' : cost === '-' ? 'no cost' : cost;
}

const CLOCK = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;

/** Empty without a valid time. */
const timeText = (iso: string, write: (date: Date) => string): string =>
  Number.isNaN(Date.parse(iso)) ? '' : write(new Date(iso));

export const clockTime = (iso: string): string => timeText(iso, (date) => date.toLocaleTimeString([], CLOCK));

export const fullTime = (iso: string): string =>
  timeText(iso, (date) => date.toLocaleString([], { dateStyle: 'full', timeStyle: 'medium' }));

export function dayOf(iso: string, now: number): string {
  const date = new Date(iso);
  const midnight = (time: number) => new Date(time).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(now) - midnight(date.getTime())) / 86_400_000);
  if (days === 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return date.toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
}

export const clockTimeOf = (time: number): string =>
  new Date(time).toLocaleTimeString([], { ...CLOCK, second: '2-digit' });

/** Only the parts that differ from now. */
export function when(iso: string, now: number): string {
  if (now - Date.parse(iso) < 60_000) return 'now';
  if (new Date(iso).toDateString() === new Date(now).toDateString()) return clockTime(iso);
  return timeText(iso, (date) => date.toLocaleDateString([], { day: 'numeric', month: 'short' }));
}

export function pretty(text: string): string {
  const value = parseJson(text);
  return value === undefined ? text : JSON.stringify(value, null, 2);
}

/** The arguments of a call, on one line or indented, with escapes for invisible characters. */
export const argumentsLine = (text: string): string => shortLine(visibleArguments(text), 90);
export const argumentsBlock = (text: string): string => escapeHidden(pretty(visibleArguments(text)));

/** Shortens an id to its ends, because generated ids begin alike. */
export function shortId(id: string): string {
  return id.length <= 20 ? id : `${id.slice(0, 6)}…${id.slice(/^[\da-f]+$/.test(id) ? -4 : -6)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals colour their output with them
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;

export function withoutAnsi(text: string): string {
  return text.replace(ANSI, '');
}

/** A line of a difference, with the part that differs from the line that it replaces. */
export interface MarkedLine extends DiffLine {
  /** Start and end of the different part in `text`; absent: the whole line. */
  readonly mark?: Mark | undefined;
}

/** The n-th removed line is compared with the n-th added one of the same block. */
export function markedLines(lines: readonly DiffLine[]): MarkedLine[] {
  const marked: MarkedLine[] = [];
  for (let at = 0; at < lines.length; ) {
    const gone = runOf(lines, at, 'gone');
    const added = runOf(lines, at + gone.length, 'added');
    const pairs = gone.map((line, n) => marksOf(line.text, added[n]?.text));
    marked.push(...gone.map((line, n) => ({ ...line, mark: pairs[n]?.[0] })));
    marked.push(...added.map((line, n) => ({ ...line, mark: pairs[n]?.[1] })));
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
  if (start + end <= Math.min(one.length, other.length) / 3) return undefined; // also where one is empty
  const mark = (letters: string[]): Mark => {
    const head = letters.slice(0, start).join('').length;
    return [head, head + letters.slice(start, letters.length - end).join('').length];
  };
  return [mark(one), mark(other)];
}
