import type { MessageEntry } from './entry.ts';

/** The failure of a model call, as the entry of its answer holds it. */
export interface ModelFailure {
  readonly code: string;
  readonly message: string;
}

interface SplitAnswer {
  readonly text: string;
  readonly failure: ModelFailure | null;
}

const UNNAMED = 'LLM_ERROR';
const PREFIX = `${UNNAMED} `;

/** The content of the answer of a failed call (L16): its partial text, then the failure on the last line. */
export function failedAnswer({ code, message }: ModelFailure, partial = ''): string {
  const line = PREFIX + JSON.stringify({ code, message });
  return partial ? `${partial}\n\n${line}` : line;
}

/** The inverse of `failedAnswer`. Without a failure on its last line, the content is all text. */
export function splitFailedAnswer(content: string | null): SplitAnswer {
  const text = content ?? '';
  const lastLine = text.lastIndexOf('\n') + 1;
  if (!text.startsWith(`${PREFIX}{`, lastLine)) return { text, failure: null };
  const failure = failureIn(text.slice(lastLine + PREFIX.length));
  return { text: text.slice(0, lastLine).replace(/\n{1,2}$/, ''), failure };
}

/** The text of any message, and the failure that ended it, if one did. */
export function splitMessage(entry: Pick<MessageEntry, 'content' | 'partType'>): SplitAnswer {
  return entry.partType === 'error'
    ? splitFailedAnswer(entry.content)
    : { text: entry.content ?? '', failure: null };
}

/** An imported failure can have another form: it is shown as it is. */
function failureIn(json: string): ModelFailure {
  try {
    const { code, message } = JSON.parse(json) as Partial<ModelFailure>;
    return { code: String(code ?? UNNAMED), message: String(message ?? '') };
  } catch {
    return { code: UNNAMED, message: json };
  }
}
