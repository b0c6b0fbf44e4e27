import type { ComponentProps } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { RequestError, requests } from '../../api/requests.ts';
import type { AgentCard, DaemonStatus, DeadLetter, McpServer, ModelStatus } from '../../model/answers.ts';
import { costText, count, duration, money, roughly } from '../../model/format.ts';
import { type Chart, chartOf, isFailing, type Sum, sumsOf, type Unit } from '../../model/system.ts';
import { rows, titleOf } from '../../state/conversations.ts';
import { linkTo } from '../../state/route.ts';
import {
  attempt,
  chooseTheme,
  identity,
  isAway,
  isOperator,
  leaveSession,
  me,
  THEMES,
  theme,
} from '../../state/session.ts';
import { DAYS, MOST_LETTERS, problems, refresh, type System, system } from '../../state/system.ts';
import { Button, Confirm, LinkButton, QuietButton, Select } from '../parts/controls.tsx';
import { useHeading } from '../parts/hooks.ts';
import {
  Avatar,
  BackLink,
  Facts,
  Fold,
  hued,
  Icon,
  Name,
  Table,
  TableHead,
  Tags,
  When,
} from '../parts/parts.tsx';
import { Scrolled, VisibleText } from '../parts/text.tsx';

/** The agents, what they cost, and the state of the daemons and of all that these are connected to. */
export function SystemPage() {
  useHeading('Team and system');
  const now = system.value;
  return (
    <main class="page system column" aria-busy={now === null && !isAway.value}>
      <header class="head abreast">
        <BackLink />
        <h2 tabIndex={-1}>Team and system</h2>
        <a class="button turns" href={linkTo.turns}>
          Turns
        </a>
        <label class="setting theme text-small inline">
          <span class="muted">Theme</span>
          <Select label="Theme" value={theme.value} options={THEMES} onChoose={chooseTheme} />
        </label>
        {identity.value?.isSession && (
          <Button
            class="sign-out"
            title={`You are ${me.value}, with the role ${identity.value.role}`}
            onClick={() => void leaveSession()}
          >
            Sign out
          </Button>
        )}
      </header>
      {(now || isAway.value) && (
        <div class="system-body scrolls">
          <Health />
          {now && (
            <div class="system-parts fits">
              <div class="fits">
                <Team {...now} />
                <SpendingView {...now} />
                <Letters {...now} />
              </div>
              <div class="fits">
                <Daemons {...now} />
                <Models {...now} />
                <Servers {...now} />
              </div>
            </div>
          )}
        </div>
      )}
    </main>
  );
}

function Health() {
  const found = problems.value;
  return (
    <section
      class={`health text-small ${found.length > 0 ? 'wrong' : 'well'}`}
      aria-label="Health"
      role="status"
    >
      {found.length === 0 ? (
        <p>Everything works.</p>
      ) : (
        <ul class="stacked-1">
          {found.map(({ text, detail, isOfLetters }) => (
            <li key={text} class="wraps breaks">
              {text}
              {detail && <span class="muted">{detail}</span>}
              {isOfLetters && <LinkButton onClick={focusLetters}>Show them</LinkButton>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

const focusLetters = () => document.querySelector<HTMLElement>('.letters button')?.focus();

function Daemons({ status }: System) {
  const { daemons, queue, deadLetters, at } = status;
  const oldest = queue?.oldestAt
    ? `, the oldest for ${roughly(Date.parse(at) - Date.parse(queue.oldestAt))}`
    : '';
  return (
    <section aria-labelledby="daemons">
      <h3 id="daemons">{daemons.length === 1 ? 'Daemon' : `${daemons.length} daemons`}</h3>
      <Facts
        class="facts text-small"
        facts={[
          ['Posts not in a log yet', queue === null ? 'unknown' : `${count(queue.posts)}${oldest}`],
          ['Refused posts', deadLetters === null ? 'unknown' : count(deadLetters)],
        ]}
      />
      {daemons.map((daemon) => (
        <Daemon key={daemon.daemon ?? ''} daemon={daemon} now={Date.parse(at)} />
      ))}
    </section>
  );
}

function Daemon({ daemon, now }: { readonly daemon: DaemonStatus; readonly now: number }) {
  const { version = '?', startedAt, store, data, nats, http, owns, error } = daemon;
  const name = daemon.daemon ?? `version ${version}`;
  if (error !== undefined)
    return (
      <p>
        {name} <span class="state wrong inline">{error}</span>
      </p>
    );
  return (
    <>
      {daemon.daemon !== null && <h4>{name}</h4>}
      <Facts
        class="facts text-small"
        facts={[
          ['Version', version],
          ['Up for', startedAt ? roughly(now - Date.parse(startedAt)) : '?'],
          ['Store', `${store}, ${data}`],
          ['NATS', nats ?? ''],
          ['HTTP', http ?? 'off'],
        ]}
      />
      {owns && owns.count > 0 && (
        <Fold summary={`Conversations in memory: ${count(owns.count)}`}>
          <ul class="tags wraps">
            {owns.first.map((id) => (
              <li key={id}>
                <a href={linkTo.conversation(id)}>{id}</a>
              </li>
            ))}
            {owns.count > owns.first.length && (
              <li class="muted">and {owns.count - owns.first.length} more</li>
            )}
          </ul>
        </Fold>
      )}
    </>
  );
}

function Models({ status: { daemons } }: System) {
  const rows = daemons.flatMap(({ daemon, models = [] }) => models.map((model) => ({ daemon, model })));
  if (rows.length === 0) return null;
  return (
    <section aria-labelledby="models">
      <h3 id="models">Models</h3>
      <table class="spending models text-small">
        <TableHead headings={['Calls', 'Failed', 'Mean', '95 %', 'First word']} />
        {rows.map(({ daemon, model }) => (
          <ModelRows key={`${daemon} ${model.model}`} {...{ daemon, model }} />
        ))}
      </table>
      <p class="muted text-tiny">
        Calls of turns since the daemon started, as in /metrics; what-ifs are not among them. 95 %: estimated,
        from {FEW} calls on.
      </p>
    </section>
  );
}

/** Fewer calls have no 95 %. */
const FEW = 20;

/** The name has a line of its own: it may be long. */
function ModelRows({ daemon, model }: { readonly daemon: string | null; readonly model: ModelStatus }) {
  const { calls, failed, seconds, firstTokenSeconds, failure } = model;
  const p95 = calls < FEW ? undefined : seconds?.p95;
  const time = (value: number | undefined) => (value === undefined ? '-' : duration(value * 1_000));
  const figures = [count(calls), count(failed), ...[seconds?.mean, p95, firstTokenSeconds].map(time)];
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" class="breaks" colSpan={5}>
          {model.model}
          {daemon !== null && <span class="muted text-tiny"> {daemon}</span>}{' '}
          {failure && (
            <span class={`text-tiny ${isFailing(model) ? 'state wrong' : 'muted'}`}>
              {failure.code}, <When at={failure.at} class="" />
            </span>
          )}
        </th>
      </tr>
      <tr>
        {figures.map((text, place) => (
          <td key={place}>{text}</td>
        ))}
      </tr>
    </tbody>
  );
}

function Servers({ servers }: System) {
  if (servers.length === 0) return null;
  return (
    <section aria-labelledby="servers">
      <h3 id="servers">MCP servers</h3>
      <ul class="servers frame text-small">
        {servers.map((server) => (
          <Server key={server.server} {...server} />
        ))}
      </ul>
    </section>
  );
}

const STATES: Readonly<Record<string, string>> = { ready: 'connected', failed: 'not connected' };

function Server({ server, state, tools, error }: McpServer) {
  return (
    <li class="fits breaks">
      <p class="server wraps">
        <span>{server}</span>
        <span class={`state inline at-end ${state === 'failed' ? 'wrong' : 'muted'}`}>
          {STATES[state] ?? state}
        </span>
      </p>
      {error && <p class="fault">{error}</p>}
      {tools.length > 0 && (
        <Fold summary={tools.length === 1 ? '1 tool' : `${tools.length} tools`}>
          <Tags texts={tools.map((tool) => tool.replace(`mcp__${server}__`, ''))} />
        </Fold>
      )}
    </li>
  );
}

function Team({ agents, status }: System) {
  const sums = new Map(sumsOf(status.spent ?? []).map((sum) => [sum.agent, sum]));
  return (
    <section aria-labelledby="team">
      <h3 id="team">Team</h3>
      <ul class="team frame text-small">
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
  readonly called: NonNullable<DaemonStatus['programs']>;
}

function Member({ agent, cost, called }: MemberProps) {
  const { slug, name, description, model, tools, runtime } = agent;
  const { id } = rows.value.find(({ waiting }) => waiting.includes(slug)) ?? {};
  return (
    <li>
      <details class="member">
        <summary>
          <Avatar id={slug} />
          <span class="who">
            <Name id={slug} name={name} />
            <span class="muted one-line">{description}</span>
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
            ['Waits in', id && <a href={linkTo.conversation(id)}>{titleOf(id) ?? id}</a>],
            ['Calls', called.length > 0 && <Calls called={called} />],
            ['Tools', tools.length === 0 ? <span class="muted">none</span> : <Tags texts={tools} />],
          ]}
        />
        {runtime === 'local' && <OnDemand read={() => personaOf(slug)}>Read the persona</OnDemand>}
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
          ({newest.code}, <When at={newest.at} />)
        </span>
      )}
    </>
  );
}

function State({ agent: { status, connected } }: { readonly agent: AgentCard }) {
  if (connected === false) return <span class="state wrong inline">not connected</span>;
  if (status === 'running')
    return (
      <span class="state inline">
        <span class="pulse" aria-hidden="true" /> at work
      </span>
    );
  const word = status === 'waiting' ? 'waits' : connected ? 'connected' : status;
  return <span class="state muted inline">{word}</span>;
}

function OnDemand({ read, ...button }: ComponentProps<'button'> & { readonly read: () => Promise<string> }) {
  const [text, setText] = useState<string | null>(null);
  const show = () => attempt(async () => setText(await read()));
  if (text === null) return <Button {...button} onClick={() => void show()} />;
  return <Scrolled class="persona" text={text} />;
}

async function personaOf(slug: string): Promise<string> {
  const { agents } = await requests.agents(slug);
  return agents.find((one) => one.slug === slug)?.persona ?? '';
}

const UNITS = [
  ['usd', 'Cost'],
  ['tokens', 'Tokens'],
] as const;

function SpendingView({ status: { spent = [], at } }: System) {
  const sums = useMemo(() => sumsOf(spent), [spent]);
  const [chosen, choose] = useState<Unit | null>(null);
  const unit = chosen ?? (sums.some(({ usd }) => usd > 0) ? 'usd' : 'tokens');
  const chart = useMemo(() => chartOf(spent, unit, at, DAYS), [spent, unit, at.slice(0, 10)]);
  return (
    <section aria-labelledby="used">
      <header class="part-head abreast">
        <h3 id="used">Used in {DAYS} days</h3>
        <Select label="Unit of the chart" value={unit} options={UNITS} onChoose={choose} />
      </header>
      {sums.length === 0 ? (
        <p class="muted">No model was called.</p>
      ) : (
        <>
          <p class="most muted text-tiny">up to {amount(chart.most, unit)} a day</p>
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
        <li key={day.day} class="fills" title={describe(day, unit)}>
          <span class="unseen">{describe(day, unit)}</span>
          <span class="bar" aria-hidden="true">
            {day.parts.map(({ agent, value }) => (
              <span key={agent} {...hued(agent, 'part', { height: `${(value / most) * 100}%` })} />
            ))}
          </span>
          <span class="day muted" aria-hidden="true">
            {Number(day.day.slice(8))}
          </span>
        </li>
      ))}
    </ol>
  );
}

function describe({ day, total }: Chart['days'][number], unit: Unit): string {
  const date = new Date(day).toLocaleDateString([], { day: 'numeric', month: 'short', timeZone: 'UTC' });
  return `${date}: ${amount(total, unit)}`;
}

function amount(value: number, unit: Unit): string {
  return unit === 'usd' ? money(value) : `${count(Math.round(value))} tokens`;
}

function Letters({ letters, status: { deadLetters } }: System) {
  const more = Math.max(0, (deadLetters ?? 0) - letters.length);
  if (letters.length === 0) return null;
  return (
    <section aria-labelledby="letters">
      <h3 id="letters">Refused posts</h3>
      <ul class="letters frame text-small">
        {letters.map((letter) => (
          <Letter key={letter.sequence} letter={letter} />
        ))}
      </ul>
      {letters.length >= MOST_LETTERS && more > 0 && (
        <p class="muted">
          {more} older ones: <code>parley dead ls</code> lists all.
        </p>
      )}
    </section>
  );
}

function Letter({ letter }: { readonly letter: DeadLetter }) {
  const { sequence, at, publisher, conversation, code, reason, hint } = letter;
  const read = async () => (await requests.deadLetter(sequence)).original;
  return (
    <li class="fits breaks">
      <p class="by wraps text-small">
        <span class="state wrong inline">{code}</span>
        <span>
          <VisibleText text={publisher} /> to{' '}
          <a href={linkTo.conversation(conversation)}>
            <VisibleText text={conversation} />
          </a>
        </span>
        <When at={at} />
      </p>
      <p>
        <VisibleText text={reason} />
      </p>
      {hint && <p class="muted">{hint}</p>}
      <div class="buttons">
        <OnDemand class="quiet" read={read}>
          Show the post
        </OnDemand>
        {isOperator.value && <Actions {...letter} />}
      </div>
    </li>
  );
}

/** Codes of posts that no retry can append. */
const FINAL = ['MALFORMED_JSON', 'INVALID_UTF8', 'INVALID_NAME', 'UNREADABLE', 'SKIPPED'];
/** Codes of a retry that was refused for good: the list does not say that a letter is of many posts. */
const NOT_RETRYABLE = ['NOT_RETRYABLE', 'DEAD_LETTER_CUT'];

function Actions({ sequence, code, truncated }: DeadLetter) {
  const [isAsked, ask] = useState(false);
  const [isFinal, setFinal] = useState(truncated === true || FINAL.includes(code));
  const act = async (action: () => Promise<unknown>) => {
    if (await attempt(action)) await refresh().catch(() => undefined);
  };
  const retry = () =>
    requests.retryLetter(sequence).catch((error) => {
      if (error instanceof RequestError && NOT_RETRYABLE.includes(error.code)) setFinal(true);
      throw error;
    });
  const discard = () => void act(() => requests.discardLetter(sequence));
  if (isAsked) return <Confirm action="Discard for good" onConfirm={discard} onCancel={() => ask(false)} />;
  return (
    <>
      {isFinal ? (
        <span class="muted">It cannot be posted again as it is.</span>
      ) : (
        <Button onClick={() => void act(retry)}>Post again</Button>
      )}
      <QuietButton onClick={() => ask(true)}>Discard</QuietButton>
    </>
  );
}
