import type { Lanes, Passage, Span } from './lanes.ts';
import type { TimeScale } from './time-scale.ts';

/**
 * The shapes of the timeline, in pixels of its visible part.
 *
 * SHAPES-1 Their number depends on the lanes and the kinds, not on the entries: all bars of a lane and kind are one path.
 *    Bars that are too thin to tell apart are drawn as one.
 */

export const LANE = 46;
export const TOP = 44;
/** Bars that are thinner than this, and closer, are one. */
const THIN = 2;
const POST_WIDTH = 3;

const SHAPES: Readonly<Record<Span['kind'], readonly [top: number, height: number]>> = {
  wait: [LANE / 2 - 2, 4],
  turn: [10, LANE - 20],
  call: [14, LANE - 28],
  tool: [LANE - 15, 6],
  approval: [LANE - 15, 6],
  post: [11, LANE - 22],
};
/** From the lowest layer to the highest. */
const KINDS = Object.keys(SHAPES) as Span['kind'][];

export interface Window {
  readonly scale: TimeScale;
  readonly rows: readonly string[];
  /** Pixels of the whole picture. */
  readonly width: number;
  /** Pixels before the visible part. */
  readonly from: number;
  /** Pixels of the visible part. */
  readonly visible: number;
}

export interface Bars {
  readonly lane: string;
  readonly kind: Span['kind'];
  readonly isOpen: boolean;
  readonly isFailed: boolean;
  readonly path: string;
}

export function barsOf(spans: readonly Span[], window: Window): readonly Bars[] {
  const groups = new Map<string, { bars: Omit<Bars, 'path'>; placed: [from: number, to: number][] }>();
  for (const span of spans) {
    const [from, to] = extentOf(span, window);
    if (to < 0 || from > window.visible || !window.rows.includes(span.lane)) continue;
    const { kind, lane, isOpen = false, isFailed = false } = span;
    const key = `${kind} ${isOpen} ${isFailed} ${lane}`;
    const group = groups.get(key) ?? { bars: { kind, lane, isOpen, isFailed }, placed: [] };
    groups.set(key, group);
    const last = group.placed.at(-1);
    if (last && to - from < THIN && from >= last[0] && from - last[1] < THIN) last[1] = Math.max(last[1], to);
    else group.placed.push([Math.max(from, -THIN), Math.min(to, window.visible + THIN)]);
  }
  return [...groups.values()]
    .map(({ bars, placed }) => {
      const [top, height] = SHAPES[bars.kind];
      const y = TOP + window.rows.indexOf(bars.lane) * LANE + top;
      const path = placed.map(([from, to]) => `M${short(from)} ${y}H${short(to)}v${height}H${short(from)}z`);
      return { ...bars, path: path.join('') };
    })
    .sort((a, b) => layerOf(a) - layerOf(b));
}

/** Open and failed ones are above the others of their kind. */
const layerOf = ({ kind, isOpen, isFailed }: Omit<Bars, 'path'>): number =>
  KINDS.indexOf(kind) * 3 + Number(isOpen) + Number(isFailed);

export function passagesOf(passages: readonly Passage[], window: Window) {
  const groups = new Map<Passage['kind'], { lines: string; ends: string }>();
  const lastOf = new Map<string, number>();
  for (const { kind, at, from, to } of passages) {
    const x = window.scale.at(at) * window.width - window.from;
    const key = `${kind} ${from} ${to}`;
    const last = lastOf.get(key);
    if (x < 0 || x > window.visible || (last !== undefined && x - last < THIN)) continue;
    lastOf.set(key, x);
    const [start, end] = [from, to].map((lane) => TOP + (window.rows.indexOf(lane) + 0.5) * LANE);
    if (start === undefined || end === undefined) continue;
    const tip = end - Math.sign(end - start) * (LANE / 2 - 10);
    const { lines, ends } = groups.get(kind) ?? { lines: '', ends: '' };
    groups.set(kind, {
      lines: `${lines}M${short(x)} ${start}V${tip}`,
      ends: `${ends}M${short(x - 2.5)} ${tip}a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0`,
    });
  }
  return [...groups].map(([kind, shapes]) => ({ kind, ...shapes }));
}

export function spanAt(spans: readonly Span[], window: Window, x: number, y: number): Span | null {
  const row = Math.floor((y - TOP) / LANE);
  const lane = window.rows[row];
  if (lane === undefined) return null;
  const inRow = y - TOP - row * LANE;
  const isThere = (span: Span) => {
    const [top, height] = SHAPES[span.kind];
    const [from, to] = extentOf(span, window);
    return inRow >= top - 1 && inRow <= top + height + 1 && x >= from - THIN && x <= to + THIN;
  };
  const found = spans.filter((span) => span.lane === lane && isThere(span));
  return found.sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind)).at(-1) ?? null;
}

/** Where it is, in pixels of the visible part. */
export function extentOf(span: Span, { scale, width, from }: Window): [from: number, to: number] {
  const start = scale.at(span.from) * width - from;
  const end = span.kind === 'post' ? start + POST_WIDTH : scale.at(span.to) * width - from;
  return [start, Math.max(end, start + 1)];
}

/** A number of each kind, for a person who does not see the picture. */
export function summaryOf({ spans, passages, agents }: Lanes): string {
  const counted = (kind: Span['kind']) => spans.filter((span) => span.kind === kind).length;
  const passed = (kind: Passage['kind']) => passages.filter((one) => one.kind === kind).length;
  const counts: readonly (readonly [count: number, what: string])[] = [
    [agents.length, 'agent'],
    [counted('turn'), 'turn'],
    [spans.filter(({ isFailed }) => isFailed).length, 'failed turn'],
    [counted('call'), 'model call'],
    [counted('tool'), 'tool call'],
    [passed('handoff'), 'handoff'],
    [passed('delegation-requested'), 'delegation'],
    [counted('post'), 'post'],
  ];
  return counts
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${count} ${what}${count === 1 ? '' : 's'}`)
    .join(', ');
}

/** The turn in this direction; without turns, the call or post. */
export function neighbour(stops: readonly Span[], rows: readonly string[], now: Span, key: string) {
  const at = stops.indexOf(now);
  if (key === 'ArrowRight') return stops[at + 1];
  if (key === 'ArrowLeft') return stops[at - 1];
  if (key === 'Home') return stops[0];
  if (key === 'End') return stops.at(-1);
  const by = key === 'ArrowDown' ? 1 : -1;
  const away = ({ from }: Span) => Math.abs(from - now.from);
  for (let row = rows.indexOf(now.lane) + by; row >= 0 && row < rows.length; row += by) {
    const inRow = stops.filter(({ lane }) => lane === rows[row]);
    if (inRow.length > 0) return inRow.sort((a, b) => away(a) - away(b))[0];
  }
  return undefined;
}

const short = (pixels: number): string => pixels.toFixed(1);
