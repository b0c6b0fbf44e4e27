import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';

/**
 * The `fetch` of the `openai` package, on `node:http`: the global one takes six times as much processor time for a call.
 *
 * HTTP-FETCH-1 A response has only what the package and `model.ts` read. Its body is read once, by `body` or `text`.
 * HTTP-FETCH-2 Redirects are not followed: the key must not be sent to another address.
 * HTTP-FETCH-3 An idle connection is closed before the server closes it: the request that is being sent then would fail.
 * HTTP-FETCH-4 A request has a listener for errors until it is closed: they may follow its answer, even at once. One that is
 *    closed without an answer or an error (after `upgrade`) fails.
 * HTTP-FETCH-5 A compressed answer is an error, and the compressed text of an error is not read.
 */

/** HTTP-FETCH-3: many servers wait 5 s. A shorter time in the header `keep-alive` has precedence. */
const IDLE_MS = 4_000;
const CONNECT_MS = 10_000;
/** More than the error of any provider. */
const MAX_TEXT_BYTES = 1024 * 1024;

const KEPT = { keepAlive: true, timeout: IDLE_MS };
const PLAIN = { request: http.request, agent: new http.Agent(KEPT), ready: 'connect' } as const;
const SECURE = { request: https.request, agent: new https.Agent(KEPT), ready: 'secureConnect' } as const;

/** What the package passes. */
interface PackageRequest {
  readonly method?: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** HTTP-FETCH-1 */
interface PackageResponse extends Pick<Response, 'url' | 'status' | 'ok' | 'headers' | 'text'> {
  readonly body: AsyncIterable<Uint8Array>;
}

export async function httpFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const url = String(input);
  const { method = 'GET', headers, body, signal } = init as PackageRequest;
  const { request, agent, ready } = url.startsWith('https:') ? SECURE : PLAIN;
  const sent = request(url, { method, agent });
  for (const [name, value] of headers) sent.setHeader(name, value);
  sent.setHeader('accept-encoding', 'identity'); // nothing decompresses the body
  sent.setHeader('content-length', body.length);
  signal.addEventListener('abort', () => void sent.destroy(signal.reason), { once: true });
  limitConnecting(sent, ready);
  sent.end(body);
  return responseOf(url, await answerTo(sent)) as unknown as Response;
}

/** HTTP-FETCH-4. A body that is broken gives an error of the request and of the body. */
function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('close', () => reject(withCode('ECONNRESET', 'closed without an answer')));
  });
}

function withCode(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Of a new connection, until it can send. */
function limitConnecting(sent: ClientRequest, ready: 'connect' | 'secureConnect'): void {
  sent.once('socket', (socket) => {
    if (!socket.connecting) return;
    const error = withCode('ETIMEDOUT', `no connection within ${CONNECT_MS} ms`);
    const timer = setTimeout(() => sent.destroy(error), CONNECT_MS);
    for (const end of [ready, 'close']) socket.once(end, () => clearTimeout(timer));
  });
}

function responseOf(url: string, answer: IncomingMessage): PackageResponse {
  const status = answer.statusCode ?? 0;
  const ok = status >= 200 && status < 300;
  const isCompressed = !/^(identity)?$/i.test(answer.headers['content-encoding'] ?? ''); // HTTP-FETCH-5
  if (isCompressed) answer.destroy();
  if (isCompressed && ok) throw withCode('COMPRESSED', 'the answer is compressed');
  return {
    ...{ url, status, ok },
    headers: ok ? NO_HEADERS : headersOf(answer),
    body: answer,
    text: async () => (isCompressed ? '' : textOf(answer)),
  };
}

/** HTTP-FETCH-1: only those of an error are read. */
const NO_HEADERS = new Headers();

function headersOf({ headers }: IncomingMessage): Headers {
  return new Headers(Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]));
}

/** Truncated. */
async function textOf(answer: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    chunks.push(chunk.subarray(0, MAX_TEXT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_TEXT_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}
