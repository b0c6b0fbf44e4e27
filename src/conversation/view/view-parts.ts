import type { Blocks } from '../log/entry.ts';
import type { FilePart } from '../log/parts.ts';
import { MOST_AWAY_TOKENS } from '../state/budget.ts';
import type { OtherAgentsAs } from '../text/text.ts';

/** The messages of a view, and the policy that words them. */

export interface ViewPolicy {
  readonly otherAgentsAs: OtherAgentsAs;
  readonly includeCollapsed: boolean;
  /** False: a result reads `[result omitted: recall <index>]`. */
  readonly includeToolResults: boolean;
  /** Estimated tokens of the messages that the away block shows in full. */
  readonly awayTokens: number;
  /** True: an agent's own messages include their reasoning. */
  readonly includeReasoning?: boolean;
}

export const DEFAULT_VIEW_POLICY: ViewPolicy = {
  otherAgentsAs: 'system',
  includeCollapsed: false,
  includeToolResults: true,
  awayTokens: MOST_AWAY_TOKENS,
};

interface ViewToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ViewFile extends FilePart {
  /** A reduction took it out: only its line remains (V17). */
  readonly isDropped?: true;
}

/** One message of a request, in the chat-completions form. */
export interface ViewMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** The reasoning of an own message, if the policy includes it. */
  readonly reasoning?: string;
  /** The files of a message with the role `user`, which `content` does not mention (V19). */
  readonly files?: readonly ViewFile[];
  /** The blocks of an own message. */
  readonly blocks?: Blocks;
  readonly tool_calls?: readonly ViewToolCall[];
  readonly tool_call_id?: string;
}

export type PartKind = 'run-context' | 'summary' | 'history' | 'away-block' | 'marker' | 'trigger' | 'turn';

/** A message, the entries it comes from, and its part of the request. */
export interface ViewPart {
  readonly kind: PartKind;
  readonly entries: readonly number[];
  readonly message: ViewMessage;
}

/** A request's messages after the prefix. `history` is shared and grows: use its first `historyLength` items. */
export interface View {
  readonly history: readonly ViewPart[];
  readonly historyLength: number;
  /** Changes when `history` changed other than by growth: discard caches built on it. */
  readonly historyVersion: number;
  /** Block, marker, trigger, and the steps of the turn so far. */
  readonly tail: readonly ViewPart[];
}
