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
