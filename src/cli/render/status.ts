import type { AnswerOf } from '../../client/index.ts';
import { ageText, waitText } from './activity.ts';
import type { Palette } from './palette.ts';
import { renderTable } from './table.ts';
import { printable } from './text.ts';

/** `parley status` as text; pure. */

type Status = AnswerOf<'status'>;
type Group = Status['running'];
type DaemonStatus = Status['daemons'][number];

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
        owns && daemon !== null ? `works on ${counted(owns.count, 'conversation')}${listed(owns)}` : null;
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

/** The ids of the first conversations of a daemon. */
function listed({ count, first }: NonNullable<DaemonStatus['owns']>): string {
  if (count === 0) return '';
  return `: ${first.join(', ')}${count > first.length ? ` and ${count - first.length} more` : ''}`;
}

function countsText({ conversations, queue, deadLetters }: Status, now: number): string {
  const waiting =
    queue === null
      ? 'queue unknown: the server did not answer'
      : `${counted(queue.posts, 'post')} not in a log${queue.oldestAt === null ? '' : `, the oldest for ${ageText(queue.oldestAt, now)}`}`;
  const letters = deadLetters === null ? 'dead letters unknown' : counted(deadLetters, 'dead letter');
  return `${counted(conversations, 'conversation')}; ${waiting}; ${letters}`;
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
  return [...programs, ...servers];
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

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
