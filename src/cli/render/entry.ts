import {
  askedIn,
  askedText,
  type Entry,
  type EntryOf,
  type EventEntry,
  eventText,
  fileLine,
  filesOf,
  finishNotice,
  type MessageEntry,
  type ModelFailure,
  type PendingApproval,
  splitMessage,
  traitsOf,
} from '../../client/index.ts';
import {
  inOneLine,
  isRecord,
  parseJson,
  visibleArguments,
  visibleCall,
  visibleText,
} from '../../kernel/index.ts';
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
  if (entry.type !== 'message') return place + palette.dim(`· ${hang(printable(eventText(entry)), MARGIN)}`);
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

/** True for entries that a chat shows; of turn ends, only unsuccessful ones. */
export function concernsPeople(entry: EventEntry): boolean {
  if (entry.type === 'turn-ended') return entry.outcome === 'aborted' || entry.outcome === 'limited';
  return !traitsOf(entry).isMachinery;
}

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
    ...shownLines(tool, textOf(approval.arguments)),
    `  ${answers}`,
    ...(approval.covers ? [`  with --always also ${visibleText(approval.covers)}`] : []),
  ];
}

const MOST_SHOWN_LINES = 40;

/** What a coding agent shows of its own call, such as a difference: in lines. */
function shownLines(tool: string, given: string): string[] {
  const fields = tool.startsWith('permit_') ? parseJson(given) : undefined;
  if (!isRecord(fields) || typeof fields.shown !== 'string') return [];
  const lines = fields.shown.split('\n').map((line) => `    ${visibleText(line)}`);
  const more = lines.length - MOST_SHOWN_LINES;
  return more <= 0 ? lines : [...lines.slice(0, MOST_SHOWN_LINES), `    … (${more} more lines)`];
}

/** JSON between the single quotes of a shell: it is the server's text. */
const quotable = (given: string) => visibleArguments(given).replaceAll("'", '\\u0027');

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
