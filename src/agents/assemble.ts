import { createHash, type Hash } from 'node:crypto';
import { estimateTokens, type View, type ViewPart } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';
import type { Price } from './cost.ts';
import { guard, type Window } from './guard.ts';
import type { ModelRequest, WireMessage, WireTool } from './model-port.ts';

/**
 * The one assembler: a view becomes the exact bytes of a request.
 *
 * M1 Every request to a model is made here and has passed the guard (L13).
 * M2 The same view, prefix and profile give the same bytes (L6).
 * M3 Bytes of the history are kept and extended, not made anew: a request costs what is new in it.
 */

/** What of a model's configuration stands in the request. */
export interface ModelProfile extends Window {
  /** Name of the configured model, for the record. */
  readonly name: string;
  /** Static fields of the body, in order: `model`, `stream`, limits. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** How the conversation's session is sent to the provider; null: it is not. */
  readonly session: { readonly kind: 'header' | 'field'; readonly name: string } | null;
  readonly price: Price | null;
}

export interface RequestParts {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  readonly prefix: string;
  /** Mode run only: stands between prefix and history. */
  readonly runContext: readonly WireMessage[];
  readonly view: View;
  readonly tools: readonly WireTool[];
  readonly profile: ModelProfile;
  readonly sessionId: string | null;
}

export interface Assembled {
  readonly request: ModelRequest;
  /** Estimated tokens of the whole. */
  readonly tokens: number;
  /** Why it must not be sent; null: it may. */
  readonly fault: Refusal | null;
}

/** Estimated overheads in tokens: of each message, and of each tool call. */
const PER_MESSAGE = 10;
const PER_CALL = 50;

/** Keeps the history's bytes of one agent in one conversation. */
export class RequestAssembler {
  private head = '';
  private version = -1;
  private history: readonly ViewPart[] = [];
  private parts = 0;
  private bytes = new GrowingBuffer();
  private hash: Hash = createHash('sha256');
  private tokens = 0;

  assemble(parts: RequestParts): Assembled {
    this.extend(parts);
    const tail = parts.view.tail.map((part) => part.message);
    const tailBytes = Buffer.from(`${tail.map((message) => `,${JSON.stringify(message)}`).join('')}]}`);
    const messages = messagesOf(parts);
    const tokens = this.tokens + estimateTools(parts.tools) + sum(tail.map(messageTokens));
    const request: ModelRequest = {
      conversation: parts.conversation,
      agent: parts.agent,
      turnId: parts.turnId,
      messages,
      tools: parts.tools,
      body: this.bytes.with(tailBytes),
      hash: this.hash.copy().update(tailBytes).digest('hex'),
      headers: { ...parts.profile.headers, ...sessionAs('header', parts) },
    };
    return { request, tokens, fault: guard(messages, tokens, parts.profile) };
  }

  /** M3: what was kept stays as long as everything before it is the same. */
  private extend(parts: RequestParts): void {
    const head = headOf(parts);
    const { history, historyLength, historyVersion } = parts.view;
    const same = head === this.head && historyVersion === this.version && history === this.history;
    if (!same || historyLength < this.parts) this.begin(head, parts);
    const fresh: string[] = [];
    for (; this.parts < historyLength; this.parts++) {
      const message = history[this.parts]?.message;
      if (!message) continue;
      fresh.push(`,${JSON.stringify(message)}`);
      this.tokens += messageTokens(message);
    }
    if (fresh.length > 0) this.append(fresh.join(''));
  }

  private begin(head: string, parts: RequestParts): void {
    this.head = head;
    this.version = parts.view.historyVersion;
    this.history = parts.view.history;
    this.parts = 0;
    this.bytes = new GrowingBuffer();
    this.hash = createHash('sha256');
    this.tokens = sum(opening(parts).map(messageTokens));
    this.append(head);
  }

  private append(text: string): void {
    const added = Buffer.from(text);
    this.bytes.append(added);
    this.hash.update(added);
  }
}

/** Everything before the history: the static fields, the tools, the prefix, the run context. */
function headOf(parts: RequestParts): string {
  const tools = parts.tools.length > 0 ? { tools: parts.tools } : {};
  const fields = { ...parts.profile.fields, ...sessionAs('field', parts), ...tools };
  const head = JSON.stringify(fields).slice(0, -1);
  const comma = head === '{' ? '' : ',';
  const messages = opening(parts).map((message) => JSON.stringify(message));
  return `${head}${comma}"messages":[${messages.join(',')}`;
}

function sessionAs(kind: 'header' | 'field', { profile, sessionId }: RequestParts): Record<string, string> {
  return sessionId !== null && profile.session?.kind === kind ? { [profile.session.name]: sessionId } : {};
}

function opening(parts: RequestParts): readonly WireMessage[] {
  return [{ role: 'system', content: parts.prefix }, ...parts.runContext];
}

function messagesOf(parts: RequestParts): readonly WireMessage[] {
  const { history, historyLength, tail } = parts.view;
  const messages = [...opening(parts)];
  for (const part of history.slice(0, historyLength)) messages.push(part.message);
  for (const part of tail) messages.push(part.message);
  return messages;
}

export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + estimateTokens(message.content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + estimateTokens(call.function.name) + estimateTokens(call.function.arguments);
  }
  return tokens;
}

function estimateTools(tools: readonly WireTool[]): number {
  return sum(tools.map((tool) => PER_CALL + estimateTokens(JSON.stringify(tool))));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Bytes that grow at the end; the room doubles. */
class GrowingBuffer {
  private room = Buffer.allocUnsafe(4_096);
  private used = 0;

  append(added: Buffer): void {
    if (this.used + added.length > this.room.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.room.length * 2, this.used + added.length));
      this.room.copy(larger, 0, 0, this.used);
      this.room = larger;
    }
    added.copy(this.room, this.used);
    this.used += added.length;
  }

  /** What was appended so far, with `tail` behind it, in a buffer of its own. */
  with(tail: Buffer): Buffer {
    return Buffer.concat([this.room.subarray(0, this.used), tail]);
  }
}
