import { createHash, type Hash } from 'node:crypto';
import { estimateTokens, type View, type ViewMessage, type ViewPart } from '../../conversation/index.ts';
import { isRecord, type JsonRecord, type Refusal, refusal } from '../../kernel/index.ts';
import { DIALECTS } from '../../models/dialects.ts';
import {
  type CachePoints,
  type CallChoice,
  contentMark,
  type Dialect,
  messageTokens,
  toolTokens,
  type WireForm,
  type WirePart,
} from '../dialect-port.ts';
import type { HeaderValue, ModelRequest, WireFile, WireMessage, WireTool } from '../model-port.ts';
import type { Price } from './cost.ts';
import { type FileContents, type LoadedFiles, NO_FILES, withShownFiles } from './files.ts';

/**
 * The only assembler: turns a view into the exact bytes of a request.
 *
 * ASSEMBLE-1 Every request to a model is made here and has passed the guard (L13).
 * ASSEMBLE-2 The same view, prefix and profile give the same bytes (L6).
 * ASSEMBLE-3 Bytes of the history are cached and extended: a request costs only its new messages, and the base64 of its files.
 */

/** The part of a model's configuration that is sent. */
export interface ModelProfile extends Window {
  /** Name of the configured model, for the record. */
  readonly name: string;
  /** Static fields of the body, in order: `model`, `stream`, limits. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, HeaderValue>>;
  /** How the session id is sent; null: not sent. `by`: which side chooses it where no post with the right to named one. */
  readonly session: {
    readonly kind: 'header' | 'field';
    readonly name: string;
    readonly by: 'agent' | 'daemon';
  } | null;
  readonly price: Price | null;
  /** How messages of the view are encoded for this provider. */
  readonly form: WireForm;
  /** Fields that are sent only with tools. */
  readonly toolFields: Readonly<Record<string, unknown>>;
  /** Tools whose schema allows it are sent as strict. */
  readonly strictTools: boolean;
  /** A schema that allows it is sent as one that the answer must follow. Absent in definitions of older versions: no. */
  readonly structured?: boolean | 'without-tools';
}

/** What a person may see of the parameters: fields of the body, and names of headers, whose values may be secrets. */
export function shownParameters({ fields, headers }: ModelProfile): {
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly headers: readonly string[];
} {
  const { model: _model, stream: _stream, stream_options: _options, ...parameters } = fields;
  return { parameters, headers: Object.keys(headers) };
}

export interface RequestParts {
  readonly conversation: string;
  readonly agent: string;
  readonly turnId: string;
  readonly prefix: string;
  /** Mode run only: between prefix and history. */
  readonly runContext: readonly ViewMessage[];
  readonly view: View;
  readonly tools: readonly WireTool[];
  /** What the turn's answer has to match; null: any text. */
  readonly schema?: JsonRecord | null;
  /** What a caller asks of the model's calls; absent or null: nothing. */
  readonly choice?: CallChoice | null | undefined;
  readonly profile: ModelProfile;
  readonly sessionId: string | null;
  /** Corrects the estimate: tokens counted by the provider per estimated token. */
  readonly tokenRatio: number;
}

export interface Assembled {
  readonly request: ModelRequest;
  /** Tokens of the request: the corrected estimate. */
  readonly tokens: number;
  /** The uncorrected estimate. */
  readonly estimatedTokens: number;
  /** Why the request must not be sent; null: it may. */
  readonly fault: Refusal | null;
  /** The origin of each message of the request. */
  readonly parts: readonly WirePart[];
}

/** A request without the bytes of its files, so that none is read for a request that is not sent. */
export interface Draft extends Omit<Assembled, 'request'> {
  readonly request: Omit<ModelRequest, 'body' | 'hash'>;
  /** The files that its body contains. */
  readonly files: readonly WireFile[];
  /** With the content of each. Before the next draft of its assembler. */
  seal(contents: FileContents): Pick<ModelRequest, 'body' | 'hash'>;
}

const UNSENT = { body: [], hash: '' };

/** With files that are not loaded it has no body, and an empty hash: it is not sent. */
export function sealed(draft: Draft, contents: LoadedFiles): Assembled {
  const { request, files, seal, ...made } = draft;
  const isRefused = 'code' in contents;
  const isLoaded = !isRefused && files.every(({ sha256 }) => contents.has(sha256));
  const fault = made.fault ?? (isRefused ? contents : null);
  return { ...made, fault, request: { ...request, ...(isLoaded ? seal(contents) : UNSENT) } };
}

/** Caches the bytes of one agent's history in one conversation. */
export class RequestAssembler {
  /** What the cached bytes begin with. */
  #begun: Beginning | null = null;
  #version = -1;
  #history: readonly ViewPart[] = [];
  #taken = 0;
  #dialect: Dialect = DIALECTS.chat;
  #state: unknown = null;
  /** The parts in `body`, without their texts, and their messages; append-only. */
  #closed: WirePart[] = [];
  #messages: WireMessage[] = [];
  #files: WireFile[] = [];
  #body = new RequestBody('');
  #tokens = 0;

  /** A request without files. */
  assemble(parts: RequestParts): Assembled {
    return sealed(this.draft(parts), NO_FILES);
  }

  draft(parts: RequestParts): Draft {
    const tools = parts.profile.strictTools ? parts.tools.map(strictTool) : parts.tools;
    this.#extend(parts, tools);
    const { rest, end } = this.#restOf(parts);
    const all = [...this.#closed, ...rest];
    const messages = [...this.#messages, ...rest.map((part) => part.message)];
    const estimatedTokens = this.#tokens + sum(rest.map((part) => part.tokens));
    const tokens = Math.ceil(estimatedTokens * parts.tokenRatio);
    const { form } = parts.profile;
    const request = {
      conversation: parts.conversation,
      agent: parts.agent,
      turnId: parts.turnId,
      messages,
      tools,
      ...(form.boundTo === undefined ? {} : { boundTo: form.boundTo }),
      headers: { ...parts.profile.headers, ...sessionAs('header', parts) },
    };
    const fault = guard(messages, tokens, parts.profile, fixedPart(parts, tools));
    const made = { tokens, estimatedTokens, fault, parts: all };
    const points = this.#dialect.cachePoints?.(all, this.#closed.length, form);
    const seal = (contents: FileContents) => this.#body.with(rest, end, contents, points);
    const files = [...this.#files, ...rest.flatMap(({ message }) => contained(message))];
    return { ...made, request, files, seal };
  }

  /** ASSEMBLE-3: the cache is valid while everything before it is unchanged. */
  #extend(parts: RequestParts, tools: readonly WireTool[]): void {
    const beginning = beginningOf(parts);
    const { history, historyLength, historyVersion } = parts.view;
    const isSameView = historyVersion === this.#version && history === this.#history;
    if (!isSameView || historyLength < this.#taken || !isSame(beginning, this.#begun))
      this.#begin(beginning, parts, tools);
    this.#take(history.slice(this.#taken, historyLength), parts);
    this.#taken = historyLength;
  }

  #begin(beginning: Beginning, parts: RequestParts, tools: readonly WireTool[]): void {
    const { profile, prefix, runContext } = parts;
    this.#begun = beginning;
    this.#version = parts.view.historyVersion;
    this.#history = parts.view.history;
    this.#taken = 0;
    this.#closed = [];
    this.#messages = [];
    this.#files = [];
    const dialect = DIALECTS[profile.form.dialect];
    this.#dialect = dialect;
    const fields = {
      ...profile.fields,
      ...sessionAs('field', parts),
      ...(tools.length > 0 ? profile.toolFields : {}),
    };
    const asked = parts.choice ? { ...fields, ...dialect.choose(parts.choice, fields) } : fields;
    const schema = enforced(parts);
    const typed = schema ? dialect.answering(asked, schema) : asked;
    const begun = dialect.begin({ fields: typed, tools, prefix }, profile.form);
    this.#state = begun.state;
    this.#body = new RequestBody(begun.text);
    this.#tokens = sum(tools.map(toolTokens)) + (schema ? estimateTokens(JSON.stringify(schema)) : 0);
    for (const part of begun.parts) this.#close(part);
    const context = runContext.map((message): ViewPart => ({ kind: 'run-context', entries: [], message }));
    this.#take(context, parts);
  }

  #take(inputs: readonly ViewPart[], parts: RequestParts): void {
    this.#state = this.#fold(inputs, parts, (part) => this.#close(part));
  }

  #close(part: WirePart): void {
    this.#body.add(part);
    this.#closed.push({ ...part, text: '' });
    this.#messages.push(part.message);
    this.#files.push(...contained(part.message));
    this.#tokens += part.tokens;
  }

  /** Continues the history, without changing it. Part by part: the texts of a long history are not kept. */
  #fold(inputs: readonly ViewPart[], parts: RequestParts, give: (part: WirePart) => void): unknown {
    const { form } = parts.profile;
    const view = { form, tools: parts.tools };
    let state = this.#state;
    for (const input of inputs) {
      const message = withShownFiles(input.message, view);
      const step = this.#dialect.take(state, { ...input, message }, form);
      step.parts.forEach(give);
      state = step.state;
    }
    return state;
  }

  /** What the history still holds open, and the tail: built for each request. */
  #restOf(parts: RequestParts) {
    const rest: WirePart[] = [];
    const last = this.#dialect.end(this.#fold(parts.view.tail, parts, (part) => rest.push(part)));
    return { rest: [...rest, ...last.parts], end: last.text };
  }
}

/** The files of a message that the body contains, not only their references. */
function contained({ files = [] }: WireMessage): readonly WireFile[] {
  return files.filter((file) => file.tokens !== undefined);
}

/** A request outside turns, with one text as its only message. */
export function singleRequest(
  text: string,
  prefix: string,
  profile: ModelProfile,
  call: Pick<ModelRequest, 'conversation' | 'agent' | 'turnId'>,
): Assembled {
  const view: View = {
    history: [],
    historyLength: 0,
    historyVersion: 0,
    tail: [{ kind: 'trigger', entries: [], message: { role: 'user', content: text } }],
  };
  const parts = { ...call, prefix, runContext: [], view, tools: [], profile };
  return new RequestAssembler().assemble({ ...parts, sessionId: null, tokenRatio: 1 });
}

/** Everything that the cached bytes depend on, besides the view. Compared by identity, texts by content. */
type Beginning = readonly (string | object)[];

function beginningOf(parts: RequestParts): Beginning {
  const { prefix, tools, profile, runContext, choice } = parts;
  const asked = [sessionAs('field', parts), runContext, enforced(parts), choice];
  return [prefix, tools, profile, JSON.stringify(asked)];
}

function isSame(one: Beginning, other: Beginning | null): boolean {
  return one.every((value, place) => value === other?.[place]);
}

function sessionAs(kind: 'header' | 'field', { profile, sessionId }: RequestParts): Record<string, string> {
  return sessionId !== null && profile.session?.kind === kind ? { [profile.session.name]: sessionId } : {};
}

function fixedPart(
  { agent, prefix, profile, tokenRatio }: RequestParts,
  tools: readonly WireTool[],
): FixedPart {
  const persona = { role: 'system', content: prefix } as const;
  const tokens = () => Math.ceil((messageTokens(persona) + sum(tools.map(toolTokens))) * tokenRatio);
  return { agent, model: profile.name, tokens };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A schema that no provider refuses; another one is in the text of the request alone. */
function enforced({ schema, profile: { structured }, tools }: RequestParts): JsonRecord | null {
  const isSent = structured === 'without-tools' ? tools.length === 0 : structured;
  return schema && isSent && schema.type === 'object' && isStrict(schema) ? schema : null;
}

/**
 * Marks a tool as strict if its schema already meets the rules of strict tools: closed objects, all properties
 * required, only keywords that every provider of strict tools supports. The schema is not rewritten: an optional
 * property made nullable would produce arguments that the tool refuses.
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

const BESIDE_ALTERNATIVES: ReadonlySet<string> = new Set(['$schema', 'anyOf', 'description', 'title']);

function isStrict(schema: unknown): boolean {
  if (!isRecord(schema) || Object.keys(schema).some((key) => !KEYWORDS.has(key))) return false;
  const { type, properties, required, additionalProperties, items, anyOf } = schema;
  if (anyOf !== undefined) {
    const isAlone = Object.keys(schema).every((key) => BESIDE_ALTERNATIVES.has(key)); // so never the whole of a tool or an answer
    return isAlone && Array.isArray(anyOf) && anyOf.every(isStrict);
  }
  if (type === 'array') return isStrict(items);
  if (type !== 'object') return typeof type === 'string';
  const known = isRecord(properties) ? properties : {};
  const named = new Set([required ?? []].flat());
  const isSame =
    named.size === Object.keys(known).length && Object.keys(known).every((key) => named.has(key));
  const isClosed = additionalProperties === false && isSame;
  return isClosed && Object.values(known).every(isStrict);
}

/** A full buffer grows by this factor. While a history grows, each of its bytes is copied twice on average. */
const GROWTH = 1.5;

/** An insertion into the bytes of the history. */
interface Insertion {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** Splits a text at the marks of files: every second piece is a SHA-256. */
const MARK = new RegExp(contentMark({ sha256: '([0-9a-f]{64})' }));

/**
 * The bytes of a request body, built part by part, and their hash.
 *
 * ASSEMBLE-B-1 The pieces, concatenated, are one JSON text.
 * ASSEMBLE-B-2 Each part is encoded once, and hashed once up to the first cache point: they move, so what follows is hashed for each
 *    body. The bytes of the history are shared by all bodies: bytes that were returned are never written again.
 * ASSEMBLE-B-3 The history has the place of each file, and never its bytes.
 */
class RequestBody {
  /** Begins with the encoded parts; the rest is free. */
  #history = Buffer.allocUnsafeSlow(0);
  #length = 0;
  /** Where each part ends. */
  readonly #ends: number[] = [];
  /** Where the content of each file belongs. */
  readonly #files: { readonly at: number; readonly sha256: string }[] = [];
  /** The hash of the beginning of the history: so many bytes and files. */
  #hash: Hash = createHash('sha256');
  #hashed = 0;
  #hashedFiles = 0;

  /** `start`: everything before the first part. */
  constructor(start: string) {
    this.#append(start);
  }

  /** Appends a part permanently. */
  add({ text }: WirePart): void {
    for (const [place, piece] of text.split(MARK).entries()) {
      if (place % 2 === 0) this.#append(piece);
      else this.#files.push({ at: this.#length, sha256: piece });
    }
    this.#ends.push(this.#length);
  }

  /** The whole body: `rest` and `end` after the appended parts. */
  with(
    rest: readonly WirePart[],
    end: string,
    contents: FileContents,
    points?: CachePoints,
  ): { readonly body: readonly Uint8Array[]; readonly hash: string } {
    const settled = this.#ends.length;
    const tail = rest.map(({ text }, place) => {
      if (!points?.at.includes(settled + place)) return text;
      return text.slice(0, -1) + points.text + text.slice(-1);
    });
    const last = `${tail.join('')}${end}`.split(MARK).map((piece, place) => {
      return place % 2 === 0 ? Buffer.from(piece) : contentOf(piece, contents);
    });
    const inHistory = points?.at.filter((at) => at < settled) ?? [];
    const files = this.#files.map(({ at, sha256 }) => ({ at, bytes: contentOf(sha256, contents) }));
    const marks = inHistory.map((at) => ({
      at: (this.#ends[at] ?? 0) - 1,
      bytes: Buffer.from(points?.text ?? ''),
    }));
    const insertions = [...files, ...marks].sort((one, other) => one.at - other.at);
    const body = [...this.#between(0, this.#length, insertions), ...last];
    const first = Math.min(this.#length, ...marks.map(({ at }) => at));
    this.#hashUpTo(first, files);
    const later = insertions.slice(this.#hashedFiles);
    return { body, hash: hashed(this.#hash.copy(), [...this.#between(first, this.#length, later), ...last]) };
  }

  /** No cache point is before this place. */
  #hashUpTo(to: number, files: readonly Insertion[]): void {
    if (to < this.#hashed) {
      this.#hash = createHash('sha256');
      this.#hashed = 0;
      this.#hashedFiles = 0;
    }
    const added = files.slice(this.#hashedFiles).filter(({ at }) => at <= to);
    for (const piece of this.#between(this.#hashed, to, added)) this.#hash.update(piece);
    this.#hashed = to;
    this.#hashedFiles += added.length;
  }

  /** The history from one place to another, with these insertions, ascending. */
  #between(start: number, end: number, insertions: readonly Insertion[]): Uint8Array[] {
    let from = start;
    const pieces: Uint8Array[] = [];
    for (const { at, bytes } of insertions) {
      pieces.push(this.#history.subarray(from, at), bytes);
      from = at;
    }
    return [...pieces, this.#history.subarray(from, end)];
  }

  #append(text: string): void {
    const added = Buffer.from(text);
    const length = this.#length + added.length;
    if (length > this.#history.length) {
      const larger = Buffer.allocUnsafeSlow(Math.ceil(length * GROWTH));
      this.#history.copy(larger, 0, 0, this.#length);
      this.#history = larger;
    }
    added.copy(this.#history, this.#length);
    this.#length = length;
  }
}

function contentOf(sha256: string, contents: FileContents): Uint8Array {
  const found = contents.get(sha256);
  if (!found) throw new Error(`the content of the file ${sha256} was not loaded`);
  return found;
}

function hashed(hash: Hash, pieces: readonly Uint8Array[]): string {
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

export interface Window {
  /** The model's context, in tokens. */
  readonly contextTokens: number;
  /** Reserved for the answer. */
  readonly maxOutputTokens: number;
}

/**
 * Checks every assembled request before it is sent to a model (L13).
 *
 * GUARD-1 Every call is directly followed by its result, in call order; no orphan, no duplicate, no dangling call.
 * GUARD-2 The last message is not the assistant's.
 * GUARD-3 The request leaves room for the answer in the model's window. If the persona and the tools alone leave none, the refusal
 *         says so: no shorter conversation would help.
 *
 * Null: the request may be sent.
 */
export function guard(
  messages: readonly WireMessage[],
  estimatedTokens: number,
  window: Window,
  fixed?: FixedPart,
): Refusal | null {
  return checkPairs(messages) ?? checkLast(messages) ?? checkWindow(estimatedTokens, window, fixed);
}

/** What every request of an agent begins with. */
export interface FixedPart {
  readonly agent: string;
  readonly model: string;
  /** The estimated tokens of its instructions and tools. */
  tokens(): number;
}

function checkPairs(messages: readonly WireMessage[]): Refusal | null {
  const seen = new Set<string>();
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at];
    if (message?.role === 'tool')
      return invalid(at, `a result of ${message.tool_call_id} without its call before it`);
    if (message?.tool_calls === undefined) continue; // most messages: an iterator for each takes time
    for (const call of message.tool_calls) {
      if (seen.has(call.id)) return invalid(at, `the call ${call.id} twice`);
      seen.add(call.id);
      at++;
      const result = messages[at];
      if (result?.role !== 'tool' || result.tool_call_id !== call.id) {
        return invalid(at, `no result of the call ${call.id}`);
      }
    }
  }
  return null;
}

function checkLast(messages: readonly WireMessage[]): Refusal | null {
  const last = messages.at(-1);
  if (last && last.role !== 'assistant') return null;
  return invalid(messages.length - 1, last ? 'an assistant message at the end' : 'nothing');
}

function checkWindow(estimatedTokens: number, window: Window, fixed: FixedPart | undefined): Refusal | null {
  const { contextTokens, maxOutputTokens } = window;
  const available = contextTokens - maxOutputTokens;
  if (estimatedTokens <= available) return null;
  const alone = fixed?.tokens() ?? 0;
  if (fixed && alone > available) {
    const { agent, model } = fixed;
    return refusal(
      'CONTEXT_STILL_TOO_LARGE',
      `the persona and the tools of ${agent} alone are about ${alone} tokens; models.${model}.contextTokens (${contextTokens}) less its maxOutputTokens (${maxOutputTokens}) leaves room for ${available}`,
      `shorten the persona (agents/${agent}.md), give the agent fewer tools, or raise models.${model}.contextTokens to the real window of the model`,
    );
  }
  return refusal(
    'CONTEXT_STILL_TOO_LARGE',
    `the request is about ${estimatedTokens} tokens; the model's window leaves room for ${available}`,
    'set a model with a larger contextTokens, or begin a new conversation',
  );
}

function invalid(at: number, what: string): Refusal {
  return refusal(
    'REQUEST_INVALID',
    `the request was not sent: message ${at} holds ${what}`,
    '`parley explain` prints the request; begin a new conversation, and keep this log to report the fault',
  );
}
