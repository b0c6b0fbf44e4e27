import { type Answer, type CallOutcome, type CallReport, finishReasonOf } from '../../conversation/index.ts';
import { type Clock, messageOf, type Timers } from '../../kernel/index.ts';
import {
  MAX_TOOL_CALLS,
  type Model,
  type ModelAnswer,
  type ModelOutcome,
  type ModelRequest,
} from '../model-port.ts';
import { costOf, type Price } from '../requests/cost.ts';
import type { LiveAttempt, LiveDelta, LiveText } from './live-text.ts';
import { callWithRetries, type Retry, type RetryPolicy } from './retry.ts';

/** What one model call of a turn needs besides its request. */
export interface CallContext {
  readonly model: Model;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** The monotonic clock. */
  readonly elapsed: Clock;
  /** Null: the call is not shown live. */
  readonly live: { readonly text: LiveText; readonly publish: (chunk: LiveDelta) => void } | null;
  /** Called before a failed attempt is repeated. Does not throw. */
  readonly onRetry?: (retry: Retry) => void;
  readonly timers: Timers;
  readonly random: () => number;
  readonly price: Price | null;
}

/**
 * Makes one model call of a turn, retries included. Returns its outcome as a command to the conversation.
 * Never rejects: a bug in an adapter is a failed call, recorded as content of the turn (L16).
 */
export async function callModel(
  request: ModelRequest,
  asked: Pick<CallReport, 'upTo' | 'estimatedTokens'>,
  context: CallContext,
): Promise<CallOutcome> {
  const startedAt = context.elapsed();
  const outcome = limited(await attempt(request, context));
  const report: CallReport = {
    agent: request.agent,
    turnId: request.turnId,
    duration: Math.round(context.elapsed() - startedAt),
    requestHash: request.hash,
    ...asked,
  };
  switch (outcome.kind) {
    case 'answered':
      return {
        type: 'model-answered',
        answer: answerOf(outcome.answer, context.price, request.boundTo),
        ...report,
      };
    case 'failed':
      return {
        type: 'model-failed',
        code: outcome.code,
        message: outcome.message,
        partial: outcome.partial.content,
        ...report,
      };
    case 'aborted':
      return { type: 'model-aborted', partial: outcome.partial.content, ...report };
  }
}

async function attempt(request: ModelRequest, context: CallContext): Promise<ModelOutcome> {
  const { live } = context;
  let shown: LiveAttempt | undefined;
  try {
    return await callWithRetries(context.model, request, {
      signal: context.signal,
      policy: context.retry,
      sleep: context.timers.sleep,
      random: context.random,
      onRetry: context.onRetry,
      onAttempt() {
        shown?.end();
        shown = live?.text.begin(request.turnId, live.publish);
        return (delta) => shown?.add(delta);
      },
    });
  } catch (error) {
    const partial = { content: '', reasoning: '' };
    return { kind: 'failed', code: 'INTERNAL', message: messageOf(error), partial, retryable: false };
  } finally {
    shown?.end();
  }
}

/** An answer with too many calls fails: each of them would be entries, and all of them one append. */
function limited(outcome: ModelOutcome): ModelOutcome {
  if (outcome.kind !== 'answered' || outcome.answer.toolCalls.length <= MAX_TOOL_CALLS) return outcome;
  const { content, reasoning = '' } = outcome.answer;
  return {
    kind: 'failed',
    code: 'TOO_MANY_TOOL_CALLS',
    message: `The answer calls more than ${MAX_TOOL_CALLS} tools, and none was run. Check whether the model repeats itself.`,
    partial: { content: content ?? '', reasoning },
    retryable: false,
  };
}

function answerOf(answer: ModelAnswer, price: Price | null, boundTo: string | undefined): Answer {
  const usage = answer.usage && price ? { ...answer.usage, usd: costOf(answer.usage, price) } : answer.usage;
  return {
    content: answer.content,
    reasoning: answer.reasoning || undefined,
    usage,
    model: answer.model,
    finishReason: finishReasonOf(answer.finishReason),
    sessionId: answer.sessionId,
    opaque: boundTo === undefined ? undefined : opaqueOf(answer, boundTo),
    toolCalls: answer.toolCalls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}

function opaqueOf({ opaque: message, toolCalls }: ModelAnswer, boundTo: string): Answer['opaque'] {
  const calls = toolCalls.map(({ opaque }) => opaque ?? null);
  const hasCalls = calls.some((fields) => fields !== null);
  if (!message && !hasCalls) return undefined;
  return { boundTo, ...(message ? { message } : {}), ...(hasCalls ? { calls } : {}) };
}
