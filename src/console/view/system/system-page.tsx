import type { DaemonStatus, McpServer, ModelStatus } from '../../model/answers.ts';
import { count, duration, roughly, when } from '../../model/format.ts';
import { isFailing } from '../../model/system.ts';
import { linkTo } from '../../state/route.ts';
import { identity, isAway, leaveSession, me } from '../../state/session.ts';
import { problems, type System, system } from '../../state/system.ts';
import { chooseTheme, THEMES, theme } from '../../state/theme.ts';
import { Button, Select } from '../parts/controls.tsx';
import { useHeading } from '../parts/hooks.ts';
import { BackLink, Facts, Fold, Tags } from '../parts/parts.tsx';
import { Letters } from './letters.tsx';
import { SpendingView, Team } from './team.tsx';

/** The agents, what they cost, and the state of the daemons and of all that these are connected to. */
export function SystemPage() {
  useHeading('Team and system');
  const now = system.value;
  return (
    <main class="page system" aria-busy={now === null && !isAway.value}>
      <header class="head">
        <BackLink />
        <h2 tabIndex={-1}>Team and system</h2>
        <a class="button turns" href={linkTo.turns}>
          Turns
        </a>
        <label class="setting theme">
          <span class="muted">Theme</span>
          <Select
            label="Theme"
            value={theme.value}
            options={THEMES.map((one) => [one, one] as const)}
            onChoose={(one) => chooseTheme(one as typeof theme.value)}
          />
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
        <div class="system-body">
          <Health />
          {now && (
            <div class="system-parts">
              <div>
                <Team {...now} />
                <SpendingView {...now} />
                <Letters {...now} />
              </div>
              <div>
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
    <section class={`health ${found.length > 0 ? 'wrong' : 'well'}`} aria-label="Health" role="status">
      {found.length === 0 && <p>Everything works.</p>}
      {found.length > 0 && (
        <ul>
          {found.map(({ text, detail }) => (
            <li key={text}>
              {text}
              {detail && <span class="muted">{detail}</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Daemons({ status }: System) {
  const { daemons, queue, deadLetters, at } = status;
  const oldest = queue?.oldestAt
    ? `, the oldest for ${roughly(Date.parse(at) - Date.parse(queue.oldestAt))}`
    : '';
  return (
    <section aria-labelledby="daemons">
      <h3 id="daemons">{daemons.length === 1 ? 'Daemon' : `${daemons.length} daemons`}</h3>
      <Facts
        class="facts"
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
        {name} <span class="state wrong">{error}</span>
      </p>
    );
  return (
    <>
      {daemon.daemon !== null && <h4>{name}</h4>}
      <Facts
        class="facts"
        facts={[
          ['Version', version],
          ['Up for', startedAt ? roughly(now - Date.parse(startedAt)) : '?'],
          ['Store', `${store}, ${data}`],
          ['NATS', nats ?? ''],
          ['HTTP', http ?? 'off'],
        ]}
      />
      {owns && owns.count > 0 && (
        <Fold
          summary={`${owns.count === 1 ? '1 conversation' : `${count(owns.count)} conversations`} in memory`}
        >
          <ul class="tags">
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
      <table class="spending models">
        <thead>
          <tr>
            {['Calls', 'Failed', 'Mean', '95 %', 'First word'].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        {rows.map(({ daemon, model }) => (
          <ModelRows key={`${daemon} ${model.model}`} {...{ daemon, model }} />
        ))}
      </table>
      <p class="muted">Since the daemon started, as in /metrics.</p>
    </section>
  );
}

/** The name has a line of its own: it may be long. */
function ModelRows({ daemon, model }: { readonly daemon: string | null; readonly model: ModelStatus }) {
  const { calls, failed, seconds, firstTokenSeconds, failure } = model;
  const time = (value: number | undefined) => (value === undefined ? '-' : duration(value * 1_000));
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" colSpan={5}>
          {model.model}
          {daemon !== null && <span class="muted"> {daemon}</span>}
          {failure && ' '}
          {failure && (
            <span class={isFailing(model) ? 'state wrong' : 'muted'}>
              {failure.code}, {when(failure.at, Date.now())}
            </span>
          )}
        </th>
      </tr>
      <tr>
        {[count(calls), count(failed), time(seconds?.mean), time(seconds?.p95), time(firstTokenSeconds)].map(
          (text, place) => (
            <td key={place}>{text}</td>
          ),
        )}
      </tr>
    </tbody>
  );
}

function Servers({ servers }: System) {
  if (servers.length === 0) return null;
  return (
    <section aria-labelledby="servers">
      <h3 id="servers">MCP servers</h3>
      <ul class="servers">
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
    <li>
      <p class="server">
        <span>{server}</span>
        <span class={`state ${state === 'failed' ? 'wrong' : 'muted'}`}>{STATES[state] ?? state}</span>
      </p>
      {error && <p class="reason">{error}</p>}
      {tools.length > 0 && (
        <Fold summary={tools.length === 1 ? '1 tool' : `${tools.length} tools`}>
          <Tags texts={tools.map((tool) => tool.replace(`mcp__${server}__`, ''))} />
        </Fold>
      )}
    </li>
  );
}
