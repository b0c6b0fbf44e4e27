import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

/** Renders only what is visible, so that a long list costs as much as a short one. */
export function useVirtualList(options: {
  readonly count: number;
  readonly scrolled: () => HTMLElement | null;
  /** Another function: the keys may be others, so all places are computed again. */
  readonly keyOf: (place: number) => string | number;
  readonly estimate: (place: number) => number;
}): Virtualizer<HTMLElement, HTMLElement> {
  const [, show] = useState(0);
  const all = {
    count: options.count,
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
  useEffect(() => list._didMount(), [list]);
  useLayoutEffect(() => list._willUpdate());
  return list;
}
