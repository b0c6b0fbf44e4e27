import type { ModelAnswer, WireTool } from '../../agents/model-port.ts';
import type { AnswerSoFar, Part } from '../../conversation/index.ts';
import { linkedAbort, sleep } from '../../kernel/index.ts';

/**
 * One accepted offer, while its agent works on it.
 *
 * REMOTE-SESSION-1 Events are queued in order until they are read: an agent may send several while a tool runs.
 * REMOTE-SESSION-2 A repeated tool call is not a new call: once answered, it gets the same answer. It is identified by its `id`,
 *    else by its reply subject, which differs between accounts of a server. The newest repetition is answered.
 * REMOTE-SESSION-3 Silence is counted in ticks without an event, so that a daemon that was frozen itself does not mistake
 *    its own pause for silence of the agent.
 * REMOTE-SESSION-4 Memory is bounded: of a streamed text the beginning is kept, and the turn of an agent fails if too many
 *    messages are queued.
 */

export type SessionEvent =
  | { readonly type: 'tool_call'; readonly message: ToolCallMessage; readonly from: string | null }
  | { readonly type: 'final'; readonly message: Extract<RemoteMessage, { type: 'final' }> }
  | Extract<RemoteMessage, { readonly type: 'failed' }>
  | { readonly type: 'invalid'; readonly reason: string }
  | { readonly type: 'silent' }
  | { readonly type: 'aborted' };

interface Pending {
  readonly calls: readonly RemoteCall[];
  readonly key: string | null;
  readonly from: string | null;
}

type ToolCallEvent = Extract<SessionEvent, { type: 'tool_call' }>;
type ToolCallMessage = Extract<RemoteMessage, { type: 'tool_call' }>;

/** REMOTE-SESSION-4. Characters, of a text and of all queued messages. */
const MAX_TEXT = 16 * 1024 * 1024;
const MAX_QUEUED = 256;
const TOO_MANY = `more than ${MAX_QUEUED} messages, or ${MAX_TEXT} characters of them, arrived before they were expected`;

/** REMOTE-SESSION-3: ticks without an event after which the agent counts as silent. */
const TICKS = 4;

export class RemoteSession {
  readonly epoch: number;
  readonly #channel: RemoteChannel;
  readonly #queue: SessionEvent[] = [];
  #queuedText = 0;
  #wake: (() => void) | null = null;
  #missed = 0;
  #text = { call: '', content: '' };
  #pending: Pending | null = null;
  readonly #answered = new Map<string, RemoteResults>();

  constructor(channel: RemoteChannel, epoch: number) {
    this.#channel = channel;
    this.epoch = epoch;
  }

  /** The text of the running call received so far. */
  get partial(): string {
    return this.#text.content;
  }

  /** The calls for whose results the agent waits. */
  get pendingCalls(): readonly RemoteCall[] | null {
    return this.#pending?.calls ?? null;
  }

  get soFar(): AnswerSoFar {
    return this.#channel.soFar?.() ?? {};
  }

  get isOurs(): boolean {
    return this.#channel.isOurs === true;
  }

  receive(event: RemoteEvent): void {
    this.#missed = 0;
    if (event.type === 'text') this.#addText(event.call, event.delta);
    else if (event.type === 'invalid') this.#put(event);
    else if (event.type === 'message') this.#receiveMessage(event.message, event.from);
  }

  /** The next event that matters, silence, or the abort: whichever comes first. */
  async next(signal: AbortSignal, silenceMs: number): Promise<SessionEvent> {
    this.#missed = 0;
    for (;;) {
      if (signal.aborted) return { type: 'aborted' };
      const event = this.#queue.shift();
      if (event) return event;
      if (this.#missed >= TICKS) return { type: 'silent' };
      await this.#tick(signal, silenceMs / TICKS);
    }
  }

  /** The calls of this message now wait for `answer`. */
  expectResults(event: ToolCallEvent): void {
    this.#pending = { calls: event.message.calls, key: keyOf(event), from: event.from };
    this.#text = { call: '', content: '' };
  }

  /** False: the results exceed the size limit of the transport. */
  answer(results: RemoteResults): boolean {
    const pending = this.#pending;
    if (!pending || !this.#channel.answer(pending.from, results)) return false;
    this.#pending = null;
    if (pending.key !== null) this.#answered.set(pending.key, results);
    return true;
  }

  close(how: 'done' | 'abort'): void {
    this.#channel.close(how);
  }

  #receiveMessage(message: RemoteMessage, from: string | null): void {
    switch (message.type) {
      case 'heartbeat':
        return;
      case 'tool_call':
        this.#receiveCall({ type: 'tool_call', message, from });
        return;
      case 'final':
        this.#put({ type: 'final', message });
        return;
      case 'failed':
        this.#put(message);
    }
  }

  #receiveCall(event: ToolCallEvent): void {
    const key = keyOf(event);
    const answered = key === null ? undefined : this.#answered.get(key);
    const index = this.#queue.findIndex((other) => other.type === 'tool_call' && keyOf(other) === key);
    if (key === null) this.#put(event);
    else if (answered) this.#channel.answer(event.from, answered);
    else if (this.#pending?.key === key) this.#pending = { ...this.#pending, from: event.from };
    else if (index >= 0) this.#queue[index] = event;
    else this.#put(event);
  }

  #addText(call: string, delta: string): void {
    const before = this.#text.call === call ? this.#text.content : '';
    this.#text = { call, content: before.length < MAX_TEXT ? before + delta : before };
  }

  #put(event: SessionEvent): void {
    if (this.#queue.length === 0) this.#queuedText = 0;
    if (this.#queue.length > MAX_QUEUED || this.#queuedText > MAX_TEXT) return;
    this.#queuedText += JSON.stringify(event).length;
    const isFull = this.#queue.length === MAX_QUEUED || this.#queuedText > MAX_TEXT;
    this.#queue.push(isFull ? { type: 'invalid', reason: TOO_MANY } : event);
    this.#wake?.();
  }

  async #tick(signal: AbortSignal, milliseconds: number): Promise<void> {
    const woken = linkedAbort(signal);
    this.#wake = woken.abort;
    await sleep(milliseconds, woken.signal);
    this.#wake = null;
    woken.unlink();
    if (!woken.signal.aborted) this.#missed += 1;
  }
}

function keyOf({ message, from }: ToolCallEvent): string | null {
  return message.id ?? from;
}

export interface RemoteCall {
  readonly id?: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

export type RemoteMessage =
  | { readonly type: 'heartbeat' }
  | ({
      readonly type: 'tool_call';
      /** A repeated id is the same call. */
      readonly id?: string | undefined;
      readonly calls: readonly RemoteCall[];
    } & Partial<Pick<ModelAnswer, 'content' | 'sessionId' | 'reported' | 'prompt' | 'usage'>>)
  | ({ readonly type: 'final'; readonly parts?: readonly Part[] | undefined } & Partial<
      Omit<ModelAnswer, 'files' | 'toolCalls' | 'blocks'>
    >)
  | ({ readonly type: 'failed'; readonly code: string; readonly message: string } & AnswerSoFar);

export type RemoteEvent =
  | { readonly type: 'alive' }
  | { readonly type: 'text'; readonly call: string; readonly delta: string }
  | { readonly type: 'message'; readonly message: RemoteMessage; readonly from: string | null }
  | { readonly type: 'invalid'; readonly reason: string };

export interface RemoteResults {
  readonly results: readonly { readonly id?: string; readonly content: string }[];
  readonly messages?: readonly { readonly role: string; readonly content: string | null }[];
}

export type RemoteOutcome =
  | { readonly kind: 'accepted'; readonly instance: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'no-responder' }
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'too-large'; readonly bytes: number; readonly limit: number }
  | { readonly kind: 'disconnected' };

export interface RemoteOffer {
  readonly conversation: string;
  readonly turnId: string;
  readonly epoch: number;
  readonly messages: readonly { readonly role: string; readonly content: string | null }[];
  readonly tools: readonly WireTool[];
  readonly heartbeatMs: number;
  readonly sessionId?: string;
  readonly missed?: readonly number[];
}

/**
 * The channel of one offer of a turn to an agent in another process. The daemon implements it on the bus. No method rejects.
 */
export interface RemoteChannel {
  /** Calls `onEvent` until `close`, never with events of other turns or older offers. */
  offer(
    body: RemoteOffer,
    timeoutMs: number,
    onEvent: (event: RemoteEvent) => void,
    traceparent?: string,
  ): Promise<RemoteOutcome>;
  /** Answers the tool call received from `from`. False: too large, nothing was sent. */
  answer(from: string | null, results: RemoteResults): boolean;
  /** Idempotent. `abort`: notifies the agent that it has lost the turn. */
  close(how: 'done' | 'abort'): void;
  /** A program that this daemon runs: the usage that it reports is its own, also where it exceeds what was exchanged. */
  readonly isOurs?: true;
  /** What its agent did since its last message. Absent: that is not known. */
  soFar?(): AnswerSoFar;
}

export type OpenRemoteChannel = (agent: string) => RemoteChannel;
