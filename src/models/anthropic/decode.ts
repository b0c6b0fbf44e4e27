import {
  type AnsweredCall,
  type Block,
  MAX_TOOL_CALLS,
  type ModelDelta,
  type OpaqueFields,
} from '../../agents/model-port.ts';
import { cutBy, finishReasonOf, type Usage } from '../../conversation/index.ts';
import { isCount, isRecord, isShallow, type JsonRecord, parseJson, stringOf } from '../../kernel/index.ts';
import { excerpt, faultOfBody } from '../faults.ts';
import { Decoder, type Ending, unreadable } from '../reader.ts';

/**
 * Reads an answer of the Messages API: its events, or one document. An unknown event says nothing; a block of an unknown type is kept
 * whole, for the model that wrote it.
 */

/** A block while it grows. */
type Growing =
  | { readonly type: 'text'; length: number; separator: string }
  | { readonly type: 'reasoning'; length: number; signature: string }
  | { readonly type: 'call'; readonly position: number; arguments: string; readonly given: unknown }
  | { readonly type: 'opaque'; readonly fields: Record<string, unknown>; input: string }
  /** A call above `MAX_TOOL_CALLS`. */
  | { readonly type: 'ignored' };

interface GrowingCall extends AnsweredCall {
  arguments: string;
}

export class MessagesDecoder extends Decoder {
  /** In order, and by the provider's index. */
  readonly #blocks: Growing[] = [];
  readonly #byIndex = new Map<unknown, Growing>();
  readonly #calls: GrowingCall[] = [];
  #counts: JsonRecord = {};

  takeEvent(event: JsonRecord): ModelDelta[] {
    switch (event.type) {
      case 'message_start':
        this.#takeHead(event.message);
        return [];
      case 'content_block_start':
        return this.#startBlock(event.index, event.content_block);
      case 'content_block_delta':
        return isRecord(event.delta) ? this.#growBlock(event.index, event.delta) : [];
      case 'content_block_stop':
        return this.#stopBlock(event.index);
      case 'message_delta':
        this.#takeUsage(event.usage);
        if (isRecord(event.delta)) this.finishReason = stringOf(event.delta.stop_reason) || this.finishReason;
        return [];
      case 'message_stop':
        this.close();
        return [];
      case 'error':
        return this.fail(faultOfBody(event));
      default:
        return [];
    }
  }

  takeDocument(document: JsonRecord, text: string): ModelDelta[] {
    if (document.type === 'error' || isRecord(document.error)) return this.fail(faultOfBody(document));
    if (!Array.isArray(document.content)) {
      const message = `The provider sent JSON that is no message of Anthropic's protocol: ${excerpt(text, 120)}. Check baseURL.`;
      return this.fail(unreadable('INVALID_RESPONSE', message));
    }
    this.#takeHead(document);
    this.finishReason = stringOf(document.stop_reason);
    const deltas = document.content.flatMap((block, index) => [
      ...this.#startBlock(index, block),
      ...this.#stopBlock(index),
    ]);
    this.state = 'done'; // A document that parses is whole.
    return deltas;
  }

  protected override calls(): readonly AnsweredCall[] {
    return this.#calls;
  }

  /** A refusal without a word is the work of a filter: there is no text of the model to show. */
  protected override ending(ending: Ending): Ending {
    const isFiltered = ending.isEmpty && ending.finishReason === 'refusal';
    return isFiltered ? { ...ending, finishReason: 'content_filter' } : ending;
  }

  #takeHead(message: unknown): void {
    if (!isRecord(message)) return;
    this.model = stringOf(message.model) || this.model;
    this.#takeUsage(message.usage);
  }

  /** The counts of later events are cumulative; a null says nothing. */
  #takeUsage(usage: unknown): void {
    const given = Object.entries(isRecord(usage) ? usage : {}).filter(([, value]) => value !== null);
    this.#counts = { ...this.#counts, ...Object.fromEntries(given) };
    this.usage = usageOf(this.#counts);
  }

  #startBlock(index: unknown, started: unknown): ModelDelta[] {
    if (!isRecord(started)) return [];
    const block = this.#newBlock(started);
    this.#blocks.push(block);
    this.#byIndex.set(index, block);
    if (block.type === 'text') return this.#growText(block, stringOf(started.text));
    if (block.type === 'reasoning') return this.#growText(block, stringOf(started.thinking));
    if (block.type !== 'call') return [];
    const name = this.#calls[block.position]?.name ?? '';
    return [{ type: 'tool_call_delta', position: block.position, name, delta: '' }];
  }

  #newBlock(started: JsonRecord): Growing {
    switch (started.type) {
      case 'text':
        return { type: 'text', length: 0, separator: '' };
      case 'thinking':
        return { type: 'reasoning', length: 0, signature: stringOf(started.signature) };
      case 'tool_use': {
        const position = this.#calls.length;
        if (position > MAX_TOOL_CALLS) return { type: 'ignored' };
        const id = stringOf(started.id) || `call_${position}`;
        this.#calls.push({ id, name: stringOf(started.name), arguments: '' });
        return { type: 'call', position, arguments: '', given: started.input };
      }
      default:
        return { type: 'opaque', fields: { ...started }, input: '' };
    }
  }

  #growBlock(index: unknown, delta: JsonRecord): ModelDelta[] {
    const block = this.#byIndex.get(index);
    switch (block?.type) {
      case 'text':
        return delta.type === 'text_delta' ? this.#growText(block, stringOf(delta.text)) : [];
      case 'reasoning':
        if (delta.type === 'signature_delta') block.signature += stringOf(delta.signature);
        return delta.type === 'thinking_delta' ? this.#growText(block, stringOf(delta.thinking)) : [];
      case 'call':
        return delta.type === 'input_json_delta' ? this.#growCall(block, stringOf(delta.partial_json)) : [];
      case 'opaque':
        if (delta.type === 'input_json_delta') block.input += stringOf(delta.partial_json);
        return [];
      default:
        return [];
    }
  }

  /** Reasoning and text come in turns: a text after something else begins a paragraph. */
  #growText(block: Extract<Growing, { readonly length: number }>, piece: string): ModelDelta[] {
    if (piece === '') return [];
    const { type } = block;
    const isFirst = type === 'text' && block.length === 0 && this.grown.text !== '';
    if (isFirst && this.#blocks.at(-2)?.type !== 'text') block.separator = '\n\n';
    block.length += piece.length;
    return this.grown.add(type, isFirst ? block.separator + piece : piece);
  }

  #growCall(block: Extract<Growing, { readonly type: 'call' }>, piece: string): ModelDelta[] {
    const call = this.#calls[block.position];
    if (piece === '' || !call) return [];
    block.arguments += piece;
    call.arguments += piece;
    return [{ type: 'tool_call_delta', position: block.position, delta: piece }];
  }

  #stopBlock(index: unknown): ModelDelta[] {
    const block = this.#byIndex.get(index);
    this.#byIndex.delete(index);
    if (block?.type === 'opaque' && block.input !== '') block.fields.input = parseJson(block.input) ?? {};
    if (block?.type !== 'call' || block.arguments !== '') return [];
    const given = block.given ?? {};
    if (isRecord(given) && Object.keys(given).length === 0) return [];
    return this.#growCall(block, isShallow(given) ? JSON.stringify(given) : '[nested too deeply]');
  }

  /** A call without arguments, unless it is where the answer was cut: the API sends long arguments at once, or not at all. */
  override end(): ModelDelta[] {
    const isCut = cutBy(finishReasonOf(this.finishReason)) !== null;
    const last = this.#blocks.at(-1);
    const whole = this.#blocks.flatMap((block) =>
      block.type === 'call' && block.arguments === '' && !(isCut && block === last)
        ? this.#growCall(block, '{}')
        : [],
    );
    return [...whole, ...super.end()];
  }

  protected override blocks(): readonly Block[] {
    const blocks = this.#blocks.flatMap(keptBlock);
    const usual = ['reasoning', 'text', 'call'];
    const isUsual = blocks.every(({ type }, at) => {
      const before = usual.indexOf(blocks[at - 1]?.type ?? 'reasoning');
      return usual.indexOf(type) >= before;
    });
    return isUsual && blocks.every((block) => block.opaque === undefined) ? [] : blocks;
  }
}

function keptBlock(block: Growing): Block[] {
  switch (block.type) {
    case 'text': {
      // The separator is a blank block of its own, which is not sent back.
      const lengths = [block.separator.length, block.length].filter((length) => length > 0);
      return lengths.map((length) => ({ type: 'text', length }));
    }
    case 'reasoning': {
      const { length, signature } = block;
      if (signature !== '') return [{ type: 'reasoning', length, opaque: { signature } }];
      return length === 0 ? [] : [{ type: 'reasoning', length }];
    }
    case 'call':
      return [{ type: 'call' }];
    case 'opaque':
      return isShallow(block.fields) ? [{ type: 'opaque', opaque: block.fields satisfies OpaqueFields }] : [];
    case 'ignored':
      return [];
    default:
      return block satisfies never;
  }
}

/** Drops impossible counts: they would corrupt the sums and limits of the conversation. */
function usageOf(usage: JsonRecord): Usage | undefined {
  const count = (name: string): number | undefined => {
    const value = usage[name];
    return isCount(value) ? value : undefined;
  };
  const [uncached, output] = [count('input_tokens'), count('output_tokens') ?? 0];
  const [read, written] = [count('cache_read_input_tokens'), count('cache_creation_input_tokens')];
  const input = (uncached ?? 0) + (read ?? 0) + (written ?? 0);
  if (uncached === undefined || (input === 0 && output === 0)) return undefined;
  const details = isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {};
  const { thinking_tokens: reasoning } = details;
  return {
    inputTokens: input,
    ...(read === undefined ? {} : { cachedInputTokens: read }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    outputTokens: output,
    ...(isCount(reasoning) ? { reasoningTokens: Math.min(reasoning, output) } : {}),
  };
}
