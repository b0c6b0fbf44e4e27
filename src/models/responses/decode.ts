import { type AnsweredCall, type Block, MAX_TOOL_CALLS, type ModelDelta } from '../../agents/model-port.ts';
import type { Usage } from '../../conversation/index.ts';
import { isCount, isReadable, isRecord, type JsonRecord, stringOf } from '../../kernel/index.ts';
import { excerpt, faultOfBody } from '../faults.ts';
import { Decoder, unreadable } from '../reader.ts';
import type { Piece } from './encode.ts';

/**
 * Reads an answer of the Responses API: its events, or one document.
 *
 * RESPONSES-DECODE-1 An item grows by its deltas. Its whole form, which follows them, adds only what they did not contain.
 * RESPONSES-DECODE-2 Items are kept for the next request only as a whole: the provider refuses an item by its id if the reasoning
 *    before it is missing.
 */

/** Between two texts of one kind, for readers that show them as one. */
const SEPARATOR = '\n\n';

interface Growing {
  readonly type: string;
  /** The length of each content, by type and index. Reasoning and text grow in the order of the items. */
  readonly pieces: [type: string, length: number][];
  readonly at: Map<string, [type: string, length: number]>;
  /** The place of a call among the calls. */
  readonly position: number;
  id: string;
  name: string;
  arguments: string;
  /** The fields that this decoder does not read. */
  more: JsonRecord;
}

/** The deltas of contents, with the type of their item, the type of the content and the field of its index. */
const CONTENT: ReadonlyMap<string, readonly [item: string, type: string, index: string]> = new Map([
  ['response.output_text.delta', ['message', 'output_text', 'content_index']],
  ['response.refusal.delta', ['message', 'refusal', 'content_index']],
  ['response.reasoning_summary_text.delta', ['reasoning', 'summary_text', 'summary_index']],
  ['response.reasoning_text.delta', ['reasoning', 'reasoning_text', 'content_index']],
]);

/** The fields of an item that are encoded from the entry, or that only an answer may have. */
const READ_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['message', ['type', 'role', 'content']],
  ['reasoning', ['type', 'status', 'summary', 'content']],
  ['function_call', ['type', 'call_id', 'name', 'arguments']],
]);

export class ResponsesDecoder extends Decoder {
  readonly #items = new Map<string, Growing>();
  readonly #calls: Growing[] = [];
  /** As they were given: `grown` may hold back half a character. */
  readonly #lengths = { text: 0, reasoning: 0 };

  takeEvent(event: JsonRecord): ModelDelta[] {
    const type = stringOf(event.type);
    if (type === 'error' || (type === '' && event.error)) return this.fail(faultOfBody(event));
    if (isRecord(event.response)) return this.#takeResponse(event.response, type);
    const key = event.output_index ?? event.item_id;
    if (isRecord(event.item)) return this.#takeItem(key, event.item);
    const piece = stringOf(event.delta);
    if (type === 'response.function_call_arguments.delta')
      return this.#growCall(this.#item(key, 'function_call'), '', piece);
    const [item, content, index] = CONTENT.get(type) ?? [];
    if (item === undefined || content === undefined || index === undefined) return [];
    return this.#grow(this.#item(key, item), content, event[index], piece);
  }

  takeDocument(document: JsonRecord, text: string): ModelDelta[] {
    if (document.error) return this.fail(faultOfBody(document));
    const deltas = Array.isArray(document.output) ? this.#takeResponse(document, '') : [];
    if (this.state !== 'growing') return deltas;
    const message = `The provider sent JSON that is no whole answer of the Responses API: ${excerpt(text, 120)}. Check baseURL and provider.`;
    return [...deltas, ...this.fail(unreadable('INVALID_RESPONSE', message))];
  }

  /** Only a whole answer ends the stream. */
  override close(): void {
    this.state = 'cut';
  }

  protected override calls(): readonly AnsweredCall[] {
    return this.#calls.map(({ id, position, name, arguments: given }) => ({
      id: id || `call_${position}`,
      name,
      arguments: given,
    }));
  }

  /** `type`: of the event; empty: a document. */
  #takeResponse(response: JsonRecord, type: string): ModelDelta[] {
    this.model = stringOf(response.model) || this.model;
    this.usage = usageOf(response.usage) ?? this.usage;
    const status = type === '' ? response.status : type.replace('response.', '');
    if (status === 'failed' || status === 'cancelled')
      return this.fail(faultOfBody({ error: response.error ?? `The answer is ${status}` }));
    if (status !== 'completed' && status !== 'incomplete') return [];
    const output: readonly unknown[] = Array.isArray(response.output) ? response.output : [];
    // After a stream, it repeats what was read, and some servers repeat it with other ids.
    const items = this.#items.size === 0 ? output.filter(isRecord) : [];
    const deltas = items.flatMap((item, at) => this.#takeItem(at, item));
    this.state = 'done';
    this.finishReason = status === 'completed' ? this.#usualEnd() : reasonOf(response);
    return deltas;
  }

  #usualEnd(): string {
    if (this.#calls.length > 0) return 'tool_calls';
    const isRefusal = [...this.#items.values()].some(({ pieces }) =>
      pieces.some(([type]) => type === 'refusal'),
    );
    return isRefusal ? 'refusal' : 'stop';
  }

  /** Items of different types are apart: some servers give all of them one index. */
  #item(place: unknown, type: string): Growing {
    const key = `${type} ${isCount(place) ? place : stringOf(place)}`;
    const known = this.#items.get(key);
    if (known) return known;
    const position = this.#calls.length;
    const called = { id: '', name: '', arguments: '' };
    const item: Growing = { type, pieces: [], at: new Map(), position, ...called, more: {} };
    // MAX_TOOL_CALLS: one more than allowed is enough to refuse the answer.
    if (type === 'function_call' && position > MAX_TOOL_CALLS) return item;
    if (type === 'function_call') this.#calls.push(item);
    this.#items.set(key, item);
    return item;
  }

  #takeItem(key: unknown, whole: JsonRecord): ModelDelta[] {
    const item = this.#item(key, stringOf(whole.type));
    const read = READ_FIELDS.get(item.type) ?? [];
    item.more = Object.fromEntries(Object.entries(whole).filter(([name]) => !read.includes(name)));
    if (item.type === 'function_call') {
      item.id = stringOf(whole.call_id);
      return this.#growCall(
        item,
        stringOf(whole.name),
        stringOf(whole.arguments).slice(item.arguments.length),
      );
    }
    if (read.length === 0) return [];
    const contents = [whole.summary, whole.content].map((list) =>
      Array.isArray(list) ? list.filter(isRecord) : [],
    );
    return contents.flatMap((list) =>
      list.flatMap((content, index) => {
        const type = stringOf(content.type);
        const length = item.at.get(`${type} ${index}`)?.[1] ?? 0;
        return this.#grow(
          item,
          type,
          index,
          (stringOf(content.text) || stringOf(content.refusal)).slice(length),
        );
      }),
    );
  }

  #growCall(item: Growing, name: string, piece: string): ModelDelta[] {
    const isNamed = item.name === '' && name !== '';
    if (isNamed) item.name = name;
    item.arguments += piece;
    if (!isNamed && piece === '') return [];
    const delta = { type: 'tool_call_delta', position: item.position, delta: piece } as const;
    return this.#calls[item.position] !== item ? [] : [isNamed ? { ...delta, name } : delta];
  }

  #grow(item: Growing, type: string, index: unknown, piece: string): ModelDelta[] {
    if (piece === '') return [];
    const kind = item.type === 'reasoning' ? 'reasoning' : 'text';
    const key = `${type} ${isCount(index) ? index : 0}`;
    const known = item.at.get(key) ?? [type, 0];
    const isNew = !item.at.has(key);
    // Texts of one message are one text.
    const isApart = isNew && this.#lengths[kind] > 0 && (kind === 'reasoning' || item.pieces.length === 0);
    if (isApart) item.pieces.push(['', SEPARATOR.length]);
    if (isNew) {
      item.at.set(key, known);
      item.pieces.push(known);
    }
    known[1] += piece.length;
    const grown = (isApart ? SEPARATOR : '') + piece;
    this.#lengths[kind] += grown.length;
    return this.grown.add(kind, grown);
  }

  protected override blocks(): readonly Block[] {
    const items = [...this.#items.values()];
    const reasoning = items.filter(({ type }) => type === 'reasoning');
    const isWhole = reasoning.every(({ more, pieces }) => {
      return more.encrypted_content || pieces.some(([type]) => type === 'reasoning_text');
    });
    const keepsIds = reasoning.length > 0 && isWhole;
    const list = items.flatMap((item) => blockOf(item, keepsIds));
    return list.some((block) => block.type === 'opaque' || block.opaque) ? list : [];
  }
}

function blockOf({ type, pieces, more }: Growing, keepsIds: boolean): Block[] {
  const { id: _id, status: _status, ...others } = more;
  const named = Object.entries(keepsIds ? more : others).filter(([, value]) => value !== null);
  const fields = Object.fromEntries(named.filter(isReadable));
  const length = pieces.reduce((sum, [, piece]) => sum + piece, 0);
  if (type === 'reasoning') {
    return [{ type, length, ...(keepsIds ? { opaque: { ...fields, ...piecesOf(pieces) } } : {}) }];
  }
  const opaque = Object.keys(fields).length > 0 ? { opaque: fields } : {};
  if (type === 'function_call') return [{ type: 'call', ...opaque }];
  if (type !== 'message')
    return stringOf(more.type) !== '' && isReadable(more) ? [{ type: 'opaque', opaque: more }] : [];
  if (length === 0) return [];
  const isPlain = pieces.length === 1 && pieces[0]?.[0] === 'output_text';
  const content = isPlain || !opaque.opaque ? {} : piecesOf(pieces);
  return [{ type: 'text', length, ...(opaque.opaque ? { opaque: { ...fields, ...content } } : {}) }];
}

function piecesOf(pieces: readonly Piece[]): { pieces?: readonly Piece[] } {
  return pieces.length === 0 ? {} : { pieces };
}

function reasonOf({ incomplete_details: details }: JsonRecord): string {
  return (isRecord(details) && stringOf(details.reason)) || 'interrupted';
}

/** Drops impossible counts: they would corrupt the sums and limits of the conversation. */
function usageOf(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { input_tokens: input, output_tokens: said } = usage;
  const output = isCount(said) ? said : 0;
  // Servers that do not count report zero; no request is empty.
  if (!isCount(input) || (input === 0 && output === 0)) return undefined;
  const { cached_tokens: cached, cache_write_tokens: written } = recordOf(usage.input_tokens_details);
  const { reasoning_tokens: reasoned } = recordOf(usage.output_tokens_details);
  const read = isCount(cached) ? Math.min(cached, input) : undefined;
  return {
    inputTokens: input,
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(isCount(written) && written > 0 ? { cacheWriteTokens: Math.min(written, input - (read ?? 0)) } : {}),
    outputTokens: output,
    ...(isCount(reasoned) ? { reasoningTokens: Math.min(reasoned, output) } : {}),
  };
}

function recordOf(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}
