import {
  askedIn,
  type Entry,
  finishNotice,
  type MessageEntry,
  type ModelFailure,
  splitMessage,
} from '../../client/index.ts';
import { inOneLine, visibleCall, visibleText } from '../../kernel/index.ts';
import { describeEvent } from './events.ts';
import { type Palette, voiceOf } from './palette.ts';
import { clockTime, firstLine, HANGING, hang, indent, plural, printable } from './text.ts';

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
  const marks = [mark, hasNoEffect ? 'its sessionId has no effect' : ''].filter((one) => one !== '');
  const aside = marks.length > 0 ? palette.dim(` (${marks.join('; ')})`) : '';
  return who + whom + aside;
}

export function renderModelFailure({ code, message }: ModelFailure, palette: Palette): string {
  return palette.red(`✗ ${inOneLine(code)}: ${hang(printable(message))}`);
}

function messageText(entry: MessageEntry, palette: Palette): string {
  const { text, failure } = splitMessage(entry);
  const parts = [printable(text), failure ? renderModelFailure(failure, palette) : ''];
  return parts.filter((part) => part !== '').join('\n');
}

export function toolCalls(entry: MessageEntry, palette: Palette): string[] {
  return (entry.tool_calls ?? [])
    .filter((call) => questionOf(call) === null)
    .map((call) =>
      palette.dim(
        `⚙ ${firstLine(visibleCall(call.function.name, call.function.arguments), ARGUMENTS_SHOWN)}`,
      ),
    );
}

/** Why the model ended the answer, where that is not the usual way. */
export function endNotices({ finishReason }: MessageEntry, palette: Palette): string[] {
  const notice = finishNotice(finishReason);
  return notice === null ? [] : [palette.yellow(`(${printable(notice)})`)];
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
  const content = printable(entry.content ?? '');
  const length = [...content].length;
  const about = length > ARGUMENTS_SHOWN ? ` (${plural(length, 'character')})` : '';
  return `⚙ ${visibleText(entry.toolName ?? 'result')}: ${firstLine(content, ARGUMENTS_SHOWN)}${about}`;
}
