import { cutBy, finishReasonOf, type Usage } from '../conversation/index.ts';
import { hasVisible, linkedAbort } from '../kernel/index.ts';
import type { ModelProfile } from './assemble.ts';
import { costOf, type Reservation, reservationFor } from './cost.ts';
import type { Model } from './model-port.ts';
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
    if (outcome.kind !== 'answered') return NO_PROSE;
    const { content, usage, model: name, finishReason } = outcome.answer;
    // A summary that was cut leaves out what was said last: the extract has it.
    const isWhole = !cutBy(finishReasonOf(finishReason)) && hasVisible(content ?? '');
    const text = isWhole ? (content?.trim() ?? null) : null;
    const priced = usage && profile.price ? { ...usage, usd: costOf(usage, profile.price) } : usage;
    return { text, usage: priced, model: name }; // an answer without words was paid for, too
  } catch {
    return NO_PROSE; // a bug in an adapter must not cost the turn
  } finally {
    clearTimeout(timer);
    abort.unlink();
  }
}
