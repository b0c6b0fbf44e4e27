import {
  type AgentSummary,
  type AnswerOf,
  type ConversationDetail,
  type ConversationSummary,
  showBytes,
} from '../../client/index.ts';
import { clockTime, type Palette, plural, printable, renderTable } from './text.ts';

/** A conversation on one line: what a switch answers with. */
export function renderState({ id, phase, mode, activeAgent, run, agents }: ConversationDetail): string {
  const floor = activeAgent ? `${activeAgent} has the floor` : 'no agent has the floor';
  const at = run ? `, run of ${run.workflow} at ${nodesOf(run)}` : '';
  const input = run?.awaitsInput ? `; ${run.agent} begins with the next message` : '';
  const working = run?.branches ?? (run ? [run] : []);
  const stopped = working
    .filter(({ agent }) => agent !== null && agents?.[agent]?.status === 'stopped')
    .map(({ agent }) => `; ${agent} is stopped: the run waits until it is resumed`)
    .join('');
  return `${id}: phase ${phase}, mode ${mode}, ${floor}${at}${stopped || input}`;
}

/** Where a run is: with branches side by side, each of them. */
export function nodesOf({ node, branches }: NonNullable<ConversationDetail['run']>): string {
  const each = branches?.map(({ branch, node: at, agent }) =>
    agent === null ? `${at} (the branch ${branch} waits)` : at,
  );
  return each?.join(' and ') ?? node;
}

/** `parley status ID` as text: each agent that does not just idle, and the files with their limit. */
export function renderDetail(detail: ConversationDetail): string {
  const { agents, files } = detail;
  const busy = Object.entries(agents).filter(([, { status }]) => status !== 'idle');
  const room =
    files && `${plural(files.count, 'file')}, ${showBytes(files.bytes)} of ${showBytes(files.maxBytes)}`;
  const lines = busy.map(([agent, { status }]) => `  ${agent}: ${status}`);
  return [renderState(detail), ...lines, ...(room ? [`  ${room}`] : [])].join('\n');
}

type Activity = NonNullable<ConversationSummary['activity']>[number];

/** What an agent waits for, in a few words, or what its tool reports; null: nothing. */
export function waitText({ status, for: what, of, asks, progress }: Activity): string | null {
  if (status === 'running' && progress) return printable(`${progress.tool}: ${progress.text}`);
  if (status !== 'waiting') return null;
  const name = printable(of ?? '');
  switch (what) {
    case 'approval':
      return asks === undefined ? `approval of ${name || 'a call'}` : `an answer to ${printable(asks)}`;
    case 'outcome':
      return `a decision: ${name || 'a call'} may have run`;
    case 'question':
      return 'an answer';
    case 'agent':
      return name || 'another agent';
    case 'caller':
      return `the result of ${name || 'a tool'} from the program that brought it`;
    case 'program':
      return `the program of ${name}`;
    case 'input':
      return 'a message';
    default:
      return 'something newer than this command';
  }
}

/** `45s`, `12m`, `3h`, `5d`; `-` if it is not known. */
export function ageText(since: string | null, now: number): string {
  const seconds = since === null ? Number.NaN : Math.max(0, now - Date.parse(since)) / 1_000;
  if (Number.isNaN(seconds)) return '-';
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, 's'];
  return `${Math.floor(seconds / size)}${unit}`;
}

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
] as const;

/** The roster as a table: who there is, when each answers, what each is for. */
export function renderAgents(agents: readonly AgentSummary[], palette: Palette): string {
  const rows = agents.map(({ slug, name, phases, modes, status, description, ...rest }) => [
    slug,
    name,
    list(phases),
    list(modes),
    statusText(status, rest.connected),
    description,
    modelText(rest),
  ]);
  return renderTable(
    ['SLUG', 'NAME', 'PHASES', 'MODES', 'STATUS', 'DESCRIPTION', 'MODEL'],
    rows,
    palette.dim,
  );
}

/** A turn may wait for a program that is not connected. */
function statusText(status: string, connected: boolean | undefined): string {
  return connected === false && status !== 'not connected' ? `${status}, not connected` : status;
}

const list = (names: readonly string[]) => (names.length === 0 ? '-' : names.join(','));

function modelText({ model, parameters, headers }: Partial<AgentSummary>): string {
  if (model === undefined) return '-';
  const added = [parametersText(parameters), headersText(headers)].filter((text) => text !== null);
  return added.length === 0 ? model : `${model} (${added.join('; ')})`;
}

/** `temperature 0.2, stop ["END"]`; null: none. */
export function parametersText(parameters: Readonly<Record<string, unknown>> = {}): string | null {
  const texts = Object.entries(parameters).map(([name, value]) => {
    return `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
  });
  return texts.length === 0 ? null : printable(texts.join(', '));
}

export function headersText(headers: readonly string[] = []): string | null {
  return headers.length === 0 ? null : `${headers.join(', ')} (values hidden)`;
}

type Status = AnswerOf<'status'>;
type Group = Status['running'];
type DaemonStatus = Status['daemons'][number];

/** `parley status` as text. */
export function renderStatus(status: Status, palette: Palette): string {
  const now = Date.parse(status.at);
  const parts = [
    daemonsText(status.daemons, now, palette),
    countsText(status, now),
    ...connectionsText(status, palette),
    ...GROUPS.flatMap(([name, paint]) => groupText(name, status[name], now, palette[paint])),
  ];
  return parts.join('\n');
}

const GROUPS = [
  ['waiting', 'yellow'],
  ['running', 'green'],
  ['failed', 'red'],
  ['limited', 'yellow'],
  ['stopped', 'yellow'],
] as const;

function daemonsText(daemons: readonly DaemonStatus[], now: number, palette: Palette): string {
  return daemons
    .map(({ daemon, version, startedAt, store, data, nats, http, owns, error }) => {
      const name = palette.bold(daemon === null ? 'daemon' : `daemon ${daemon}`);
      if (error !== undefined) return `${name}  ${palette.red(printable(error))}`;
      const held =
        owns && daemon !== null ? `works on ${plural(owns.count, 'conversation')}${listed(owns)}` : null;
      const facts = [
        `version ${version ?? '?'}, up ${ageText(startedAt ?? null, now)}, ${store ?? '?'} store`,
        `data ${data ?? '?'}`,
        `nats ${nats ?? '?'}`,
        `http ${http ?? 'off'}`,
        ...(held === null ? [] : [held]),
      ];
      return [`${name}  ${facts[0]}`, ...facts.slice(1).map((fact) => `  ${printable(fact)}`)].join('\n');
    })
    .join('\n');
}

function listed({ count, first }: NonNullable<DaemonStatus['owns']>): string {
  if (count === 0) return '';
  return `: ${first.join(', ')}${count > first.length ? ` and ${count - first.length} more` : ''}`;
}

function countsText({ conversations, queue, deadLetters }: Status, now: number): string {
  const waiting =
    queue === null
      ? 'queue unknown: the server did not answer'
      : `${plural(queue.posts, 'post')} not in a log${queue.oldestAt === null ? '' : `, the oldest for ${ageText(queue.oldestAt, now)}`}`;
  const letters = deadLetters === null ? 'dead letters unknown' : plural(deadLetters, 'dead letter');
  return `${plural(conversations, 'conversation')}; ${waiting}; ${letters}`;
}

function connectionsText({ agents, daemons }: Status, palette: Palette): string[] {
  const programs = agents.map(({ agent, connected, absent }) => {
    if (connected) return `agent ${agent}: connected`;
    const then = absent === 'wait' ? 'turns wait for it' : 'turns fail';
    return `agent ${agent}: ${palette.red('not connected')}, ${then}`;
  });
  const servers = daemons.flatMap(({ daemon, servers = [] }) =>
    servers.map(({ server, state, leftOut = [], error }) => {
      const at = daemons.length > 1 ? ` of ${daemon}` : '';
      const shown =
        state === 'ready' ? 'connected' : palette.red(state === 'failed' ? 'not connected' : state);
      const why = [...(error === undefined ? [] : [error]), ...leftOut.map((tool) => `left out ${tool}`)];
      const told = printable(why.join('; ')).replaceAll('\n', ' ');
      return `MCP server ${server}${at}: ${shown}${told === '' ? '' : ` (${told})`}`;
    }),
  );
  const models = daemons.flatMap(({ daemon, backOff = [] }) =>
    backOff.map(({ model, key, code, failures, until }) => {
      const which = `${model}${key === undefined ? '' : `, key ${key}`}${daemons.length > 1 ? ` of ${daemon}` : ''}`;
      const why = `${printable(code)}, ${plural(failures, 'failure')} in a row`;
      return `model ${which}: ${palette.red('left out')} until ${clockTime(until)} (${why})`;
    }),
  );
  return [...programs, ...servers, ...models];
}

function groupText(
  name: string,
  { count, first }: Group,
  now: number,
  paint: (text: string) => string,
): string[] {
  if (count === 0) return [];
  const rows = first.map((row) => [
    row.conversation,
    row.agent,
    ageText(row.since, now),
    waitText(row) ?? row.of ?? '',
    row.title ?? '',
  ]);
  const more = count > first.length ? [`… and ${count - first.length} more`] : [];
  const reason = name === 'waiting' ? 'FOR' : 'WHY';
  const table = renderTable(['CONVERSATION', 'AGENT', 'SINCE', reason, 'TITLE'], rows);
  return ['', paint(`${name} (${count})`), table, ...more];
}
