import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type JSONRPCMessage,
  type RequestId,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client';
import { monotonicClock, sleep } from '../../kernel/index.ts';
import { LONGEST_MESSAGE, MessageTooLarge, STREAM_ENDED, STREAM_ENDED_CODE } from './failure.ts';
import type { Authorization } from './oauth/authorization.ts';

/**
 * Streamable HTTP: the SDK's transport, with the guarantees that it lacks.
 *
 * HTTP-TRANSPORT-1 Every request ends. The SDK forgets a request whose stream ends without an answer or an event id to
 *    resume from; here it gets an error, after a grace period for an answer that is still being read.
 * HTTP-TRANSPORT-2 When the SDK gives up resuming, the connection is closed.
 * HTTP-TRANSPORT-3 Closing ends the session at the server, with a short timeout.
 * HTTP-TRANSPORT-4 An event or body longer than the longest message is not read to its end; the connection is closed.
 * HTTP-TRANSPORT-5 If a server sends requests and does not read the answers, the connection is closed.
 * HTTP-TRANSPORT-6 Streams are requested with a pause that grows while they bring no message. The SDK obeys `retry: 0`.
 */

export interface HttpSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null or absent: the token of a login is not sent. */
  readonly authorization?: Authorization | null;
  readonly answerGraceMs: number;
  readonly endMs: number;
}

/** HTTP-TRANSPORT-5: the minimum counted per answer, about the memory of a running request. */
const LEAST_ANSWER_BYTES = 16 * 1024;
const MOST_ANSWER_BYTES = 1024 * 1024;

const LEAST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** The request that is being sent: the SDK accepts no headers for a single message, and names none in its request. */
interface Sending {
  readonly id: RequestId;
  readonly traceparent: string | null;
}

export class HttpTransport implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #settings: HttpSettings;
  readonly #inner: StreamableHTTPClientTransport;
  /** Requests without an answer. True: the server gave an event id, from which the SDK resumes. */
  readonly #open = new Map<RequestId, boolean>();
  #closing: Promise<void> | null = null;
  /** Bytes of answers that the server has not read (HTTP-TRANSPORT-5). */
  #answerBytes = 0;
  readonly #sending = new AsyncLocalStorage<Sending | null>();
  /** HTTP-TRANSPORT-6: the time of the next stream request, and the pause after it. */
  #nextStreamAt = 0;
  #pauseMs = LEAST_PAUSE_MS;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    this.#inner = new StreamableHTTPClientTransport(new URL(settings.url), {
      requestInit: { headers: settings.headers },
      fetch: (url, init) => this.#fetch(url, init),
    });
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    this.#inner.onclose = () => {
      this.#open.clear();
      this.onclose?.();
    };
    this.#inner.onerror = (error) => {
      this.onerror?.(error);
      if (error.message.startsWith('Maximum reconnection attempts')) void this.close(); // HTTP-TRANSPORT-2
    };
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      this.#pauseMs = LEAST_PAUSE_MS;
      if (!('method' in message) && message.id !== undefined) this.#open.delete(message.id);
      this.onmessage?.(message);
    };
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!('method' in message)) return this.#answer(message, options);
    if (!('id' in message)) return this.#inner.send(message, options);
    const { id, params } = message;
    const traceparent = params?._meta?.traceparent;
    const sending = { id, traceparent: typeof traceparent === 'string' ? traceparent : null };
    const onresumptiontoken = () => void (this.#open.has(id) && this.#open.set(id, true));
    this.#open.set(id, false);
    try {
      await this.#sending.run(sending, () => this.#inner.send(message, { ...options, onresumptiontoken }));
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
  }

  async #answer(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const bytes = Math.max(JSON.stringify(message).length, LEAST_ANSWER_BYTES);
    if (this.#answerBytes + bytes > MOST_ANSWER_BYTES) {
      void this.close();
      throw new Error('the server does not take the answers to what it asks');
    }
    this.#answerBytes += bytes;
    try {
      await this.#sending.run(null, () => this.#inner.send(message, options));
    } finally {
      this.#answerBytes -= bytes;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** HTTP-TRANSPORT-3 */
  async #end(): Promise<void> {
    const slow = setTimeout(() => void this.#inner.close(), this.#settings.endMs);
    await this.#inner.terminateSession().catch(() => undefined); // the server forgets the session by itself
    clearTimeout(slow);
    await this.#inner.close();
  }

  async #fetch(url: string | URL, init?: RequestInit): Promise<Response> {
    if (init?.method === 'GET') await this.#pause(init.signal ?? undefined);
    const sending = init?.method === 'POST' ? this.#sending.getStore() : null;
    const headers = new Headers(init?.headers);
    if (sending?.traceparent) headers.set('traceparent', sending.traceparent);
    const send = () => fetch(url, { ...init, headers });
    const response = await (this.#settings.authorization?.send(headers, send) ?? send());
    if (response.body === null) return response;
    const { status, statusText, ok } = response;
    const isEvents = ok && response.headers.get('content-type')?.includes('text/event-stream') === true;
    const pieces = this.#limited(response.body, isEvents ? eventSize() : bodySize(), () => {
      if (sending && isEvents) this.#streamEnded(sending.id);
    });
    return new Response(ReadableStream.from(pieces), { status, statusText, headers: response.headers });
  }

  async *#limited(
    body: ReadableStream<Uint8Array>,
    sizeWith: (piece: Uint8Array) => number,
    onEnd: () => void,
  ) {
    try {
      for await (const piece of body) {
        if (sizeWith(piece) > LONGEST_MESSAGE) throw new MessageTooLarge();
        yield piece;
      }
    } catch (error) {
      if (error instanceof MessageTooLarge) {
        this.onerror?.(error);
        void this.close();
      }
      throw error;
    } finally {
      onEnd();
    }
  }

  async #pause(signal: AbortSignal | undefined): Promise<void> {
    const now = monotonicClock();
    const at = Math.max(now, this.#nextStreamAt);
    this.#nextStreamAt = at + this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    if (at > now) await sleep(at - now, signal);
  }

  /** HTTP-TRANSPORT-1 */
  #streamEnded(id: RequestId): void {
    const lost = () => {
      if (this.#open.get(id) !== false) return;
      this.#open.delete(id);
      const error = { code: STREAM_ENDED_CODE, message: STREAM_ENDED };
      this.onmessage?.({ jsonrpc: '2.0', id, error });
    };
    setTimeout(lost, this.#settings.answerGraceMs).unref();
  }
}

const BLANK_LINES = ['\n\n', '\r\r', '\n\r\n'];

/** Bytes of the current event, with the next piece of its stream. */
function eventSize(): (piece: Uint8Array) => number {
  let size = 0;
  let before = Buffer.alloc(0);
  return (piece) => {
    const all = Buffer.concat([before, piece]);
    const end = Math.max(...BLANK_LINES.map((blank) => all.lastIndexOf(blank)));
    size = end < 0 ? size + piece.length : all.length - end;
    before = all.subarray(-2);
    return size;
  };
}

/** Bytes of a body that is one message. */
function bodySize(): (piece: Uint8Array) => number {
  let size = 0;
  return (piece) => {
    size += piece.length;
    return size;
  };
}
