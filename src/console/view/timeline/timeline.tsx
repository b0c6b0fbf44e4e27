import type { ComponentProps, RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clockTimeOf, count, duration, money, roughly } from '../../model/format.ts';
import type { Thread } from '../../model/thread/thread.ts';
import type { Lanes, Span, Spending } from '../../model/timeline/lanes.ts';
import { lanesOf, lanesUntil, NOTHING_SPENT, PEOPLE, spentTogether } from '../../model/timeline/lanes.ts';
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
import { type TimeScale, ticksOf, timeScale } from '../../model/timeline/time-scale.ts';
import { announcement, connection, nameOf, opened, useThread } from '../../state/conversation.ts';
import { showEntry } from '../../state/route.ts';
import { useNow, useSize } from '../parts/hooks.ts';
import { Avatar, hued, Name, Table } from '../parts/parts.tsx';

const GROWS_EVERY_MS = 250;
/** As the person left them, by conversation, until the page is loaded again. `from`: the scroll position. */
const views = new Map<string, { readonly zoom: number; readonly from: number }>();
const viewHere = () => views.get(opened.value?.id ?? '') ?? { zoom: 1, from: 0 };
const keepView = (change: object) => views.set(opened.value?.id ?? '', { ...viewHere(), ...change });

/** A wait is a pause with an end. */
const worked = ({ kind, from, to }: Span) => ({
  from: kind === 'wait' || kind === 'approval' ? to : from,
  to,
});

export function Timeline() {
  const thread = useThread()?.thread;
  const lanes = useLanes(thread);
  const [shown, show] = useState<Span | null>(null);
  const [zoom, setZoom] = useState(viewHere().zoom);
  const scale = useMemo(() => timeScale(lanes.spans.map(worked)), [lanes]);
  const rows = useMemo(() => [PEOPLE, ...lanes.agents], [lanes]);
  if (!thread || thread.entries.length === 0) return <div class="timeline scrolls" />;
  const most = Math.max(3, Math.min(12, Math.ceil(Math.log2(scale.worked / 1_000))));
  const setPower = (power: number) => {
    const next = 2 ** Math.min(most, Math.max(0, power));
    keepView({ zoom: next });
    setZoom(next);
  };
  return (
    <section class="timeline scrolls" aria-label="Timeline">
      <div class="lanes stacked-3">
        <ul class="lane-names" style={{ paddingTop: `${TOP}px` }}>
          {rows.map((lane) => (
            <li key={lane} class="abreast one-line text-small" style={{ height: `${LANE}px` }}>
              {lane === PEOPLE ? (
                <span class="muted">People</span>
              ) : (
                <>
                  <Avatar id={lane} size="small" />
                  <Name id={lane} />
                </>
              )}
            </li>
          ))}
        </ul>
        <LanePicture
          {...{ lanes, scale, rows, zoom }}
          onZoom={(by) => setPower(Math.log2(zoom) + by)}
          onShow={show}
        />
      </div>
      <p class="lane-readout text-small">{shown ? describe(shown) : HINT}</p>
      <div class="timeline-foot wraps muted">
        <Legend />
        <label class="zoom inline text-tiny at-end">
          <span class="muted">zoom</span>
          <input
            type="range"
            min="0"
            max={most}
            step="0.25"
            value={Math.log2(zoom)}
            aria-label="Zoom"
            aria-valuetext={`${Math.round(zoom * 100)} %`}
            onInput={(event) => setPower(Number(event.currentTarget.value))}
          />
        </label>
      </div>
      <Table
        caption="Usage by agent"
        columns={COLUMNS}
        rows={[...lanes.spending]}
        sum={[...lanes.spending.values()].reduce(spentTogether, NOTHING_SPENT)}
      />
    </section>
  );
}

function useLanes(thread: Thread | undefined): Lanes {
  const entries = thread?.entries ?? [];
  const lanes = useMemo(() => lanesOf(entries), [thread, entries.length]);
  const isGrowing = lanes.isWorking && connection.value.kind === 'live';
  const now = useNow(isGrowing ? GROWS_EVERY_MS : null);
  return useMemo(() => (isGrowing ? lanesUntil(lanes, now) : lanes), [lanes, isGrowing, now]);
}

const HINT = (
  <span class="muted">
    A click opens the entry of a bar.{' '}
    <span class="keys">Keys in the picture: arrows move between turns, Enter opens, + and − zoom.</span>
  </span>
);

/** The kinds with their height in a swatch; null: a line. */
const LEGEND: readonly (readonly [kind: string, word: string, height: number | null])[] = [
  ['post', 'message of a person', 10],
  ['turn', 'turn', 10],
  ['turn failed', 'failed turn', 8],
  ['call', 'model call', 8],
  ['tool', 'tool', 6],
  ['wait', 'waits', 4],
  ['approval', 'waits for a person', 6],
  ['handoff', 'handoff', null],
  ['delegation-requested', 'delegation', null],
  ['delegation-answered', 'its answer', null],
];

function Legend() {
  return (
    <ul class="legend wraps text-tiny">
      {LEGEND.map(([kind, word, height]) => (
        <li key={kind} class="inline">
          <svg {...hued('', `swatch passage-line ${kind}`)} viewBox="0 0 14 10" aria-hidden="true">
            {height === null ? (
              <path class="line" d="M0 5H14" />
            ) : (
              <rect
                class={`span ${kind}`}
                y={5 - height / 2}
                width={kind === 'post' ? 3 : 14}
                height={height}
              />
            )}
          </svg>
          {word}
        </li>
      ))}
    </ul>
  );
}

const COLUMNS: ComponentProps<typeof Table<Spending>>['columns'] = [
  ['Calls', ({ calls }) => count(calls)],
  ['Tokens in', ({ inputTokens }) => count(inputTokens)],
  ['out', ({ outputTokens }) => count(outputTokens)],
  ['Cost', ({ usd, unpricedCalls }) => money(usd, unpricedCalls)],
  ['Model', ({ modelMs }) => duration(modelMs)],
  ['Tools', ({ toolMs }) => duration(toolMs)],
];

/** Pixels from the right end at which the picture follows new entries. */
const NEAR_END = 8;

interface PictureProps {
  readonly lanes: Lanes;
  readonly scale: TimeScale;
  readonly rows: readonly string[];
  readonly zoom: number;
  /** By powers of two. */
  readonly onZoom: (by: number) => void;
  readonly onShow: (span: Span | null) => void;
}

function LanePicture({ lanes, scale, rows, zoom, onZoom, onShow }: PictureProps) {
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
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault(); // the page would be zoomed
    onZoom(-event.deltaY / 200);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the button in it is for the keyboard
    <div
      class="lane-picture"
      ref={scroller}
      onScroll={onScroll}
      onWheel={onWheel}
      onClick={(event) => openSpan(spanUnder(event))}
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

function openSpan(span: Span | null): void {
  if (span) showEntry(opened.value?.id ?? '', span.index);
}

/** The width and the scroll position. Zooming keeps what is in the middle; at the right end, the end stays visible. */
function useScroll(scroller: RefObject<HTMLDivElement | null>, zoom: number) {
  const [visible, setVisible] = useState(0);
  const [from, setFrom] = useState(0);
  const last = useRef({ zoom, isAtEnd: true });
  useSize(scroller, (place) => setVisible(place.clientWidth));
  useLayoutEffect(() => {
    if (visible > 0) scroller.current?.scrollTo({ left: viewHere().from });
  }, [visible > 0]);
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
    keepView({ from: place.scrollLeft });
    setFrom(place.scrollLeft);
  };
  return { visible, from, onScroll };
}

/** Pixels of the button around a bar; smaller ones are hard to hit. */
const LEAST_TARGET = 24;

type ButtonProps = Pick<PictureProps, 'lanes' | 'onZoom' | 'onShow'> & { readonly window: Window };

/** For the keyboard: of a pointer, the picture opens what is under it. */
function TurnButton({ lanes, window, onZoom, onShow }: ButtonProps) {
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
      onClick={({ detail }) => openSpan(detail === 0 ? now : null)}
    />
  );
}

/** Where the keyboard stops: the turns in their order; without turns, the calls and posts. */
function stopsOf({ spans }: Lanes): readonly Span[] {
  const turns = spans.filter(({ kind }) => kind === 'turn');
  const stops = turns.length > 0 ? turns : spans.filter(({ kind }) => kind === 'call' || kind === 'post');
  return [...stops].sort((a, b) => a.from - b.from || a.index - b.index);
}

function describe(span: Span): string {
  const label = span.lane === PEOPLE ? `${span.label} writes` : `${nameOf(span.lane)}: ${span.label}`;
  const length = span.kind === 'post' ? '' : `, ${duration(span.to - span.from)}`;
  return `${label}${length}${span.isOpen ? ' so far' : ''}, at ${clockTimeOf(span.from)}`;
}

/** Pixels that the length of a pause needs. */
const PAUSE_ROOM = 24;
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
