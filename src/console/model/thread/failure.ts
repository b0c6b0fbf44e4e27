import type { ModelFailure } from '../../../conversation/index.ts';

/** The failure that is the result of a call (`{"error": {"code", "message"}}`); null: the call succeeded. */
export function resultFailure(content: string): ModelFailure | null {
  if (!content.startsWith('{"error":')) return null;
  try {
    const { code, message } = (JSON.parse(content) as { error: Partial<ModelFailure> }).error;
    return typeof code === 'string' ? { code, message: String(message ?? '') } : null;
  } catch {
    return null;
  }
}

/**
 * What to change before another try, for failures that repeat until then; `code` is between backticks. Null: another try may
 * succeed, or the message says more. `model`: of the agent; absent: its program calls one.
 */
export function adviceOnFailure(code: string | null, model: string | undefined): string | null {
  if (code === null || !Object.hasOwn(ADVICE, code) || model === undefined) return null;
  return `${ADVICE[code]?.replaceAll('MODEL', () => `models.${model}`)}`;
}

const PROBE = '`parley doctor --probe` calls each model once.';
const ADVICE: Readonly<Record<string, string>> = {
  UNAUTHORIZED: `Check the variable that \`MODEL.apiKey\` names in \`parley.yaml\`, and restart the daemon if you change it. ${PROBE}`,
  QUOTA_EXHAUSTED: `Add credit to the account of the key that \`MODEL.apiKey\` names in \`parley.yaml\`. ${PROBE}`,
  NOT_FOUND: `Check \`model\` and \`baseURL\` of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
  REDIRECTED: `Check \`baseURL\` of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
  BAD_REQUEST: `Check \`model\`, \`profile\` and the parameters of \`MODEL\` in \`parley.yaml\`, and run \`parley reload\`. ${PROBE}`,
};
