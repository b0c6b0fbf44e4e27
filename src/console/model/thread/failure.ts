import type { Entry } from '../../../conversation/index.ts';
import { splitMessage } from '../../../conversation/log/model-failure.ts';
import { limitOf, type NameOf } from './blocks.ts';

export interface Advice {
  /** `code` is between backticks. */
  readonly text: string;
  /** Whose tries fail until then; null: another one may succeed. */
  readonly fails: 'agent' | 'conversation' | null;
  /** A new conversation helps too. */
  readonly orNew: boolean;
}

/**
 * What to change after a model failure of this code, or at a limit of this name. Null: another try may succeed, or the message says
 * more. `model`: of the agent; absent: its program calls one.
 */
export function adviceOn(code: string | null, model: string | undefined): Advice | null {
  if (code === null) return null;
  if (Object.hasOwn(OF_ALL, code)) return OF_ALL[code] ?? null;
  if (!Object.hasOwn(OF_MODEL, code) || model === undefined) return null;
  const text = `${OF_MODEL[code]?.replaceAll('MODEL', () => `models.${model}`)}`;
  return advice(text, 'agent');
}

export type Ending = NonNullable<ReturnType<typeof endingOf>>;

/**
 * Why a turn ended early, from the entry that says it and those before it, newest first; null: this entry says nothing of it. `code`:
 * of the failure, or the name of the limit. `model`: the one that was asked last; undefined: that of the agent's card.
 */
export function endingOf([said, ...before]: readonly Entry[], agent: string, nameOf: NameOf) {
  if (said?.type !== 'limit-reached' && said?.type !== 'message') return null;
  const isLimit = said.type === 'limit-reached';
  const failure = isLimit ? { code: said.limit, message: limitOf(said, nameOf) } : splitMessage(said).failure;
  const [model] = before.flatMap((one) => {
    if (one.type === 'attempt-failed' && one.turnId === said.turnId) return one.next.model;
    return one.type === 'agent-hired' && one.agent === agent ? one.model : [];
  });
  return failure && { code: failure.code, text: failure.message, failed: said, model };
}

const advice = (text: string, fails: Advice['fails'], orNew = false): Advice => ({ text, fails, orNew });

const raise = (limit: string) => `raise \`limits.${limit}\` in \`parley.yaml\`, and run \`parley reload\`.`;
const ofConversation = (limit: string) => advice(`To continue, ${raise(limit)}`, 'conversation', true);
const ofTurn = (limit: string) =>
  advice(`Another turn may finish the work. To allow longer turns, ${raise(limit)}`, null);
const TOO_LONG = advice(
  'Set `contextTokens` of its model in `parley.yaml` to the real window of the model and run `parley reload`, or give the agent a model with a larger window.',
  'agent',
  true,
);
/** Advice that holds for agents in other processes too. */
const OF_ALL: Readonly<Record<string, Advice>> = {
  CONTEXT_TOO_LONG: TOO_LONG,
  CONTEXT_STILL_TOO_LARGE: TOO_LONG,
  CONTENT_FILTERED: advice(
    'The provider of the model refuses what was written; nothing is wrong with the configuration. Ask in other words, or another agent with another model.',
    null,
    true,
  ),
  tokensPerConversation: ofConversation('tokensPerConversation'),
  usdPerConversation: ofConversation('usdPerConversation'),
  modelCallsPerTurn: ofTurn('modelCallsPerTurn'),
  turnSeconds: ofTurn('turnSeconds'),
  repeatedCalls: advice('Tell the agent what to do instead, or correct what its tool returns.', null),
  hireBudget: advice(
    'The budget of a hired agent cannot be raised. Ask for another agent with a larger one.',
    'agent',
  ),
};

const PROBE = '`parley doctor --probe` calls each model once.';
const OF_MODEL: Readonly<Record<string, string>> = {
  UNAUTHORIZED: `Check \`MODEL.apiKey\` in \`parley.yaml\` and the variable that it names, or else \`OPENAI_API_KEY\` or \`ANTHROPIC_API_KEY\`. \`parley reload\` reads \`parley.yaml\` and \`.env\` again; a variable of the environment needs a restart. ${PROBE}`,
  QUOTA_EXHAUSTED: `Add credit to the account of the key that this model uses (\`MODEL\` in \`parley.yaml\`). ${PROBE}`,
  NOT_FOUND: `Check \`model\` and \`baseURL\` of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
  REDIRECTED: `Check \`baseURL\` of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
  BAD_REQUEST: `If the provider refuses what was written, ask in other words. Else check \`model\`, \`profile\` and the parameters of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
};
