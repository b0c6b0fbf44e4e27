import type { Refusal } from '../../kernel/index.ts';
import type { Usage } from '../log/entry.ts';
import type { Used } from '../state/usage.ts';

/** The account of a request that a model is sent: what endpoint `view` and `parley explain` answer beside its messages. */

/** What became of the view. Each says something about the request shown, not about earlier ones. */
export type ReductionStatus =
  /** It holds everything. */
  | 'not_needed'
  /** A summary or previews stand in it for what was taken out. */
  | 'reduced'
  /** It is over its limit, fits the window all the same, and nothing can be taken out of it. */
  | 'no_effect'
  /** It does not fit the window: it is not sent (`CONTEXT_STILL_TOO_LARGE`). */
  | 'failed';

/** One message of the exact request that an agent's model is sent. */
export interface RequestMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  readonly tool_call_id?: string;
}

export interface ExplainedRequest {
  readonly messages: readonly RequestMessage[];
  readonly report: ViewReport;
}

export interface ViewReport {
  /** Estimated tokens of the request, corrected by `token_ratio`. */
  readonly tokens: number;
  /** The model's context, in tokens; `reserved` of them are kept for its answer. */
  readonly window: number;
  readonly reserved: number;
  /** What the provider counts for each token that is estimated. */
  readonly token_ratio: number;
  readonly status: ReductionStatus;
  /** Entries that the request holds, previews included. */
  readonly included: readonly number[];
  /** Entries that this agent knows and that the request does not hold; `left_out_as` says what became of each. */
  readonly left_out: readonly number[];
  readonly left_out_as: readonly LeftOut[];
  /** Own results that stand as previews. */
  readonly shortened: readonly number[];
  /** Entries that come with a later call: routed to this agent for later, or said while its turn runs. */
  readonly waiting: readonly number[];
  /** Sums up to `tokens`: tools, and the messages by `kind` (`marker` counts as `away-block`). */
  readonly tokens_by_group: Readonly<Record<string, number>>;
  readonly next_reduction: NextReduction;
  /** The request that the log recorded for this place has the same hash; unknown: it recorded none. */
  readonly sent: boolean | 'unknown';
  readonly cost: Cost;
  /** Tools of the request; those of the agent that nobody offers now; those that the policy forbids it. */
  readonly tools: readonly string[];
  readonly tools_missing: readonly string[];
  readonly tools_forbidden: readonly string[];
  /** What this account cannot know. */
  readonly note?: string;
  /** SHA-256 of the request's bytes. */
  readonly requestHash: string;
  readonly model: string;
  /** Why it must not be sent, if so. */
  readonly fault: Refusal | null;
  /** For each message of `messages` where it comes from. */
  readonly parts: readonly ReportedPart[];
}

export interface ReportedPart {
  readonly kind: string;
  readonly entries: readonly number[];
  readonly tokens: number;
}

/** From `from` to `to`, whatever of it this agent knows: all of one fate. */
export interface LeftOut {
  readonly from: number;
  readonly to: number;
  /** `empty`: the provider takes no answer without a word. */
  readonly how: 'summed_up' | 'left_out' | 'empty';
  /** The summary that says so. */
  readonly by?: number;
  /** The call of the tool `recall` that reads them back. */
  readonly recall: { readonly from: number; readonly to: number };
}

/** When the view is reduced next, and what that would take now. */
export interface NextReduction {
  /** It comes when the request has more tokens than this, or more of what `limits` counts. */
  readonly above: number;
  /** The tokens that it then aims at. */
  readonly target: number;
  /** `contextMaxMessages` and `contextMaxChars`. */
  readonly limits: { readonly messages: number | null; readonly chars: number | null };
  /** It is due already. */
  readonly due: boolean;
  /** Null: nothing. */
  readonly would: {
    readonly shorten: readonly number[];
    readonly sum_up: readonly number[];
    readonly leave_out: readonly number[];
  } | null;
}

/** Up to the place that is explained, by what providers reported; the answer included if it is one. */
export interface Cost {
  /** Of the call that this request was made for; null: it has no answer, or nobody knows. */
  readonly call: Usage | null;
  readonly turn: Used;
  readonly agent: Used;
  readonly conversation: Used;
}
