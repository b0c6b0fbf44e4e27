import { STATUS_CODES } from 'node:http';
import { ParleyError, type Refusal } from '../kernel/index.ts';

/** Refusals as problem details (RFC 9457) with `code` and `hint`. */

/** Codes that exist only in HTTP, or whose HTTP status differs from the bus. */
const STATUS: Readonly<Record<string, number>> = {
  NOT_READY: 503,
  CONSOLE_MISSING: 503,
  AGENT_FAILED: 400,
  AGENT_STOPPED: 409,
  RATE_LIMITED: 429,
  TOO_MANY_CONVERSATIONS: 429,
  TOO_MANY_READERS: 429,
  READERS_FULL: 503,
  TOO_SLOW: 503,
  REQUEST_INCOMPLETE: 400,
  UNSUPPORTED_MEDIA_TYPE: 415,
  METHOD_NOT_ALLOWED: 405,
  HOST_FORBIDDEN: 403,
  ORIGIN_FORBIDDEN: 403,
};

/** The error as shown to the client: the text of a bug is only reported to `onFault`. */
export function publicErrorOf(error: unknown, onFault: (error: unknown) => void): ParleyError {
  if (error instanceof ParleyError) return error;
  onFault(error);
  return new ParleyError('INTERNAL', 'the daemon failed at this request', { hint: 'its log says why' });
}

/** For protocols whose errors have no fields of ours. */
export function errorText({ code, message, hint }: Refusal): string {
  return `${code}: ${message}${hint ? ` (${hint})` : ''}`;
}

export function httpStatus(code: string, statusOf: (code: string) => number): number {
  return STATUS[code] ?? statusOf(code);
}

export function problem(status: number, { code, message, hint, retryAfter = 1 }: Refusal): Response {
  const title = STATUS_CODES[status] ?? 'Error';
  const body = { type: 'about:blank', title, status, detail: message, code, ...(hint && { hint }) };
  const json = JSON.stringify(body);
  return new Response(json, { status, headers: headersOf(status, json, retryAfter) });
}

function headersOf(status: number, json: string, retryAfter: number): Record<string, string> {
  return {
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(json)),
    ...((status === 429 || status === 503) && { 'retry-after': String(retryAfter) }),
  };
}
