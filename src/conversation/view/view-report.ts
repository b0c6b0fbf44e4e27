import type { Refusal } from '../../kernel/index.ts';
import type { Usage } from '../log/entry.ts';
import type { Used } from '../state/usage.ts';

/** The account of one model request: what the verb `view` and `parley explain` return with its messages. */

/** The state of the reduction in this request, independent of earlier requests. */
export type ReductionStatus =
  /** The request contains everything. */
  | 'not_needed'
  /** It contains a summary or previews in place of other entries. */
  | 'reduced'
  /** It exceeds its limit, fits the window, and nothing can be taken out. */
  | 'no_effect'
  /** It does not fit the window and is not sent (`CONTEXT_STILL_TOO_LARGE`). */
  | 'failed';

export interface RequestMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  readonly tool_call_id?: string;
}

export interface ExplainedRequest {
  readonly messages: readonly RequestMessage[];
  readonly report: ViewReport;
  /** The exact bytes that are sent, as text; only if they are asked for, and `messages` is then empty. */
  readonly body?: string;
}

export interface ViewReport {
  readonly agent: string;
  /** The entry that answered the request; null: it is the next request. */
  readonly answer: number | null;
  /** Estimated tokens of the request, corrected by `token_ratio`. */
  readonly tokens: number;
  /** The model's context window in tokens; `reserved` of them are kept for the answer. */
  readonly window: number;
  readonly reserved: number;
  /** Real tokens per estimated token. */
  readonly token_ratio: number;
  readonly status: ReductionStatus;
  /** Entries in the request, previews included. */
  readonly included: readonly number[];
  /** Entries that this agent knows and the request does not contain; `left_out_as` says why. */
  readonly left_out: readonly number[];
  readonly left_out_as: readonly LeftOut[];
  /** Own results shown as previews. */
  readonly shortened: readonly number[];
  /** Whose files a reduction took out. */
  readonly without_files: readonly number[];
  /** Files of entries in the request that the model is not shown, and why; absent: none. */
  readonly unseen_files?: readonly { readonly entry: number; readonly name: string; readonly why: string }[];
  /** Entries that a later request will contain: routed to this agent for a later turn, or written during its turn. */
  readonly waiting: readonly number[];
  /** Adds up to `tokens`: tools, and messages by `kind` (`marker` counts as `away-block`). */
  readonly tokens_by_group: Readonly<Record<string, number>>;
  readonly next_reduction: NextReduction;
  /** Whether the hash recorded in the log for this request equals `requestHash`; unknown: none is recorded. */
  readonly sent: boolean | 'unknown';
  readonly definition: ReportedDefinition;
  readonly cost: Cost;
  /** Tools of the request; tools of the agent that no server offers now; tools that the policy forbids to it. */
  readonly tools: readonly string[];
  readonly tools_missing: readonly string[];
  readonly tools_forbidden: readonly string[];
  /** What this account does not cover. */
  readonly note?: string;
  /** SHA-256 of the request's bytes. */
  readonly requestHash: string;
  readonly model: string;
  /** Fields of the request's body besides `model`, the stream, tools and messages; absent from an older daemon. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** The session of the request; absent: it names none. `from`: the entry that named it, where the daemon did not make it. */
  readonly session?: {
    readonly id: string;
    readonly by: 'person' | 'agent' | 'daemon';
    readonly from?: number;
  };
  /**
   * With the session of an agent in another process: places in `messages` that it is told when the turn is offered. A program that waits
   * for results of this turn gets those, and what arrived meanwhile. `unknown`: it continues if the program still has it, else all is told.
   * `waiting`: the program of a coding agent waited for results, and was told nothing.
   */
  readonly told?: {
    readonly session: 'new' | 'continued' | 'unknown' | 'waiting';
    readonly messages: readonly number[];
    /** If it is a coding agent: the kinds of files that its program takes, and the hash that the log has of its prompt. */
    readonly takes?: readonly string[];
    readonly hash?: string;
    /** SHA-256 of the JSON of its content blocks, and whether it is `hash`. */
    readonly prompt?: { readonly hash: string; readonly sent: boolean | 'unknown' };
  };
  /** Names of the headers that the configuration adds. Their values are not shown. */
  readonly headers?: readonly string[];
  /** Why the request must not be sent, if so. */
  readonly fault: Refusal | null;
  /** The origin of each message of `messages`. */
  readonly parts: readonly ReportedPart[];
}

/** What the request was built from besides the log. */
export interface ReportedDefinition {
  readonly hash: string;
  /** True: the turn named it in the log. False: today's configuration, for the next request or a log without definitions. */
  readonly recorded: boolean;
  /** The hash of each part: `persona`, `model`, `tool.<name>`. */
  readonly parts: Readonly<Record<string, string>>;
  /** The JSON texts of the parts that the request names in `texts`, without those that do not fit in the answer. */
  readonly texts?: Readonly<Record<string, string>>;
}

export interface ReportedPart {
  readonly kind: string;
  readonly entries: readonly number[];
  readonly tokens: number;
}

/** The entries from `from` to `to` that this agent knows and that were left out for the same reason. */
export interface LeftOut {
  readonly from: number;
  readonly to: number;
  /** `empty`: an answer without text, which providers do not accept. */
  readonly how: 'summed_up' | 'left_out' | 'empty';
  /** The summary that covers them or names them as left out. */
  readonly by?: number;
  /** Arguments of the tool `recall` that read them. */
  readonly recall: { readonly from: number; readonly to: number };
}

/** When the view is reduced next, and what that would take out now. */
export interface NextReduction {
  /** Above so many tokens, or above one of `limits`. */
  readonly above: number;
  /** Tokens after the reduction. */
  readonly target: number;
  /** `contextMaxMessages` and `contextMaxChars`. */
  readonly limits: { readonly messages: number | null; readonly chars: number | null };
  /** The next call reduces. */
  readonly due: boolean;
  /** Null: nothing. */
  readonly would: {
    readonly drop_files: readonly number[];
    readonly shorten: readonly number[];
    readonly sum_up: readonly number[];
    readonly leave_out: readonly number[];
  } | null;
}

/** Reported usage up to this request, its answer included if it has one. */
export interface Cost {
  /** What this request's own call used; null if there is no answer or no report. */
  readonly call: Usage | null;
  readonly turn: Used;
  readonly agent: Used;
  readonly conversation: Used;
}
