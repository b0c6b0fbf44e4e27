import type { MessageEntry } from '../../conversation/index.ts';

/** Failures in the words of the log, without its notation. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** The text of a message, and the failure of the model call that ended it (`LLM_ERROR {…}` at its end). */
export function splitFailure({ content, partType }: MessageEntry): { text: string; failure: Failure | null } {
  const text = content ?? '';
  const found = partType === 'error' ? /(?:^|\n)LLM_ERROR (\{.*\})\s*$/s.exec(text) : null;
  const failure = found ? failureIn(found[1] ?? '') : null;
  return found && failure ? { text: text.slice(0, found.index).trimEnd(), failure } : { text, failure: null };
}

/** The failure that is the result of a call (`{"error": {"code", "message"}}`); null: the call succeeded. */
export function resultFailure(content: string): Failure | null {
  return content.startsWith('{"error":') ? failureIn(content) : null;
}

function failureIn(json: string): Failure | null {
  try {
    const value = JSON.parse(json) as { error?: unknown; code?: unknown; message?: unknown };
    const { code, message } = (value.error ?? value) as { code?: unknown; message?: unknown };
    return typeof code === 'string' ? { code, message: String(message ?? '') } : null;
  } catch {
    return null;
  }
}
