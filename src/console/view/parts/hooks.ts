import { signal } from '@preact/signals';
import {
  defaultRangeExtractor,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type Range,
  Virtualizer,
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { whileVisible } from '../../api/browser.ts';
import { heading } from '../../state/inbox.ts';

/** The answer to a request, and why there is none; both null while it is awaited. */
export function useRequest<T>(ask: () => Promise<T>, inputs: readonly unknown[]) {
  const [answer, setAnswer] = useState<T | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    ask().then(
      (given) => !isOver && setAnswer(() => given),
      (error: Error) => !isOver && setFault(error.message),
    );
    return () => (isOver = true);
  }, inputs);
  return { answer, fault };
}

/** The time, as it goes by. Null: it stands still. */
export function useNow(everyMs: number | null): number {
  const [now, setNow] = useState(Date.now);
  const tick = () => setNow(Date.now());
  useEffect(() => (everyMs === null ? undefined : whileVisible(tick, everyMs)), [everyMs]);
  return now;
}

/** Acts after a while, unless the inputs change before. Null: never. */
export function useTimeout(action: () => void, ms: number | null, inputs: readonly unknown[]): void {
  useEffect(() => {
    const timer = ms === null ? undefined : setTimeout(action, ms);
    return () => clearTimeout(timer);
  }, inputs);
}

/** What a pointer presses, until the click was delivered; null: nothing. */
const pressed = signal<EventTarget | null>(null);
const DELIVERED_MS = 100;
/** An open list or menu may take the end of a press. */
const LONGEST_MS = 3_000;
let timer: ReturnType<typeof setTimeout> | undefined;
const releaseIn = (ms: number) => {
  clearTimeout(timer);
  timer = setTimeout(() => (pressed.value = null), ms);
};
addEventListener('pointerdown', ({ target }) => {
  pressed.value = target;
  releaseIn(LONGEST_MS);
});
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => releaseIn(DELIVERED_MS));

/** Nothing in this place may move: a click whose button is elsewhere at its end is lost. */
export function isPressed(place: Element | null): boolean {
  return place !== null && pressed.value instanceof Node && place.contains(pressed.value);
}

/** The value, which does not change while its place is pressed. */
export function useSteady<T>(value: T, place: RefObject<Element | null>): T {
  const steady = useRef(value);
  if (!isPressed(place.current)) steady.current = value;
  return steady.current;
}

export function useHeading(text: string): void {
  useEffect(() => {
    heading.value = text;
    return () => (heading.value = '');
  }, [text]);
}

/** Renders only what is visible, so that a long list costs as much as a short one. */
export function useVirtualList(options: {
  readonly count: number;
  readonly scrolled: () => HTMLElement | null;
  /** Another function: the keys may be others, so all places are computed again. */
  readonly keyOf: (place: number) => string | number;
  readonly estimate: (place: number) => number;
  /** Rendered wherever they are, since they may have the focus. -1: none. */
  readonly kept: readonly number[];
}): Virtualizer<HTMLElement, HTMLElement> {
  const [, show] = useState(0);
  const { kept, count } = options;
  const placesOf = useCallback(
    (range: Range) => {
      const places = new Set([...defaultRangeExtractor(range), ...kept]);
      return [...places].filter((place) => place >= 0 && place < count).sort((a, b) => a - b);
    },
    [kept.join(), count],
  );
  const all = {
    count,
    rangeExtractor: placesOf,
    getScrollElement: options.scrolled,
    getItemKey: options.keyOf,
    estimateSize: options.estimate,
    overscan: 6,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => show((shown) => shown + 1),
  };
  const [list] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(all));
  list.setOptions(all);
  // What changes above the view moves nothing in it, also while a person scrolls up, when the default leaves known heights alone.
  // At the end it would scroll to a place that is not there yet, and do so when more has arrived. What shrinks out of the view, such
  // as an answered call, comes back to where its end was, or into the view.
  list.shouldAdjustScrollPositionOnItemSizeChange = ({ key, start, end }, delta) => {
    const [at, height] = [list.scrollOffset ?? 0, list.scrollRect?.height ?? 0];
    if (list.isAtEnd()) return false;
    if (!list.itemSizeCache.has(key)) return start + 1 <= at;
    if (end > at && end + delta <= at) list.scrollOffset = Math.max(at, end - height); // `delta` is added to it
    return Math.min(end, end + delta) <= at;
  };
  useEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  return list;
}

/** Calls back when the size of an element changes, and first when it is there. */
export function useSize(element: RefObject<HTMLElement | null>, onSize: (place: HTMLElement) => void): void {
  const latest = useRef(onSize);
  latest.current = onSize;
  useEffect(() => {
    const place = element.current;
    const watcher = new ResizeObserver(() => place && latest.current(place));
    if (place) watcher.observe(place);
    return () => watcher.disconnect();
  }, []);
}
