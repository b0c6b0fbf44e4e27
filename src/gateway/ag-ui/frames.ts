import {
  type AGUIEvent,
  type AssistantMessage,
  aggregateTokenUsage,
  type ContentPart,
  EventType,
  type Message,
  PROTOCOL_VERSION,
  type TokenUsage,
} from '@ag-ui/core';
import { EventEncoder } from '@ag-ui/encoder';
import {
  type Ending,
  type Entry,
  failureOf,
  finishNotice,
  type MessageEntry,
  OpenCalls,
  type Progress,
  type Rest,
  Roots,
  type Step,
  Utterances,
  unknownMentionsText,
  wireCallId,
} from '../../conversation/index.ts';
import { canonicalArguments } from '../../kernel/index.ts';
import { type AddressOf, fileLines } from '../files.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { ask, orElse, readTail } from '../progress/ask.ts';
import { type Begun, ownContent } from './begin.ts';
import { interruptOf, type RunInput } from './input.ts';

/**
 * Sends one run as frames.
 *
 * AG-UI-RUN-1 It starts with the conversation's status and, if the application has other messages than the log, with the
 *    newest messages of the log, as many as the application can send back.
 * AG-UI-RUN-2 The status is sent again after each change.
 * AG-UI-RUN-3 Unused fields and mentions of no agent are named in an event that applications may show, and in a header of the answer.
 * AG-UI-RUN-4 Files of messages and results are parts with their address here; those of answers are named in the text, as answers
 *    of the protocol have no parts.
 */

/** Half of the limit of a request: the rest is for the JSON encoding and for new messages. */
const MOST_HISTORY = 524_288;

const encoder = new EventEncoder();

interface RunParts {
  readonly daemon: GatewayPort;
  readonly input: RunInput;
  readonly begun: Begun;
  /** Aborted when the daemon stops. */
  readonly closing: AbortSignal;
  /** Called with bugs. */
  readonly onFault: (error: unknown) => void;
  readonly address: AddressOf;
}

export async function* runFrames(parts: RunParts): AsyncGenerator<string> {
  for await (const event of new Run(parts).events()) yield encoder.encodeSSE(event);
}

function warning(unused: readonly string[]): AGUIEvent {
  const message = `not used here: ${unused.join(', ')} (agents have their own instructions)`;
  return { type: EventType.CUSTOM, name: 'parley.unused', value: { fields: [...unused], message } };
}

function unknown(mentions: readonly string[]): AGUIEvent {
  const value = { mentions: [...mentions], message: unknownMentionsText(mentions) };
  return { type: EventType.CUSTOM, name: 'parley.unknownMentions', value };
}

function leftOpen(entries: readonly Entry[]): Ending {
  const calls = new OpenCalls();
  const roots = new Roots();
  for (const entry of entries) {
    calls.observe(entry);
    roots.observe(entry);
  }
  const open = calls.of(() => true);
  return {
    kind: 'waits',
    open: open.map((call) => ({ ...call, root: roots.of(call.turnId)[0] ?? null })),
    callers: calls.ofCallers(() => true),
  };
}

type Words = Extract<Step, { kind: 'words' }>;
type Said = Extract<Step, { kind: 'said' }>;

/**
 * One run as AG-UI events.
 *
 * EVENTS-1 Every opened message is closed before the run ends, whatever its outcome.
 * EVENTS-2 A tool call is sent from the log: its id is its position there, and its arguments are those that run.
 */
class Run {
  readonly #parts: RunParts;
  readonly #log: Messages;
  /** Ids of open messages and open reasoning. */
  readonly #texts = new Set<string>();
  readonly #thoughts = new Set<string>();
  #usage: TokenUsage[] = [];
  /** The finish reason of the newest answer, if it is unusual. */
  #finishReason: string | null = null;

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.#log = new Messages(parts.address);
  }

  async *events(): AsyncGenerator<AGUIEvent> {
    const { daemon, input, begun, closing, onFault } = this.#parts;
    const { threadId, conversation, runId, parentRunId } = input;
    const unused = [...input.unused, ...begun.unused];
    yield {
      type: EventType.RUN_STARTED,
      threadId,
      runId,
      protocolVersion: PROTOCOL_VERSION,
      ...(parentRunId !== undefined && { parentRunId }),
    };
    if (unused.length > 0) yield warning(unused);
    if (begun.unknownMentions.length > 0) yield unknown(begun.unknownMentions);
    try {
      const before = await readTail(daemon, conversation, begun.before, MOST_HISTORY);
      yield* this.#snapshot(before);
      yield* this.#state();
      if (begun.progress === null) {
        yield* this.#of({ kind: 'over', ending: leftOpen(before) });
        return;
      }
      yield* this.#follow(begun.progress);
      if (!begun.progress.isOver) {
        const why = closing.aborted ? 'the daemon stops' : 'the reading was ended';
        yield* this.#error('STOPPING', `${why}; the log will have the answer`);
      }
    } catch (error) {
      const { code, message } = publicErrorOf(error, onFault);
      yield* this.#error(code, message);
    } finally {
      begun.arrivals.close();
    }
  }

  async *#follow(progress: Progress): AsyncGenerator<AGUIEvent> {
    const { arrivals, from } = this.#parts.begun;
    for await (const received of arrivals.from(from)) {
      let hasChanged = false;
      for (const step of progress.accept(received)) {
        if (step.kind === 'over' && hasChanged) yield* this.#state();
        if (step.kind === 'over') hasChanged = false;
        hasChanged ||= step.kind === 'status';
        yield* this.#of(step);
      }
      if (hasChanged) yield* this.#state();
      if (progress.isOver) return;
    }
  }

  *#snapshot(before: readonly Entry[]): Generator<AGUIEvent> {
    const { known, posts, again, results, resultIds } = this.#parts.input;
    const logged = this.#log
      .of(before)
      .map((message) =>
        message.role === 'tool'
          ? { ...message, id: resultIds.get(message.toolCallId) ?? message.id }
          : message,
      );
    const has = new Set(logged.map(({ id }) => id));
    const posted = [...posts, ...again].filter(({ id }) => !has.has(id));
    const messages: Message[] = [
      ...logged,
      ...results.flatMap(({ call, given }) => (!call || has.has(given.id) ? [] : [given])),
      ...posted.map(({ id, given: content }) => ({ id, content, role: 'user' as const })),
    ];
    const isSame = messages.length === known.length && messages.every(({ id }, place) => id === known[place]);
    if (!isSame) yield { type: EventType.MESSAGES_SNAPSHOT, messages };
  }

  async *#state(): AsyncGenerator<AGUIEvent> {
    const { daemon, input } = this.#parts;
    const { conversation } = input;
    const found = await orElse(ask(daemon, 'conversation', { conversation }), null);
    if (!found) return; // it does not exist yet
    const { phase, mode, activeAgent, agents } = found;
    yield { type: EventType.STATE_SNAPSHOT, snapshot: { phase, mode, activeAgent, agents } };
  }

  *#of(step: Step): Generator<AGUIEvent> {
    if (step.kind === 'words') yield* this.#words(step);
    else if (step.kind === 'said') yield* this.#said(step);
    else if (step.kind === 'result') yield* this.#result(step.entry);
    else if (step.kind === 'over') yield* this.#over(step.ending);
  }

  /** EVENTS-1, with the reason. */
  *#error(code: string, message: string): Generator<AGUIEvent> {
    yield* this.#closeAll();
    yield { type: EventType.RUN_ERROR, code, message, ...this.#used() };
  }

  *#words({ of, agent, message, delta }: Words): Generator<AGUIEvent> {
    if (of === 'reasoning') {
      yield* this.#think(thoughtsOf(message), delta);
      return;
    }
    yield* this.#closeThoughts(thoughtsOf(message));
    yield* this.#speak(message, agent, delta);
  }

  *#said({ entry, message, text, reasoning }: Said): Generator<AGUIEvent> {
    const { usage, finishReason = null } = entry;
    this.#finishReason = finishReason !== null && finishNotice(finishReason) ? finishReason : null;
    if (usage) this.#usage.push(usageOf(usage, entry.model));
    const agent = entry.author.id;
    const thoughts = thoughtsOf(message);
    if (reasoning.isMore && reasoning.words !== '') yield* this.#think(thoughts, reasoning.words);
    yield* this.#closeThoughts(thoughts);
    const words = text.words + this.#log.linesAfter(entry);
    yield* this.#finish(message, agent, { ...text, words });
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      const toolCallId = wireCallId({ index: entry.index, position });
      yield {
        type: EventType.TOOL_CALL_START,
        toolCallId,
        toolCallName: tool.name,
        parentMessageId: message,
      };
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: canonicalArguments(tool.arguments) };
      yield { type: EventType.TOOL_CALL_END, toolCallId };
    }
  }

  /** If the sent text differs from the entry, it stays, and the entry follows as another message. */
  *#finish(message: string, agent: string, { isMore, words }: Rest): Generator<AGUIEvent> {
    if (isMore) {
      if (words !== '') yield* this.#speak(message, agent, words);
      yield* this.#closeText(message);
      return;
    }
    yield* this.#closeText(message);
    const again = `${message}-again`;
    if (words !== '') yield* this.#speak(again, agent, words);
    yield* this.#closeText(again);
  }

  *#speak(messageId: string, agent: string, delta: string): Generator<AGUIEvent> {
    if (!this.#texts.has(messageId)) {
      this.#texts.add(messageId);
      yield { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant', name: agent };
    }
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta };
  }

  *#closeText(messageId: string): Generator<AGUIEvent> {
    if (this.#texts.delete(messageId)) yield { type: EventType.TEXT_MESSAGE_END, messageId };
  }

  *#think(messageId: string, delta: string): Generator<AGUIEvent> {
    if (!this.#thoughts.has(messageId)) {
      this.#thoughts.add(messageId);
      yield { type: EventType.REASONING_START, messageId };
      yield { type: EventType.REASONING_MESSAGE_START, messageId, role: 'reasoning' };
    }
    yield { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta };
  }

  *#closeThoughts(messageId: string): Generator<AGUIEvent> {
    if (!this.#thoughts.delete(messageId)) return;
    yield { type: EventType.REASONING_MESSAGE_END, messageId };
    yield { type: EventType.REASONING_END, messageId };
  }

  *#closeAll(): Generator<AGUIEvent> {
    for (const messageId of [...this.#thoughts]) yield* this.#closeThoughts(messageId);
    for (const messageId of [...this.#texts]) yield* this.#closeText(messageId);
  }

  /** Not for a call whose result is the application's own message. */
  *#result(entry: MessageEntry): Generator<AGUIEvent> {
    const toolCallId = keyOf(entry);
    if (!entry.call || this.#parts.input.resultIds.has(toolCallId)) return;
    const content = this.#log.contentOf(entry);
    yield { type: EventType.TOOL_CALL_RESULT, messageId: entry.id, toolCallId, content, role: 'tool' };
  }

  *#over(ending: Ending): Generator<AGUIEvent> {
    if ('refusal' in ending) {
      yield* this.#error(ending.refusal.code, ending.refusal.message);
      return;
    }
    yield* this.#closeAll();
    const { threadId, runId } = this.#parts.input;
    yield {
      type: EventType.RUN_FINISHED,
      threadId,
      runId,
      outcome: outcomeOf(ending),
      ...(this.#finishReason !== null && { result: { finishReason: this.#finishReason } }),
      ...this.#used(),
    };
  }

  #used(): { usage?: TokenUsage[] } {
    return this.#usage.length === 0 ? {} : { usage: aggregateTokenUsage(this.#usage) };
  }
}

type Outcome = Extract<AGUIEvent, { type: EventType.RUN_FINISHED }>['outcome'];

function outcomeOf(ending: Exclude<Ending, { readonly refusal: unknown }>): Outcome {
  if (ending.kind === 'aborted') return { type: 'cancelled' };
  if (!('open' in ending) || ending.open.length === 0) return { type: 'success' };
  return { type: 'interrupt', interrupts: ending.open.map(interruptOf) };
}

function usageOf(usage: NonNullable<MessageEntry['usage']>, model: string | undefined): TokenUsage {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  return {
    ...(model !== undefined && { model }),
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
  };
}

/** Entries as AG-UI messages, with the ids they had when streamed. */
class Messages {
  readonly #address: AddressOf;

  constructor(address: AddressOf) {
    this.#address = address;
  }

  of(entries: readonly Entry[]): Message[] {
    const utterances = new Utterances();
    const called = new Set<string>();
    const messages: Message[] = [];
    for (const entry of entries) {
      if (entry.type === 'message' && entry.includeInContext !== false && !entry.isCollapsed) {
        messages.push(...this.#of(ownContent(entry), utterances.nameOf(entry), called));
        for (const position of (entry.tool_calls ?? []).keys())
          called.add(wireCallId({ index: entry.index, position }));
      }
      utterances.observe(entry);
    }
    return messages;
  }

  /** AG-UI-RUN-4 */
  contentOf({ content, parts }: MessageEntry): string | ContentPart[] {
    const shown = parts?.map((part): ContentPart => {
      if (part.type === 'text') return part;
      const { mediaType, name } = part;
      const media = /^(image|audio|video)\//.exec(mediaType)?.[1] ?? 'document';
      return {
        type: media as 'image' | 'audio' | 'video' | 'document',
        source: { type: 'url' as const, value: this.#address(part), mimeType: mediaType },
        ...(name !== undefined && { metadata: { filename: name } }),
      };
    });
    return shown ?? content ?? '';
  }

  linesAfter(entry: MessageEntry): string {
    const lines = fileLines(entry, this.#address);
    return lines !== '' && entry.content ? `\n${lines}` : lines;
  }

  /** `called`: the calls so far. */
  #of(entry: MessageEntry, name: string, called: ReadonlySet<string>): Message[] {
    const { id, role, author } = entry;
    if (role === 'assistant') return this.#answer(entry, name);
    const content = this.contentOf(entry);
    if (role === 'user') return [{ id, role, content, name: author.name }];
    const toolCallId = keyOf(entry);
    return role === 'tool' && called.has(toolCallId) ? [{ id, role, toolCallId, content }] : [];
  }

  #answer(entry: MessageEntry, id: string): Message[] {
    const text = entry.partType === 'error' ? failureOf(entry.content).partial : (entry.content ?? '');
    const content = text + this.linesAfter(entry);
    const toolCalls = (entry.tool_calls ?? []).map(({ function: tool }, position) => ({
      id: wireCallId({ index: entry.index, position }),
      type: 'function' as const,
      function: { name: tool.name, arguments: canonicalArguments(tool.arguments) },
    }));
    const message: AssistantMessage = { id, role: 'assistant', name: entry.author.id, content };
    return [
      ...(entry.reasoning
        ? [{ id: thoughtsOf(id), role: 'reasoning' as const, content: entry.reasoning }]
        : []),
      ...(content !== '' || toolCalls.length > 0
        ? [{ ...message, ...(toolCalls.length > 0 && { toolCalls }) }]
        : []),
    ];
  }
}

const keyOf = ({ call }: MessageEntry): string => (call ? wireCallId(call) : '');

/** The id of the reasoning before a message. */
function thoughtsOf(message: string): string {
  return `${message}-thoughts`;
}
