import {
  crowdFault,
  cut,
  isShallow,
  jsonBytes,
  jsonFault,
  MAX_DEPTH,
  ParleyError,
  type Refusal,
  refusal,
  refusalOf,
} from '../kernel/index.ts';
import type { ApiAnswer, BusLog } from './port.ts';

/** Requests and answers as bytes, whichever broker carries them, and the codes of errors. */

/** The JSON of a request, or why it is refused; `{}` for an empty one. */
export function decodeRequest(bytes: Uint8Array): ApiAnswer {
  if (bytes.length === 0) return { ok: true, body: {} };
  const crowd = crowdFault(bytes);
  if (crowd)
    return { ok: false, refusal: refusal('INVALID_FIELD', `the request ${crowd}`, 'send fewer fields') };
  try {
    const body: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (isShallow(body)) return { ok: true, body };
    const message = `the request is nested deeper than ${MAX_DEPTH} levels`;
    return { ok: false, refusal: refusal('INVALID_FIELD', message, 'flatten the request') };
  } catch (error) {
    if (!(error instanceof SyntaxError))
      return { ok: false, refusal: refusal('INVALID_UTF8', 'the request is not valid UTF-8') };
    const message = `the request is not JSON: ${jsonFault(error)}`;
    return { ok: false, refusal: refusal('MALFORMED_JSON', message, 'send one JSON object') };
  }
}

export interface EncodedAnswer {
  readonly body: Uint8Array;
  /** Set on an error: `status` as in HTTP, `description` on one line. */
  readonly error: { readonly status: number; readonly description: string } | null;
}

const MOST_ERROR_CHARACTERS = 2_000;

/** An answer as bytes of at most `maxBytes`; one that does not fit becomes the error `TOO_LARGE`. */
export function encodeAnswer(answer: ApiAnswer, maxBytes: number): EncodedAnswer {
  if (!answer.ok) return encodeRefusal(answer.refusal);
  const body = jsonBytes(answer.body ?? {});
  if (body.length <= maxBytes) return { body, error: null };
  const message = `the answer has ${body.length} bytes; the broker carries ${maxBytes}`;
  return encodeRefusal(refusal('TOO_LARGE', message, 'ask for less at once, with a lower limit'));
}

function encodeRefusal({ code, message, hint }: Refusal): EncodedAnswer {
  const error = { code, message: shortened(message), ...(hint !== undefined && { hint: shortened(hint) }) };
  const description = cut(`${code}: ${message}`, 200).replace(/\p{Cc}+/gu, ' ');
  return { body: jsonBytes(error), error: { status: statusOf(code), description } };
}

function shortened(text: string): string {
  const shown = cut(text, MOST_ERROR_CHARACTERS);
  return shown === text ? text : `${shown}… (${text.length - shown.length} more characters)`;
}

/** What a handler threw, as a refusal: a known fault by its code, a bug without its details. */
export function refusalOfFault(fault: unknown): Refusal {
  if (fault instanceof ParleyError) return refusalOf(fault);
  return refusal(
    'INTERNAL',
    'the daemon failed at this request',
    'its log says why; the request may be repeated',
  );
}

/** An outage (503) is a warning with its code and reason; anything else may be a bug and is logged with its stack. */
export function logFault(log: BusLog, fault: unknown, fields: object, message: string): void {
  if (fault instanceof ParleyError && statusOf(fault.code) === 503) {
    log.warn({ ...fields, code: fault.code, reason: fault.message }, message);
  } else log.error({ err: fault, ...fields }, message);
}

const CODES: readonly (readonly [number, readonly string[]])[] = [
  [401, ['UNAUTHORIZED']],
  [403, ['FORBIDDEN']],
  [404, ['NOT_FOUND']],
  [409, ['CONFLICT', 'ID_CONFLICT', 'NOT_RETRYABLE', 'DEAD_LETTER_CUT']],
  [409, ['APPROVAL_ANSWERED', 'APPROVAL_EXPIRED', 'MISSING_BLOB']],
  [413, ['TOO_LARGE', 'BLOB_TOO_LARGE', 'BLOB_QUOTA']],
  [422, ['BLOB_REFUSED']],
  [429, ['TOO_MANY_UPLOADS']],
  [500, ['INTERNAL']],
  [503, ['BROKER_UNAVAILABLE', 'CONVERSATION_MOVED', 'TIMEOUT', 'STOPPING', 'BUS_CLOSED']],
  [503, ['STORE_UNAVAILABLE', 'STORE_FULL', 'LOG_UNAVAILABLE', 'LOG_WRITE_FAILED', 'SEARCH_INDEX_FAILED']],
  [504, ['NATS_SILENT']],
];

/** The HTTP status of an error code: 400 for what the sender can correct, and for any code not listed. */
export function statusOf(code: string): number {
  const listed = CODES.find(([, codes]) => codes.includes(code));
  if (listed) return listed[0];
  if (code.endsWith('_NOT_FOUND')) return 404;
  return code.endsWith('_CONFLICT') ? 409 : 400;
}
