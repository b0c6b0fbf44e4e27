import { type Spent, spentTogether } from '../../conversation/state/usage.ts';
import type { BackOffStatus, DaemonStatus, ModelStatus, ProgramStatus, Status } from './answers.ts';
import { clockTimeOf, dayOf, fullTime, roughly } from './format.ts';

/** What the page of the team and the system shows. */

export type Problem = Readonly<{ text: string; detail?: string | undefined; isOfLetters?: boolean }>;

/** Posts are usually in a log within a second. */
const OLD_POST_MS = 30_000;

/** What is wrong with the daemons and what they are connected to; empty: nothing. */
export function problemsOf(
  status: Pick<Status, 'at' | 'daemons' | 'queue' | 'deadLetters' | 'agents'>,
): readonly Problem[] {
  const { daemons, queue, deadLetters, agents } = status;
  const isConnected = new Map(agents.map(({ agent, connected }) => [agent, connected]));
  return [
    ...daemons.flatMap((daemon) => (daemon.error === undefined ? [] : [silent(daemon)])),
    ...(queue === null ? [{ text: 'The nats-server did not answer' }] : lateOf(queue, Date.parse(status.at))),
    ...agents.filter(({ connected }) => !connected).map(absent),
    ...daemons.flatMap((daemon) => failedServers(daemon, daemons.length > 1)),
    ...daemons.flatMap(({ models = [] }) => models.filter(isFailing).map(failing)),
    ...daemons.flatMap(({ backOff = [] }) => backOff.map(leftOut)),
    ...daemons.flatMap(({ programs = [] }) =>
      programs.filter((one) => isConnected.get(one.agent) && isFailing(one)).map(failing),
    ),
    ...(deadLetters ? [refused(deadLetters)] : []),
  ];
}

const refused = (posts: number): Problem => ({
  text: `${posts === 1 ? '1 post was' : `${posts} posts were`} refused`,
  isOfLetters: true,
});

/** Its newest call failed. */
export function isFailing({ failure, answeredAt = '' }: ModelStatus | ProgramStatus): boolean {
  return failure !== undefined && failure.at > answeredAt;
}

function silent({ daemon, error }: DaemonStatus): Problem {
  return { text: `Daemon ${daemon ?? ''} does not answer`, detail: error };
}

function lateOf({ posts, oldestAt }: NonNullable<Status['queue']>, now: number): readonly Problem[] {
  const age = oldestAt === null ? 0 : now - Date.parse(oldestAt);
  const text = `${posts === 1 ? '1 post waits' : `${posts} posts wait`} for a daemon`;
  return age < OLD_POST_MS ? [] : [{ text, detail: `the oldest for ${roughly(age)}` }];
}

function absent({ agent, absent }: Status['agents'][number]): Problem {
  const turns = absent === 'wait' ? 'its turns wait for its program' : 'its turns fail';
  const detail = `${turns}; start the program that connects as this agent (docs/guides/remote-agents.md)`;
  return { text: `Agent ${agent} is not connected`, detail };
}

function failedServers({ daemon, servers = [] }: DaemonStatus, isOneOfSeveral: boolean): readonly Problem[] {
  return servers
    .filter(({ state }) => state === 'failed')
    .map(({ server, error }) => ({
      text: `MCP server ${server} is not connected${isOneOfSeveral ? ` to ${daemon}` : ''}`,
      detail: error,
    }));
}

function failing(called: ModelStatus | ProgramStatus): Problem {
  const name = 'model' in called ? `model ${called.model}` : `agent ${called.agent}`;
  return { text: `The newest call of ${name} failed`, detail: called.failure?.code };
}

function leftOut({ model, key, code, failures, until }: BackOffStatus): Problem {
  const which = key === undefined ? `Model ${model}` : `Key ${key} of model ${model}`;
  const often = failures === 1 ? '' : `, ${failures} times in a row`;
  const text = `${which} is left out until ${clockTimeOf(Date.parse(until))}`;
  return { text, detail: `${code}${often}; another model or key answers where one is configured` };
}

/** `at`: the time of the state that the page shows; null: it has none. */
export function awayProblem(at: string | null, now: number): Problem {
  const text = 'The daemon does not answer';
  if (at === null) return { text, detail: 'this page is filled when it does' };
  const time = dayOf(at, now) === 'Today' ? clockTimeOf(Date.parse(at)) : fullTime(at);
  return { text, detail: `this page shows the state of ${time}` };
}

/** What model calls used, for a chart by day and a table by agent. */
export type Unit = 'usd' | 'tokens';

export type Chart = ReturnType<typeof chartOf>;
export type Sum = Omit<Spent, 'day'>;

export function sumsOf(spent: readonly Spent[]): readonly Sum[] {
  return [...spentTogether(spent.map((one) => ({ ...one, day: '' })))].sort(
    (a, b) => b.usd - a.usd || b.tokens - a.tokens,
  );
}

const DAY_MS = 86_400_000;

/**
 * The days up to `now` (ISO 8601), also those without calls. `parts`: from the bottom up, in the order of the agents. `most`: the largest
 * total; at least a little, so that it can divide.
 */
export function chartOf(spent: readonly Spent[], unit: Unit, now: string, count: number) {
  const agents = sumsOf(spent).map(({ agent }) => agent);
  const days = Array.from({ length: count }, (_, n) => {
    const day = new Date(Date.parse(now) - (count - 1 - n) * DAY_MS).toISOString().slice(0, 10);
    const ofDay = spent.filter((one) => one.day === day);
    const parts = agents.flatMap((agent) =>
      ofDay.filter((one) => one.agent === agent && one[unit] > 0).map((one) => ({ agent, value: one[unit] })),
    );
    return { day, parts, total: parts.reduce((sum, { value }) => sum + value, 0) };
  });
  return { days, most: Math.max(Number.EPSILON, ...days.map(({ total }) => total)) };
}
