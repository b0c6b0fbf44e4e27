import type { Refusal } from '../../kernel/index.ts';

/**
 * Why a model ended an answer, in the names of the chat-completions protocol: `stop`, `tool_calls`, `length`,
 * `content_filter`, `refusal` for a refusal written by the model, `pause` if the provider asks to continue the answer, and
 * `interrupted` if the provider fell silent or the connection broke off after the reason and before the end.
 * An unknown reason is kept as the provider wrote it. People and clients see it; a view contains a pause only.
 */

/** Code points of an unknown reason: it is shown on one line. */
const LONGEST = 64;

/** Other names that providers use. */
const SAME: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  eos: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  max_output_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  function_call: 'tool_calls',
  tool_use: 'tool_calls',
  safety: 'content_filter',
  blocklist: 'content_filter',
  prohibited_content: 'content_filter',
  recitation: 'content_filter',
  spii: 'content_filter',
  pause_turn: 'pause',
};

const NOTICES: Readonly<Record<string, string | null>> = {
  stop: null,
  tool_calls: null,
  length: 'cut at the output limit (length)',
  content_filter: 'cut by the content filter of the provider (content_filter)',
  refusal: 'a refusal of the model (refusal)',
  pause: 'paused by the provider (pause)',
  interrupted: 'cut because the provider did not send its end (interrupted)',
};

const ADVICE: Readonly<Record<Cut, string>> = {
  length: 'raise maxOutputTokens of the model, or ask the agent to continue',
  content_filter: 'ask in other words',
  pause: 'ask the agent to continue',
  interrupted: 'ask the agent to continue',
};

/** The reasons that leave an answer incomplete. */
export type Cut = 'length' | 'content_filter' | 'pause' | 'interrupted';

/** A provider's reason in the form that an entry stores. */
export function finishReasonOf(given: string | undefined): string | undefined {
  const plain = [...(given ?? '').replace(/[\p{C}\p{Z}]+/gu, ' ').trim()].slice(0, LONGEST).join('');
  const known = plain.toLowerCase();
  if (Object.hasOwn(SAME, known)) return SAME[known];
  return (Object.hasOwn(NOTICES, known) ? known : plain) || undefined;
}

export function cutBy(finishReason: string | undefined): Cut | null {
  return finishReason !== undefined && Object.hasOwn(ADVICE, finishReason) ? (finishReason as Cut) : null;
}

/** For people: the words after "the answer was"; null for a usual end. */
export function finishNotice(finishReason: string | undefined): string | null {
  if (finishReason === undefined) return null;
  if (Object.hasOwn(NOTICES, finishReason)) return NOTICES[finishReason] ?? null;
  return `ended for the reason ${JSON.stringify(finishReason)}`;
}

export function adviceOn(cut: Cut): string {
  return ADVICE[cut];
}

const EMPTY: Readonly<Record<Cut, readonly [code: string, message: string]>> = {
  length: ['OUTPUT_LIMIT', 'The answer was cut at the output limit (length) before any text'],
  content_filter: ['CONTENT_FILTERED', 'The content filter of the provider (content_filter) left no text'],
  pause: ['ANSWER_PAUSED', 'The provider paused the answer (pause) before any text'],
  interrupted: [
    'STREAM_BROKEN',
    'The provider did not send the end of the answer (interrupted), nor any text',
  ],
};

const AGAIN = 'ask the agent again, or choose another model';

/** The failure of an answer without any text or call (L16). */
export function emptyAnswerFailure(
  cut: Cut | null,
  hasReasoning: boolean,
): Pick<Refusal, 'code' | 'message'> {
  if (cut !== null) {
    const [code, what] = EMPTY[cut];
    return { code, message: `${what}: ${ADVICE[cut]}.` };
  }
  const what = hasReasoning
    ? 'The model only reasoned, and gave no answer'
    : 'The answer of the model is empty';
  return { code: 'EMPTY_ANSWER', message: `${what}: ${AGAIN}.` };
}

/** The result of a call whose arguments were cut: running it with partial arguments would be wrong. */
export function argumentsCutMessage(cut: Cut): string {
  const what = NOTICES[cut];
  return `the answer was ${what} before the arguments of this call were whole, so it was not run; call again, with shorter arguments`;
}
