import {
  cut,
  isRecord,
  isShallow,
  type JsonRecord,
  parseJson,
  stringOf,
  systemClock,
  UNRESOLVED,
} from '../kernel/index.ts';

/**
 * Maps an error of a provider, or of the network, to a code. Error texts differ between providers; the codes do not.
 *
 * FAULTS-1 Only this file decides whether a retry may help.
 * FAULTS-2 A message says what happened and what to do.
 * FAULTS-3 A delay that the provider asks for is found in each place where one tells it: `retry-after`, the body, and
 *    `x-ratelimit-reset`, of which only the limits that are used up count.
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
  /** By lower-case name. */
  readonly headers: HeaderMap;
}

type HeaderMap = ReadonlyMap<string, string>;

const anyOf = (...words: readonly RegExp[]) => new RegExp(words.map(({ source }) => source).join('|'), 'i');
/** The words of providers for a request that exceeds the window; whole texts are in `test/support/too-long.ts`. */
const CONTEXT_TOO_LONG = anyOf(
  /context[ _-]?(length|window|size|limit)|maximum context|(prompt|input)[ _]?tokens?[ _]exceeded/,
  /\b(prompt|input|conversation|messages?|tokens?)( is| are|_is)?[ _]too[ _](long|large|big)|request[ _]too[ _]large/,
  /reduce (the length|your (prompt|input|message))|string_above_max_length|'messages': array too long/,
  /maximum (allowed )?(prompt|input|model) length|range of input length|(token|input) length.{0,60}exceed/,
  /token count.{0,60}(exceeds|supports)|too many (input |prompt )?tokens|prompt_tokens.{0,60}must be less/,
  /tokens \+ .{0,60}must be|(exceed(s|ed)?|over|more than) .{0,60}(token limit|tokens? allowed|max(imum)? .{0,30}tokens)/,
  /prompt 超长|token.{0,6}超|输入长度超/,
);
/** The limit of the answer is wrong; the text may name the window too. */
const OUTPUT_LIMIT = /max_(completion_|output_)?tokens`? must be/i;
const QUOTA =
  /insufficient_quota|insufficient (credits|balance|funds)|billing_hard_limit|exceeded your current quota|credit balance is too low|reached your specified .{0,20}usage limit/i;
/** Google names the quota that is full. Only those of a day are final. */
const PER_DAY = /per_?day/i;
const RATE = /rate.?limit|too many requests|resource_exhausted/i;
const KEY = /invalid_api_key|authentication_error|unauthorized|permission_denied/i;
/** Google and xAI refuse a key with status 400. */
const KEY_IN_400 = /api[_ ]key[_ ](not valid|invalid|expired)|incorrect api key/i;
const NO_MODEL = /model_not_found|not_found_error/i;
const REFUSED_REQUEST = /invalid_request|invalid_prompt|bad_?request|unprocessable/i;
/** The words of providers that refuse what a request says, with a status of a bad request or of a wrong key. */
const FILTERED = anyOf(
  /\bcontent_(filter|moderation|policy_violation)\b|content (filtering|management|moderation) policy|\b(bio|cyber)_policy\b/,
  /(prompt|input|content|request) was flagged|violates (our )?usage|prohibited_content|safety_check_type/,
  /data_?inspection_?failed|inappropriate content|content exists risk|considered high risk|敏感内容/,
);

/** Groq could not read what the model generated, and answers with status 400. */
const UNREADABLE_ANSWER = /\b(tool_use|output_parse|json_validate)_failed\b/;

/** OpenAI decrypts only what it encrypted for the same organization. */
const FOREIGN_REASONING =
  /invalid_encrypted_content|encrypted content .{0,200}could not be (verified|decrypted)/i;

interface ErrorText {
  /** For a person. */
  readonly text: string;
  /** Codes and types, matched against known ones. */
  readonly codes: string;
  /** Codes, details and the text, which may be longer than what is shown. */
  readonly searched: string;
  readonly status: number | null;
  /** The delay that the body asks for. Milliseconds. */
  readonly afterMs: number | undefined;
}

export function faultOfResponse(response: ErrorResponse, now: number): Fault {
  const { status, body, headers } = response;
  if (status >= 300 && status < 400) return faultOfRedirect(response);
  const error = errorTextOf(body, now);
  const afterMs = retryAfter(headers, now) ?? error.afterMs ?? resetAfter(headers, now);
  const fault = faultOf(status, { ...error, afterMs });
  if (headers.get('x-should-retry') !== 'false') return fault;
  return { code: fault.code, message: fault.message, retryable: false };
}

function faultOfRedirect({ status, headers }: ErrorResponse): Fault {
  const location = headers.get('location');
  const to = location === undefined ? '' : ` to ${excerpt(location)}`;
  const message = `The provider answered ${status}: it redirects${to}. Set baseURL to the address that it redirects to.`;
  return { code: 'REDIRECTED', message, retryable: false };
}

/** An error in an answer with status 200. */
export function faultOfBody(body: unknown, now = systemClock()): Fault {
  const error = errorTextOf(body, now);
  return faultOf(error.status, error);
}

function faultOf(status: number | null, error: ErrorText): Fault {
  const { searched, afterMs } = error;
  const detail = error.text === '' ? '' : `: ${error.text}`;
  const answer = status === null ? 'The provider reported an error' : `The provider answered ${status}`;
  const matches = (statuses: readonly number[], pattern: RegExp): boolean =>
    status === null ? pattern.test(searched) : statuses.includes(status);
  const final = (code: string, advice: string): Fault => ({
    code,
    message: `${answer}${detail}${/[.!?…]$/.test(detail) ? '' : '.'} ${advice}`,
    retryable: false,
  });
  const transient = (code: string, advice: string): Fault => ({
    ...final(code, advice),
    retryable: true,
    ...(afterMs === undefined ? {} : { afterMs }),
  });

  const isTooLong = CONTEXT_TOO_LONG.test(searched) && !OUTPUT_LIMIT.test(searched);
  if (status === 413 || (isTooLong && matches([400, 422, 500], CONTEXT_TOO_LONG))) {
    return final(
      'CONTEXT_TOO_LONG',
      'Check contextTokens of this model: it must not exceed its real window.',
    );
  }
  if (status === 402 || (matches([400, 403, 429], QUOTA) && isSpent(error)))
    return final('QUOTA_EXHAUSTED', 'Check the credit of the account of this key.');
  if (FILTERED.test(searched) && matches([400, 403, 422], FILTERED))
    return final('CONTENT_FILTERED', 'Its content filter refused this: ask in other words.');
  if (matches([401, 403], KEY) || (status === 400 && KEY_IN_400.test(searched)))
    return final('UNAUTHORIZED', 'Check apiKey of this model.');
  if (matches([404, 405, 410], NO_MODEL) || NO_MODEL.test(error.codes)) {
    return final('NOT_FOUND', 'Check baseURL and model.');
  }
  if (matches([429], RATE))
    return transient('RATE_LIMITED', 'Ask less often, or raise the limit with the provider.');
  if (status === 408) return transient('TIMEOUT', 'It waited too long for the request: try again.');
  if (UNREADABLE_ANSWER.test(searched))
    return transient(
      'INVALID_RESPONSE',
      'It could not read what the model generated: try again, or choose another model.',
    );
  if (FOREIGN_REASONING.test(searched))
    return final('BAD_REQUEST', 'Its reasoning is of another organization: set sendReasoning: never.');
  if (status === null ? REFUSED_REQUEST.test(error.codes) : isFinalStatus(status)) {
    return final('BAD_REQUEST', 'The request does not suit this provider: check model and its profile.');
  }
  return transient('PROVIDER_ERROR', 'The provider is in trouble: try again later.');
}

/** Google says “exceeded your current quota” of a minute too, and tells when it is over. */
function isSpent({ searched, codes, afterMs }: ErrorText): boolean {
  if (!QUOTA.test(searched)) return false;
  return afterMs === undefined || /insufficient/i.test(codes) || PER_DAY.test(searched);
}

function isFinalStatus(status: number): boolean {
  return status < 500 && status !== 409 && status !== 425;
}

/** Finds the text in `{error: {message}}`, `{error: "…"}`, `{message}`, `{detail}`, `[{error}]`, text or HTML. */
function errorTextOf(body: unknown, now: number): ErrorText {
  const whole = Array.isArray(body) ? body[0] : body;
  const empty = { codes: '', status: null, afterMs: undefined };
  if (!isRecord(whole)) {
    const text = stringOf(whole).slice(0, LONGEST_SEARCHED);
    return { ...empty, text: textOf(text), searched: text, afterMs: delayIn(text) };
  }
  const error: JsonRecord = isRecord(whole.error) ? whole.error : whole;
  const {
    raw,
    provider_name: provider,
    headers,
  }: JsonRecord = isRecord(error.metadata) ? error.metadata : {};
  const said =
    stringOf(error.message) || stringOf(whole.error) || stringOf(whole.message) || detailOf(whole.detail);
  // OpenRouter: what the provider that it asked has answered, as JSON or text.
  const cause =
    raw === undefined ? null : errorTextOf(typeof raw === 'string' ? (parseJson(raw) ?? raw) : raw, now);
  const shown = said || (cause || Object.keys(error).length === 0 ? '' : detailOf(error));
  const text = `${shown}${cause && cause.text !== '' ? ` (${stringOf(provider) || 'provider'}: ${cause.text})` : ''}`;
  const codes = [error.code, error.type, error.status].filter((code) => typeof code === 'string').join(' ');
  const details = Array.isArray(error.details) ? error.details.filter(isRecord) : [];
  const status = [error.status, error.code, whole.status, whole.code].map(Number).find(isHttpStatus);
  const searched = `${codes} ${shown} ${cause?.searched ?? ''} ${details.length > 0 ? JSON.stringify(details) : ''}`;
  const named = isRecord(headers) ? resetAfter(lowerCase(headers), now) : undefined;
  return {
    text: textOf(text),
    codes,
    searched: searched.slice(0, LONGEST_SEARCHED),
    status: status ?? null,
    afterMs: retryInfo(details) ?? delayIn(said) ?? cause?.afterMs ?? named,
  };
}

function isHttpStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value < 600;
}

function detailOf(detail: unknown): string {
  if (detail === undefined || detail === null) return '';
  if (typeof detail === 'string') return detail;
  return isShallow(detail) ? JSON.stringify(detail) : '';
}

/** Characters of an error text that are processed: it may have many megabytes. */
const LONGEST_SEARCHED = 20_000;

/** One line of at most `length` characters, for an error message. */
export function excerpt(text: string, length = 300): string {
  const start = text.slice(0, LONGEST_SEARCHED);
  const line = start.replaceAll(/\s+/g, ' ').trim();
  return line.length <= length && start === text ? line : `${cut(line, length)}…`;
}

/** A tag that a page begins with; `<400> InternalError` is a text. */
const PAGE = /^\s*<[!?a-z]/i;

/** One line for a person; for an HTML page its title. */
export function textOf(text: string): string {
  if (!PAGE.test(text)) return excerpt(text);
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(text.slice(0, LONGEST_SEARCHED))?.[1] ?? '';
  return title.trim() === '' ? 'an HTML page' : `an HTML page, “${excerpt(title, 100)}”`;
}

/** `retry-after-ms`, or seconds or a date in `retry-after`. All delays are in milliseconds. */
function retryAfter(headers: HeaderMap, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (Number.isFinite(milliseconds)) return Math.max(0, milliseconds);
  return delayUntil(headers.get('retry-after'), headers, now);
}

const RESET = /^(?:x-|anthropic-)?ratelimit.*reset|^x-rate-limit.*reset/;

/** FAULTS-3. The longest of the limits that are used up. */
function resetAfter(headers: HeaderMap, now: number): number | undefined {
  const delays = [...headers].flatMap(([name, value]) => {
    const isUsedUp = Number(headers.get(name.replace('reset', 'remaining')) ?? 0) === 0;
    const delay = RESET.test(name) && isUsedUp ? delayUntil(value, headers, now) : undefined;
    return delay === undefined ? [] : [delay];
  });
  return delays.length > 0 ? Math.max(...delays) : undefined;
}

/** Seconds, a duration such as `1m30s`, or a time: a date, or seconds or milliseconds since the epoch. */
function delayUntil(value = '', headers: HeaderMap, now: number): number | undefined {
  const text = value.trim();
  const sent = Date.parse(headers.get('date') ?? ''); // the provider's clock and ours may differ
  const until = (time: number) => Math.max(0, time - (Number.isNaN(sent) ? now : sent));
  if (/^\d+(\.\d+)?$/.test(text)) {
    const number = Number(text);
    if (number < 1e9) return Math.round(number * 1000);
    return until(number < 1e11 ? number * 1000 : number);
  }
  const date = Date.parse(text);
  return durationIn(text) ?? (Number.isNaN(date) ? undefined : until(date));
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;

/** `1m30s`, `0.3s`, `450ms` */
function durationIn(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  return Math.round(
    parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNIT_MS[unit] ?? 0), 0),
  );
}

/** “Please try again in 1m12.5s.”, “Please retry after 26 seconds” */
const AMOUNT = String.raw`\d+(?:\.\d+)?`;
const PARTS = `${AMOUNT}(?:(?:ms|[smhd])(?:${AMOUNT}(?:ms|[smhd]))*)?`;
const TOLD = new RegExp(
  `(?:try again|retry|wait)(?: your request)?(?: in| after| for)? (${PARTS})(?: ([a-z]+))?`,
  'i',
);

function delayIn(text: string): number | undefined {
  const [, amount = '', word = ''] = TOLD.exec(text) ?? [];
  if (amount === '') return undefined;
  if (/[a-z]$/i.test(amount)) return durationIn(amount.toLowerCase());
  const unit = /^(?:milliseconds?|ms)$/i.test(word) ? 'ms' : word.charAt(0).toLowerCase();
  return UNIT_MS[unit] === undefined ? undefined : durationIn(`${amount}${unit}`);
}

/** Google: `{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}` */
function retryInfo(details: readonly JsonRecord[]): number | undefined {
  return details
    .map(({ retryDelay }) => durationIn(stringOf(retryDelay)))
    .find((delay) => delay !== undefined);
}

function lowerCase(headers: JsonRecord): HeaderMap {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));
}

/** Network errors, identified by the chain of causes. All of them may pass. */
const BY_CODE: Readonly<Record<string, readonly [code: string, what: string]>> = {
  ECONNREFUSED: ['NETWORK_ERROR', 'Nothing listens at {url}. Is it running? Check baseURL.'],
  ENOTFOUND: [
    'NETWORK_ERROR',
    `The host of {url} is unknown: its name ${UNRESOLVED}. Check baseURL and the network.`,
  ],
  EAI_AGAIN: [
    'NETWORK_ERROR',
    `The host of {url} cannot be looked up now: its name ${UNRESOLVED}. Check the network.`,
  ],
  ECONNRESET: ['NETWORK_ERROR', '{url} closed the connection. Try again.'],
  ETIMEDOUT: ['TIMEOUT', '{url} cannot be reached in time. Check baseURL and the network.'],
};

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL|EPROTO/;

/** `url` is shown to people and must have no credentials. */
export function faultOfNetwork(error: unknown, url: string): Fault {
  const causes = causesOf(error);
  const codes = causes.map((cause) => ('code' in cause ? String(cause.code) : ''));
  const known = codes.map((code) => BY_CODE[code]).find((row) => row !== undefined);
  if (known) return { code: known[0], message: known[1].replace('{url}', () => url), retryable: true };
  const last = causes.at(-1)?.message ?? String(error);
  const isCertificate = codes.some((code) => CERTIFICATE.test(code));
  const message = isCertificate
    ? `No secure connection to ${url}: ${last}. Check baseURL and its certificate.`
    : `The connection to ${url} failed: ${last}. Check baseURL and the network.`;
  return { code: 'NETWORK_ERROR', message, retryable: !isCertificate };
}

/** An error and its causes. An AggregateError (several addresses) is followed by its first error. */
function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  let current = error;
  while (current instanceof Error && causes.length < 8) {
    causes.push(current);
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return causes;
}
