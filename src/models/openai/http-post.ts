import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { bodyLength, type ModelRequest } from '../../agents/model-port.ts';

/**
 * Sends a request of the `openai` package by `node:http`. The global `fetch` takes six times as much processor time and gives
 * up after 300 s without a byte. The package's errors lose what a body has outside its field `error`.
 *
 * HTTP-POST-1 Redirects are not followed: the key must not be sent to another address.
 * HTTP-POST-2 An idle connection is closed before the server closes it: the request that is being sent then would fail.
 * HTTP-POST-3 A request has a listener for errors until it is closed: they may follow its answer, even at once. One that is
 *    closed without an answer or an error (after `upgrade`) fails.
 * HTTP-POST-4 A compressed answer is an error, and the compressed text of an error is not read.
 */

/** HTTP-POST-2: many servers wait 5 s. A shorter time in the header `keep-alive` has precedence. */
const IDLE_MS = 4_000;
const CONNECT_MS = 10_000;
/** More than the error of any provider. */
const MAX_TEXT_BYTES = 1024 * 1024;

const KEPT = { keepAlive: true, timeout: IDLE_MS };
const PLAIN = { request: http.request, agent: new http.Agent(KEPT), ready: 'connect' } as const;
const SECURE = { request: https.request, agent: new https.Agent(KEPT), ready: 'secureConnect' } as const;

export interface HttpRequest {
  readonly url: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: ModelRequest['body'];
}

/** Starts to send the request. Throws if it cannot be sent, for example because of a header. */
export function post(request: HttpRequest): ClientRequest {
  const { body, url } = request;
  const { request: send, agent, ready } = url.startsWith('https:') ? SECURE : PLAIN;
  // A list is written as it is, so a header `host` does not change which name the certificate must have.
  const sent = send(url, { method: 'POST', agent, headers: headersOf(request) });
  limitConnecting(sent, ready);
  for (const piece of body.slice(0, -1)) sent.write(piece);
  sent.end(body.at(-1));
  return sent;
}

const FIXED: ReadonlySet<string> = new Set(['accept-encoding', 'content-length']);

function headersOf({ url, headers, body }: HttpRequest): string[] {
  const list = headers.has('host') ? [] : ['host', new URL(url).host];
  for (const [name, value] of headers) if (!FIXED.has(name)) list.push(name, value);
  list.push('accept-encoding', 'identity'); // nothing decompresses the body
  list.push('content-length', String(bodyLength(body)));
  return list;
}

/** Resolves when the headers of the answer have arrived. Rejects if the request is destroyed. */
export async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const answer = await headOf(sent);
  if (!isCompressed(answer)) return answer;
  answer.destroy();
  if (isSuccess(answer)) throw withCode('COMPRESSED', 'the answer is compressed');
  return answer;
}

export function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/** HTTP-POST-3. A body that is broken gives an error of the request and of the body. */
function headOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let hasAnswer = false; // creating an error for each call is slow
    sent.on('response', (answer) => {
      hasAnswer = true;
      resolve(answer);
    });
    sent.on('error', reject);
    sent.on('close', () => {
      if (!hasAnswer) reject(withCode('ECONNRESET', 'closed without an answer'));
    });
  });
}

function isCompressed({ headers }: IncomingMessage): boolean {
  return !/^(identity)?$/i.test(headers['content-encoding'] ?? '');
}

function withCode(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Limits the time until a new connection can send. */
function limitConnecting(sent: ClientRequest, ready: 'connect' | 'secureConnect'): void {
  sent.once('socket', (socket) => {
    if (!socket.connecting) return;
    const error = withCode('ETIMEDOUT', `no connection within ${CONNECT_MS} ms`);
    const timer = setTimeout(() => sent.destroy(error), CONNECT_MS);
    for (const end of [ready, 'close']) socket.once(end, () => clearTimeout(timer));
  });
}

/** The body, truncated; empty if it is compressed. */
export async function textOfBody(answer: IncomingMessage): Promise<string> {
  if (isCompressed(answer)) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, MAX_TEXT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_TEXT_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}
