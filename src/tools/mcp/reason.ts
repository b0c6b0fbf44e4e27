import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { cut, type HideValues, inOneLine, messageOf } from '../../kernel/index.ts';

const LONGEST = 600;

/** Formats an error: with its cause, without secrets, with limited length. */
export type Reason = (error: unknown) => string;

export function reasonFor(hide: HideValues): Reason {
  return (error) => {
    const text = hide(withCause(error));
    return text.length <= LONGEST ? text : `${cut(text, LONGEST)}…`;
  };
}

function withCause(error: unknown): string {
  const message = answeredWith(error) ?? wantsPage(error) ?? messageOf(error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause === undefined) return message;
  const because = withCause(cause);
  return message.includes(because) ? message : `${message}: ${because}`;
}

const ADVICE: Readonly<Record<number, string>> = {
  401: 'check its headers in tools.mcpServers',
  403: 'check its headers in tools.mcpServers, and the rights of their key',
  404: 'check its url; the older transport HTTP+SSE, whose url often ends in /sse, is not supported',
  405: 'check its url; the older transport HTTP+SSE, whose url often ends in /sse, is not supported',
};

/** An HTTP status that is an error. The SDK's text has the body of the answer, but no status. */
function answeredWith(error: unknown): string | null {
  if (!(error instanceof StreamableHTTPError) || error.code === undefined || error.code < 400) return null;
  const [, body = ''] =
    /^Streamable HTTP error: (?:Error POSTing to endpoint: )?(.*)$/s.exec(error.message) ?? [];
  const text = inOneLine(
    cut(
      body
        .slice(0, 5 * LONGEST)
        .replaceAll(/<[^<>]*>/g, ' ')
        .trim(),
      LONGEST / 2,
    ),
  );
  const advice = ADVICE[error.code];
  return `it answered ${error.code}${text === '' ? '' : `: ${text}`}${advice === undefined ? '' : ` (${advice})`}`;
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
