import { resolve } from 'node:path';
import type {
  ContentBlock,
  PlanEntry,
  SessionUpdate,
  ToolCallContent,
  ToolKind,
} from '@agentclientprotocol/sdk';
import type { WorkflowSummary } from '../../client/index.ts';
import {
  askedIn,
  type Entry,
  type FilePart,
  fileLine,
  filesOf,
  finishNotice,
  firstCodePoints,
  type MessageEntry,
  type ReportedCall,
  type Rest,
  type RunSoFar,
  resultFailure,
  runPath,
  runsWith,
  type Step,
  splitMessage,
  wireCallId,
} from '../../conversation/index.ts';
import { canonicalArguments, isRecord, type JsonRecord, parseJson, visibleCall } from '../../kernel/index.ts';
import { textBlock } from '../blocks.ts';

/**
 * Entries of the log and steps of a progress as updates of one session.
 *
 * EDITOR-UPDATES-1 A message that begins after another one begins with an empty line, and with the name of its agent if another spoke
 *    before: clients join chunks.
 * EDITOR-UPDATES-2 A tool call is sent from the log: its id is its position there. A question is text, which the next prompt answers.
 * EDITOR-UPDATES-3 A difference shows the arguments of the call. What a file held before is known of `fs_edit` alone.
 * EDITOR-UPDATES-4 A file is its line, which names it, then its content where that fits.
 */

export type Update = SessionUpdate | WithFiles;

interface WithFiles {
  readonly files: readonly FilePart[];
  with(blocks: readonly ContentBlock[]): readonly SessionUpdate[];
}

/** Code points of a call in its title. */
const TITLE = 120;

const KINDS: Readonly<Record<string, ToolKind>> = {
  fs_read: 'read',
  fs_list: 'read',
  fs_search: 'search',
  fs_write: 'edit',
  fs_edit: 'edit',
  shell: 'execute',
  recall: 'search',
  set_phase: 'switch_mode',
};

const OTHER_KINDS = ['delete', 'move', 'think', 'fetch'];
const isToolKind = (kind: string): kind is ToolKind =>
  OTHER_KINDS.includes(kind) || Object.values<string>(KINDS).includes(kind);

export interface Shown {
  /** The folder of the session: where files of the project are shown. */
  readonly cwd: string;
  readonly workflows: readonly WorkflowSummary[];
  /** Whether the person of this session wrote it. */
  readonly isOwn: (entry: Entry) => boolean;
}

/** One call of a tool, as the protocol shows it. */
export function toolCallOf(
  place: { index: number; position: number },
  tool: string,
  given: string,
  cwd: string,
) {
  const rawInput = parseJson(canonicalArguments(given));
  const input = isRecord(rawInput) ? rawInput : {};
  const path = pathOf(input.path, cwd);
  const content = differenceOf(tool, input, path);
  return {
    toolCallId: wireCallId(place),
    title: firstCodePoints(visibleCall(tool, given), TITLE),
    name: tool,
    kind: KINDS[tool] ?? ('other' as const),
    rawInput,
    ...(content && { content: [content] }),
    ...(path !== null && { locations: [{ path }] }),
  };
}

/** The contents of files (EDITOR-UPDATES-4). */
function* chunks(
  chunk: { sessionUpdate: 'user_message_chunk' | 'agent_message_chunk'; messageId: string },
  files: readonly FilePart[],
): Generator<WithFiles> {
  if (files.length > 0) yield { files, with: (blocks) => blocks.map((content) => ({ ...chunk, content })) };
}

/** A path in the project, below the folder of the session; null: it is none. */
function pathOf(path: unknown, cwd: string): string | null {
  const [, inProject] = typeof path === 'string' ? (/^@project\/?(.*)$/s.exec(path) ?? []) : [];
  return inProject === undefined ? null : resolve(cwd, `./${inProject}`);
}

/** EDITOR-UPDATES-3; null: the call changes no file. */
function differenceOf(tool: string, input: JsonRecord, path: string | null): ToolCallContent | null {
  const [oldText, newText] = tool === 'fs_edit' ? [input.find, input.replace] : [undefined, input.content];
  if (KINDS[tool] !== 'edit' || path === null || typeof newText !== 'string') return null;
  return { type: 'diff', path, newText, ...(typeof oldText === 'string' && { oldText }) };
}

export class Updates {
  readonly #shown: Shown;
  readonly #calls = new Map<string, ReturnType<typeof toolCallOf>>();
  /** The agent that spoke last, and the message whose text was sent last, unless something else followed it. */
  #speaker: string | null = null;
  #message: string | null = null;
  #notes = 0;
  #runs: readonly RunSoFar[] = [];

  constructor(shown: Shown) {
    this.#shown = shown;
  }

  *step(step: Step): Generator<Update> {
    if (step.kind === 'said') yield* this.#said(step);
    else if (step.kind === 'result') yield* this.#result(step.entry);
    else if (step.kind === 'words' && step.of === 'text')
      yield* this.#speak(step.message, step.agent, step.delta);
    else if (step.kind === 'words') yield this.#think(step.message, step.delta);
  }

  /** An entry that is not among the followed ones. */
  *past(entry: Entry): Generator<Update> {
    if (entry.type !== 'message' || entry.role === 'user') yield* this.entry(entry);
    else if (entry.role === 'tool') yield* this.#result(entry);
    else if (entry.role === 'assistant') {
      const whole = (words = ''): Rest => ({ isMore: true, words });
      const text = whole(splitMessage(entry).text);
      const reasoning = whole(entry.reasoning);
      yield* this.#said({ kind: 'said', entry, message: entry.id, text, reasoning });
    }
  }

  /** An entry that is no step of a progress. */
  *entry(entry: Entry): Generator<Update> {
    if (entry.type === 'message' && entry.role === 'user') {
      const name = this.#shown.isOwn(entry) ? '' : `**${entry.author.name}:** `;
      const words = [`${name}${entry.content ?? ''}`, ...filesOf(entry).map(fileLine)].join('\n');
      this.#message = null;
      const chunk = { sessionUpdate: 'user_message_chunk', messageId: entry.id } as const;
      yield { ...chunk, content: textBlock(words) };
      yield* chunks(chunk, filesOf(entry));
    } else if (entry.type === 'tool-started') {
      const toolCallId = wireCallId(entry.call);
      if (this.#calls.has(toolCallId))
        yield { sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' };
    } else if (entry.type === 'title-set') {
      yield { sessionUpdate: 'session_info_update', title: entry.title };
    } else if (entry.type === 'limit-reached') {
      yield* this.note(entry.content);
    } else yield* this.#plan(entry);
  }

  /** The person has spoken. */
  begin(): void {
    this.#message = null;
  }

  /** Words of Parley itself. */
  *note(words: string): Generator<Update> {
    yield* this.#text(`note-${++this.#notes}`, `(${words})`);
  }

  *#said({ entry, message, text, reasoning }: Extract<Step, { kind: 'said' }>): Generator<Update> {
    const agent = entry.author.id;
    if (reasoning.isMore && reasoning.words !== '') yield this.#think(message, reasoning.words);
    // If the sent text differs from the entry, it stays, and the entry follows as another message.
    yield* this.#speak(text.isMore ? message : `${message}-again`, agent, text.words);
    const { failure } = splitMessage(entry);
    const notice = finishNotice(entry.finishReason);
    if (failure) yield* this.note(`${agent}: ${failure.code}: ${failure.message}`);
    else if (notice !== null) yield* this.note(`the answer was ${notice}`);
    for (const file of filesOf(entry)) {
      yield* this.#speak(`${message}-${file.sha256}`, agent, fileLine(file));
      yield* chunks({ sessionUpdate: 'agent_message_chunk', messageId: `${message}-${file.sha256}` }, [file]);
    }
    for (const [place, call] of (entry.reported ?? []).entries())
      yield this.#reported(`${message}-${place}`, call);
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      const place = { index: entry.index, position };
      const asked = tool.name === 'ask' ? askedIn(tool.arguments) : null;
      if (asked) {
        const lines = [asked.question, ...asked.options.map((option) => `- ${option}`)];
        yield* this.#speak(wireCallId(place), agent, lines.join('\n'));
        continue;
      }
      const call = toolCallOf(place, tool.name, tool.arguments, this.#shown.cwd);
      this.#calls.set(call.toolCallId, call);
      this.#message = null;
      yield { sessionUpdate: 'tool_call', status: 'pending', ...call };
    }
  }

  /** A call that an agent in another process made by itself. */
  #reported(toolCallId: string, call: ReportedCall): SessionUpdate {
    const { title, kind, status, arguments: given, result } = call;
    this.#message = null;
    return {
      sessionUpdate: 'tool_call',
      toolCallId,
      title,
      kind: isToolKind(kind) ? kind : 'other',
      status: status === 'failed' ? 'failed' : 'completed',
      ...(given !== undefined && { rawInput: parseJson(given) ?? given }),
      ...(result !== undefined && { content: [{ type: 'content', content: textBlock(result) }] }),
    };
  }

  #think(message: string, words: string): SessionUpdate {
    this.#message = null;
    const content = textBlock(words);
    return { sessionUpdate: 'agent_thought_chunk', messageId: `${message}-thoughts`, content };
  }

  /** EDITOR-UPDATES-1 */
  *#speak(message: string, agent: string, words: string): Generator<Update> {
    if (words === '') return;
    const isOther = this.#speaker !== null && this.#speaker !== agent;
    this.#speaker = agent;
    yield* this.#text(message, isOther ? `**${agent}:** ${words}` : words);
  }

  *#text(messageId: string, words: string): Generator<Update> {
    const lead = this.#message === null || this.#message === messageId ? '' : '\n\n';
    this.#message = messageId;
    yield { sessionUpdate: 'agent_message_chunk', messageId, content: textBlock(lead + words) };
  }

  *#result(entry: MessageEntry): Generator<Update> {
    const call = entry.call && this.#calls.get(wireCallId(entry.call));
    if (!call) return; // the answer to a question
    const { toolCallId, title, content: difference } = call;
    const failure = resultFailure(entry.content ?? '');
    const words = failure ? `${failure.code}: ${failure.message}` : (entry.content ?? '');
    const text = [words, ...filesOf(entry).map(fileLine)].join('\n');
    const contentOf = (block: ContentBlock) => ({ type: 'content' as const, content: block });
    const content = difference && !failure ? difference : [contentOf(textBlock(text))];
    this.#message = null;
    const update = {
      toolCallId,
      title,
      rawOutput: text,
      status: failure ? ('failed' as const) : ('completed' as const),
    };
    yield {
      files: filesOf(entry),
      with: (blocks) => [
        { sessionUpdate: 'tool_call_update', ...update, content: [...content, ...blocks.map(contentOf)] },
      ],
    };
  }

  /** The nodes of a run: all of them while it runs, those that were entered once it has ended. */
  *#plan(entry: Entry): Generator<Update> {
    if (entry.type !== 'run-started' && entry.type !== 'node-entered' && entry.type !== 'run-ended') return;
    this.#runs = runsWith(this.#runs, entry);
    const run = this.#runs.at(-1);
    if (!run || entry.type === 'run-started') return;
    const path = runPath(
      run,
      this.#shown.workflows.find(({ id }) => id === run.workflowId),
    );
    const entries = path.map(({ node, agent, state }): PlanEntry => {
      const content = agent === null ? node : `${node} (${agent})`;
      return { content, priority: 'medium', status: STATUSES[state] };
    });
    if (entries.length > 0) yield { sessionUpdate: 'plan', entries };
  }
}

const STATUSES = { done: 'completed', current: 'in_progress', ahead: 'pending' } as const;
