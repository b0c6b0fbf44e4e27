import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import OpenAI from 'openai';
import { bodyLength, type ModelRequest } from '../../agents/model-port.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Protocol } from '../protocols.ts';

export interface ProviderOptions {
  /** With the version: `http://127.0.0.1:8080/v1`. */
  readonly baseURL: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** Sent with every request, e.g. `api-key`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One provider, to which the package `openai` addresses requests. */
export interface Endpoint {
  /** For people: without query. */
  readonly shown: string;
  /** What all requests have in common, made once: for each request the package would take longer than sending it. */
  head(): Promise<Head>;
}

/** How the requests of a dialect are addressed. */
type Way = Omit<Protocol, 'decoder'>;

interface Head {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** Throws `CONFIG_INVALID` for an invalid baseURL, key or header. */
export function endpointOf(options: ProviderOptions, protocol: Way): Endpoint {
  const { client, shown } = clientOf(options, protocol);
  const { path } = protocol;
  let made: Promise<Head> | undefined;
  return {
    shown,
    head() {
      made ??= client.buildRequest({ method: 'post', path }).then(({ req, url }) => {
        const headers: Iterable<[string, string]> = req.headers;
        return { url, headers: [...headers] };
      });
      return made;
    },
  };
}

function clientOf({ baseURL, apiKey = '', headers = {} }: ProviderOptions, way: Way) {
  const url = checkedUrl(baseURL);
  for (const [name, value] of [['apiKey', apiKey] as const, ...Object.entries(headers)]) {
    // Other characters are not valid in a header. The value is not shown: it may be a key.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new ParleyError('CONFIG_INVALID', `${name}: expected a single line of Latin-1 characters`, {
        hint: 'look for a line break or a quotation mark that was copied with the key',
      });
    }
  }
  const isAzure = AZURE.test(url.hostname) && !TOKEN.test(apiKey);
  const keyHeader = way.keyHeader ?? (isAzure ? 'api-key' : undefined);
  const shown = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  const client = new OpenAI({
    baseURL: shown,
    defaultQuery: Object.fromEntries(url.searchParams),
    // The package requires a key; where it is not sent in this form, the header is removed below.
    apiKey: apiKey === '' ? 'none' : apiKey,
    defaultHeaders: {
      ...(apiKey === '' || keyHeader ? { authorization: null } : {}),
      ...(apiKey !== '' && keyHeader ? { [keyHeader]: apiKey } : {}),
      ...way.headers,
      ...headers,
    },
    // Otherwise the package reads these from the environment.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
  });
  return { client, shown };
}

/** Azure takes a key in the header `api-key`, and a token of Entra ID, a JWT, as everybody else does. */
const AZURE = /\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)$/;
const TOKEN = /^ey[\w-]+\.[\w-]+\.[\w-]+$/;

function checkedUrl(baseURL: string): URL {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : null;
  if (url && ['http:', 'https:'].includes(url.protocol) && !`${url.username}${url.password}`) return url;
  const seen = baseURL.includes('@') ? 'a URL that holds credentials' : JSON.stringify(baseURL);
  throw new ParleyError('CONFIG_INVALID', `baseURL: seen ${seen}, expected an http or https URL`, {
    hint: 'for example http://127.0.0.1:8080/v1; a key goes into apiKey or headers',
  });
}

/**
 * Sends a request of the `openai` package by `node:http`. The global `fetch` takes six times as much processor time and gives
 * up after 300 s without a byte. The package's errors lose what a body has outside its field `error`.
 *
 * HTTP-POST-1 Redirects are not followed: the key must not be sent to another address.
 * HTTP-POST-2 An idle connection is closed before the server closes it: the request that is being sent then would fail.
 * HTTP-POST-3 A request has a listener for errors until it is closed: they may follow its answer, even at once. One that is
 *    closed without an answer or an error (after `upgrade`) fails.
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

export function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/**
 * Resolves when the headers of the answer have arrived; rejects if the request is destroyed. A body that is broken gives an
 * error of the request and of the body (HTTP-POST-3).
 */
export function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
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

/** The body, truncated. */
export async function textOfBody(answer: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, MAX_TEXT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_TEXT_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}
