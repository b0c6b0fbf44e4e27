import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/client';
import { cut, type HideValues, inOneLine, messageOf } from '../../kernel/index.ts';
import { failed } from '../toolbox.ts';

/** Maximum bytes of one message of a server. */
export const LONGEST_MESSAGE = 16 * 1024 * 1024;

/** The rest of the message is not read and the connection is closed: the start of the next message is unknown. */
export class MessageTooLarge extends Error {
  constructor() {
    super(`a message is longer than ${LONGEST_MESSAGE / 1024 / 1024} MiB`);
  }
}

type Failed = ReturnType<typeof failed>;

/** The failure of a call without a result, for the model. An effect that may have happened is reported as unknown (L12). */
export function callFailure(server: string, error: unknown, reason: string): Failed {
  if (error instanceof MessageTooLarge) {
    const advice = 'Ask for less: a part, a page, or a file.';
    return failed(
      'TOOL_RESULT_TOO_LARGE',
      `the server ${server} was cut off: ${reason}. ${UNKNOWN} ${advice}`,
    );
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return failed('TOOL_TIMEOUT', `the server ${server} did not answer in time (${reason}). ${UNKNOWN}`);
  }
  if (error instanceof ProtocolError && !isLost(error)) {
    return failed('TOOL_FAILED', reason.replace(/^(?:MCP error -?\d+: )+/, ''));
  }
  if (error instanceof SdkError && INVALID.has(error.code)) {
    return failed(
      'TOOL_FAILED',
      `the server ${server} answered with something that is not a result of a tool`,
    );
  }
  // A 4xx status: the server refused the request (unknown session or caller) and did not execute it.
  if (
    error instanceof InsufficientScopeError ||
    (error instanceof SdkHttpError && error.status >= 400 && error.status < 500)
  ) {
    return failed(
      'MCP_SERVER_UNAVAILABLE',
      `the server ${server} refused the call (${reason}). Nothing was done.`,
    );
  }
  return failed(
    'MCP_CONNECTION_LOST',
    `the server ${server} was lost during the call (${reason}). ${UNKNOWN}`,
  );
}

export function unavailable(server: string, error: string | null): Failed {
  const why = error === null ? '' : `: ${error}`;
  return failed('MCP_SERVER_UNAVAILABLE', `the server ${server} is not there${why}. Nothing was done.`);
}

const UNKNOWN = 'Whether the call took effect is not known: look before you call again.';

/** The error of a request whose stream ended before its answer. */
export const STREAM_ENDED = 'the stream ended without an answer';
export const STREAM_ENDED_CODE = -32_000;

/** Checks our text too: many servers use the same code for any failure of a tool. */
function isLost({ code, message }: ProtocolError): boolean {
  return code === STREAM_ENDED_CODE && message.endsWith(STREAM_ENDED);
}

/** The server answered, with something that is no result. */
const INVALID: ReadonlySet<string> = new Set([
  SdkErrorCode.InvalidResult,
  SdkErrorCode.UnsupportedResultType,
]);

/** The call was lost with the connection. */
export function isClosed(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed;
}

/** It wants a login, whichever revision it knows. */
export function wantsLogin(error: unknown): boolean {
  return error instanceof SdkHttpError && (error.status === 401 || error.status === 403);
}

const LONGEST = 600;

/** Formats an error: with its cause, without secrets, with limited length. */
export type Reason = (error: unknown) => string;

/** `login`: what to do about a server that wants a login; absent: its headers are configured. */
export function reasonFor(hide: HideValues, login?: string): Reason {
  return (error) => {
    const text = hide(withCause(error, login));
    return text.length <= LONGEST ? text : `${cut(text, LONGEST)}…`;
  };
}

/** In the words of the SDK, which name its own transports. */
const CLOSED_EARLY = /^Version negotiation failed: the (?:connection|transport was) closed during/;

function withCause(error: unknown, login: string | undefined): string {
  const message = answeredWith(error, login) ?? wantsPage(error) ?? messageOf(error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause === undefined) return CLOSED_EARLY.test(message) ? 'it ended before it answered' : message;
  if (error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed)
    return withCause(cause, login);
  const because = withCause(cause, login);
  return message.includes(because) ? message : `${message}: ${because}`;
}

const ADVICE: Readonly<Record<number, string>> = {
  401: 'check its headers in tools.mcpServers',
  403: 'check its headers in tools.mcpServers, and the rights of their key',
  404: 'check its url; the older transport HTTP+SSE, whose url often ends in /sse, is not supported',
  405: 'check its url; the older transport HTTP+SSE, whose url often ends in /sse, is not supported',
};

/** An HTTP status that is an error, with the body of the answer. */
function answeredWith(error: unknown, login: string | undefined): string | null {
  if (error instanceof InsufficientScopeError)
    return `it answered 403: ${error.message} (${login ?? ADVICE[403]})`;
  if (!(error instanceof SdkHttpError) || error.status < 400) return null;
  const { status } = error;
  const body = typeof error.data.text === 'string' ? error.data.text : '';
  const text = inOneLine(
    cut(
      body
        .slice(0, 5 * LONGEST)
        .replaceAll(/<[^<>]*>/g, ' ')
        .trim(),
      LONGEST / 2,
    ),
  );
  const isLogin = status === 401 || (status === 403 && body.includes('insufficient_scope'));
  const advice = isLogin && login !== undefined ? login : ADVICE[status];
  return `it answered ${status}${text === '' ? '' : `: ${text}`}${advice === undefined ? '' : ` (${advice})`}`;
}

/** The protocol's error for a call that a person must enable on a page of the server. */
function wantsPage(error: unknown): string | null {
  if (!(error instanceof UrlElicitationRequiredError)) return null;
  const pages = error.elicitations.flatMap(({ url, message }) =>
    /^https?:/.test(url) ? [`${url} (${inOneLine(message)})`] : [],
  );
  const where = pages.length === 0 ? 'a page that it does not name' : pages.join(', ');
  return `a person must first open ${where}. Nothing was done: ask a person, then call again`;
}
