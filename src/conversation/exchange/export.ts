import { escapeHidden } from '../../kernel/index.ts';
import { type CallPlace, type Entry, type EntryOf, type MessageEntry, wireCallId } from '../log/entry.ts';
import { feedbackIn } from '../log/feedback.ts';
import { splitMessage } from '../log/model-failure.ts';
import { type FilePart, fileLine, filesOf, withFileLines } from '../log/parts.ts';
import { answeredBy } from '../log/words.ts';
import { toolError } from '../tools/conversation-tools.ts';
import { type ContentPart, contentPart } from './openai-parts.ts';

/**
 * A conversation as a text. `openai`: its messages; `markdown`: the same for people; `jsonl`: all entries, one a line; `cases`: each
 * answer that people rated, one a line, for tests.
 */
export const EXPORT_FORMATS = ['openai', 'markdown', 'jsonl', 'cases'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The bytes of a file as a data URL; undefined: it is named only. */
export type UrlOf = (file: FilePart) => string | undefined;

/** `urlOf`: of the files that an `openai` export contains; default: none. */
export function exportEntries(entries: readonly Entry[], format: ExportFormat, urlOf?: UrlOf): string {
  switch (format) {
    case 'openai':
      return JSON.stringify(messagesFromEntries(entries, urlOf));
    case 'markdown':
      return markdownFromEntries(entries);
    case 'jsonl':
      return entries.map((entry) => JSON.stringify(portableEntry(entry))).join('\n');
    case 'cases':
      return casesOf(entries, urlOf).join('\n');
    default:
      return format satisfies never;
  }
}

/** What preceded the answer, the answer, and what each person said about it. */
function casesOf(entries: readonly Entry[], urlOf?: UrlOf): string[] {
  return [...feedbackIn(entries)].flatMap(([index, given]) => {
    const answer = entries[index];
    if (answer?.type !== 'message' || given.length === 0) return [];
    const feedback = given.map(({ author, value, note }) => ({ by: author.id, value, note }));
    const messages = messagesFromEntries(entries.slice(0, index), urlOf);
    return JSON.stringify({ index, agent: answer.author.id, feedback, messages, answer: answer.content });
  });
}

/** Without the ingress sequence of a post, which is meaningless with another stream. */
export function portableEntry({ ingressSequence: _, ...entry }: Entry): Entry {
  return entry as Entry;
}

/**
 * Each message below its author, its time and its index; calls and results as code; approvals with their answers; runs with
 * their nodes.
 *
 * EXPORT-1 Markdown quotes the text of messages, reasons, briefs and summaries: no text ends its quote, so none looks like the
 *          heading of another message or like an approval, and an open fence or comment hides nothing after it.
 */
function markdownFromEntries(entries: readonly Entry[]): string {
  const title = entries.findLast((entry) => entry.type === 'title-set')?.title;
  const givenBy = new Map<string, string>();
  const forms = new Set<string>();
  const parts = entries.flatMap((entry) => {
    if (entry.type === 'message') return messagePart(entry, givenBy);
    if (entry.type === 'approval-answered' && entry.answer === 'result' && entry.call)
      givenBy.set(placeOf(entry), entry.author.name);
    if (entry.type === 'approval-requested' || entry.type === 'approval-answered')
      return approvalPart(entry, forms);
    return isOfRun(entry) ? runPart(entry) : [];
  });
  return [...(title === undefined ? [] : [`# ${inOneLine(title)}`]), ...parts].join('\n\n');
}

type ApprovalEntry = EntryOf<'approval-requested'> | EntryOf<'approval-answered'>;

/** The name comes last, so that it cannot end the sentence and begin another one. `forms`: the approvals that are forms of servers. */
function approvalPart(entry: ApprovalEntry, forms: Set<string>): string {
  const about = `${placeOf(entry)} (${timeAndIndex(entry)})`;
  if (entry.type === 'approval-answered') {
    const { answer, author, arguments: changed } = entry;
    const isForm = forms.has(entry.approvalId);
    const isChanged = !isForm && changed !== undefined;
    const given =
      isForm && changed
        ? `Answered by ${author.name}`
        : answeredBy(answer, author.name, { ...entry, isChanged });
    return joined(
      `${about}: ${visible(given)}`,
      changed && fenced(changed),
      entry.reason && `Reason:\n\n${quoted(escapeHidden(entry.reason))}`,
    );
  }
  if (entry.asks) {
    forms.add(entry.approvalId);
    return joined(
      `${about}: The server ${visible(entry.asks.server)} asks a person`,
      quoted(escapeHidden(entry.asks.message)),
    );
  }
  if (entry.mayHaveRun) return `${about}: It may have run already, so its outcome is needed`;
  return `${about}: An approval is needed${entry.tool === undefined ? '' : ` for ${visible(entry.tool)}`}`;
}

function placeOf({ call }: { readonly call?: CallPlace | undefined }): string {
  return call ? `Call ${call.position + 1} of entry ${call.index}` : 'A call';
}

type RunEntry = EntryOf<'run-started'> | EntryOf<'node-entered'> | EntryOf<'run-ended'>;

function isOfRun(entry: Entry): entry is RunEntry {
  return entry.type === 'run-started' || entry.type === 'node-entered' || entry.type === 'run-ended';
}

function runPart(entry: RunEntry): string {
  switch (entry.type) {
    case 'run-started':
      return headingOf(`Run of ${entry.workflowId} started`, entry);
    case 'node-entered': {
      const { node, brief, agent, to = [], outcome, summary, branch } = entry;
      const handedOn =
        outcome === undefined ? [] : [`Outcome of the node before: ${inOneLine(outcome)}`, quoted(summary)];
      const who = to[0] ?? agent;
      const waits =
        who || branch === undefined ? null : `The branch ${inOneLine(branch)} waits here for the others.`;
      const given = [waits, who && `Agent: ${who}`, brief && `Brief:\n\n${quoted(brief)}`];
      return joined(headingOf(`Node ${node}`, entry), ...handedOn, ...given);
    }
    case 'run-ended':
      return joined(headingOf(`Run ended: ${entry.outcome}`, entry), quoted(entry.summary));
  }
}

function headingOf(text: string, entry: Entry): string {
  return `## ${inOneLine(text)} (${timeAndIndex(entry)})`;
}

function timeAndIndex({ createdAt, index }: Entry): string {
  return `${createdAt.slice(0, 16).replace('T', ' ')} UTC, entry ${index}`;
}

function joined(...parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part).join('\n\n');
}

/** `givenBy`: by call, the person who gave its result. */
function messagePart(entry: MessageEntry, givenBy: ReadonlyMap<string, string>): string {
  if (entry.role === 'tool') {
    const by = givenBy.get(placeOf(entry));
    const tool = inOneLine(entry.toolName ?? 'a call');
    return `${by === undefined ? `Result of ${tool}` : `Result that ${visible(by)} gave for ${tool}`}:\n\n${fenced(withFileLines(entry))}`;
  }
  const { text: words, failure } = splitMessage(entry);
  const failed = failure && `The model call failed: ${visible(failure.code)}: ${visible(failure.message)}`;
  const calls = (entry.tool_calls ?? []).map(
    ({ function: { name, arguments: text } }) => `Calls ${inOneLine(name)}:\n\n${fenced(text)}`,
  );
  return joined(
    headingOf(entry.author.name, entry),
    quoted(withFileLines({ ...entry, content: words })),
    failed,
    ...calls,
  );
}

const inOneLine = (text: string): string => text.replace(/\s+/gu, ' ').trim();
/** As a person reads it who judges a decision by it. */
const visible = (text: string): string => escapeHidden(inOneLine(text));

/** EXPORT-1. A line of Markdown ends at each of these. */
function quoted(text: string | null | undefined): string | null {
  const lines = text ? text.split(/\r\n|\n|\r/) : [];
  return lines.length === 0 ? null : lines.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n');
}

/** The fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}\n${text}\n${fence}`;
}

export interface OpenAiMessage {
  readonly role: MessageEntry['role'];
  readonly content: string | null | readonly ContentPart[];
  /** A person's name, if the protocol allows it; an agent's slug. */
  readonly name?: string;
  readonly tool_calls?: MessageEntry['tool_calls'];
  readonly tool_call_id?: string;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** The name that an import gives to people without one. */
const UNNAMED_PERSON = 'User';

/** The result of a call without one. */
const NO_RESULT: string = toolError(
  'NO_RESULT',
  'the result of this call was never kept: what came of it is unknown',
);

/**
 * All messages in log order, each result directly after its call, with new call ids. This is not the view of any agent.
 * Importing the result and exporting it again gives the same.
 */
function messagesFromEntries(entries: readonly Entry[], urlOf: UrlOf = () => undefined): OpenAiMessage[] {
  const results = new Map<string, MessageEntry>();
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'tool' || !entry.call) continue;
    const key = wireCallId(entry.call);
    if (!results.has(key)) results.set(key, entry); // V7
  }
  const messages: OpenAiMessage[] = [];
  let calls = 0;
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role === 'tool') continue;
    const tool_calls = (entry.tool_calls ?? []).map((call, at) => ({ ...call, id: `call_${calls + at}` }));
    calls += tool_calls.length;
    messages.push({
      role: entry.role,
      content: contentOf(entry, urlOf),
      ...nameOf(entry),
      ...(tool_calls.length > 0 && { tool_calls }),
    });
    for (const [position, { id }] of tool_calls.entries()) {
      const result = results.get(wireCallId({ index: entry.index, position }));
      messages.push({ role: 'tool', tool_call_id: id, content: result ? withFileLines(result) : NO_RESULT });
    }
  }
  return messages;
}

/** Files are parts of messages of people alone: the protocol has no place for others, so these are named (`fileLine`). */
function contentOf(entry: MessageEntry, urlOf: UrlOf): OpenAiMessage['content'] {
  const { role, content, parts } = entry;
  if (!parts) return content;
  const urls = new Map(role === 'user' ? filesOf(entry).map((file) => [file, urlOf(file)]) : []);
  if (![...urls.values()].some((url) => url !== undefined)) return withFileLines(entry);
  return parts.map((part) => {
    if (part.type === 'text') return part;
    const url = urls.get(part);
    return url === undefined ? { type: 'text', text: fileLine(part) } : contentPart(part, url);
  });
}

function nameOf({ role, author }: MessageEntry): { readonly name?: string } {
  const name = author.kind === 'agent' ? author.id : author.name;
  return role !== 'system' && NAME.test(name) && name !== UNNAMED_PERSON ? { name } : {};
}

/**
 * Closes calls in imported messages that have no result: nothing would answer them, and no request may contain them
 * (L13). Returns one error result per call, in call order, to be appended. Calls of a turn are not included.
 */
export function closeStrayCalls(
  entries: readonly Entry[],
  at: { readonly newId: (entry: MessageEntry, position: number) => string; readonly createdAt: string },
): MessageEntry[] {
  const answered = new Set(
    entries.flatMap((entry) =>
      entry.type === 'message' && entry.role === 'tool' && entry.call ? [wireCallId(entry.call)] : [],
    ),
  );
  const closing: MessageEntry[] = [];
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'assistant' || entry.turnId) continue;
    for (const [position, call] of (entry.tool_calls ?? []).entries()) {
      const place = { index: entry.index, position };
      if (answered.has(wireCallId(place))) continue;
      closing.push({
        index: entries.length + closing.length,
        id: at.newId(entry, position),
        createdAt: at.createdAt,
        type: 'message',
        role: 'tool',
        author: entry.author,
        agentId: entry.author.id,
        content: NO_RESULT,
        toolName: call.function.name,
        tool_call_id: wireCallId(place),
        call: place,
        partType: 'tool_result',
      });
    }
  }
  return closing;
}
