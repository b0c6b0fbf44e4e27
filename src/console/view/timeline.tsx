import { useMemo, useState } from 'preact/hooks';
import { count, duration, money, roughly } from '../model/format.ts';
import { type Lanes, lanesOf, type Passage, PEOPLE, type Span, type Spending } from '../model/lanes.ts';
import { type TimeScale, timeScale } from '../model/time-scale.ts';
import { nameOf, opened, participants, useThread } from '../state/conversation.ts';
import { jumpTo } from '../state/jump.ts';
import { go, linkTo } from '../state/route.ts';
import { Avatar, Name } from './parts.tsx';

const LANE = 46;
const TOP = 26;
/** Positions in percent of the width, for SVG. */
const percent = (share: number) => `${(share * 100).toFixed(3)}%`;

/** One lane per agent, time from left to right; pauses are shortened. */
export function Timeline() {
  const thread = useThread()?.thread;
  const length = thread?.entries.length ?? 0;
  const [zoom, setZoom] = useState(1);
  const lanes = useMemo(() => lanesOf(thread?.entries ?? []), [thread, length]);
  const scale = useMemo(() => timeScale(lanes.spans.filter(({ kind }) => kind !== 'wait')), [lanes]);
  const rows = [PEOPLE, ...lanes.agents];
  if (length === 0) return <div class="timeline" />;
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
        <div class="lane-picture">
          <svg
            role="img"
            aria-label={`${rows.length - 1} agents over ${duration(scale.worked)} of work`}
            style={{ width: `${zoom * 100}%`, height: `${TOP + rows.length * LANE}px` }}
          >
            <Picture lanes={lanes} scale={scale} rows={rows} />
          </svg>
        </div>
      </div>
      <div class="timeline-foot">
        <Legend />
        <label class="zoom">
          <span class="muted">wider</span>
          <input
            type="range"
            min="1"
            max="12"
            step="0.5"
            value={zoom}
            aria-label="Width"
            onInput={(event) => setZoom(Number(event.currentTarget.value))}
          />
        </label>
      </div>
      <SpendingTable lanes={lanes} />
    </section>
  );
}

interface PictureProps {
  readonly lanes: Lanes;
  readonly scale: TimeScale;
  readonly rows: readonly string[];
}

const ORDER: readonly Span['kind'][] = ['wait', 'turn', 'call', 'tool', 'approval', 'post'];

function Picture({ lanes, scale, rows }: PictureProps) {
  const y = (lane: string) => TOP + rows.indexOf(lane) * LANE;
  const spans = [...lanes.spans].sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  return (
    <>
      {rows.map((lane) => (
        <line key={lane} class="lane-line" x1="0" x2="100%" y1={y(lane) + LANE / 2} y2={y(lane) + LANE / 2} />
      ))}
      {scale.pauses.map((pause) => (
        <g key={pause.from}>
          <title>nothing for {duration(pause.to - pause.from)}</title>
          <rect
            class="pause"
            x={percent(pause.x)}
            width={percent(pause.width)}
            y="0"
            height={TOP + rows.length * LANE}
          />
          <text class="pause-word" x={percent(pause.x + pause.width / 2)} y="16">
            {roughly(pause.to - pause.from)}
          </text>
        </g>
      ))}
      {spans
        .filter(({ lane }) => rows.includes(lane))
        .map((span) => (
          <SpanShape
            key={`${span.kind} ${span.index} ${span.lane}`}
            span={span}
            y={y(span.lane)}
            scale={scale}
          />
        ))}
      {lanes.passages.map((passage) => (
        <PassageShape key={`${passage.kind} ${passage.index}`} passage={passage} y={y} scale={scale} />
      ))}
    </>
  );
}

function SpanShape({
  span,
  y,
  scale,
}: {
  readonly span: Span;
  readonly y: number;
  readonly scale: TimeScale;
}) {
  const x = scale.at(span.from);
  const width = span.kind === 'post' ? '3' : percent(scale.at(span.to) - x);
  const colour = participants.value.get(span.lane)?.colour ?? 0;
  const [top, height] = SHAPES[span.kind];
  const look = () => {
    go(linkTo.conversation(opened.value?.id ?? ''));
    requestAnimationFrame(() => jumpTo(span.index));
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a picture; the thread has the same for the keyboard
    <g class={`span ${span.kind} c${colour}`} onClick={look}>
      <title>{`${span.lane === PEOPLE ? span.label : `${nameOf(span.lane)}: ${span.label}`}, ${duration(span.to - span.from)}`}</title>
      <rect x={percent(x)} width={width} y={y + top} height={height} rx="2" />
    </g>
  );
}

const SHAPES: Readonly<Record<Span['kind'], readonly [number, number]>> = {
  turn: [10, LANE - 20],
  wait: [LANE / 2 - 2, 4],
  call: [14, LANE - 28],
  tool: [LANE - 15, 6],
  approval: [LANE - 15, 6],
  post: [11, LANE - 22],
};

function PassageShape({
  passage,
  y,
  scale,
}: {
  readonly passage: Passage;
  readonly y: (lane: string) => number;
  readonly scale: TimeScale;
}) {
  const x = percent(scale.at(passage.at));
  const from = y(passage.from) + LANE / 2;
  const to = y(passage.to) + LANE / 2;
  const direction = Math.sign(to - from);
  const end = to - direction * (LANE / 2 - 10);
  const words = { handoff: 'hands over to', delegation: 'asks', answer: 'answers' }[passage.kind];
  return (
    <g class={`passage-line ${passage.kind}`}>
      <title>{`${nameOf(passage.from)} ${words} ${nameOf(passage.to)}`}</title>
      <line x1={x} x2={x} y1={from} y2={end} />
      <circle cx={x} cy={end} r="2.5" />
    </g>
  );
}

function Legend() {
  const words: readonly (readonly [string, string])[] = [
    ['turn', 'turn'],
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

function SpendingTable({ lanes }: { readonly lanes: Lanes }) {
  const rows = [...lanes.spending];
  const sum = (key: keyof Spending) => rows.reduce((total, [, spent]) => total + spent[key], 0);
  return (
    <table class="spending">
      <caption>Usage by agent</caption>
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Calls</th>
          <th scope="col">Tokens in</th>
          <th scope="col">out</th>
          <th scope="col">Cost</th>
          <th scope="col">Model</th>
          <th scope="col">Tools</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([slug, spent]) => (
          <tr key={slug}>
            <th scope="row">
              <Name id={slug} />
            </th>
            <td>{count(spent.calls)}</td>
            <td>{count(spent.inputTokens)}</td>
            <td>{count(spent.outputTokens)}</td>
            <td>{money(spent.usd, spent.unpricedCalls)}</td>
            <td>{duration(spent.modelMs)}</td>
            <td>{duration(spent.toolMs)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">All</th>
          <td>{count(sum('calls'))}</td>
          <td>{count(sum('inputTokens'))}</td>
          <td>{count(sum('outputTokens'))}</td>
          <td>{money(sum('usd'), sum('unpricedCalls'))}</td>
          <td>{duration(sum('modelMs'))}</td>
          <td>{duration(sum('toolMs'))}</td>
        </tr>
      </tfoot>
    </table>
  );
}
