import { cutBy, finishReasonOf, type Usage } from '../conversation/index.ts';
import { hasVisible, linkedAbort, messageOf } from '../kernel/index.ts';
import type { ModelProfile } from './assemble.ts';
import { costOf, type Reservation, reservationFor } from './cost.ts';
import type { Model, ModelAnswer } from './model-port.ts';
import type { PlannedReduction, SummaryCall } from './reduce.ts';
import { callWithRetries, type RetryPolicy } from './retry.ts';

/** The model that writes summaries for an agent. */
export interface Summariser {
  readonly model: Model;
  readonly profile: ModelProfile;
  /** Milliseconds, tries included. */
  readonly timeoutMs: number;
}

export interface SummariseContext {
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  /** Whether the conversation may still use so much (L15). */
  readonly allows: (reservation: Reservation) => boolean;
}

export interface Prose {
  /** Null, for whatever reason: the extract takes its place. */
  readonly text: string | null;
  readonly usage?: Usage;
  readonly model?: string;
  /** Why a model that was asked gave no summary, for the daemon's log. Absent where a person or a shutdown ended the call. */
  readonly failure?: string;
}

const NO_PROSE: Prose = { text: null };

/** A model's summary of what is to be taken out of a view. */
export async function summarise(
  reduction: PlannedReduction,
  { model, profile, timeoutMs }: Summariser,
  call: SummaryCall,
  context: SummariseContext,
): Promise<Prose> {
  const assembled = reduction.summaryRequest(profile, call);
  if (!assembled || assembled.fault) return NO_PROSE; // L13: this request, too
  if (!context.allows(reservationFor(assembled.tokens, profile.maxOutputTokens, profile.price)))
    return NO_PROSE;
  const abort = linkedAbort(context.signal);
  const timer = setTimeout(() => abort.abort('the summary took too long'), timeoutMs);
  try {
    const outcome = await callWithRetries(model, assembled.request, {
      signal: abort.signal,
      policy: context.retry,
      sleep: context.sleep,
      random: context.random,
      onAttempt: () => () => undefined,
    });
    if (outcome.kind === 'failed') return { text: null, failure: `${outcome.code}: ${outcome.message}` };
    if (outcome.kind === 'aborted')
      return context.signal.aborted
        ? NO_PROSE
        : { text: null, failure: `no answer within ${Math.round(timeoutMs)} ms` };
    return proseOf(outcome.answer, profile);
  } catch (error) {
    return { text: null, failure: `INTERNAL: ${messageOf(error)}` }; // a bug in an adapter must not cost the turn
  } finally {
    clearTimeout(timer);
    abort.unlink();
  }
}

function proseOf({ content, usage, model, finishReason }: ModelAnswer, { price }: ModelProfile): Prose {
  const priced = usage && price ? { ...usage, usd: costOf(usage, price) } : usage;
  const paid = { usage: priced, model }; // an answer without words was paid for, too
  // A summary that was cut leaves out what was said last: the extract has it.
  const cut = cutBy(finishReasonOf(finishReason));
  if (cut) return { ...paid, text: null, failure: `its answer was cut: ${cut}` };
  if (!hasVisible(content ?? '')) return { ...paid, text: null, failure: 'its answer has no text' };
  return { ...paid, text: content?.trim() ?? null };
}
