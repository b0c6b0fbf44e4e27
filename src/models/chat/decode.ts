import {
  type AnsweredCall,
  type Block,
  MAX_TOOL_CALLS,
  type ModelDelta,
  type OpaqueFields,
} from '../../agents/model-port.ts';
import { finishReasonOf, type Usage } from '../../conversation/index.ts';
import {
  isCount,
  isReadable,
  isRecord,
  isShallow,
  type JsonRecord,
  MAX_DEPTH,
  parseJson,
  stringOf,
} from '../../kernel/index.ts';
import { excerpt, type Fault, faultOfBody } from '../faults.ts';
import { Decoder, type Ending, endingReason, unreadable } from '../reader.ts';
import { ANSWER_FIELDS } from './encode.ts';

/** Reads an answer in chat completions: its chunks, or one document. An answer with a reason of `BROKEN_BY` is none. */

const NOT_A_CALL = [
  'INVALID_RESPONSE',
  'The model called a tool in a form that its provider cannot read',
] as const;
const PROVIDER_STOPPED = [
  'PROVIDER_ERROR',
  'The provider stopped its answer because of a fault of its own',
] as const;
/** Finish reasons of Gemini, DeepSeek, GLM and vLLM that mean: this is no answer. In lower case. */
const BROKEN_BY: Readonly<Record<string, readonly [code: string, message: string]>> = {
  malformed_function_call: NOT_A_CALL,
  malformed_response: NOT_A_CALL,
  unexpected_tool_call: NOT_A_CALL,
  insufficient_system_resource: PROVIDER_STOPPED,
  network_error: PROVIDER_STOPPED,
  abort: PROVIDER_STOPPED,
};

export class ChatDecoder extends Decoder {
  readonly #thinkTag = new ThinkTag();
  readonly #calls = new ToolCallAssembler();
  readonly #opaque = new OpaqueCollector(ANSWER_FIELDS);
  #isRefusal = false;

  takeEvent(chunk: JsonRecord): ModelDelta[] {
    if (chunk.error || chunk.object === 'error') return this.fail(faultOfBody(chunk));
    this.model = stringOf(chunk.model) || this.model;
    this.usage = usageOf(chunk.usage) ?? this.usage;
    const choices: readonly unknown[] = Array.isArray(chunk.choices) ? chunk.choices : [];
    const choice = choices.find(isFirstChoice);
    if (choice === undefined) return [];
    const deltas = this.#takeChoice(choice);
    if (choice.error || choice.finish_reason === 'error') this.fail(faultOfBody(choice));
    else this.finishReason = stringOf(choice.finish_reason) || this.finishReason;
    return deltas;
  }

  takeDocument(document: JsonRecord, text: string): ModelDelta[] {
    const deltas = this.takeEvent(document);
    if (this.state !== 'growing') return deltas;
    if (!Array.isArray(document.choices) || !isRecord(document.choices[0])) {
      const message = `The provider sent JSON that is no chat completion: ${excerpt(text, 120)}. Check baseURL.`;
      return this.fail(unreadable('INVALID_RESPONSE', message));
    }
    this.state = 'done'; // A document that parses is whole.
    return deltas;
  }

  protected override calls(): readonly AnsweredCall[] {
    return this.#calls.calls().map(({ opaque: _, ...call }) => call);
  }

  /** What is opaque in the message and its calls; empty: nothing. The order of text and calls is always the same. */
  protected override blocks(): readonly Block[] {
    const message = this.#opaque.fields();
    const calls = this.#calls.calls();
    const isAny = calls.some(({ opaque }) => opaque !== undefined);
    return [
      ...(message ? [{ type: 'opaque', opaque: message } as const] : []),
      ...(isAny ? calls.map(({ opaque }) => ({ type: 'call', ...(opaque ? { opaque } : {}) }) as const) : []),
    ];
  }

  protected override faultOf(ending: Ending): Fault | null {
    const reason = finishReasonOf(this.finishReason) ?? '';
    const known = BROKEN_BY[reason.toLowerCase().replace(/^.*: */, '')];
    if (!known) return super.faultOf(ending);
    const [code, what] = known;
    return { code, message: `${what} (${reason}). Try again, or choose another model.`, retryable: true };
  }

  /** Providers report a refusal with the reason `stop`. */
  protected override ending(ending: Ending): Ending {
    const reason = endingReason(ending);
    const isUsual = reason === 'stop' || (reason === '' && ending.state === 'done');
    return this.#isRefusal && isUsual ? { ...ending, finishReason: 'refusal' } : ending;
  }

  #takeChoice(choice: JsonRecord): ModelDelta[] {
    if (isRecord(choice.delta)) {
      this.#opaque.push(choice.delta, true);
      return this.#takeMessage(choice.delta);
    }
    if (!isRecord(choice.message)) return [];
    this.#opaque.push(choice.message, false);
    // A complete message. In the last chunk of a stream it repeats the deltas.
    if (this.grown.text === '' && this.grown.reasoning === '') return this.#takeMessage(choice.message);
    return this.#takeCalls(choice.message);
  }

  #takeMessage(message: JsonRecord): ModelDelta[] {
    if (!isContent(message.content)) {
      const seen = excerpt(JSON.stringify(message.content), 80);
      const wanted = 'a text or a list of parts was expected';
      const what = `The provider sent a content that is ${seen}: ${wanted}.`;
      return this.fail(unreadable('INVALID_RESPONSE', what));
    }
    const parts = partsOf(message.content);
    const thought = stringOf(message.reasoning_content) || stringOf(message.reasoning) || parts.reasoning;
    const refusal = stringOf(message.refusal);
    this.#isRefusal ||= refusal !== '';
    const content = this.#thinkTag.push(parts.text);
    const deltas = this.#add({ reasoning: thought + content.reasoning, text: content.text + refusal });
    deltas.push(...this.#takeCalls(message));
    return deltas;
  }

  /** Returns text that was held back because it could have been the start of a tag. */
  override end(): ModelDelta[] {
    return [...this.#add(this.#thinkTag.end()), ...this.grown.end()];
  }

  #add({ reasoning, text }: Split): ModelDelta[] {
    return [...this.grown.add('reasoning', reasoning), ...this.grown.add('text', text)];
  }

  /** `function_call` is the legacy form of a single call. */
  #takeCalls(message: JsonRecord): ModelDelta[] {
    const legacy = isRecord(message.function_call) ? [{ index: 0, function: message.function_call }] : [];
    return this.#calls.push(Array.isArray(message.tool_calls) ? message.tool_calls : legacy);
  }
}

function isFirstChoice(choice: unknown): choice is JsonRecord {
  return isRecord(choice) && (choice.index ?? 0) === 0;
}

/** A message with tool calls may have no content, or null. */
function isContent(content: unknown): boolean {
  return (content ?? null) === null || typeof content === 'string' || Array.isArray(content);
}

/** Content is a string or a list of parts, some of them reasoning. */
function partsOf(content: unknown): { text: string; reasoning: string } {
  if (!Array.isArray(content)) return { text: stringOf(content), reasoning: '' };
  const parts = content.filter(isRecord);
  const thoughts = parts.flatMap((part) =>
    Array.isArray(part.thinking) ? part.thinking.filter(isRecord) : [],
  );
  return {
    text: parts.map((part) => stringOf(part.text)).join(''),
    reasoning: thoughts.map((thought) => stringOf(thought.text)).join(''),
  };
}

/** Drops impossible counts: they would corrupt the sums and limits of the conversation. */
function usageOf(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { prompt_tokens: input, completion_tokens: said, total_tokens: total } = usage;
  const { prompt_tokens_details: details, completion_tokens_details: completionDetails } = usage;
  const { cached_tokens: ofKimi, prompt_cache_hit_tokens: ofDeepSeek } = usage;
  const completion = isCount(said) ? said : 0;
  // Servers that do not count report zero; no request is empty.
  if (!isCount(input) || (input === 0 && completion === 0)) return undefined;
  // Some providers leave the tokens of the reasoning out of the completion, and charge them.
  const output = isCount(total) ? Math.max(completion, total - input) : completion;
  const ofOpenAI = isRecord(details) ? details.cached_tokens : undefined;
  const cached = [ofOpenAI, ofKimi, ofDeepSeek].find(isCount);
  const reasoning = isRecord(completionDetails) ? completionDetails.reasoning_tokens : undefined;
  return {
    inputTokens: input,
    ...(cached !== undefined ? { cachedInputTokens: Math.min(cached, input) } : {}),
    outputTokens: output,
    ...(isCount(reasoning) && reasoning > 0 ? { reasoningTokens: Math.min(reasoning, output) } : {}),
  };
}

/**
 * Separates reasoning from text for servers that send both as content: blocks of `<think>…</think>`, or of
 * another pair of tags in `CLOSING`, at the start of an answer. Anywhere else a tag is text. The result does not depend on where the
 * text was split.
 */
interface Split {
  readonly text: string;
  readonly reasoning: string;
}

/** By opening tag. `<thought>`: Gemini and Gemma. `[THINK]`: Magistral. `<seed:think>`: Seed-OSS. */
const CLOSING: Readonly<Record<string, string>> = {
  '<think>': '</think>',
  '<thinking>': '</thinking>',
  '<thought>': '</thought>',
  '<seed:think>': '</seed:think>',
  '[THINK]': '[/THINK]',
};
const OPENINGS = Object.keys(CLOSING);
const NOTHING: Split = { text: '', reasoning: '' };

class ThinkTag {
  /** `undecided`: the text so far may be the start of a tag. `after`: the same, after a closing tag. */
  #state: 'undecided' | 'thinking' | 'after' | 'text' = 'undecided';
  #closing = '';
  #held = '';
  /** Before the next reasoning: a block begins after another one. */
  #separator = '';
  #hasReasoning = false;

  /** Returns the part that is certain. A loop: an answer can have any number of blocks. */
  push(piece: string): Split {
    if (piece === '') return NOTHING;
    this.#held += piece;
    let reasoning = '';
    while (this.#state !== 'text') {
      if (this.#state === 'thinking') {
        const end = this.#held.indexOf(this.#closing);
        if (end === -1) {
          const kept = openEnd(this.#held, this.#closing);
          return { text: '', reasoning: reasoning + this.#take(this.#held.length - kept) };
        }
        reasoning += this.#take(end);
        this.#held = this.#held.slice(this.#closing.length);
        this.#state = 'after';
      } else if (!this.#decide()) return { text: '', reasoning };
    }
    const text = this.#held;
    this.#held = '';
    return { text, reasoning };
  }

  /** Returns what was held back, at the end of the text. */
  end(): Split {
    const { length } = this.#held;
    if (this.#state === 'thinking') return { text: '', reasoning: this.#take(length) };
    const text = this.#held;
    this.#held = '';
    return { text, reasoning: '' };
  }

  /** False: the text so far may be the start of a tag. */
  #decide(): boolean {
    if (this.#state === 'after') this.#held = this.#held.trimStart();
    const start = this.#held.trimStart();
    const opening = OPENINGS.find((tag) => start.startsWith(tag));
    if (opening === undefined) {
      if (OPENINGS.some((tag) => tag.startsWith(start))) return false;
      this.#state = 'text';
      return true;
    }
    this.#state = 'thinking';
    this.#closing = CLOSING[opening] ?? '';
    this.#held = start.slice(opening.length);
    this.#separator = this.#hasReasoning ? '\n\n' : '';
    return true;
  }

  /** Removes that many characters of reasoning from the held text. */
  #take(length: number): string {
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    if (taken === '') return '';
    const reasoning = this.#separator + taken;
    this.#separator = '';
    this.#hasReasoning = true;
    return reasoning;
  }
}

/** The number of characters at the end that may be the start of the tag. */
function openEnd(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length;
  }
  return 0;
}

interface AssembledCall extends AnsweredCall {
  readonly opaque?: OpaqueFields;
}

interface Growing {
  readonly position: number;
  readonly index: number | null;
  id: string;
  name: string;
  arguments: string;
  /** Number of its first chunk. */
  readonly chunk: number;
  readonly opaque: OpaqueCollector;
}

interface Piece extends AnsweredCall {
  readonly index: number | null;
  readonly more: JsonRecord;
}

/**
 * Assembles the tool calls of an answer from their pieces. Providers differ in every detail:
 *
 * TOOL-CALLS-1 Positions are dense, in order of first appearance, whatever the provider's indexes are.
 * TOOL-CALLS-2 A piece belongs to the call with its index; without an index, to the call with its id, else to the newest call.
 * TOOL-CALLS-3 A piece with a function name starts a new call if its id differs from that call's id, or if that call's
 *    arguments are complete (some servers give every call the index 0 or the id `call_0`).
 * TOOL-CALLS-4 A complete call that is repeated in a later chunk counts once. Calls of one chunk are never repetitions.
 * TOOL-CALLS-5 The name is in one delta; the pieces of the arguments, concatenated, are the arguments.
 * TOOL-CALLS-6 A call with another index but the same id, name and arguments as an earlier call is a repetition. Calls
 *    that share an id and differ in anything else are distinct.
 * TOOL-CALLS-7 Pieces after the first call above `MAX_TOOL_CALLS` are ignored: each piece is compared with every call.
 */
class ToolCallAssembler {
  readonly #calls: Growing[] = [];
  #chunk = 0;

  /** Reads the `tool_calls` of one chunk, valid or not. */
  push(toolCalls: unknown): ModelDelta[] {
    if (!Array.isArray(toolCalls)) return [];
    this.#chunk += 1;
    return toolCalls.flatMap((item) => this.#take(readPiece(item)));
  }

  calls(): AssembledCall[] {
    return this.#calls.filter(isFirstReport).map(({ position, id, name, arguments: given, opaque }) => {
      const fields = opaque.fields();
      const call = { id: id === '' ? `call_${position}` : id, name, arguments: given };
      return fields === undefined ? call : { ...call, opaque: fields };
    });
  }

  #take(piece: Piece): ModelDelta[] {
    if (this.#calls.length > MAX_TOOL_CALLS || this.#isRepetition(piece)) return [];
    const owner = this.#ownerOf(piece);
    const call = owner === undefined || startsNewCall(piece, owner) ? this.#begin(piece) : owner;
    if (call.id === '') call.id = piece.id;
    call.opaque.push(piece.more, false);
    const isNamed = call.name === '' && piece.name !== '';
    if (isNamed) call.name = piece.name;
    call.arguments += piece.arguments;
    if (!isNamed && piece.arguments === '') return [];
    const delta = { type: 'tool_call_delta', position: call.position, delta: piece.arguments } as const;
    return [isNamed ? { ...delta, name: call.name } : delta];
  }

  #begin({ index, id }: Piece): Growing {
    const opaque = new OpaqueCollector(ANSWERED_CALL_FIELDS);
    const place = { position: this.#calls.length, index, chunk: this.#chunk };
    const call = { ...place, id, name: '', arguments: '', opaque };
    this.#calls.push(call);
    return call;
  }

  #isRepetition(piece: Piece): boolean {
    return this.#calls.some(
      (call) =>
        call.chunk < this.#chunk &&
        (piece.index === null || call.index === null || piece.index === call.index) &&
        (piece.id === '' || call.id === '' || piece.id === call.id) &&
        (piece.name === '' || piece.name === call.name) &&
        piece.arguments === call.arguments &&
        isWhole(call.arguments),
    );
  }

  /** The call that a piece continues, if any (TOOL-CALLS-2). The newest: several may share an index (TOOL-CALLS-3). */
  #ownerOf(piece: Piece): Growing | undefined {
    if (piece.index !== null) return this.#calls.findLast((call) => call.index === piece.index);
    const named = piece.id === '' ? undefined : this.#calls.findLast((call) => call.id === piece.id);
    return named ?? (piece.name === '' ? this.#calls.at(-1) : undefined);
  }
}

function startsNewCall(piece: Piece, owner: Growing): boolean {
  if (piece.name === '' || owner.name === '') return false;
  const otherId = piece.id !== '' && owner.id !== '' && piece.id !== owner.id;
  // A server that repeats id and name in every piece may end with an empty piece, which starts no call.
  const addsNothing = piece.arguments === '' && piece.name === owner.name;
  return otherId || (isWhole(owner.arguments) && !addsNothing);
}

function isFirstReport(call: Growing, at: number, calls: readonly Growing[]): boolean {
  const isReported = (before: Growing) =>
    before.id !== '' &&
    before.id === call.id &&
    before.index !== call.index &&
    before.name === call.name &&
    before.arguments === call.arguments;
  return !calls.slice(0, at).some(isReported);
}

function readPiece(item: unknown): Piece {
  const record = isRecord(item) ? item : {};
  const called = isRecord(record.function) ? record.function : {};
  return {
    index: typeof record.index === 'number' ? record.index : null,
    id: stringOf(record.id),
    name: stringOf(called.name),
    // Some servers send the arguments as an object instead of JSON text.
    arguments: isRecord(called.arguments) ? jsonOf(called.arguments) : stringOf(called.arguments),
    more: { ...record, function: withoutKnown(called) },
  };
}

function withoutKnown(called: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(called).filter(([name]) => !ANSWERED_CALL_FIELDS.has(name)));
}

/** Arguments nested too deeply become invalid JSON, so that the call is refused. */
function jsonOf(value: JsonRecord): string {
  return isShallow(value) ? JSON.stringify(value) : `[nested deeper than ${MAX_DEPTH} levels]`;
}

/** Arguments are one JSON object: once it is closed, they are complete. */
function isWhole(argumentsJson: string): boolean {
  return argumentsJson.trimEnd().endsWith('}') && isRecord(parseJson(argumentsJson));
}

/** As `ANSWER_FIELDS`, of a call; `function` may have more, too. */
const ANSWERED_CALL_FIELDS: ReadonlySet<string> = new Set(['index', 'id', 'type', 'name', 'arguments']);

/**
 * Collects the fields of a message or a call that the protocol does not name: signatures, encrypted reasoning.
 *
 * OPAQUE-FIELDS-1 A field that arrives whole is kept as it is. Pieces of a stream are joined: texts are concatenated, objects
 *    are merged, and items of a list are joined if they are pieces of one item.
 * OPAQUE-FIELDS-2 Empty values say nothing. A field that not every reader could read again is left out.
 */
class OpaqueCollector {
  readonly #known: ReadonlySet<string>;
  readonly #fields = new Map<string, unknown>();

  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  /** `isPiece`: texts and lists continue what came before; otherwise they replace it. */
  push(source: JsonRecord, isPiece: boolean): void {
    for (const [name, value] of Object.entries(source)) {
      if (this.#known.has(name) || isNothing(value) || !isShallow(value)) continue;
      const before = this.#fields.get(name);
      this.#fields.set(name, isPiece ? joined(before, value) : replaced(before, value));
    }
  }

  /** Undefined: there are none. */
  fields(): OpaqueFields | undefined {
    const kept = [...this.#fields].filter(([name, value]) => isReadable([name, value]));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  }
}

function isNothing(value: unknown): boolean {
  if (value === null || value === '' || value === false) return true;
  return typeof value === 'object' && Object.values(value as object).length === 0;
}

function joined(before: unknown, piece: unknown): unknown {
  if (Array.isArray(piece)) return joinedItems(Array.isArray(before) ? before : [], piece);
  return typeof before === 'string' && typeof piece === 'string' ? before + piece : replaced(before, piece);
}

function replaced(before: unknown, value: unknown): unknown {
  return isRecord(before) && isRecord(value) ? merged(before, value) : value;
}

/** Into `before`, which is the collector's own. The later value of each field counts. */
function merged(before: JsonRecord, piece: JsonRecord): JsonRecord {
  const fields: Record<string, unknown> = before;
  for (const [name, value] of Object.entries(piece)) {
    if (name === '__proto__') continue; // would not be a field
    if (!isNothing(value) || fields[name] === undefined) fields[name] = replaced(fields[name], value);
  }
  return fields;
}

/** Only the newest items can continue: comparing all of them would take quadratic time. */
const COMPARED = 64;

/** Into `items`, which is the collector's own. */
function joinedItems(items: unknown[], pieces: readonly unknown[]): unknown[] {
  for (const piece of pieces) {
    const newest = items.slice(-COMPARED);
    const item = isRecord(piece) ? newest.findLast((known) => continues(piece, known)) : undefined;
    if (isRecord(item) && isRecord(piece)) grow(item, piece);
    else items.push(piece);
  }
  return items;
}

/** By index, type and id, as far as they are given. Without an index only an unsigned text can continue. */
function continues(piece: JsonRecord, item: unknown): boolean {
  if (!isRecord(item)) return false;
  const isSame = (name: string) => (piece[name] ?? item[name]) === (item[name] ?? piece[name]);
  if (!isSame('type') || !isSame('id')) return false;
  if (typeof piece.index === 'number') return piece.index === item.index;
  return (
    item.index === undefined &&
    !item.signature &&
    !piece.data &&
    GROWING.some((name) => typeof item[name] === 'string')
  );
}

/** Fields of an item that arrive in pieces. */
const GROWING: readonly string[] = ['text', 'thinking', 'summary', 'data'];

function grow(item: JsonRecord, piece: JsonRecord): void {
  const texts = GROWING.flatMap((name) => {
    const [before, more] = [item[name], piece[name]];
    return typeof before === 'string' && typeof more === 'string' ? [[name, before + more] as const] : [];
  });
  Object.assign(merged(item, piece), Object.fromEntries(texts));
}
