import type { TimeScale } from './time-scale.ts';

/** The labels of a time axis. */

export interface Tick {
  /** Pixels from the left end. */
  readonly x: number;
  readonly label: string;
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

/** `width`: the pixels of the whole scale. `from`, `to`: the visible part of them. */
export function ticksOf(scale: TimeScale, width: number, from: number, to: number): readonly Tick[] {
  const ticks: Tick[] = [];
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
