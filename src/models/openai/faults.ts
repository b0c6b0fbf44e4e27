import { excerpt, isRecord, type JsonRecord, LONGEST_SEARCHED, stringOf } from './json.ts';

/**
 * Maps a provider's error to a code. Error texts differ between providers; the codes do not.
 *
 * FAULTS-1 Only this file decides whether a retry may help.
 * FAULTS-2 A message says what happened and what to do.
 */
export interface Fault {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly afterMs?: number;
}

/** An HTTP answer with a status other than 2xx. */
export interface ErrorResponse {
  readonly status: number;
  /** The parsed JSON, or the text if it is not JSON. */
  readonly body: unknown;
  readonly headers: { get(name: string): string | null };
}

/** Matches the errors of OpenAI, Azure, vLLM, llama.cpp, Ollama, LM Studio, Anthropic, Gemini, Mistral and OpenRouter. */
const CONTEXT_TOO_LONG =
  /context[ _-]?(length|window|size)|maximum context|prompt (is )?too long|input (is )?too long|too many (input |prompt )?tokens|(exceeds?|exceeded|over) .{0,60}(token limit|tokens? allowed|maximum .{0,30}tokens)|reduce the length/i;
const QUOTA =
  /insufficient_quota|insufficient (credits|balance|funds)|billing_hard_limit|exceeded your current quota/i;
const RATE = /rate.?limit|too many requests|resource_exhausted/i;
const KEY = /invalid_api_key|authentication_error|unauthorized|permission_denied/i;
const NO_MODEL = /model_not_found|not_found_error/i;
const REFUSED_REQUEST = /invalid_request|bad_?request|unprocessable/i;

interface ErrorText {
  /** For a person. */
  readonly text: string;
  /** Codes and types, matched against known ones. */
  readonly codes: string;
  readonly status: number | null;
}

export function faultOfResponse(response: ErrorResponse, now: number): Fault {
  if (response.status >= 300 && response.status < 400) return faultOfRedirect(response);
  const error = errorTextOf(response.body);
  const fault = faultOf(response.status, error);
  const retryable = fault.retryable && response.headers.get('x-should-retry') !== 'false';
  const afterMs = retryable ? retryAfter(response.headers, now) : undefined;
  return afterMs === undefined ? { ...fault, retryable } : { ...fault, retryable, afterMs };
}

function faultOfRedirect({ status, headers }: ErrorResponse): Fault {
  const location = headers.get('location');
  const to = location === null ? '' : ` to ${excerpt(location)}`;
  const message = `The provider answered ${status}: it redirects${to}. Set baseURL to the address that it redirects to.`;
  return { code: 'REDIRECTED', message, retryable: false };
}

/** An error in an answer with status 200. */
export function faultOfBody(body: unknown): Fault {
  const error = errorTextOf(body);
  return faultOf(error.status, error);
}

function faultOf(status: number | null, error: ErrorText): Fault {
  const all = `${error.codes} ${error.text}`;
  const detail = error.text === '' ? '' : `: ${error.text}`;
  const answer = status === null ? 'The provider reported an error' : `The provider answered ${status}`;
  const matches = (statuses: readonly number[], pattern: RegExp): boolean =>
    status === null ? pattern.test(all) : statuses.includes(status);
  const final = (code: string, advice: string): Fault => ({
    code,
    message: `${answer}${detail}${/[.!?…]$/.test(detail) ? '' : '.'} ${advice}`,
    retryable: false,
  });
  const transient = (code: string, advice: string): Fault => ({ ...final(code, advice), retryable: true });

  if (matches([400, 413, 422], CONTEXT_TOO_LONG) && CONTEXT_TOO_LONG.test(all)) {
    return final(
      'CONTEXT_TOO_LONG',
      'Check contextTokens of this model: it must not exceed its real window.',
    );
  }
  if (status === 402 || ((status === 429 || status === null) && QUOTA.test(all))) {
    return final('QUOTA_EXHAUSTED', 'Check the credit of the account of this key.');
  }
  if (matches([401, 403], KEY)) return final('UNAUTHORIZED', 'Check apiKey of this model.');
  if (matches([404, 405, 410], NO_MODEL) || NO_MODEL.test(error.codes)) {
    return final('NOT_FOUND', 'Check baseURL and model.');
  }
  if (matches([429], RATE))
    return transient('RATE_LIMITED', 'Ask less often, or raise the limit with the provider.');
  if (status === 408) return transient('TIMEOUT', 'It waited too long for the request: try again.');
  if (status === null ? REFUSED_REQUEST.test(error.codes) : isFinalStatus(status)) {
    return final('BAD_REQUEST', 'The request does not suit this provider: check model, and its profile.');
  }
  return transient('PROVIDER_ERROR', 'The provider is in trouble: try again later.');
}

function isFinalStatus(status: number): boolean {
  return status < 500 && status !== 409 && status !== 425;
}

/** Finds the text in `{error: {message}}`, `{error: "…"}`, `{message}`, `{detail}`, `[{error}]`, text or HTML. */
function errorTextOf(body: unknown): ErrorText {
  const whole = Array.isArray(body) ? body[0] : body;
  if (!isRecord(whole)) return { text: textOf(stringOf(whole)), codes: '', status: null };
  const error: JsonRecord = isRecord(whole.error) ? whole.error : whole;
  const text =
    stringOf(error.message) || stringOf(whole.error) || stringOf(whole.message) || detailOf(whole.detail);
  const codes = [error.code, error.type, error.status].filter((code) => typeof code === 'string').join(' ');
  const status = [error.status, error.code, whole.status, whole.code].map(Number).find(isHttpStatus);
  return { text: textOf(text), codes, status: status ?? null };
}

function isHttpStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value < 600;
}

function detailOf(detail: unknown): string {
  if (detail === undefined || detail === null) return '';
  return typeof detail === 'string' ? detail : JSON.stringify(detail);
}

/** One line for a person; for an HTML page its title. */
export function textOf(text: string): string {
  if (!/^\s*</.test(text)) return excerpt(text);
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(text.slice(0, LONGEST_SEARCHED))?.[1] ?? '';
  return title.trim() === '' ? 'an HTML page' : `an HTML page, “${excerpt(title, 100)}”`;
}

/** The delay that the provider asks for, in milliseconds: `retry-after-ms`, or seconds or a date in `retry-after`. */
function retryAfter(headers: ErrorResponse['headers'], now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (Number.isFinite(milliseconds)) return Math.max(0, milliseconds);
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  const sent = Date.parse(headers.get('date') ?? ''); // the provider's clock and ours may differ
  return Number.isNaN(date) ? undefined : Math.max(0, date - (Number.isNaN(sent) ? now : sent));
}
