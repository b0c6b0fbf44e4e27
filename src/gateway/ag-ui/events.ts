import { type AGUIEvent, aggregateTokenUsage, EventType, type TokenUsage } from '@ag-ui/core';
import {
  type Ending,
  finishNotice,
  type MessageEntry,
  type Rest,
  type Step,
  wireCallId,
} from '../../conversation/index.ts';
import { canonicalArguments } from '../../kernel/index.ts';
import { thoughtsOf } from './history.ts';
import { interruptOf } from './interrupts.ts';

/**
 * Renders the steps of a progress as AG-UI events.
 *
 * EVENTS-1 Every opened message is closed before the run ends, whatever its outcome.
 * EVENTS-2 A tool call is sent from the log: its id is its position there, and its arguments are those that run.
 */

type Words = Extract<Step, { kind: 'words' }>;
type Said = Extract<Step, { kind: 'said' }>;

export class RunEvents {
  readonly #threadId: string;
  readonly #runId: string;
  /** Ids of open messages and open reasoning. */
  readonly #texts = new Set<string>();
  readonly #thoughts = new Set<string>();
  #usage: TokenUsage[] = [];
  /** The finish reason of the newest answer, if it is unusual. */
  #finishReason: string | null = null;

  constructor(threadId: string, runId: string) {
    this.#threadId = threadId;
    this.#runId = runId;
  }

  *of(step: Step): Generator<AGUIEvent> {
    if (step.kind === 'words') yield* this.#words(step);
    else if (step.kind === 'said') yield* this.#said(step);
    else if (step.kind === 'result') yield* result(step.entry);
    else if (step.kind === 'over') yield* this.#over(step.ending);
  }

  /** EVENTS-1, with the reason. */
  *error(code: string, message: string): Generator<AGUIEvent> {
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
    yield* this.#finish(message, agent, text);
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

  *#over(ending: Ending): Generator<AGUIEvent> {
    if ('refusal' in ending) {
      yield* this.error(ending.refusal.code, ending.refusal.message);
      return;
    }
    yield* this.#closeAll();
    yield {
      type: EventType.RUN_FINISHED,
      threadId: this.#threadId,
      runId: this.#runId,
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

function* result(entry: MessageEntry): Generator<AGUIEvent> {
  if (!entry.call) return;
  yield {
    type: EventType.TOOL_CALL_RESULT,
    messageId: entry.id,
    toolCallId: wireCallId(entry.call),
    content: entry.content ?? '',
    role: 'tool',
  };
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
