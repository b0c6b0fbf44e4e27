import type { AnswerOf } from '../../bus/contract.ts';
import {
  askedText,
  type Entry,
  type EventEntry,
  eventText,
  type FilePart,
  fileLine,
  filesOf,
  finishNotice,
  firstCodePoints,
  LINE_BREAK,
  type MessageEntry,
  plainName,
  type ServerAsks,
  traitsOf,
  withFileLines,
} from '../../conversation/index.ts';
import { visibleCall, visibleText } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from '../progress/ask.ts';

/**
 * Entries as text for programs.
 *
 * RENDER-1  Only a line of Parley begins with a bracket. A text of a participant follows the author's name, and is indented from its
 *           second line on (L17).
 * RENDER-2  Bookkeeping is left out, such as the start of a turn, and its normal end.
 * RENDER-3  The size of an answer is bounded, because it may become part of a model's context. A page has at least one entry, so
 *           that a client that continues from `next` reaches the end.
 */

/** Limit of one text, in characters. The log has the rest. */
const MOST_SHOWN = 8_000;
const ARGUMENTS_SHOWN = 500;

function lineOf(entry: Entry): string | null {
  const words = entry.type === 'message' ? messageText(entry) : noticeText(entry);
  return words === null ? null : `[${entry.index}] ${indented(words)}`;
}

function messageText(entry: MessageEntry): string {
  const content = shown(entry.content ?? '', MOST_SHOWN);
  if (entry.role === 'tool')
    return `result of ${entry.toolName ?? 'a tool'}: ${withFileLines({ ...entry, content })}`;
  const whom = entry.to?.length ? ` to ${entry.to.join(', ')}` : '';
  const calls = (entry.tool_calls ?? []).map(
    ({ function: called }) => `calls ${shown(visibleCall(called.name, called.arguments), ARGUMENTS_SHOWN)}`,
  );
  const notice = finishNotice(entry.finishReason);
  const end = notice === null ? [] : [`(${notice})`];
  const words = [...(content === '' ? [] : [content]), ...filesOf(entry).map(fileLine), ...calls, ...end];
  return `${plainName(entry.author.name)} (${entry.author.kind})${whom}: ${words.join('\n')}`;
}

function noticeText(entry: EventEntry): string | null {
  switch (entry.type) {
    case 'handoff':
      return `${entry.from} hands over to ${entry.to}: ${shown(entry.summary, MOST_SHOWN)}`;
    case 'delegation-requested':
      return `${entry.from} asks ${entry.to}: ${shown(entry.request, MOST_SHOWN)}`;
    case 'approval-requested':
      return `approval ${entry.approvalId} is asked for: ${wantedText(entry)}`;
    case 'turn-ended':
      return entry.outcome === 'completed' ? null : `the turn of ${entry.agent}: ${entry.outcome}`;
    default:
      return traitsOf(entry).isMachinery ? null : eventText(entry);
  }
}

interface Wanted {
  readonly agent?: string | undefined;
  readonly tool?: string | undefined;
  readonly arguments?: unknown;
  readonly mayHaveRun?: boolean | undefined;
  readonly asks?: ServerAsks | undefined;
}

/** What an agent wants to call, and whether it may have run. */
function wantedText({ agent = 'an agent', tool = 'a tool', arguments: given = '{}', ...more }: Wanted) {
  if (more.asks) return `${visibleText(`${agent} called ${tool}`)}: ${askedText(more.asks)}`;
  const call = visibleCall(tool, typeof given === 'string' ? given : JSON.stringify(given));
  return `${agent} wants to call ${call} (${more.mayHaveRun ? 'it may have run already' : 'it has not run'})`;
}

export function indented(text: string): string {
  return text.split(LINE_BREAK).join('\n    ');
}

function shown(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${firstCodePoints(text, most)}… [cut; ${text.length} characters in all]`;
}

export interface Told {
  readonly text: string;
  /** The same for programs. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The files that the text names, and the conversation that has them. */
  readonly files?: readonly FilePart[];
  readonly conversation?: string;
}

/** Limit of one answer, in characters of JSON. */
const MOST_CHARACTERS = 100_000;
/** Limit of one text in it. */
const LONGEST_TEXT = 8_000;

export interface PageFacts {
  readonly conversation: string;
  /** Length of the whole log. */
  readonly length: number;
}

export function pageOf(facts: PageFacts, entries: readonly Entry[], limit: number, more: object = {}): Told {
  const page: Entry[] = [];
  let room = MOST_CHARACTERS;
  for (const entry of entries.slice(0, limit)) {
    const short = entry.type === 'approval-requested' ? entry : shortened(entry); // a person approves by it
    room -= JSON.stringify(short).length;
    if (room < 0 && page.length > 0) break;
    page.push(short);
  }
  const next = (page.at(-1)?.index ?? facts.length - 1) + 1;
  const rest = facts.length - next;
  const lines = page.map(lineOf).filter((line) => line !== null);
  const text = lines.join('\n') || '(no messages)';
  return {
    text: rest > 0 ? `${text}\n(${rest} more: read from ${next})` : text,
    data: { ...facts, next, entries: page, ...more },
    files: page.flatMap((entry) => filesOf(entry)),
    conversation: facts.conversation,
  };
}

/** A value with its long texts cut. */
function shortened<T>(value: T): T {
  const json = JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? shown(part, LONGEST_TEXT) : part,
  );
  return JSON.parse(json) as T;
}

type Approvals = AnswerOf<'approvals'>['approvals'];

export async function approvalsOf(daemon: GatewayPort, conversation: string | undefined): Promise<Approvals> {
  const body = conversation === undefined ? {} : { conversation };
  return (await ask(daemon, 'approvals', body)).approvals;
}

export function approvalText(approval: Approvals[number]): string {
  return `(waits for the tool \`answer\`: ${approval.approvalId}, ${wantedText(approval)})`;
}
