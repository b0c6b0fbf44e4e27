import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { AnsweredCall, Block, ModelAnswer, ModelDelta, PartialAnswer } from '../agents/model-port.ts';
import { cutBy, finishReasonOf, type Usage } from '../conversation/index.ts';
import { isRecord, type JsonRecord, parseJson, wellFormed } from '../kernel/index.ts';
import { excerpt, type Fault, faultOfBody, textOf } from './faults.ts';

/**
 * Reads the body of an answer: bytes in, deltas and the complete answer out. Pure. What events mean is the decoder's.
 *
 * ANSWER-READER-1 The result does not depend on where the bytes were split.
 * ANSWER-READER-2 The deltas, concatenated per kind and position, are the answer.
 * ANSWER-READER-3 An answer is whole at its closing event, or at the end of the body if it has a finish reason: more may follow that.
 *    What ends between the two is cut (`interrupted`); what ends before is broken.
 * ANSWER-READER-4 The form of the body (events, one JSON document, an HTML page) is detected from its first character, not
 *    from the content type.
 * ANSWER-READER-5 No lone surrogate is returned: the log cannot store one, and live text would differ from its entry.
 */
export type ReadingResult =
  | { readonly kind: 'whole'; readonly answer: ModelAnswer }
  | { readonly kind: 'broken'; readonly fault: Fault };

/** One answer as it grows. A dialect reads its events, or a whole document. */
export abstract class Decoder {
  protected readonly grown = new GrowingText();
  protected usage: Usage | undefined;
  protected model = '';
  protected finishReason = '';
  protected state: Ending['state'] | { readonly fault: Fault } = 'growing';

  abstract takeEvent(data: JsonRecord): ModelDelta[];
  /** An answer that did not come as events. */
  abstract takeDocument(document: JsonRecord, text: string): ModelDelta[];
  protected abstract calls(): readonly AnsweredCall[];
  /** Empty: nothing is opaque, and the order is the usual one. */
  protected abstract blocks(): readonly Block[];

  /** The provider reported an error, or sent what cannot be read. */
  fail(fault: Fault): ModelDelta[] {
    this.state = this.isFinished() ? 'cut' : { fault };
    return [];
  }

  /** The end of the stream was announced by `[DONE]`. */
  close(): void {
    this.state = 'done';
  }

  /** The rest of the body does not matter. */
  isClosed(): boolean {
    return this.state !== 'growing';
  }

  /** It has a finish reason (ANSWER-READER-3). */
  isFinished(): boolean {
    return this.finishReason !== '';
  }

  partial(): PartialAnswer {
    return { content: this.grown.text, reasoning: this.grown.reasoning };
  }

  /** Deltas that were held back. */
  end(): ModelDelta[] {
    return this.grown.end();
  }

  result(isCut: boolean): ReadingResult {
    if (typeof this.state !== 'string') return { kind: 'broken', fault: this.state.fault };
    if (this.state === 'growing' && isCut) this.state = 'cut';
    const { usage, model, state } = this;
    const { text, reasoning } = this.grown;
    const toolCalls = this.calls();
    const isEmpty = text === '' && reasoning === '' && toolCalls.length === 0;
    const ending = this.ending({ state, finishReason: this.finishReason, isEmpty });
    const fault = this.faultOf(ending);
    if (fault !== null) return { kind: 'broken', fault };
    const finishReason = endingReason(ending);
    const blocks = this.blocks();
    const answer: ModelAnswer = {
      content: text === '' ? null : text,
      ...(reasoning === '' ? {} : { reasoning }),
      toolCalls,
      ...(usage === undefined ? {} : { usage }),
      ...(model === '' ? {} : { model }),
      ...(finishReason === '' ? {} : { finishReason }),
      ...(blocks.length === 0 ? {} : { blocks }),
    };
    return { kind: 'whole', answer };
  }

  /** For dialects that report a refusal in another way. */
  protected ending(ending: Ending): Ending {
    return ending;
  }

  /** Null: it is an answer. */
  protected faultOf(ending: Ending): Fault | null {
    return brokenEnding(ending);
  }
}

export class AnswerReader {
  readonly answer: Decoder;
  /** How many events were read before the end: signs of life, with or without a delta. */
  events = 0;
  readonly #utf8 = new TextDecoder();
  readonly #parser = createParser({ onEvent: (event) => this.#add(this.#takeEvent(event)) });
  #deltas: ModelDelta[] = [];
  #body: { form: 'unknown' | 'events' } | { form: 'document'; text: string } = { form: 'unknown' };

  constructor(answer: Decoder) {
    this.answer = answer;
  }

  push(bytes: Uint8Array): ModelDelta[] {
    this.#takeText(this.#utf8.decode(bytes, { stream: true }));
    return this.#deltas.splice(0);
  }

  /** The last deltas and the result. `isCut`: the body did not end. */
  end(isCut: boolean): { readonly deltas: ModelDelta[]; readonly result: ReadingResult } {
    this.#takeText(this.#utf8.decode());
    if (this.#body.form === 'events')
      this.#parser.feed('\n\n'); // the last event may lack its empty line
    else if (this.#body.form === 'document') this.#add(this.#takeDocument(this.#body.text));
    this.#add(this.answer.end());
    return { deltas: this.#deltas.splice(0), result: this.answer.result(isCut) };
  }

  #add(deltas: readonly ModelDelta[]): void {
    for (const delta of deltas) this.#deltas.push(delta);
  }

  #takeText(text: string): void {
    if (this.#body.form === 'events') this.#parser.feed(text);
    else if (this.#body.form === 'document') this.#body.text += text;
    else {
      const start = text.trimStart(); // blanks are discarded: a body may have millions of them
      if (start === '') return;
      this.#body = /^[{[<]/.test(start) ? { form: 'document', text: start } : { form: 'events' };
      if (this.#body.form === 'events') this.#parser.feed(start);
    }
  }

  #takeEvent({ event, data }: EventSourceMessage): ModelDelta[] {
    if (this.answer.isClosed()) return [];
    this.events += 1;
    if (data.trimStart().startsWith('[DONE]')) {
      this.answer.close();
      return [];
    }
    const chunk = parseJson(data);
    if (isRecord(chunk))
      return event === 'error' ? this.answer.fail(faultOfBody(chunk)) : this.answer.takeEvent(chunk);
    const seen = `${chunk === undefined ? 'valid JSON' : 'a JSON object'}: ${excerpt(data, 80)}`;
    return this.answer.fail(unreadable('STREAM_BROKEN', `The provider sent a chunk that is not ${seen}`));
  }

  #takeDocument(text: string): ModelDelta[] {
    const document = parseJson(text);
    const first = Array.isArray(document) ? document[0] : document;
    if (isRecord(first)) return this.answer.takeDocument(first, text);
    const message = `The provider sent no answer of this protocol but ${textOf(text)}. Check baseURL and provider.`;
    return this.answer.fail(unreadable('INVALID_RESPONSE', message));
  }
}

/** An answer that cannot be read. A broken stream may be whole next time. */
export function unreadable(code: 'STREAM_BROKEN' | 'INVALID_RESPONSE', message: string): Fault {
  return { code, message, retryable: code === 'STREAM_BROKEN' };
}

/** How an answer ended. */
export interface Ending {
  readonly state: 'growing' | 'done' | 'cut';
  /** The provider's word; empty: it gave none. */
  readonly finishReason: string;
  readonly isEmpty: boolean;
}

/** ANSWER-READER-3. Null: it is an answer. An empty one that was cut for a reason is the turn's failure. */
function brokenEnding({ state, finishReason, isEmpty }: Ending): Fault | null {
  const broken = (code: string, message: string): Fault => ({ code, message, retryable: true });
  if (finishReason === '' && (state !== 'done' || isEmpty)) {
    const message = isEmpty
      ? 'The provider ended its answer before it began. Try again; if it stays so, check baseURL and model.'
      : 'The provider ended its answer early. Post “continue” to get the rest.';
    return broken('STREAM_BROKEN', message);
  }
  if (!isEmpty || cutBy(finishReasonOf(finishReason))) return null;
  return state === 'cut'
    ? broken('STREAM_BROKEN', 'The provider did not send its answer to the end. Try again.')
    : broken('EMPTY_ANSWER', 'The answer of the model is empty. Try again, or choose another model.');
}

/** Empty: none. */
export function endingReason({ state, finishReason }: Omit<Ending, 'isEmpty'>): string {
  return state === 'cut' && !cutBy(finishReasonOf(finishReason)) ? 'interrupted' : finishReason;
}

/** Text and reasoning as they grow (ANSWER-READER-5). */
class GrowingText {
  text = '';
  reasoning = '';
  readonly #whole = { text: new WholeCharacters(), reasoning: new WholeCharacters() };

  add(type: 'text' | 'reasoning', piece: string): ModelDelta[] {
    return this.#grow(type, this.#whole[type].push(piece));
  }

  /** Returns what was held back, at the end of the answer. */
  end(): ModelDelta[] {
    const { text, reasoning } = this.#whole;
    return [...this.#grow('reasoning', reasoning.end()), ...this.#grow('text', text.end())];
  }

  #grow(type: 'text' | 'reasoning', delta: string): ModelDelta[] {
    if (delta === '') return [];
    this[type] += delta;
    return [{ type, delta }];
  }
}

/**
 * Replaces lone surrogates with U+FFFD. The result does not depend on where the text was split: a high surrogate at
 * the end is held back until the next piece.
 */
class WholeCharacters {
  #held = '';

  push(piece: string): string {
    if (piece === '') return '';
    const text = this.#held + piece;
    this.#held = /[\uD800-\uDBFF]$/.test(text) ? text.slice(-1) : '';
    return wellFormed(this.#held === '' ? text : text.slice(0, -1));
  }

  /** Returns what was held back, at the end of the text. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    return wellFormed(held);
  }
}
