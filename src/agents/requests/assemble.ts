import { createHash, type Hash } from 'node:crypto';
import type { View, ViewPart } from '../../conversation/index.ts';
import type { Refusal } from '../../kernel/index.ts';
import type { ModelRequest, WireMessage, WireTool } from '../model-port.ts';
import type { Price } from './cost.ts';
import { messageTokens, toolTokens } from './estimate.ts';
import { guard, type Window } from './guard.ts';
import { jsonElements } from './json-bytes.ts';
import { type FormInput, takePart, type WireForm, type WirePart } from './wire-form.ts';

/**
 * The one assembler: a view becomes the exact bytes of a request.
 *
 * ASSEMBLE-1 Every request to a model is made here and has passed the guard (L13).
 * ASSEMBLE-2 The same view, prefix and profile give the same bytes (L6).
 * ASSEMBLE-3 Bytes of the history are kept and extended, not made anew: a request costs what is new in it.
 */

/** What of a model's configuration stands in the request. */
export interface ModelProfile extends Window {
  /** Name of the configured model, for the record. */
  readonly name: string;
  /** Static fields of the body, in order: `model`, `stream`, limits. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** How the agent's session is sent; null: it is not. `by`: who names it. A person's post never does. */
  readonly session: {
    readonly kind: 'header' | 'field';
    readonly name: string;
    readonly by: 'agent' | 'daemon';
  } | null;
  readonly price: Price | null;
  /** How messages of the view stand on the wire. */
  readonly form: WireForm;
  /** Fields that stand only where there are tools. */
  readonly toolFields: Readonly<Record<string, unknown>>;
  /** Tools whose schema allows it are sent as strict. */
  readonly strictTools: boolean;
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
  /** Corrects the estimate: what the provider counted for each token of it. */
  readonly tokenRatio: number;
}

export interface Assembled {
  readonly request: ModelRequest;
  /** Tokens of the whole: the estimate, corrected. */
  readonly tokens: number;
  /** The plain estimate. */
  readonly estimatedTokens: number;
  /** Why it must not be sent; null: it may. */
  readonly fault: Refusal | null;
  /** For each message of the request where it comes from. */
  readonly parts: readonly WirePart[];
}

/** Keeps the history's bytes of one agent in one conversation. */
export class RequestAssembler {
  private head = '';
  private version = -1;
  private history: readonly ViewPart[] = [];
  private taken = 0;
  /** What stands in `body` already; never changed, only added to. */
  private closed: WirePart[] = [];
  /** The last message of the history: what comes next may still join it. */
  private open: WirePart | null = null;
  private body = new RequestBody('');
  private tokens = 0;

  assemble(parts: RequestParts): Assembled {
    const tools = parts.profile.strictTools ? parts.tools.map(strictTool) : parts.tools;
    this.extend(parts, tools);
    const rest = this.restOf(parts);
    const all = [...this.closed, ...rest];
    const messages = all.map((part) => part.message);
    const estimatedTokens = this.tokens + sum(rest.map((part) => messageTokens(part.message)));
    const tokens = Math.ceil(estimatedTokens * parts.tokenRatio);
    const request: ModelRequest = {
      conversation: parts.conversation,
      agent: parts.agent,
      turnId: parts.turnId,
      messages,
      tools,
      ...this.body.with(rest.map((part) => part.message)),
      headers: { ...parts.profile.headers, ...sessionAs('header', parts) },
    };
    const fault = guard(messages, tokens, parts.profile);
    return { request, tokens, estimatedTokens, fault, parts: all };
  }

  /** ASSEMBLE-3: what was kept stays as long as everything before it is the same. */
  private extend(parts: RequestParts, tools: readonly WireTool[]): void {
    const head = headOf(parts, tools);
    const { history, historyLength, historyVersion } = parts.view;
    const same = head === this.head && historyVersion === this.version && history === this.history;
    if (!same || historyLength < this.taken) this.begin(head, parts, tools);
    this.take(history.slice(this.taken, historyLength), parts.profile.form);
    this.taken = historyLength;
  }

  private begin(head: string, parts: RequestParts, tools: readonly WireTool[]): void {
    this.head = head;
    this.version = parts.view.historyVersion;
    this.history = parts.view.history;
    this.taken = 0;
    this.closed = [];
    this.open = null;
    this.body = new RequestBody(bodyStart(parts, tools));
    this.tokens = sum(tools.map(toolTokens));
    this.take(opening(parts), parts.profile.form);
  }

  private take(inputs: readonly FormInput[], form: WireForm): void {
    const fresh: WirePart[] = [];
    for (const input of inputs) {
      const step = takePart(this.open, input, form);
      fresh.push(...step.closed);
      this.open = step.open;
    }
    const messages = fresh.map((part) => part.message);
    this.body.add(messages);
    for (const part of fresh) this.closed.push(part);
    this.tokens += sum(messages.map(messageTokens));
  }

  /** The open end of the history and the tail: made anew for each request. */
  private restOf({ view, profile }: RequestParts): readonly WirePart[] {
    const rest: WirePart[] = [];
    let open = this.open;
    for (const part of view.tail) {
      const step = takePart(open, part, profile.form);
      rest.push(...step.closed);
      open = step.open;
    }
    return open ? [...rest, open] : rest;
  }
}

/** What everything behind it depends on. */
function headOf(parts: RequestParts, tools: readonly WireTool[]): string {
  return JSON.stringify([bodyStart(parts, tools), parts.profile.form, opening(parts)]);
}

/** The static fields and the tools, up to the first message. */
function bodyStart(parts: RequestParts, tools: readonly WireTool[]): string {
  const withTools = tools.length > 0 ? { ...parts.profile.toolFields, tools } : {};
  const fields = JSON.stringify({ ...parts.profile.fields, ...sessionAs('field', parts), ...withTools });
  const start = fields.slice(0, -1);
  return `${start}${start === '{' ? '' : ','}"messages":[`;
}

function sessionAs(kind: 'header' | 'field', { profile, sessionId }: RequestParts): Record<string, string> {
  return sessionId !== null && profile.session?.kind === kind ? { [profile.session.name]: sessionId } : {};
}

function opening({ prefix, runContext }: RequestParts): readonly FormInput[] {
  return [
    { kind: 'prefix', entries: [], message: { role: 'system', content: prefix } },
    ...runContext.map((message): FormInput => ({ kind: 'run-context', entries: [], message })),
  ];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Marks a tool as strict where its schema is one that strict tools may have, as it stands: closed objects, every
 * property required, no keyword that not every provider of strict tools knows. Nothing is rewritten: an optional
 * property made required and nullable would bring arguments that the tool itself refuses.
 */
export function strictTool(tool: WireTool): WireTool {
  if (!isStrict(tool.function.parameters) || tool.function.parameters.type !== 'object') return tool;
  return { ...tool, function: { ...tool.function, strict: true } };
}

const KEYWORDS: ReadonlySet<string> = new Set([
  '$schema',
  'additionalProperties',
  'anyOf',
  'description',
  'enum',
  'items',
  'properties',
  'required',
  'title',
  'type',
]);

function isStrict(schema: unknown): boolean {
  if (!isRecord(schema) || Object.keys(schema).some((key) => !KEYWORDS.has(key))) return false;
  const { type, properties, required, additionalProperties, items, anyOf } = schema;
  if (anyOf !== undefined) return Array.isArray(anyOf) && anyOf.every(isStrict);
  if (type === 'array') return isStrict(items);
  if (type !== 'object') return typeof type === 'string';
  const known = isRecord(properties) ? properties : {};
  const named = new Set(Array.isArray(required) ? required : []);
  const isClosed = additionalProperties === false && Object.keys(known).every((key) => named.has(key));
  return isClosed && Object.values(known).every(isStrict);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The bytes of a request's body as they grow, message by message, and their hash.
 *
 * ASSEMBLE-B-1 They are the bytes that JSON.stringify would make of the whole.
 * ASSEMBLE-B-2 What was added is made into bytes and hashed once. A body is copied together once and then belongs to whoever
 *    asked for it, to be read: its beginning is kept for the next one.
 */
export class RequestBody {
  /** What was added, in order. */
  private pieces: Buffer[] = [];
  private readonly hash: Hash = createHash('sha256');
  private isEmpty = true;

  /** `start`: everything up to the bracket that opens the array of messages, included. */
  constructor(start: string) {
    this.append(Buffer.from(start));
  }

  /** Adds messages for good. */
  add(messages: readonly WireMessage[]): void {
    for (const bytes of elements(messages, this.isEmpty)) this.append(bytes);
    this.isEmpty &&= messages.length === 0;
  }

  /** The whole, with `last` behind what was added. */
  with(last: readonly WireMessage[]): { readonly body: Buffer; readonly hash: string } {
    const tail = Buffer.concat([...elements(last, this.isEmpty), Buffer.from(']}')]);
    const body = Buffer.concat([...this.pieces, tail]);
    this.pieces = [body.subarray(0, body.length - tail.length)];
    return { body, hash: this.hash.copy().update(tail).digest('hex') };
  }

  private append(added: Buffer): void {
    this.pieces.push(added);
    this.hash.update(added);
  }
}

/** Elements of the array of messages, each with the comma before it; the very first has none. */
function elements(messages: readonly WireMessage[], isStart: boolean): Buffer[] {
  const made = jsonElements(messages);
  const [first] = made;
  if (isStart && first) made[0] = first.subarray(1);
  return made;
}
