import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import OpenAI from 'openai';
import type { DialectName } from '../../agents/dialect-port.ts';
import {
  bodyLength,
  type HeaderValue,
  type HiddenValue,
  type Model,
  type ModelDelta,
  type ModelOutcome,
  type ModelRequest,
} from '../../agents/model-port.ts';
import {
  hideValues,
  linkedAbort,
  MAX_TIMER_MS,
  messageOf,
  ParleyError,
  parseJson,
  systemClock,
} from '../../kernel/index.ts';
import { type Fault, faultOfNetwork, faultOfResponse } from '../faults.ts';
import { PROTOCOLS, type Protocol } from '../protocols.ts';
import { AnswerReader } from '../reader.ts';

/**
 * One attempt at a model behind HTTP, in any dialect: request, abort, timeout, size limit, outcome. URL and headers are made by the
 * package `openai`.
 *
 * HTTP-MODEL-1 The bytes of `request.body` are sent unchanged.
 * HTTP-MODEL-2 Every expected failure is a value. It is retryable only if no delta was delivered.
 * HTTP-MODEL-3 Socket, timer and listeners are released at the end of the call, whatever its outcome.
 * HTTP-MODEL-4 No message contains the key, the value of a configured header, or another of `secrets`: providers quote the URL
 *    and the fields of a request.
 * HTTP-MODEL-5 An answer with a finish reason counts, however its connection ends. It is whole only if its body ended.
 * HTTP-MODEL-6 An endless answer is cut at `MAX_BYTES`, which bounds the memory. The partial answer is kept.
 */
export interface HttpModelOptions extends ProviderOptions {
  readonly dialect: DialectName;
  /** The key of `models`, for errors. */
  readonly name: string;
  /** Its name at the provider. */
  readonly model?: string;
  /** Timeout for the first delta; null: none. Milliseconds. */
  readonly firstTokenMs: number | null;
  /** Timeout for each next event, and for the end after a finish reason. */
  readonly idleMs: number;
  /** HTTP-MODEL-4 */
  readonly secrets?: readonly string[];
}

/** HTTP-MODEL-6. The longest answers take about 10 MB when each token is an event. */
const MAX_BYTES = 128 * 1024 * 1024;
/** How long a whole answer waits for the end of its body, so that the connection is reused. */
const CLOSE_WAIT_MS = 100;

/** Throws `CONFIG_INVALID` for an invalid baseURL, key or header. */
export function createHttpModel(options: HttpModelOptions): Model {
  const protocol = PROTOCOLS[options.dialect];
  const endpoint = endpointOf(options, { ...protocol, headers: protocol.headers?.(options.model ?? '') });
  return {
    async call(request, { signal, onDelta }) {
      const watch = createWatch(signal);
      const reader = new AnswerReader(protocol.decoder());
      try {
        return await new Attempt({ endpoint, options, request, watch, reader, onDelta }).outcome();
      } finally {
        watch.release();
      }
    },
  };
}

/** Both early ends of a call: the caller's abort, which has precedence, and the timeout. */
function createWatch(caller: AbortSignal) {
  const link = linkedAbort(caller);
  let timer: NodeJS.Timeout | undefined;
  let wait = 0;
  return {
    state: () => (caller.aborted ? 'aborted' : link.signal.aborted ? 'expired' : 'waiting'),
    onEarlyEnd: (stop: () => void) => link.signal.addEventListener('abort', stop),
    /** Restarts the timeout. */
    expectWithin(milliseconds: number) {
      if (timer && milliseconds === wait) return void timer.refresh();
      wait = milliseconds;
      clearTimeout(timer);
      timer = setTimeout(link.abort, Math.min(milliseconds, MAX_TIMER_MS));
    },
    release() {
      clearTimeout(timer);
      link.unlink();
    },
  } as const;
}

interface AttemptParts {
  readonly endpoint: Endpoint;
  readonly options: HttpModelOptions;
  readonly request: ModelRequest;
  readonly watch: ReturnType<typeof createWatch>;
  readonly reader: AnswerReader;
  readonly onDelta: (delta: ModelDelta) => void;
}

type Sent =
  | { readonly kind: 'body'; readonly body: IncomingMessage }
  | { readonly kind: 'fault'; readonly fault: Fault };

class Attempt {
  readonly #parts: AttemptParts;
  #gaveDelta = false;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
  }

  async outcome(): Promise<ModelOutcome> {
    const { watch, options, reader } = this.#parts;
    const { answer } = reader;
    if (watch.state() === 'aborted') return this.#aborted();
    if (options.firstTokenMs !== null) watch.expectWithin(options.firstTokenMs);
    const response = await this.#send();
    if (watch.state() === 'aborted') return this.#aborted();
    if (response.kind === 'fault') return this.#failed(response.fault);
    const ending = await this.#readBody(response.body);
    if (watch.state() === 'aborted') return this.#aborted();
    if (ending !== null && !answer.isFinished() && !answer.isClosed())
      return this.#failed(watch.state() === 'expired' ? this.#timeout() : ending);
    const { deltas, result } = reader.end(ending !== null);
    this.#give(deltas);
    if (watch.state() === 'aborted') return this.#aborted();
    return result.kind === 'whole' ? { kind: 'answered', answer: result.answer } : this.#failed(result.fault);
  }

  async #send(): Promise<Sent> {
    const { endpoint, watch } = this.#parts;
    let sent: ReturnType<typeof post>;
    try {
      const made = await this.#request();
      if (watch.state() !== 'waiting') return { kind: 'fault', fault: this.#timeout() };
      sent = post(made);
    } catch (error) {
      const message = `The request could not be made: ${messageOf(error)}.`;
      return { kind: 'fault', fault: { code: 'BAD_REQUEST', message, retryable: false } };
    }
    watch.onEarlyEnd(() => sent.destroy());
    try {
      const answer = await answerTo(sent);
      const { statusCode: status = 0 } = answer;
      if (status >= 200 && status < 300) return { kind: 'body', body: answer };
      const headers = new Map(
        Object.entries(answer.headers).map(([name, value]) => [name, value?.toString() ?? '']),
      );
      const text = await textOfBody(answer).catch(() => ''); // broken off or aborted: the status is known
      const body = parseJson(text) ?? text;
      return { kind: 'fault', fault: faultOfResponse({ status, body, headers }, systemClock()) };
    } catch (error) {
      if (watch.state() === 'expired') return { kind: 'fault', fault: this.#timeout() };
      return { kind: 'fault', fault: faultOfNetwork(error, endpoint.shown) };
    }
  }

  async #request(): Promise<HttpRequest> {
    const { endpoint, request } = this.#parts;
    const { url, headers: common } = await endpoint.head();
    const headers = new Map(common);
    for (const [name, value] of Object.entries(request.headers))
      headers.set(name.toLowerCase(), isHidden(value) ? value.reveal() : value);
    headers.set('content-type', 'application/json');
    headers.set('accept', 'text/event-stream, application/json');
    return { url, headers, body: request.body };
  }

  #give(deltas: readonly ModelDelta[], hasEvent = false): void {
    const { watch, options, onDelta } = this.#parts;
    for (const delta of deltas) {
      if (watch.state() === 'aborted') return;
      this.#gaveDelta = true;
      onDelta(delta);
    }
    if (deltas.length > 0 || (this.#gaveDelta && hasEvent)) watch.expectWithin(options.idleMs);
  }

  /**
   * Reads until the body ends or the rest does not matter. Resolves with why it was cut, or null. By events: they take less
   * time than an iterator, and reading need not wait for anything.
   */
  #readBody(body: IncomingMessage): Promise<Fault | null> {
    const { watch, options, reader } = this.#parts;
    let stage: 'answer' | 'finished' | 'close' | 'cut' = 'answer';
    let bytes = 0;
    const take = (piece: Uint8Array): Fault | null => {
      if (watch.state() !== 'waiting') return BROKEN_OFF;
      bytes += piece.length;
      if (bytes > MAX_BYTES) return TOO_LARGE;
      const before = reader.events;
      this.#give(reader.push(piece), reader.events > before);
      if (reader.answer.isClosed() && stage !== 'close') {
        stage = 'close';
        watch.expectWithin(CLOSE_WAIT_MS);
      } else if (reader.answer.isFinished() && stage === 'answer') {
        stage = 'finished';
        watch.expectWithin(options.idleMs);
      }
      return null;
    };
    return new Promise((resolve, reject) => {
      const cut = () => {
        stage = 'cut';
        body.destroy();
      };
      body.on('data', (piece: Uint8Array) => {
        if (stage === 'cut') return;
        try {
          const fault = take(piece);
          if (fault === null) return;
          cut();
          resolve(fault);
        } catch (error) {
          cut();
          reject(error);
        }
      });
      body.once('end', () => resolve(null));
      body.once('error', () => resolve(BROKEN_OFF));
      body.once('close', () => resolve(BROKEN_OFF));
    });
  }

  #aborted(): ModelOutcome {
    return { kind: 'aborted', partial: this.#parts.reader.answer.partial() };
  }

  #timeout(): Fault {
    const { endpoint, options } = this.#parts;
    const [what, key] = this.#gaveDelta
      ? [
          `The provider fell silent for ${options.idleMs / 1000} s in the middle of its answer.`,
          'idleSeconds',
        ]
      : [
          `${endpoint.shown} gave no answer within ${Number(options.firstTokenMs) / 1000} s.`,
          'firstTokenSeconds',
        ];
    const message = `${what} Try again, or raise models.${options.name}.${key}.`;
    return { code: 'TIMEOUT', message, retryable: true };
  }

  #failed({ code, message, afterMs, ...fault }: Fault): ModelOutcome {
    const retryable = fault.retryable && !this.#gaveDelta;
    const partial = this.#parts.reader.answer.partial();
    const outcome = { kind: 'failed', code, message: this.#redacted(message), partial, retryable } as const;
    return retryable && afterMs !== undefined ? { ...outcome, afterMs } : outcome;
  }

  /** HTTP-MODEL-4 */
  #redacted(message: string): string {
    const { apiKey = '', headers = {}, secrets = [] } = this.#parts.options;
    const sent = Object.values(this.#parts.request.headers);
    const hidden = sent.flatMap((value) => (isHidden(value) ? [value.reveal()] : []));
    const values = [apiKey, ...Object.values(headers), ...hidden, ...secrets];
    return hideCut(values, hideValues(values)(message));
  }
}

const BROKEN_OFF: Fault = {
  code: 'NETWORK_ERROR',
  message: 'The connection to the provider broke off in the middle of its answer. Try again.',
  retryable: true,
};

const TOO_LARGE: Fault = {
  code: 'ANSWER_TOO_LARGE',
  message: `The provider sent more than ${MAX_BYTES / 1024 / 1024} MiB for one answer, which was broken off. Check maxOutputTokens, and whether the model repeats itself.`,
  retryable: false,
};

/** Fewer characters of a secret reveal nothing. */
const SHORTEST_PART = 8;

/** The part of a secret before a place where a text of the provider was cut. */
function hideCut(secrets: readonly string[], message: string): string {
  const forms = secrets.flatMap((secret) => [secret, secret.replace(/^(?:Bearer|Basic) /i, '')]);
  const shown = message.split('…').map((text, at, all) => {
    if (at === all.length - 1) return text;
    const lengths = forms.map((form) => {
      let length = form.length;
      while (length >= SHORTEST_PART && !text.endsWith(form.slice(0, length))) length -= 1;
      return length < SHORTEST_PART ? 0 : length;
    });
    const longest = Math.max(0, ...lengths);
    return longest === 0 ? text : `${text.slice(0, -longest)}[secret]`;
  });
  return shown.join('…');
}

function isHidden(value: HeaderValue): value is HiddenValue {
  return typeof value !== 'string';
}

interface ProviderOptions {
  /** With the version: `http://127.0.0.1:8080/v1`. */
  readonly baseURL: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** Sent with every request, e.g. `api-key`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One provider, to which the package `openai` addresses requests. */
interface Endpoint {
  /** For people: without query. */
  readonly shown: string;
  /** What all requests have in common, made once: for each request the package would take longer than sending it. */
  head(): Promise<Head>;
}

/** How the requests of a dialect are addressed. */
interface Way extends Pick<Protocol, 'path' | 'keyHeader'> {
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

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

/** HTTP-POST-2: many servers wait 5 s. A shorter time in the header `keep-alive` has precedence. */
const IDLE_MS = 4_000;
const CONNECT_MS = 10_000;
/** More than the error of any provider. */
const MAX_TEXT_BYTES = 1024 * 1024;

const KEPT = { keepAlive: true, timeout: IDLE_MS };
const PLAIN = { request: http.request, agent: new http.Agent(KEPT), ready: 'connect' } as const;
const SECURE = { request: https.request, agent: new https.Agent(KEPT), ready: 'secureConnect' } as const;

interface HttpRequest {
  readonly url: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: ModelRequest['body'];
}

/**
 * Starts to send a request of the package `openai` by `node:http`. Throws if it cannot be sent, for example because of a header.
 * The global `fetch` takes six times as much processor time and gives up after 300 s without a byte. The package's errors lose
 * what a body has outside its field `error`.
 *
 * HTTP-POST-1 Redirects are not followed: the key must not be sent to another address.
 * HTTP-POST-2 An idle connection is closed before the server closes it: the request that is being sent then would fail.
 * HTTP-POST-3 A request has a listener for errors until it is closed: they may follow its answer, even at once. One that is
 *    closed without an answer or an error (after `upgrade`) fails.
 */
function post(request: HttpRequest): ClientRequest {
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

/**
 * Resolves when the headers of the answer have arrived; rejects if the request is destroyed. A body that is broken gives an
 * error of the request and of the body (HTTP-POST-3).
 */
function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
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

async function textOfBody(answer: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, MAX_TEXT_BYTES - bytes));
    bytes += chunk.length;
    if (bytes >= MAX_TEXT_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}
