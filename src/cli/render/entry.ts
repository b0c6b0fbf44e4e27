import {
  askedIn,
  askedText,
  attemptText,
  type Entry,
  type EntryOf,
  fileLine,
  filesOf,
  finishNotice,
  type MessageEntry,
  type ModelFailure,
  type PendingApproval,
  splitMessage,
  teamChangeText,
  traitsOf,
} from '../../client/index.ts';
import { inOneLine, visibleArguments, visibleCall, visibleText } from '../../kernel/index.ts';
import {
  clockTime,
  firstLine,
  HANGING,
  hang,
  indent,
  type Palette,
  plural,
  printable,
  voiceOf,
} from './text.ts';

/** One entry of the log for people: index, time, who → whom, then the text. */

type ToolCall = NonNullable<MessageEntry['tool_calls']>[number];

export const MARGIN = '                 ';
const ARGUMENTS_SHOWN = 100;

export function renderEntry(entry: Entry, palette: Palette): string {
  const place = palette.dim(`${String(entry.index).padStart(5)}  ${clockTime(entry.createdAt)}  `);
  if (entry.type !== 'message')
    return place + palette.dim(`· ${hang(printable(describeEvent(entry)), MARGIN)}`);
  if (entry.role === 'tool') return place + palette.dim(toolResult(entry));
  const body = [
    messageText(entry, palette),
    ...questions(entry, palette),
    ...toolCalls(entry, palette),
    ...endNotices(entry, palette),
  ].filter((part) => part !== '');
  return [place + heading(entry, palette), ...body.map((part) => indent(part, MARGIN))].join('\n');
}

/** The name of an author, which begins a line. */
export const oneLine = (name: string): string => printable(name).replaceAll('\n', ' ');

function heading(entry: MessageEntry, palette: Palette): string {
  const { kind, id, name } = entry.author;
  const who = kind === 'agent' ? voiceOf(id, palette)(oneLine(name)) : palette.bold(oneLine(name));
  const whom = entry.to?.length ? palette.dim(` → ${entry.to.join(', ')}`) : '';
  const mark = entry.includeInContext === false ? 'shown to no agent' : entry.isCollapsed ? 'collapsed' : '';
  const hasNoEffect = kind !== 'agent' && entry.sessionId !== undefined && !entry.setsSession;
  const typed = entry.schema
    ? 'the answer must match a schema'
    : 'value' in entry
      ? 'matches the schema'
      : '';
  const marks = [mark, typed, hasNoEffect ? 'its sessionId has no effect' : ''].filter((one) => one !== '');
  const aside = marks.length > 0 ? palette.dim(` (${marks.join('; ')})`) : '';
  return who + whom + aside;
}

export function renderModelFailure({ code, message }: ModelFailure, palette: Palette): string {
  return palette.red(`✗ ${inOneLine(code)}: ${hang(printable(message))}`);
}

function messageText(entry: MessageEntry, palette: Palette): string {
  const { text, failure } = splitMessage(entry);
  const files = filesOf(entry).map((file) => palette.dim(printable(fileLine(file))));
  const parts = [printable(text), ...files, failure ? renderModelFailure(failure, palette) : ''];
  return parts.filter((part) => part !== '').join('\n');
}

/** Its calls, and those that it reports: nothing here ran these. */
export function toolCalls(entry: MessageEntry, palette: Palette): string[] {
  const calls = (entry.tool_calls ?? []).flatMap((call, position) => {
    if (questionOf(call) !== null) return [];
    const shown = firstLine(visibleCall(call.function.name, call.function.arguments), ARGUMENTS_SHOWN);
    return entry.callerCalls?.includes(position) ? `${shown} (its caller answers)` : shown;
  });
  const reported = (entry.reported ?? []).map(({ title, kind, status, result = '' }) => {
    const what = [title, kind, status].map((text) => firstLine(visibleText(text), ARGUMENTS_SHOWN));
    return `${what[0]} (reported: ${what[1]}, ${what[2]})${result && `: ${shortText(printable(result))}`}`;
  });
  return [...reported, ...calls].map((line) => palette.dim(`⚙ ${line}`));
}

/** Why the model ended the answer, where that is not the usual way. */
export function endNotices({ finishReason, invalid }: MessageEntry, palette: Palette): string[] {
  const why =
    invalid === undefined ? null : `does not match the schema, so the model is asked again: ${invalid}`;
  const notices = [finishNotice(finishReason), why].filter((notice) => notice !== null);
  return notices.map((notice) => palette.yellow(`(${printable(notice)})`));
}

/** What an agent asks a person (the tool `ask`), with the answers that it offers. */
export function questions(entry: MessageEntry, palette: Palette): string[] {
  return (entry.tool_calls ?? []).flatMap((call) => {
    const asked = questionOf(call);
    if (asked === null) return [];
    return [
      palette.bold(`? ${hang(printable(asked.question))}`),
      ...asked.options.map((option) => `  - ${hang(printable(option), HANGING.repeat(2))}`),
    ];
  });
}

/** Null for a call that is none, or whose arguments a model got wrong: then it is shown as any other call. */
function questionOf({ function: tool }: ToolCall): ReturnType<typeof askedIn> {
  return tool.name === 'ask' ? askedIn(tool.arguments) : null;
}

function toolResult(entry: MessageEntry): string {
  const files = filesOf(entry).map((file) => ` ${printable(fileLine(file))}`);
  return `⚙ ${visibleText(entry.toolName ?? 'result')}: ${shortText(printable(entry.content ?? ''))}${files.join('')}`;
}

function shortText(text: string): string {
  const length = [...text].length;
  return (
    firstLine(text, ARGUMENTS_SHOWN) + (length > ARGUMENTS_SHOWN ? ` (${plural(length, 'character')})` : '')
  );
}

type EventEntry = Exclude<Entry, { type: 'message' }>;

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
  handoff: ({ from, to, summary }) => `${from} hands over to ${to}: ${firstLine(summary, 120)}`,
  'delegation-requested': ({ from, to, request }) => `${from} asks ${to}: ${firstLine(request, 120)}`,
  'delegation-answered': ({ from, to, late }) => `${from} answered ${to}${late ? ', late' : ''}`,
  'approval-requested': (entry) =>
    `approval ${entry.approvalId} is needed (${entry.risk}${entry.mayHaveRun ? ', may have run already' : ''})${requestedCall(entry)}`,
  'approval-answered': (entry) =>
    `approval ${entry.approvalId}: ${entry.answer}${lasting(entry)}${answeredBy(entry)}${entry.arguments === undefined ? '' : `, with the arguments ${visibleText(entry.arguments)}`}${because(entry.reason)}`,
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
  note: ({ call, content }) => (call ? firstLine(content, 160) : content), // a late result may be long
  forked: ({ file, from, at, author }) =>
    file === undefined ? `forked from ${from} at ${at} by ${author.id}` : `imported from ${file}`,
  'agent-hired': ({ by, agent, description, persona }) =>
    `${by} hired ${agent}: ${firstLine(description || persona, 120)}`,
  'agent-dismissed': ({ by, agent, reason }) => `${by} dismissed ${agent}${because(reason)}`,
  'team-changed': ({ author, agents }) =>
    `the team changed by ${author.id}: ${agents.map(teamChangeText).join('; ')}`,
};

const FEEDBACK_TEXT = { up: 'liked', down: 'disliked', none: 'took back the feedback on' } as const;

/** One line for each entry except messages. */
export function describeEvent(entry: EventEntry): string {
  const describe: ((entry: never) => string) | undefined = EVENTS[entry.type];
  return describe
    ? describe(entry as never)
    : `${firstLine(entry.type, 60)}: this version does not know that kind of entry`;
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

/** True for entries that a chat shows; of turn ends, only unsuccessful ones. */
export function concernsPeople(entry: EventEntry): boolean {
  if (entry.type === 'turn-ended') return entry.outcome === 'aborted' || entry.outcome === 'limited';
  return !traitsOf(entry).isMachinery;
}

/** Empty for an expired approval, which no person answered. */
const answeredBy = ({ author }: Entry) => (author.kind === 'person' ? ` by ${author.name}` : '');
const because = (reason: string | undefined) => (reason ? ` (${firstLine(reason, 120)})` : '');
function turnText({ resumed, trigger }: EntryOf<'turn-started'>): string {
  if (!resumed) return `begins a turn for ${indexes(trigger)}`;
  return trigger.length === 0 ? 'continues its turn' : `continues its turn, for ${indexes(trigger)}`;
}

const indexes = (list: readonly number[]) => (list.length === 0 ? 'nothing' : list.join(', '));

type Waiting = Pick<
  PendingApproval,
  'approvalId' | 'conversation' | 'agent' | 'tool' | 'arguments' | 'mayHaveRun' | 'covers' | 'asks'
>;

/** One call that waits: what is to be run, for whom, and how to answer. `command`: as a person types it. */
export function approvalLines(approval: Waiting, command: (words: string) => string): string[] {
  const { approvalId, conversation, agent, tool, mayHaveRun, asks } = approval;
  if (asks) {
    const head = [approvalId, conversation, agent].map(visibleText).join('  ');
    const given = asks.url === undefined && `--arguments '${quotable(textOf(approval.arguments))}'`;
    return [
      `${head} called ${visibleText(tool)}: ${askedText(asks)}`,
      `  ${command(['approve', approvalId, given].filter(Boolean).join(' '))}   or   ${command(`deny ${approvalId}`)}`,
    ];
  }
  const answers = mayHaveRun
    ? `it may already have run: ${command(`resolve ${approvalId} --rerun | --failed | --result JSON`)}`
    : `${command(`approve ${approvalId}`)}   or   ${command(`deny ${approvalId} --reason "…"`)}`;
  const what = visibleCall(tool, textOf(approval.arguments));
  return [
    `${[approvalId, conversation, agent].map(visibleText).join('  ')} wants to call ${what}`,
    `  ${answers}`,
    ...(approval.covers ? [`  with --always also ${visibleText(approval.covers)}`] : []),
  ];
}

/** JSON between the single quotes of a shell: it is the server's text. */
const quotable = (given: string) => visibleArguments(given).replaceAll("'", '\\u0027');

function lasting({ always, grant }: EntryOf<'approval-answered'>): string {
  return always ? ', always' : grant === undefined ? '' : ` (always, entry ${grant})`;
}

/** As the log asks for it: whole, whatever a list has room for. */
export function requestedApproval(entry: EntryOf<'approval-requested'>, conversation: string): Waiting {
  const { approvalId, agent = entry.author.id, tool = 'a tool', arguments: given = '{}' } = entry;
  const { mayHaveRun, covers, asks } = entry;
  const more = { ...(covers && { covers }), ...(asks && { asks }) };
  return { approvalId, conversation, agent, tool, arguments: given, mayHaveRun, ...more };
}

function textOf(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}
