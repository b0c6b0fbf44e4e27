import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clockTimeOf, duration, roughly } from '../../model/format.ts';
import { type Lanes, PEOPLE, type Span } from '../../model/timeline/lanes.ts';
import {
  barsOf,
  extentOf,
  LANE,
  neighbour,
  passagesOf,
  spanAt,
  summaryOf,
  TOP,
  type Window,
} from '../../model/timeline/shapes.ts';
import { type TimeScale, ticksOf } from '../../model/timeline/time-scale.ts';
import { announcement, nameOf, opened } from '../../state/conversation.ts';
import { showEntry } from '../../state/route.ts';
import { hued } from '../parts/parts.tsx';

/** Pixels from the right end at which the picture follows new entries. */
const NEAR_END = 8;

interface Properties {
  readonly lanes: Lanes;
  readonly scale: TimeScale;
  readonly rows: readonly string[];
  readonly zoom: number;
  /** By powers of two. */
  readonly onZoom: (by: number) => void;
  readonly onShow: (span: Span | null) => void;
}

/** The scrolled picture, with one button that moves from turn to turn. */
export function LanePicture({ lanes, scale, rows, zoom, onZoom, onShow }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const { visible, from, onScroll } = useScroll(scroller, zoom);
  const window = useMemo<Window>(
    () => ({ scale, rows, width: visible * zoom, from, visible }),
    [scale, rows, zoom, from, visible],
  );
  const spanUnder = ({ clientX, clientY }: MouseEvent) => {
    const box = scroller.current?.getBoundingClientRect();
    return box ? spanAt(lanes.spans, window, clientX - box.left, clientY - box.top) : null;
  };
  const look = (event: MouseEvent) => {
    const span = spanUnder(event);
    if (span) openSpan(span);
  };
  useWheelZoom(scroller, onZoom);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the button in it is for the keyboard
    <div
      class="lane-picture"
      ref={scroller}
      onScroll={onScroll}
      onClick={look}
      onMouseMove={(event) => onShow(spanUnder(event))}
      onMouseLeave={() => onShow(null)}
    >
      <div class="lane-width" style={{ width: `${window.width}px`, height: `${TOP + rows.length * LANE}px` }}>
        {visible > 0 && <Picture lanes={lanes} window={window} />}
        {visible > 0 && <TurnButton lanes={lanes} window={window} onZoom={onZoom} onShow={onShow} />}
      </div>
    </div>
  );
}

function openSpan(span: Span): void {
  showEntry(opened.value?.id ?? '', span.index);
}

/** The width and the scroll position. Zooming keeps what is in the middle; at the right end, the end stays visible. */
function useScroll(scroller: RefObject<HTMLDivElement | null>, zoom: number) {
  const [visible, setVisible] = useState(0);
  const [from, setFrom] = useState(0);
  const last = useRef({ zoom, isAtEnd: true });
  useEffect(() => {
    const place = scroller.current;
    if (!place) return;
    const watcher = new ResizeObserver(() => setVisible(place.clientWidth));
    watcher.observe(place);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const place = scroller.current;
    if (!place || last.current.zoom === zoom) return;
    const middle = (place.scrollLeft + place.clientWidth / 2) * (zoom / last.current.zoom);
    const end = place.scrollWidth - place.clientWidth;
    place.scrollLeft = last.current.isAtEnd && last.current.zoom > 1 ? end : middle - place.clientWidth / 2;
    last.current.zoom = zoom;
    setFrom(place.scrollLeft);
  }, [zoom]);
  const onScroll = () => {
    const place = scroller.current;
    if (!place) return;
    last.current.isAtEnd = place.scrollWidth - place.clientWidth - place.scrollLeft < NEAR_END;
    setFrom(place.scrollLeft);
  };
  return { visible, from, onScroll };
}

/** With Ctrl, as on maps. A listener of its own, because it prevents the zoom of the page. */
function useWheelZoom(scroller: RefObject<HTMLDivElement | null>, onZoom: (by: number) => void) {
  const zoomBy = useRef(onZoom);
  zoomBy.current = onZoom;
  useEffect(() => {
    const place = scroller.current;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomBy.current(-event.deltaY / 200);
    };
    place?.addEventListener('wheel', onWheel, { passive: false });
  }, []);
}

/** Pixels of the button around a bar; smaller ones are hard to hit. */
const LEAST_TARGET = 24;

function TurnButton({
  lanes,
  window,
  onZoom,
  onShow,
}: Pick<Properties, 'lanes' | 'onZoom' | 'onShow'> & { readonly window: Window }) {
  const button = useRef<HTMLButtonElement>(null);
  const [chosen, choose] = useState<number | null>(null);
  const stops = useMemo(() => stopsOf(lanes), [lanes]);
  const now = stops.find(({ index }) => index === chosen) ?? stops.at(-1);
  useLayoutEffect(() => {
    if (chosen !== null) button.current?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
  }, [chosen, window.width]);
  if (!now) return null;
  const [start, end] = extentOf(now, window);
  const width = Math.max(LEAST_TARGET, end - start + 4);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === '+' || event.key === '-') onZoom(event.key === '+' ? 0.5 : -0.5);
    else if (/^Arrow|^Home$|^End$/.test(event.key)) {
      const next = neighbour(stops, window.rows, now, event.key);
      if (next) {
        choose(next.index);
        onShow(next);
        announcement.value = describe(next);
      }
    } else return;
    event.preventDefault();
  };
  return (
    <button
      type="button"
      class="turn-button"
      ref={button}
      aria-label={describe(now)}
      style={{
        left: `${window.from + (start + end) / 2 - width / 2}px`,
        top: `${TOP + window.rows.indexOf(now.lane) * LANE + 6}px`,
        width: `${width}px`,
        height: `${LANE - 12}px`,
      }}
      onKeyDown={onKeyDown}
      onFocus={() => onShow(now)}
      onBlur={() => onShow(null)}
      onClick={(event) => {
        if (event.detail !== 0) return; // the pointer: the picture opens what is under it
        openSpan(now);
      }}
    />
  );
}

/** Where the keyboard stops: the turns in their order; without turns, the calls and posts. */
function stopsOf({ spans }: Lanes): readonly Span[] {
  const turns = spans.filter(({ kind }) => kind === 'turn');
  const stops = turns.length > 0 ? turns : spans.filter(({ kind }) => kind === 'call' || kind === 'post');
  return [...stops].sort((a, b) => a.from - b.from || a.index - b.index);
}

/** A span in words. */
export function describe(span: Span): string {
  const label = span.lane === PEOPLE ? `${span.label} writes` : `${nameOf(span.lane)}: ${span.label}`;
  const length = span.kind === 'post' ? '' : `, ${duration(span.to - span.from)}`;
  return `${label}${length}${span.isOpen ? ' so far' : ''}, at ${clockTimeOf(span.from)}`;
}

/** Pixels that the length of a pause needs. */
const PAUSE_ROOM = 36;
/** Pixels that a character of a time needs. */
const CHARACTER = 6.5;

/** What the scrolled part of the timeline shows: a few paths, whatever the length of the log. */
function Picture({ lanes, window }: { readonly lanes: Lanes; readonly window: Window }) {
  const { rows, visible } = window;
  const bars = useMemo(() => barsOf(lanes.spans, window), [lanes, window]);
  const passages = useMemo(() => passagesOf(lanes.passages, window), [lanes, window]);
  const summary = useMemo(() => summaryOf(lanes), [lanes]);
  const height = TOP + rows.length * LANE;
  return (
    <svg role="img" aria-label={summary} width={visible} height={height}>
      <Axis window={window} height={height} />
      {rows.map((lane, row) => (
        <line
          key={lane}
          class="lane-line"
          x1="0"
          x2={visible}
          y1={TOP + (row + 0.5) * LANE}
          y2={TOP + (row + 0.5) * LANE}
        />
      ))}
      {bars.map(({ lane, kind, isOpen, isFailed, path }) => (
        <path
          key={`${kind} ${isOpen} ${isFailed} ${lane}`}
          {...hued(lane, `span ${kind} ${isOpen ? 'open' : ''} ${isFailed ? 'failed' : ''}`)}
          d={path}
        />
      ))}
      {passages.map(({ kind, lines, ends }) => (
        <g key={kind} class={`passage-line ${kind}`}>
          <path class="line" d={lines} />
          <path class="end" d={ends} />
        </g>
      ))}
    </svg>
  );
}

function Axis({ window, height }: { readonly window: Window; readonly height: number }) {
  const { scale, width, from, visible } = window;
  const ticks = useMemo(() => ticksOf(scale, width, from, from + visible), [window]);
  const pauses = useMemo(
    () =>
      scale.pauses
        .map((pause) => ({ ...pause, left: pause.x * width - from, wide: pause.width * width }))
        .filter(({ left, wide }) => left + wide > 0 && left < visible),
    [window],
  );
  return (
    <>
      <path
        class="pause"
        d={pauses
          .map(({ left, wide }) => `M${left.toFixed(1)} 0h${wide.toFixed(1)}V${height}h-${wide.toFixed(1)}z`)
          .join('')}
      />
      {pauses
        .filter(({ wide }) => wide >= PAUSE_ROOM)
        .map((pause) => (
          <text key={pause.from} class="pause-word" x={pause.left + pause.wide / 2} y="17">
            {roughly(pause.to - pause.from)}
          </text>
        ))}
      <path class="tick-line" d={ticks.map(({ x }) => `M${(x - from).toFixed(1)} 24V${height}`).join('')} />
      {ticks
        .filter(({ x, label }) => x - from + label.length * CHARACTER < visible)
        .map(({ x, label }) => (
          <text key={label} class="tick" x={x - from + 4} y="35">
            {label}
          </text>
        ))}
    </>
  );
}
