import { parseJson } from '../../kernel/json.ts';
import type { Candidate, EntryOf, MessageEntry } from './entry.ts';

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

/**
 * The failures that another candidate may not have, with words for people. `key`: another key of the same model may help;
 * `model`: only another model. No other failure is answered elsewhere: the request itself would be refused again.
 */
const ELSEWHERE = {
  RATE_LIMITED: { help: 'key', words: 'was rate limited' },
  QUOTA_EXHAUSTED: { help: 'key', words: 'has no quota left' },
  UNAUTHORIZED: { help: 'key', words: 'refused the key' },
  PROVIDER_ERROR: { help: 'model', words: 'was overloaded or failed' },
  NETWORK_ERROR: { help: 'model', words: 'could not be reached' },
  STREAM_BROKEN: { help: 'model', words: 'broke off' },
  TIMEOUT: { help: 'model', words: 'did not answer in time' },
  NOT_FOUND: { help: 'model', words: 'was not found' },
  CONTEXT_STILL_TOO_LARGE: { help: 'model', words: 'has too small a window' },
} as const;

/** Another model, or another key of the same model, may answer where this failure came from. */
export function isHelpedElsewhere(code: string): code is keyof typeof ELSEWHERE {
  return Object.hasOwn(ELSEWHERE, code);
}

/** Another key of the same model may help. */
export function isHelpedByKey(code: string): boolean {
  return isHelpedElsewhere(code) && ELSEWHERE[code].help === 'key';
}

/** One line for people. */
export function attemptText({ model, key, code, requestHash, next }: EntryOf<'attempt-failed'>): string {
  const words = isHelpedElsewhere(code) ? ELSEWHERE[code].words : 'failed';
  const isSkipped = requestHash === undefined && code !== 'CONTEXT_STILL_TOO_LARGE';
  const why = isSkipped ? 'is left out after a recent failure' : words;
  const followed = next.model === model ? `key ${next.key} is used` : `${candidateText(next)} is asked`;
  return `${candidateText({ model, key })} ${why} (${code}); ${followed} instead`;
}

function candidateText({ model, key }: Candidate): string {
  return key === undefined ? model : `${model} with key ${key}`;
}

/** What precedes the result of a call, one line each: what the person who approved it changed, and the remark. */
export const APPROVERS_NOTE =
  /^(?:\[[^\n]* changed the arguments of this call before it ran\.[^\n]*\]\n)?(?:\[[^\n]* approved this call:[^\n]*\]\n)?/;

/** The failure that is the result of a call (`{"error": {"code", "message"}}`), among lines in brackets; null: the call succeeded. */
export function resultFailure(content: string): ModelFailure | null {
  const result = content.replace(APPROVERS_NOTE, '');
  if (!result.startsWith('{"error":')) return null;
  const [line = '', ...notes] = result.split('\n');
  const { error } = Object(parseJson(line)) as { readonly error?: Partial<ModelFailure> | null };
  if (typeof error?.code !== 'string' || !notes.every((note) => /^(?:\[.*)?$/.test(note))) return null;
  return { code: error.code, message: String(error.message ?? '') };
}
