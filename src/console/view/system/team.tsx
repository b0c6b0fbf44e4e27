import type { ComponentProps } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import type { AgentCard, ProgramStatus } from '../../model/answers.ts';
import { costText, count, money, when } from '../../model/format.ts';
import { type Chart, chartOf, type Day, type Sum, sumsOf, type Unit } from '../../model/system.ts';
import { attempt } from '../../state/session.ts';
import { DAYS, type System } from '../../state/system.ts';
import { Button, Select } from '../parts/controls.tsx';
import { Avatar, Facts, hued, Icon, Name, Table, Tags } from '../parts/parts.tsx';
import { Scrolled, VisibleText } from '../parts/text.tsx';

export function Team({ agents, status }: System) {
  const sums = new Map(sumsOf(status.spent ?? []).map((sum) => [sum.agent, sum]));
  return (
    <section aria-labelledby="team">
      <h3 id="team">Team</h3>
      <ul class="team">
        {agents.map((agent) => {
          const { usd, unpricedCalls } = sums.get(agent.slug) ?? { usd: 0, unpricedCalls: 0 };
          const called = status.daemons.flatMap(({ programs = [] }) =>
            programs.filter((one) => one.agent === agent.slug),
          );
          return <Member key={agent.slug} {...{ agent, called }} cost={costText(usd, unpricedCalls)} />;
        })}
      </ul>
    </section>
  );
}

interface MemberProps {
  readonly agent: AgentCard;
  readonly cost: string;
  /** By each daemon; empty: it is called through a model. */
  readonly called: readonly ProgramStatus[];
}

function Member({ agent, cost, called }: MemberProps) {
  const { slug, name, description, model, tools, runtime } = agent;
  return (
    <li>
      <details class="member">
        <summary>
          <Avatar id={slug} />
          <span class="who">
            <Name id={slug} name={name} />
            <span class="muted">{description}</span>
          </span>
          <State agent={agent} />
          <span class="number" title={`Cost of its model calls in ${DAYS} days`}>
            {cost}
          </span>
          <Icon name="chevron" />
        </summary>
        <Facts
          facts={[
            ['Runs in', runtime === 'local' ? 'the daemon' : 'a program of its own'],
            ['Model', model],
            ['Calls', called.length > 0 && <Calls called={called} />],
            ['Tools', tools.length === 0 ? <span class="muted">none</span> : <Tags texts={tools} />],
          ]}
        />
        {runtime === 'local' && <Persona slug={slug} />}
      </details>
    </li>
  );
}

function Calls({ called }: Pick<MemberProps, 'called'>) {
  const total = (of: 'calls' | 'failed') => called.reduce((sum, one) => sum + one[of], 0);
  const failures = called.flatMap(({ failure }) => failure ?? []);
  const newest = failures.sort((a, b) => (a.at < b.at ? 1 : -1))[0];
  return (
    <>
      {count(total('calls'))}, {count(total('failed'))} failed
      {newest && (
        <span class="muted">
          {' '}
          ({newest.code}, {when(newest.at, Date.now())})
        </span>
      )}
    </>
  );
}

function State({ agent: { status, connected } }: { readonly agent: AgentCard }) {
  if (connected === false) return <span class="state wrong">not connected</span>;
  if (status === 'running')
    return (
      <span class="state">
        <span class="pulse" aria-hidden="true" /> at work
      </span>
    );
  return <span class="state muted">{status === 'waiting' ? 'waits' : connected ? 'connected' : status}</span>;
}

/** It is requested when a person wants to read it. */
function Persona({ slug }: { readonly slug: string }) {
  const [text, setText] = useState<string | null>(null);
  const read = () =>
    attempt(async () => {
      const { agents } = await requests.agents(slug);
      setText(agents.find((one) => one.slug === slug)?.persona ?? '');
    });
  if (text === null) return <Button onClick={() => void read()}>Read the persona</Button>;
  return (
    <Scrolled class="persona">
      <VisibleText text={text} />
    </Scrolled>
  );
}

const UNITS = [
  ['usd', 'Cost'],
  ['tokens', 'Tokens'],
] as const;

/** What model calls used by day and agent: a chart, and a table. */
export function SpendingView({ status: { spent = [], at } }: System) {
  const sums = useMemo(() => sumsOf(spent), [spent]);
  const [chosen, choose] = useState<Unit | null>(null);
  const unit = chosen ?? (sums.some(({ usd }) => usd > 0) ? 'usd' : 'tokens');
  const chart = useMemo(() => chartOf(spent, unit, at, DAYS), [spent, unit, at.slice(0, 10)]);
  return (
    <section aria-labelledby="used">
      <header class="part-head">
        <h3 id="used">Used in {DAYS} days</h3>
        <Select
          label="Unit of the chart"
          value={unit}
          options={UNITS}
          onChoose={(value) => choose(value as Unit)}
        />
      </header>
      {sums.length === 0 ? (
        <p class="muted">No model was called.</p>
      ) : (
        <>
          <p class="most">up to {amount(chart.most, unit)} a day</p>
          <Bars chart={chart} unit={unit} />
          <Table
            columns={COLUMNS}
            rows={sums.map((sum) => [sum.agent, sum])}
            mark={(agent) => <span {...hued(agent, 'swatch')} />}
          />
        </>
      )}
    </section>
  );
}

const COLUMNS: ComponentProps<typeof Table<Sum>>['columns'] = [
  ['Calls', ({ calls }) => count(calls)],
  ['Tokens', ({ tokens }) => count(tokens)],
  ['Cost', ({ usd, unpricedCalls }) => money(usd, unpricedCalls)],
];

function Bars({ chart: { days, most }, unit }: { readonly chart: Chart; readonly unit: Unit }) {
  return (
    <ol class="day-bars" aria-label={`${unit === 'usd' ? 'Cost' : 'Tokens'} by day`}>
      {days.map((day) => (
        <li key={day.day} title={describe(day, unit)}>
          <span class="unseen">{describe(day, unit)}</span>
          <span class="bar" aria-hidden="true">
            {day.parts.map(({ agent, value }) => (
              <span key={agent} {...hued(agent, 'part', { height: `${(value / most) * 100}%` })} />
            ))}
          </span>
          <span class="day" aria-hidden="true">
            {Number(day.day.slice(8))}
          </span>
        </li>
      ))}
    </ol>
  );
}

function describe({ day, total }: Day, unit: Unit): string {
  const date = new Date(day).toLocaleDateString([], { day: 'numeric', month: 'short', timeZone: 'UTC' });
  return `${date}: ${amount(total, unit)}`;
}

function amount(value: number, unit: Unit): string {
  return unit === 'usd' ? money(value) : `${count(Math.round(value))} tokens`;
}
