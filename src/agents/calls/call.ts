import { type Answer, type CallOutcome, type CallReport, finishReasonOf } from '../../conversation/index.ts';
import type { Clock, NewId } from '../../kernel/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { Model, ModelAnswer, ModelOutcome, ModelRequest } from '../model-port.ts';
import { costOf, type Price } from '../requests/cost.ts';
import { type LiveDelta, liveCall } from './live.ts';
import { callWithRetries, type RetryPolicy } from './retry.ts';

/** What one model call of a turn needs besides its request. */
export interface CallContext {
  readonly model: Model;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** The monotonic clock. */
  readonly elapsed: Clock;
  readonly newId: NewId;
  readonly publish: (chunk: LiveDelta) => void;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly price: Price | null;
}

/**
 * Makes one model call of a turn, retries included, and says what came of it as a command to the conversation.
 * Never rejects: a bug in an adapter is a failure of the call, and the turn ends with it as content (L16).
 */
export async function callModel(
  request: ModelRequest,
  asked: Pick<CallReport, 'upTo' | 'estimatedTokens'>,
  context: CallContext,
): Promise<CallOutcome> {
  const startedAt = context.elapsed();
  const outcome = await attempt(request, context);
  const report: CallReport = {
    agent: request.agent,
    turnId: request.turnId,
    duration: Math.round(context.elapsed() - startedAt),
    requestHash: request.hash,
    ...asked,
  };
  switch (outcome.kind) {
    case 'answered':
      return { type: 'model-answered', answer: answerOf(outcome.answer, context.price), ...report };
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
  try {
    return await callWithRetries(context.model, request, {
      signal: context.signal,
      policy: context.retry,
      sleep: context.sleep,
      random: context.random,
      onAttempt: () => liveCall(request.turnId, context.newId, context.publish),
    });
  } catch (error) {
    const partial = { content: '', reasoning: '' };
    return { kind: 'failed', code: 'INTERNAL', message: messageOf(error), partial, retryable: false };
  }
}

function answerOf(answer: ModelAnswer, price: Price | null): Answer {
  const usage = answer.usage && price ? { ...answer.usage, usd: costOf(answer.usage, price) } : answer.usage;
  return {
    content: answer.content,
    reasoning: answer.reasoning || undefined,
    usage,
    model: answer.model,
    finishReason: finishReasonOf(answer.finishReason),
    sessionId: answer.sessionId,
    toolCalls: answer.toolCalls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}
