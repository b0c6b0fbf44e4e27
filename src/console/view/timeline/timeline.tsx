import type { ComponentProps } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { count, duration, money } from '../../model/format.ts';
import type { Thread } from '../../model/thread/thread.ts';
import {
  type Lanes,
  lanesOf,
  lanesUntil,
  NOTHING_SPENT,
  PEOPLE,
  type Span,
  type Spending,
  spentTogether,
} from '../../model/timeline/lanes.ts';
import { LANE, TOP } from '../../model/timeline/shapes.ts';
import { timeScale } from '../../model/timeline/time-scale.ts';
import { connection, useThread } from '../../state/conversation.ts';
import { useNow } from '../parts/hooks.ts';
import { Avatar, hued, Name, Table } from '../parts/parts.tsx';
import { describe, LanePicture } from './picture.tsx';

const GROWS_EVERY_MS = 250;

/** One lane per agent, time from left to right; pauses are shortened. */
export function Timeline() {
  const thread = useThread()?.thread;
  const lanes = useLanes(thread);
  const [shown, show] = useState<Span | null>(null);
  const [zoom, setZoom] = useState(1);
  const scale = useMemo(
    () => timeScale(lanes.spans.filter(({ kind }) => kind !== 'wait' && kind !== 'approval')),
    [lanes],
  );
  const rows = useMemo(() => [PEOPLE, ...lanes.agents], [lanes]);
  if (!thread || thread.entries.length === 0) return <div class="timeline" />;
  const most = Math.max(3, Math.min(12, Math.ceil(Math.log2(scale.worked / 1_000))));
  const setPower = (power: number) => setZoom(2 ** Math.min(most, Math.max(0, power)));
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="lanes">
        <ul class="lane-names" style={{ paddingTop: `${TOP}px` }}>
          {rows.map((lane) => (
            <li key={lane} style={{ height: `${LANE}px` }}>
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
          lanes={lanes}
          scale={scale}
          rows={rows}
          zoom={zoom}
          onZoom={(by) => setPower(Math.log2(zoom) + by)}
          onShow={show}
        />
      </div>
      <p class="lane-readout">{shown ? describe(shown) : <span class="muted">{HINT}</span>}</p>
      <div class="timeline-foot">
        <Legend />
        <label class="zoom">
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

/** The lanes until the last entry, or until now while an agent works. */
function useLanes(thread: Thread | undefined): Lanes {
  const entries = thread?.entries ?? [];
  const lanes = useMemo(() => lanesOf(entries), [thread, entries.length]);
  const isGrowing = lanes.isWorking && connection.value.kind === 'live';
  const now = useNow(isGrowing ? GROWS_EVERY_MS : null);
  return useMemo(() => (isGrowing ? lanesUntil(lanes, now) : lanes), [lanes, isGrowing, now]);
}

const HINT =
  'A click opens the entry of a bar. Keys in the picture: arrows move between turns, Enter opens, + and − zoom.';

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
  ['delegation', 'delegation', null],
];

function Legend() {
  return (
    <ul class="legend">
      {LEGEND.map(([kind, word, height]) => (
        <li key={kind}>
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
