import { useEffect, useMemo, useState } from 'preact/hooks';
import { count, duration, money } from '../../model/format.ts';
import type { Thread } from '../../model/thread/thread.ts';
import {
  GrowingLanes,
  type Lanes,
  NOTHING_SPENT,
  PEOPLE,
  type Span,
  type Spending,
  spentTogether,
} from '../../model/timeline/lanes.ts';
import { LANE, TOP } from '../../model/timeline/shapes.ts';
import { timeScale } from '../../model/timeline/time-scale.ts';
import { connection, useThread } from '../../state/conversation.ts';
import { Avatar, Name } from '../parts/parts.tsx';
import { describe, LanePicture } from './scroller.tsx';

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
      <p class="lane-readout">{shown ? describe(shown) : <Hint />}</p>
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
      <SpendingTable lanes={lanes} />
    </section>
  );
}

/** The lanes until the last entry, or until now while an agent works. */
function useLanes(thread: Thread | undefined): Lanes {
  const growing = useMemo(() => new GrowingLanes(), [thread]);
  growing.addNew(thread?.entries ?? []);
  const isGrowing = growing.isWorking && connection.value.kind === 'live';
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!isGrowing) return;
    const tick = () => document.visibilityState === 'visible' && setNow(Date.now());
    tick();
    const timer = setInterval(tick, GROWS_EVERY_MS);
    return () => clearInterval(timer);
  }, [isGrowing]);
  const until = isGrowing ? now : 0;
  return useMemo(() => growing.until(until), [growing, thread?.entries.length, until]);
}

function Hint() {
  return (
    <>
      <span class="muted for-pointer">
        Point at a bar for its details. Keys in the picture: arrows move between turns, Enter opens, + and −
        zoom.
      </span>
      <span class="muted for-touch">Touch a bar to open its entry.</span>
    </>
  );
}

function Legend() {
  const words: readonly (readonly [string, string])[] = [
    ['post', 'message of a person'],
    ['turn', 'turn'],
    ['failed', 'failed turn'],
    ['call', 'model call'],
    ['tool', 'tool'],
    ['wait', 'waits'],
    ['approval', 'waits for a person'],
    ['handoff', 'handoff'],
    ['delegation', 'delegation'],
  ];
  return (
    <ul class="legend">
      {words.map(([kind, word]) => (
        <li key={kind}>
          <span class={`swatch ${kind}`} aria-hidden="true" />
          {word}
        </li>
      ))}
    </ul>
  );
}

const COLUMNS: readonly (readonly [heading: string, cell: (spent: Spending) => string])[] = [
  ['Calls', ({ calls }) => count(calls)],
  ['Tokens in', ({ inputTokens }) => count(inputTokens)],
  ['out', ({ outputTokens }) => count(outputTokens)],
  ['Cost', ({ usd, unpricedCalls }) => money(usd, unpricedCalls)],
  ['Model', ({ modelMs }) => duration(modelMs)],
  ['Tools', ({ toolMs }) => duration(toolMs)],
];

function SpendingTable({ lanes }: { readonly lanes: Lanes }) {
  const cells = (spent: Spending) => COLUMNS.map(([heading, cell]) => <td key={heading}>{cell(spent)}</td>);
  return (
    <table class="spending">
      <caption>Usage by agent</caption>
      <thead>
        <tr>
          {['Agent', ...COLUMNS.map(([heading]) => heading)].map((heading) => (
            <th key={heading} scope="col">
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {[...lanes.spending].map(([slug, spent]) => (
          <tr key={slug}>
            <th scope="row">
              <Name id={slug} />
            </th>
            {cells(spent)}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">All</th>
          {cells([...lanes.spending.values()].reduce(spentTogether, NOTHING_SPENT))}
        </tr>
      </tfoot>
    </table>
  );
}
