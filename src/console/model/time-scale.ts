/**
 * Maps time to a width. Pauses are shortened, so that an answer of a second and a pause of a night fit one picture.
 *
 * TIME-SCALE-1 A later time is never left of an earlier one.
 * TIME-SCALE-2 The width of a pause is a fixed share of the working time, whatever its length.
 */

export interface Interval {
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
}

interface Pause extends Interval {
  /** Its position, from 0 to 1. */
  readonly x: number;
  readonly width: number;
}

export interface TimeScale {
  /** From 0 to 1. */
  at(time: number): number;
  readonly pauses: readonly Pause[];
  /** Working time in milliseconds. */
  readonly worked: number;
}

/** A pause is shortened when it is longer than this share of the working time. */
const LONG = 0.12;
const SHORTENED = 0.04;

export function timeScale(intervals: readonly Interval[]): TimeScale {
  const busy = merged(intervals);
  const worked = busy.reduce((sum, { from, to }) => sum + (to - from), 0) || 1;
  const pieces: (Interval & { width: number; isPause: boolean })[] = [];
  for (const [place, one] of busy.entries()) {
    const before = busy[place - 1];
    if (before) {
      const length = one.from - before.to;
      const isPause = length > worked * LONG;
      pieces.push({ from: before.to, to: one.from, width: isPause ? worked * SHORTENED : length, isPause });
    }
    pieces.push({ ...one, width: one.to - one.from, isPause: false });
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
    pauses: placed
      .filter(({ isPause }) => isPause)
      .map(({ from, to, x: at, width }) => ({ from, to, x: at, width })),
    at(time) {
      const piece = placed.find(({ to }) => time <= to);
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
