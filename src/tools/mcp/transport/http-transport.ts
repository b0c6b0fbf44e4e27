import { AsyncLocalStorage } from 'node:async_hooks';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport, TransportSendOptions } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ErrorCode,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { monotonicClock, sleep } from '../../../kernel/index.ts';
import { STREAM_ENDED } from '../failure.ts';
import { EventSize, LONGEST_MESSAGE, MessageTooLarge, withReadableAnswers } from './messages.ts';

/**
 * Streamable HTTP: the SDK's transport, with the guarantees that it lacks.
 *
 * HTTP-TRANSPORT-1 Every request ends. The SDK forgets a request whose stream ends without an answer or an event id to
 *    resume from; here it gets an error, after a grace period for an answer that is still being read.
 * HTTP-TRANSPORT-2 When the SDK gives up resuming, the connection is closed.
 * HTTP-TRANSPORT-3 Closing ends the session at the server, with a short timeout.
 * HTTP-TRANSPORT-4 An event or body longer than the longest message is not read to its end; the connection is closed.
 * HTTP-TRANSPORT-5 A request with an unreadable answer fails at once; the SDK would drop the answer.
 * HTTP-TRANSPORT-6 If a server sends requests and does not read the answers, the connection is closed.
 * HTTP-TRANSPORT-7 Streams are requested with a pause that grows while they bring no message. The SDK obeys `retry: 0`.
 */

export interface HttpSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly answerGraceMs: number;
  readonly endMs: number;
}

/** HTTP-TRANSPORT-6: the minimum counted per answer, about the memory of a running request. */
const LEAST_ANSWER_BYTES = 16 * 1024;
const MOST_ANSWER_BYTES = 1024 * 1024;

const LEAST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

interface Pending {
  /** The server gave an event id: the SDK resumes from it. */
  resumable: boolean;
  lost?: NodeJS.Timeout;
}

export class HttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #settings: HttpSettings;
  readonly #inner: StreamableHTTPClientTransport;
  readonly #pending = new Map<RequestId, Pending>();
  #closing: Promise<void> | null = null;
  /** Bytes of answers that the server has not read (HTTP-TRANSPORT-6). */
  #answerBytes = 0;
  /** Of the call that is being sent: the SDK accepts no headers for a single message. */
  readonly #traceparent = new AsyncLocalStorage<string | null>();
  /** HTTP-TRANSPORT-7: the time of the next stream request, and the pause after it. */
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
      for (const { lost } of this.#pending.values()) clearTimeout(lost);
      this.#pending.clear();
      this.onclose?.();
    };
    this.#inner.onerror = (error) => {
      this.onerror?.(error);
      if (error.message.startsWith('Maximum reconnection attempts')) void this.close(); // HTTP-TRANSPORT-2
    };
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      this.#pauseMs = LEAST_PAUSE_MS;
      if (!('method' in message) && message.id !== undefined) this.#settle(message.id);
      this.onmessage?.(message);
    };
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!('method' in message)) return this.#answer(message, options);
    if (!('id' in message)) {
      if (message.method === 'notifications/cancelled') this.#forget(message.params);
      return this.#inner.send(message, options);
    }
    const pending: Pending = { resumable: false };
    this.#pending.set(message.id, pending);
    try {
      const onresumptiontoken = (token: string) => {
        pending.resumable = true;
        options?.onresumptiontoken?.(token);
      };
      const send = () => this.#inner.send(message, { ...options, onresumptiontoken });
      await this.#traceparent.run(traceparentIn(message.params), send);
    } catch (error) {
      this.#settle(message.id);
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
      await this.#inner.send(message, options);
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

  #settle(id: RequestId): void {
    clearTimeout(this.#pending.get(id)?.lost);
    this.#pending.delete(id);
  }

  /** A cancelled request needs no answer. */
  #forget(params: unknown): void {
    const id =
      typeof params === 'object' && params !== null && 'requestId' in params ? params.requestId : null;
    if (typeof id === 'string' || typeof id === 'number') this.#settle(id);
  }

  async #fetch(url: string | URL, init?: RequestInit): Promise<Response> {
    if (init?.method === 'GET') await this.#pause(init.signal ?? undefined);
    const traceparent = this.#traceparent.getStore();
    const headers = new Headers(init?.headers);
    if (traceparent && init?.method === 'POST') headers.set('traceparent', traceparent);
    const response = await fetch(url, { ...init, headers });
    if (response.body === null) return response;
    const id = requestIdOf(init?.body);
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const { status, statusText } = response;
    const body = watched(response.body, {
      size: isStream && response.ok ? new EventSize() : new BodySize(),
      onTooLarge: (error) => {
        this.onerror?.(error);
        void this.close();
      },
      onEnd: () => id !== null && response.ok && isStream && this.#streamEnded(id),
    });
    const readable = isStream && response.ok ? withReadableAnswers(body) : body;
    return new Response(readable, { status, statusText, headers: response.headers });
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
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    pending.lost = setTimeout(() => {
      if (pending.resumable || !this.#pending.delete(id)) return;
      const error = { code: ErrorCode.ConnectionClosed, message: STREAM_ENDED };
      this.onmessage?.({ jsonrpc: '2.0', id, error });
    }, this.#settings.answerGraceMs);
  }
}

function traceparentIn(params: JSONRPCRequest['params']): string | null {
  const traceparent = params?._meta?.traceparent;
  return typeof traceparent === 'string' ? traceparent : null;
}

function requestIdOf(body: RequestInit['body']): RequestId | null {
  if (typeof body !== 'string') return null;
  const message: unknown = JSON.parse(body);
  if (typeof message !== 'object' || message === null || !('method' in message) || !('id' in message))
    return null;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null;
}

interface Watch {
  readonly size: Pick<EventSize, 'add'>;
  /** Called once; reading stops. */
  onTooLarge(error: MessageTooLarge): void;
  /** Called when the body has ended or was cancelled. */
  onEnd(): void;
}

/** The same bytes, up to the longest message (HTTP-TRANSPORT-4). */
function watched(
  body: ReadableStream<Uint8Array>,
  { size, onTooLarge, onEnd }: Watch,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done && size.add(value) <= LONGEST_MESSAGE) return controller.enqueue(value);
        if (done) controller.close();
        else {
          const error = new MessageTooLarge();
          onTooLarge(error);
          controller.error(error);
          await reader.cancel(error).catch(() => undefined); // `onTooLarge` has reported it
        }
      } catch (error) {
        controller.error(error);
      }
      onEnd();
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
}

/** Counts the bytes of a body that is one message. */
class BodySize {
  #size = 0;

  add(chunk: Uint8Array): number {
    this.#size += chunk.length;
    return this.#size;
  }
}
