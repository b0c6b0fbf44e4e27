import { visibleCall, visibleText } from '../../kernel/hidden.ts';
import { shortLine } from '../text/text.ts';
import type { Entry, EntryOf, TeamChange } from './entry.ts';
import { finishNotice } from './finish-reason.ts';
import { attemptText } from './model-failure.ts';
import { askedText } from './server-asks.ts';

/** What a person did with a call that waited: below the call, and as a sentence. */
const ANSWERS: Readonly<Record<string, readonly [string, string]>> = {
  approve: ['Approved', 'approved this call'],
  deny: ['Denied', 'denied this call'],
  rerun: ['Run again', 'had this call run again'],
  failed: ['Marked as not run', 'said that this call did not run'],
  result: ['Result given', 'gave the result of this call'],
};

/** `isChanged`: with other arguments. `always`, `grant`: of the entry. */
export function answeredBy(
  answer: string,
  by: string,
  { isChanged, always, grant }: Readonly<{ isChanged?: boolean; always?: boolean; grant?: number }> = {},
): string {
  if (isChanged) return `Approved with changed arguments by ${by}`;
  if (answer === 'expired') return 'Expired without an answer';
  const words = Object.hasOwn(ANSWERS, answer) ? ANSWERS[answer] : undefined;
  const lasting = always || grant !== undefined ? ' for this conversation' : '';
  return `${words?.[0] ?? answer} by ${by}${lasting}${grant === undefined ? '' : ` in entry ${grant}`}`;
}

export function answeredFirst(answer: string, by: string): string {
  const words = Object.hasOwn(ANSWERS, answer) ? ANSWERS[answer] : undefined;
  return `${by} ${words?.[1] ?? 'answered this call'} first.`;
}

const MOST_PARTS = 4;

/** In one line: `pm: persona, model`. */
export function teamChangeText(
  {
    agent: slug,
    change,
    parts,
  }: Pick<TeamChange, 'agent' | 'change'> & { readonly parts: readonly string[] },
  nameOf = (agent: string) => agent,
): string {
  const agent = nameOf(slug);
  if (change !== 'changed') return `${agent} ${change}`;
  const more = parts.length > MOST_PARTS ? ` and ${parts.length - MOST_PARTS} more` : '';
  return `${agent}: ${parts.slice(0, MOST_PARTS).join(', ')}${more}`;
}

export type EventEntry = Exclude<Entry, { type: 'message' }>;

const EVENTS: { readonly [Type in EventEntry['type']]: (entry: EntryOf<Type>) => string } = {
  'turn-started': (entry) => `${entry.agent} ${turnText(entry)}`,
  'turn-ended': (entry) =>
    `${entry.agent}'s turn ${entry.outcome === 'waiting' ? 'waits' : `ended: ${outcomeOf(entry)}`}`,
  'message-delivered': ({ agent, entries }) =>
    `${agent} was shown ${indexes(entries)} in the middle of its turn`,
  'tool-started': ({ toolName }) => `tool ${toolName ?? ''} started`.replace('  ', ' '),
  summary: ({ agent, fromIndex, toIndex }) => `${agent}'s view of ${fromIndex}–${toIndex} was summed up`,
  'attempt-failed': attemptText,
  claim: ({ daemon, epoch, attempt }) =>
    `daemon ${daemon} works here (epoch ${epoch}${attempt ? `, attempt ${attempt}` : ''})`,
  'session-set': ({ agent, sessionId, from }) =>
    `${agent} continues the session ${sessionId}, which entry ${from} names`,
  'phase-entered': ({ from, to, by, reason }) => `phase ${from} → ${to} by ${by}${because(reason)}`,
  'mode-entered': ({ from, to, by }) => `mode ${from} → ${to} by ${by}`,
  handoff: ({ from, to, summary }) => `${from} hands over to ${to}: ${shortLine(summary, 120)}`,
  'delegation-requested': ({ from, to, request }) => `${from} asks ${to}: ${shortLine(request, 120)}`,
  'delegation-answered': ({ from, to, late }) => `${from} answered ${to}${late ? ', late' : ''}`,
  'approval-requested': (entry) =>
    `approval ${entry.approvalId} is needed (${entry.risk}${entry.mayHaveRun ? ', may have run already' : ''})${requestedCall(entry)}`,
  'approval-answered': (entry) =>
    `approval ${entry.approvalId}: ${entry.answer}${lasting(entry)}${answerer(entry)}${entry.arguments === undefined ? '' : `, with the arguments ${visibleText(entry.arguments)}`}${because(entry.reason)}`,
  'run-started': ({ runId, workflowId }) => `run ${runId} of ${workflowId} started`,
  'node-entered': ({ runId, node, agent, to, branch }) =>
    agent || to || branch === undefined
      ? `run ${runId} entered ${node}${agent ? `; ${agent} begins with the next message` : ''}`
      : `run ${runId}: the branch ${branch} waits at ${node} for the others`,
  'run-ended': ({ runId, outcome, author, summary }) =>
    `run ${runId} ended: ${outcome}${author.kind === 'system' ? because(summary) : ''}`,
  'agent-stopped': ({ agent, by }) => `${agent ?? 'the conversation'} was stopped by ${by}`,
  'agent-resumed': ({ agent, by }) => `${agent ?? 'the conversation'} was resumed by ${by}`,
  'title-set': ({ title }) => `title: ${title}`,
  feedback: ({ on, value, note, author }) =>
    `${author.name} ${FEEDBACK_TEXT[value]} entry ${on}${because(note)}`,
  'limit-reached': ({ limit, content }) => `limit ${limit} reached: ${content}`,
  note: ({ call, content }) => (call ? shortLine(content, 160) : content), // a late result may be long
  forked: ({ file, from, at, author }) =>
    file === undefined ? `forked from ${from} at ${at} by ${author.id}` : `imported from ${file}`,
  'agent-hired': ({ by, agent, description, persona }) =>
    `${by} hired ${agent}: ${shortLine(description || persona, 120)}`,
  'agent-dismissed': ({ by, agent, reason }) => `${by} dismissed ${agent}${because(reason)}`,
  'team-changed': ({ author, agents }) =>
    `the team changed by ${author.id}: ${agents.map((one) => teamChangeText(one)).join('; ')}`,
};

const FEEDBACK_TEXT = { up: 'liked', down: 'disliked', none: 'took back the feedback on' } as const;

/** One line for each entry except messages. */
export function eventText(entry: EventEntry): string {
  const describe: ((entry: never) => string) | undefined = EVENTS[entry.type];
  return describe
    ? describe(entry as never)
    : `${shortLine(entry.type, 60)}: this version does not know that kind of entry`;
}

function outcomeOf({ outcome, finishReason }: EntryOf<'turn-ended'>): string {
  const cut = finishNotice(finishReason);
  return cut === null ? outcome : `${outcome}, its answer was ${cut}`;
}

/** Complete and escaped, because a person decides by it. Empty for old logs, whose entries lack the call. */
function requestedCall(entry: EntryOf<'approval-requested'>): string {
  const { agent = entry.author.id, tool, arguments: given = '{}' } = entry;
  if (entry.asks) return `: ${askedText(entry.asks)}`;
  return tool === undefined ? '' : `: ${agent} wants to call ${visibleCall(tool, given)}`;
}

function lasting({ always, grant }: EntryOf<'approval-answered'>): string {
  return always ? ', always' : grant === undefined ? '' : ` (always, entry ${grant})`;
}

/** Empty for an expired approval, which no person answered. */
const answerer = ({ author }: Entry) => (author.kind === 'person' ? ` by ${author.name}` : '');
const because = (reason: string | undefined) => (reason ? ` (${shortLine(reason, 120)})` : '');
function turnText({ resumed, trigger }: EntryOf<'turn-started'>): string {
  if (!resumed) return `begins a turn for ${indexes(trigger)}`;
  return trigger.length === 0 ? 'continues its turn' : `continues its turn, for ${indexes(trigger)}`;
}

const indexes = (list: readonly number[]) => (list.length === 0 ? 'nothing' : list.join(', '));
