import { type ListTasksRequest, type ListTasksResponse, type Task, TaskState } from '@a2a-js/sdk';
import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { conversationOf } from '../conversation-id.ts';
import type { GatewayPort } from '../port.ts';
import { conversationRows, orElse, type Row, readLog } from '../progress/ask.ts';
import { AgentTask, type TaskPlace } from './task.ts';

/**
 * Lists the tasks of an agent, newest change first.
 *
 * LIST-1  Logs are read in the order of their last change, until the page is complete: no task changed later than its
 *         conversation. `totalSize` counts the tasks of the logs that were read.
 * LIST-2  Only one log and the tasks of one page plus one are in memory. A client that disconnects ends the reading.
 * LIST-3  A page starts after the task that the token names, whatever has changed since.
 */

const PAGE_SIZE = 50;
const MOST_PAGE_SIZE = 100;

interface Source {
  readonly daemon: GatewayPort;
  /** Null: any agent. */
  readonly agent: string | null;
  readonly address: (conversation: string) => TaskPlace['address'];
}

type Changed = Pick<Row, 'id' | 'updatedAt'>;

/** The sort key of a task. */
interface SortKey {
  readonly at: string;
  readonly id: string;
}

interface Wanted {
  readonly pageSize: number;
  readonly after: SortKey | null;
  readonly since: string;
  readonly status: TaskState;
}

export async function listTasks(
  { daemon, agent, address }: Source,
  request: ListTasksRequest,
  signal: AbortSignal,
): Promise<ListTasksResponse> {
  const wanted = wantedBy(request);
  const rows = await rowsOf(daemon, request.contextId);
  let rest: AgentTask[] = [];
  let totalSize = 0;
  for (const { id, updatedAt } of rows) {
    if (updatedAt < wanted.since || isCertain(rest, wanted, updatedAt)) break;
    signal.throwIfAborted();
    const place = { conversation: id, address: address(id) };
    const found = tasksIn(place, await orElse(readLog(daemon, id, 0), []), agent).filter((task) =>
      fits(task, wanted),
    );
    totalSize += found.length;
    rest = [...rest, ...found.filter((task) => isAfter(sortKeyOf(task), wanted.after))]
      .sort((one, other) => order(sortKeyOf(one), sortKeyOf(other)))
      .slice(0, wanted.pageSize + 1);
  }
  const page = rest.slice(0, wanted.pageSize);
  const last = page.at(-1);
  return {
    tasks: page.map((task) => shown(task, request)),
    nextPageToken: last && rest.length > page.length ? tokenOf(sortKeyOf(last)) : '',
    pageSize: wanted.pageSize,
    totalSize,
  };
}

function wantedBy(request: ListTasksRequest): Wanted {
  const { pageSize = PAGE_SIZE, pageToken, status, statusTimestampAfter: since } = request;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MOST_PAGE_SIZE)
    throw invalid(`pageSize must be an integer from 1 to ${MOST_PAGE_SIZE}`);
  if (status === TaskState.UNRECOGNIZED)
    throw invalid('status is no state of a task; TASK_STATE_WORKING is one');
  if (since !== undefined && Number.isNaN(Date.parse(since)))
    throw invalid('statusTimestampAfter is no time; 2026-01-31T12:00:00Z is one');
  return {
    pageSize,
    after: pageToken === '' ? null : sortKeyFrom(pageToken),
    since: since === undefined ? '' : new Date(since).toISOString(),
    status,
  };
}

/** Newest change first. */
async function rowsOf(daemon: GatewayPort, contextId: string): Promise<Changed[]> {
  if (contextId !== '') return [{ id: conversationOf(contextId), updatedAt: '~' }];
  const rows: Changed[] = [];
  for await (const row of conversationRows(daemon)) rows.push(row);
  return rows.sort((one, other) => (one.updatedAt > other.updatedAt ? -1 : 1));
}

/** Answers to questions belong to the task that asked. */
function tasksIn(place: TaskPlace, entries: readonly Entry[], agent: string | null): AgentTask[] {
  const answers = new Set(
    entries.flatMap((entry) => (entry.type === 'message' ? (entry.answers ?? []) : [])),
  );
  return entries.flatMap((entry, at) => {
    if (entry.type !== 'message' || entry.author.kind !== 'person' || answers.has(entry.index)) return [];
    if (agent !== null && !entry.to?.includes(agent)) return [];
    const task = new AgentTask(place, entry, agent, entries.slice(0, at));
    task.accept({ kind: 'entries', entries: entries.slice(at), isCurrent: true });
    return [task];
  });
}

function fits(task: AgentTask, { status, since }: Wanted): boolean {
  const isState = status === TaskState.TASK_STATE_UNSPECIFIED || task.state === status;
  return isState && task.changedAt >= since;
}

/** LIST-1: all remaining logs changed before the last task of the page. */
function isCertain(rest: readonly AgentTask[], { pageSize }: Wanted, updatedAt: string): boolean {
  return rest.filter((task) => task.changedAt > updatedAt).length > pageSize;
}

function shown(task: AgentTask, { historyLength, includeArtifacts }: ListTasksRequest): Task {
  const whole = task.snapshot(historyLength);
  return includeArtifacts ? whole : { ...whole, artifacts: [] };
}

function sortKeyOf({ changedAt, id }: AgentTask): SortKey {
  return { at: changedAt, id };
}

/** Newest first; at the same time by id. */
function order(one: SortKey, other: SortKey): number {
  if (one.at !== other.at) return one.at > other.at ? -1 : 1;
  return one.id > other.id ? -1 : 1;
}

function isAfter(place: SortKey, after: SortKey | null): boolean {
  return after === null || (place.id !== after.id && order(after, place) < 0);
}

function tokenOf({ at, id }: SortKey): string {
  return Buffer.from(JSON.stringify([at, id])).toString('base64url');
}

function sortKeyFrom(token: string): SortKey {
  try {
    const [at, id] = JSON.parse(Buffer.from(token, 'base64url').toString()) as unknown[];
    if (typeof at === 'string' && typeof id === 'string' && tokenOf({ at, id }) === token) return { at, id };
  } catch {
    // Not ours.
  }
  throw invalid('pageToken is none of this agent: send `nextPageToken` of the page before');
}

function invalid(message: string): ParleyError {
  return new ParleyError('BAD_REQUEST', message);
}
