import { type Refusal, refusal } from '../../kernel/index.ts';
import type { WireMessage } from '../model-port.ts';

/**
 * Checks every assembled request before it is sent to a model (L13).
 *
 * GUARD-1 Every call is directly followed by its result, in call order; no orphan, no duplicate, no dangling call.
 * GUARD-2 The last message is not the assistant's.
 * GUARD-3 The request leaves room for the answer in the model's window. If the persona and the tools alone leave none, the refusal
 *         says so: no shorter conversation would help.
 */

export interface Window {
  /** The model's context, in tokens. */
  readonly contextTokens: number;
  /** Reserved for the answer. */
  readonly maxOutputTokens: number;
}

/** Null: the request may be sent. */
export function guard(
  messages: readonly WireMessage[],
  estimatedTokens: number,
  window: Window,
  fixed?: FixedPart,
): Refusal | null {
  return checkPairs(messages) ?? checkLast(messages) ?? checkWindow(estimatedTokens, window, fixed);
}

/** What every request of an agent begins with. */
export interface FixedPart {
  readonly agent: string;
  /** The name of its model. */
  readonly model: string;
  /** The estimated tokens of its instructions and tools. */
  tokens(): number;
}

function checkPairs(messages: readonly WireMessage[]): Refusal | null {
  const seen = new Set<string>();
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at];
    if (message?.role === 'tool')
      return invalid(at, `a result of ${message.tool_call_id} without its call before it`);
    if (message?.tool_calls === undefined) continue; // most messages: an iterator for each takes time
    for (const call of message.tool_calls) {
      if (seen.has(call.id)) return invalid(at, `the call ${call.id} twice`);
      seen.add(call.id);
      at++;
      const result = messages[at];
      if (result?.role !== 'tool' || result.tool_call_id !== call.id) {
        return invalid(at, `no result of the call ${call.id}`);
      }
    }
  }
  return null;
}

function checkLast(messages: readonly WireMessage[]): Refusal | null {
  const last = messages.at(-1);
  if (last && last.role !== 'assistant') return null;
  return invalid(messages.length - 1, last ? 'an assistant message at the end' : 'nothing');
}

function checkWindow(estimatedTokens: number, window: Window, fixed: FixedPart | undefined): Refusal | null {
  const { contextTokens, maxOutputTokens } = window;
  const available = contextTokens - maxOutputTokens;
  if (estimatedTokens <= available) return null;
  const alone = fixed?.tokens() ?? 0;
  if (fixed && alone > available) {
    const { agent, model } = fixed;
    return refusal(
      'CONTEXT_STILL_TOO_LARGE',
      `the persona and the tools of ${agent} alone are about ${alone} tokens; models.${model}.contextTokens (${contextTokens}) less its maxOutputTokens (${maxOutputTokens}) leaves room for ${available}`,
      `shorten the persona (agents/${agent}.md), give the agent fewer tools, or raise models.${model}.contextTokens to the real window of the model`,
    );
  }
  return refusal(
    'CONTEXT_STILL_TOO_LARGE',
    `the request is about ${estimatedTokens} tokens; the model's window leaves room for ${available}`,
    'set a model with a larger contextTokens, or begin a new conversation',
  );
}

function invalid(at: number, what: string): Refusal {
  return refusal(
    'REQUEST_INVALID',
    `the request was not sent: message ${at} holds ${what}`,
    '`parley explain` prints the request; begin a new conversation, and keep this log to report the fault',
  );
}
