/**
 * Maps time to a width. Pauses are shortened, so that an answer of a second and a pause of a night fit one picture.
 *
 * TIME-SCALE-1 A later time is never left of an earlier one.
 * TIME-SCALE-2 The width of a pause is a fixed share of the working time, whatever its length. All pauses together
 *              have at most the width of the working time.
 */

export interface Interval {
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
}

export interface Placed extends Interval {
  /** Its position, from 0 to 1. */
  readonly x: number;
  readonly width: number;
}

export interface TimeScale {
  /** From 0 to 1. */
  at(time: number): number;
  readonly pauses: readonly Placed[];
  /** What is between the pauses: here, equal times have equal widths. */
  readonly stretches: readonly Placed[];
  /** Working time in milliseconds. */
  readonly worked: number;
}

/** A pause is shortened when it is longer than this share of the working time. */
const LONG = 0.12;
const SHORTENED = 0.04;

export function timeScale(intervals: readonly Interval[]): TimeScale {
  const busy = merged(intervals);
  const worked = busy.reduce((sum, { from, to }) => sum + (to - from), 0) || 1;
  const isPause = (length: number) => length > worked * LONG;
  const gaps = busy.slice(1).map(({ from }, place) => from - (busy[place]?.to ?? from));
  const pauseWidth = worked * Math.min(SHORTENED, 1 / gaps.filter(isPause).length);
  const pieces: { from: number; to: number; width: number; isPause: boolean }[] = [];
  for (const { from, to } of busy) {
    const last = pieces.at(-1);
    if (!last) pieces.push({ from, to, width: to - from, isPause: false });
    else if (isPause(from - last.to)) {
      pieces.push({ from: last.to, to: from, width: pauseWidth, isPause: true });
      pieces.push({ from, to, width: to - from, isPause: false });
    } else {
      last.to = to;
      last.width = to - last.from;
    }
  }
  const total = pieces.reduce((sum, { width }) => sum + width, 0) || 1;
  let x = 0;
  const placed = pieces.map((piece) => {
    const at = x;
    x += piece.width / total;
    return { ...piece, x: at, width: piece.width / total };
  });
  return {
    worked,
    pauses: placed.filter((piece) => piece.isPause),
    stretches: placed.filter((piece) => !piece.isPause),
    at(time) {
      const piece = placed.find(({ to }) => to >= time);
      if (!piece) return placed.length === 0 ? 0 : 1;
      const inside = Math.max(0, time - piece.from) / (piece.to - piece.from || 1);
      return Math.min(1, piece.x + inside * piece.width);
    },
  };
}

function merged(intervals: readonly Interval[]): Interval[] {
  const found: { from: number; to: number }[] = [];
  for (const { from, to } of [...intervals].sort((a, b) => a.from - b.from)) {
    const last = found.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else found.push({ from, to: Math.max(from, to) });
  }
  return found;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[10, 50, 100, 500],
  ...[1, 2, 5, 10, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE),
  ...[1, 3, 6, 12, 24].map((hours) => hours * HOUR),
];
/** Pixels that a label of this length needs. */
const LETTER = 6;
const roomOf = ({ length }: string) => 20 + length * LETTER;
const ROOM = 92;

/** `width`: the pixels of the whole scale. `from`, `to`: the visible part of them. `x`: pixels from the left end. */
export function ticksOf(scale: TimeScale, width: number, from: number, to: number) {
  const ticks: { readonly x: number; readonly label: string }[] = [];
  let day = '';
  for (const stretch of scale.stretches) {
    const start = stretch.x * width;
    const pixels = stretch.width * width;
    if (start + pixels < from || start > to) continue;
    const perMs = pixels / (stretch.to - stretch.from || 1);
    const step = STEPS.find((length) => length * perMs >= ROOM) ?? DAY;
    const firstVisible = stretch.from + Math.max(0, from - start) / (perMs || 1);
    const lastVisible = Math.min(stretch.to, stretch.from + (to - start) / (perMs || 1));
    const zone = new Date(stretch.from).getTimezoneOffset() * MINUTE;
    const firstRound = Math.ceil((firstVisible - zone) / step) * step + zone;
    const times = start >= from ? [stretch.from] : [];
    for (let time = firstRound; time <= lastVisible; time += step) times.push(time);
    for (const time of times) {
      const x = start + (time - stretch.from) * perMs;
      const before = ticks.at(-1);
      if (before && x - before.x < roomOf(before.label)) continue;
      if (before && x + LETTER * 8 > to) continue; // its label would be cut
      const date = new Date(time).toLocaleDateString([], { day: 'numeric', month: 'short' });
      ticks.push({ x, label: date === day ? labelOf(time, step) : `${date} ${labelOf(time, step)}` });
      day = date;
    }
  }
  return ticks;
}

function labelOf(time: number, step: number): string {
  return new Date(time).toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(step < MINUTE && { second: '2-digit' }),
    ...(step < SECOND && { fractionalSecondDigits: 3 }),
  });
}
