import { useMemo } from 'preact/hooks';
import { roughly } from '../../model/format.ts';
import type { Lanes } from '../../model/timeline/lanes.ts';
import { barsOf, LANE, passagesOf, summaryOf, TOP, type Window } from '../../model/timeline/shapes.ts';
import { ticksOf } from '../../model/timeline/time-axis.ts';
import { participants } from '../../state/conversation.ts';

/** Pixels that the length of a pause needs. */
const PAUSE_ROOM = 36;
/** Pixels that a character of a time needs. */
const CHARACTER = 6.5;

/** What the scrolled part of the timeline shows: a few paths, whatever the length of the log. */
export function Picture({ lanes, window }: { readonly lanes: Lanes; readonly window: Window }) {
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
          class={`span ${kind} c${participants.value.get(lane)?.colour ?? 0} ${isOpen ? 'open' : ''} ${isFailed ? 'failed' : ''}`}
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
