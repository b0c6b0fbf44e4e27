import type { Entry } from '../client/index.ts';
import type { Acknowledged } from './actors/publishers.ts';
import type { PlannedPost } from './posts-plan.ts';

/** What a run saw from the outside, and what is wrong with it. */

export interface Violation {
  /** Which promise is broken; one word or two. */
  readonly law: string;
  readonly conversation: string | null;
  readonly index: number | null;
  readonly text: string;
}

/** The request behind an answer, as the daemon explains it; `at` null: the one it would make now. */
export interface SeenView {
  readonly conversation: string;
  readonly agent: string;
  readonly at: number | null;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | null;
    readonly tool_calls?: readonly { readonly id: string }[];
    readonly tool_call_id?: string;
  }[];
  readonly requestHash: string;
  readonly included: readonly number[];
  readonly fault: { readonly code: string; readonly message: string } | null;
  readonly parts: readonly { readonly kind: string; readonly entries: readonly number[] }[];
}

export interface Observed {
  readonly planned: readonly PlannedPost[];
  readonly acknowledged: readonly Acknowledged[];
  readonly logs: ReadonlyMap<string, readonly Entry[]>;
  readonly views: readonly SeenView[];
  /** How often each call took effect, by `<conversation>:<index>:<position>`. */
  readonly effects: ReadonlyMap<string, number>;
  /** Why a post was refused behind its publisher's back, by its id: what its dead letter says. */
  readonly refused: ReadonlyMap<string, string>;
}

export function violation(
  law: string,
  conversation: string | null,
  index: number | null,
  text: string,
): Violation {
  return { law, conversation, index, text };
}
