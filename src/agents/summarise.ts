import type { Usage } from '../conversation/index.ts';
import { linkedAbort } from '../kernel/index.ts';
import type { ModelProfile } from './assemble.ts';
import { costOf } from './cost.ts';
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
}

export interface Prose {
  readonly text: string;
  readonly usage?: Usage;
  readonly model?: string;
}

/** A model's summary of what is to be taken out of a view. Null, for whatever reason: the extract takes its place. */
export async function summarise(
  reduction: PlannedReduction,
  { model, profile, timeoutMs }: Summariser,
  call: SummaryCall,
  context: SummariseContext,
): Promise<Prose | null> {
  const assembled = reduction.summaryRequest(profile, call);
  if (!assembled || assembled.fault) return null; // L13: this request, too
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
    if (outcome.kind !== 'answered') return null;
    const { content, usage, model: name } = outcome.answer;
    const text = content?.trim() ?? '';
    if (text === '') return null;
    const priced = usage && profile.price ? { ...usage, usd: costOf(usage, profile.price) } : usage;
    return { text, usage: priced, model: name };
  } catch {
    return null; // a bug in an adapter must not cost the turn
  } finally {
    clearTimeout(timer);
    abort.unlink();
  }
}
