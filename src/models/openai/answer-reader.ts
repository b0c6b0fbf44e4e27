import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { ModelAnswer, ModelDelta, PartialAnswer } from '../../agents/model-port.ts';
import { cutBy, finishReasonOf, type Usage } from '../../conversation/index.ts';
import { isRecord, type JsonRecord, parseJson, stringOf, wellFormed } from '../../kernel/index.ts';
import { excerpt, type Fault, faultOfBody, textOf } from './faults.ts';
import { MESSAGE_FIELDS, OpaqueCollector } from './opaque-fields.ts';
import { createToolCallAssembler } from './tool-calls.ts';

/**
 * Reads the body of a chat-completions answer: bytes in, deltas and the complete answer out. Pure.
 *
 * ANSWER-READER-1 The result does not depend on where the bytes were split.
 * ANSWER-READER-2 The deltas, concatenated per kind and position, are the answer.
 * ANSWER-READER-3 An answer is whole at `[DONE]`, or at the end of the body if it has a finish reason: more may follow that.
 *    What ends between the two is cut (`interrupted`); what ends before is broken.
 *    So is an answer without anything in it, or with a reason of `BROKEN_BY`.
 * ANSWER-READER-4 The form of the body (events, one JSON document, an HTML page) is detected from its first character, not
 *    from the content type.
 * ANSWER-READER-5 No lone surrogate is returned: the log cannot store one, and live text would differ from its entry.
 */
type ReadingResult =
  | { readonly kind: 'whole'; readonly answer: ModelAnswer }
  | { readonly kind: 'broken'; readonly fault: Fault };

export interface AnswerReader {
  push(bytes: Uint8Array): ModelDelta[];
  /** The last deltas and the result. `isCut`: the body did not end. */
  end(isCut: boolean): { readonly deltas: ModelDelta[]; readonly result: ReadingResult };
  /** The rest of the body does not matter. */
  isClosed(): boolean;
  /** It has a finish reason (ANSWER-READER-3). */
  isFinished(): boolean;
  partial(): PartialAnswer;
}

export function createAnswerReader(): AnswerReader {
  const utf8 = new TextDecoder();
  const answer = new GrowingAnswer();
  let deltas: ModelDelta[] = [];
  const events = createParser({
    onEvent: (event) => {
      for (const delta of answer.takeEvent(event)) deltas.push(delta);
    },
  });
  let body: { form: 'unknown' | 'events' } | { form: 'document'; text: string } = { form: 'unknown' };

  function takeEvents(text: string): ModelDelta[] {
    events.feed(text);
    const taken = deltas;
    deltas = [];
    return taken;
  }

  function takeText(text: string): ModelDelta[] {
    if (body.form === 'events') return takeEvents(text);
    if (body.form === 'document') {
      body.text += text;
      return [];
    }
    const start = text.trimStart(); // blanks are discarded: a body may have millions of them
    const first = start.charAt(0);
    if (first === '') return [];
    if (first === '{' || first === '[' || first === '<') {
      body = { form: 'document', text: start };
      return [];
    }
    body = { form: 'events' };
    return takeEvents(start);
  }

  return {
    push: (bytes) => takeText(utf8.decode(bytes, { stream: true })),
    end(isCut) {
      const taken = takeText(utf8.decode());
      const rest =
        body.form === 'events'
          ? takeEvents('\n\n') // the last event may lack its empty line
          : body.form === 'document'
            ? answer.takeDocument(body.text)
            : [];
      return { deltas: [...taken, ...rest, ...answer.end()], result: answer.result(isCut) };
    },
    isClosed: () => answer.isClosed(),
    isFinished: () => answer.isFinished(),
    partial: () => answer.partial(),
  };
}

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

class GrowingAnswer {
  #text = '';
  #reasoning = '';
  readonly #thinkTag = new ThinkTag();
  readonly #wholeText = new WholeCharacters();
  readonly #wholeReasoning = new WholeCharacters();
  readonly #calls = createToolCallAssembler();
  readonly #opaque = new OpaqueCollector(MESSAGE_FIELDS);
  #usage: Usage | undefined;
  #model = '';
  #finishReason = '';
  #isRefusal = false;
  #state: 'growing' | 'done' | 'cut' | { readonly fault: Fault } = 'growing';

  takeEvent(event: EventSourceMessage): ModelDelta[] {
    if (this.isClosed()) return [];
    if (event.data.trimStart().startsWith('[DONE]')) {
      this.#state = 'done';
      return [];
    }
    const chunk = parseJson(event.data);
    if (!isRecord(chunk)) {
      return this.#breakOff(
        'STREAM_BROKEN',
        `The provider sent a chunk that is not ${chunk === undefined ? 'valid JSON' : 'a JSON object'}: ${excerpt(event.data, 80)}`,
      );
    }
    return event.event === 'error' ? this.#fail(faultOfBody(chunk)) : this.#takeChunk(chunk);
  }

  takeDocument(text: string): ModelDelta[] {
    const document = parseJson(text);
    const first = Array.isArray(document) ? document[0] : document;
    if (!isRecord(first)) {
      return this.#breakOff(
        'INVALID_RESPONSE',
        `The provider sent no chat completion but ${textOf(text)}. Check baseURL.`,
      );
    }
    const deltas = this.#takeChunk(first);
    if (this.#state !== 'growing') return deltas;
    if (!Array.isArray(first.choices) || !isRecord(first.choices[0])) {
      return this.#breakOff(
        'INVALID_RESPONSE',
        `The provider sent JSON that is no chat completion: ${excerpt(text, 120)}. Check baseURL.`,
      );
    }
    this.#state = 'done'; // A document that parses is whole.
    return deltas;
  }

  isClosed(): boolean {
    return this.#state !== 'growing';
  }

  isFinished(): boolean {
    return this.#finishReason !== '';
  }

  partial(): PartialAnswer {
    return { content: this.#text, reasoning: this.#reasoning };
  }

  result(isCut: boolean): ReadingResult {
    if (typeof this.#state !== 'string') return { kind: 'broken', fault: this.#state.fault };
    if (this.#state === 'growing' && isCut) this.#state = 'cut';
    const broken = this.#brokenBy();
    if (broken !== null) {
      const [code, message] = broken;
      return { kind: 'broken', fault: { code, message, retryable: true } };
    }
    const opaque = this.#opaque.fields();
    const answer: ModelAnswer = {
      content: this.#text === '' ? null : this.#text,
      ...(this.#reasoning === '' ? {} : { reasoning: this.#reasoning }),
      toolCalls: this.#calls.calls(),
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...(this.#model === '' ? {} : { model: this.#model }),
      ...this.#finishReasonField(),
      ...(opaque === undefined ? {} : { opaque }),
    };
    return { kind: 'whole', answer };
  }

  /** Code and message (ANSWER-READER-3); null: it is an answer. An empty one that was cut for a reason is the turn's failure. */
  #brokenBy(): readonly [code: string, message: string] | null {
    const reason = finishReasonOf(this.#finishReason) ?? '';
    const known = BROKEN_BY[reason.toLowerCase().replace(/^.*: */, '')];
    if (known) return [known[0], `${known[1]} (${reason}). Try again, or choose another model.`];
    if (!this.isFinished() && (this.#state !== 'done' || this.#isEmpty())) {
      const message = this.#isEmpty()
        ? 'The provider ended its answer before it began. Try again; if it stays so, check baseURL and model.'
        : 'The provider ended its answer early. Post “continue” to get the rest.';
      return ['STREAM_BROKEN', message];
    }
    if (!this.#isEmpty() || cutBy(reason)) return null;
    return this.#state === 'cut'
      ? ['STREAM_BROKEN', 'The provider did not send its answer to the end. Try again.']
      : ['EMPTY_ANSWER', 'The answer of the model is empty. Try again, or choose another model.'];
  }

  /** Providers report a refusal with the reason `stop`. */
  #finishReasonField(): Pick<ModelAnswer, 'finishReason'> {
    if (this.#state === 'cut' && !cutBy(finishReasonOf(this.#finishReason)))
      return { finishReason: 'interrupted' };
    const isStop = this.#finishReason === '' || this.#finishReason === 'stop';
    if (this.#isRefusal && isStop) return { finishReason: 'refusal' };
    return this.#finishReason === '' ? {} : { finishReason: this.#finishReason };
  }

  #isEmpty(): boolean {
    return this.#text === '' && this.#reasoning === '' && this.#calls.calls().length === 0;
  }

  #fail(fault: Fault): ModelDelta[] {
    this.#state = this.isFinished() ? 'cut' : { fault };
    return [];
  }

  #breakOff(code: string, message: string): ModelDelta[] {
    return this.#fail({ code, message, retryable: code === 'STREAM_BROKEN' });
  }

  #takeChunk(chunk: JsonRecord): ModelDelta[] {
    if (chunk.error || chunk.object === 'error') return this.#fail(faultOfBody(chunk));
    this.#model = stringOf(chunk.model) || this.#model;
    this.#usage = usageOf(chunk.usage) ?? this.#usage;
    const choices: readonly unknown[] = Array.isArray(chunk.choices) ? chunk.choices : [];
    const choice = choices.find(isFirstChoice);
    if (choice === undefined) return [];
    const deltas = this.#takeChoice(choice);
    if (choice.error || choice.finish_reason === 'error') this.#fail(faultOfBody(choice));
    else this.#finishReason = stringOf(choice.finish_reason) || this.#finishReason;
    return deltas;
  }

  #takeChoice(choice: JsonRecord): ModelDelta[] {
    if (isRecord(choice.delta)) {
      this.#opaque.push(choice.delta, true);
      return this.#takeMessage(choice.delta);
    }
    if (!isRecord(choice.message)) return [];
    this.#opaque.push(choice.message, false);
    // A complete message. In the last chunk of a stream it repeats the deltas.
    if (this.#text === '' && this.#reasoning === '') return this.#takeMessage(choice.message);
    return this.#takeCalls(choice.message);
  }

  #takeMessage(message: JsonRecord): ModelDelta[] {
    if (!isContent(message.content)) {
      const seen = excerpt(JSON.stringify(message.content), 80);
      const wanted = 'a text or a list of parts was expected';
      return this.#breakOff('INVALID_RESPONSE', `The provider sent a content that is ${seen}: ${wanted}.`);
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
  end(): ModelDelta[] {
    const { text, reasoning } = this.#thinkTag.end();
    return [
      ...this.#add({ text, reasoning }),
      ...this.#add({ text: this.#wholeText.end(), reasoning: this.#wholeReasoning.end() }),
    ];
  }

  #add(split: Split): ModelDelta[] {
    const reasoning = this.#wholeReasoning.push(split.reasoning);
    const text = this.#wholeText.push(split.text);
    this.#reasoning += reasoning;
    this.#text += text;
    const deltas: ModelDelta[] = [];
    if (reasoning !== '') deltas.push({ type: 'reasoning', delta: reasoning });
    if (text !== '') deltas.push({ type: 'text', delta: text });
    return deltas;
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
  const { prompt_tokens_details: details } = usage;
  const completion = isCount(said) ? said : 0;
  // Servers that do not count report zero; no request is empty.
  if (!isCount(input) || (input === 0 && completion === 0)) return undefined;
  // Some providers leave the tokens of the reasoning out of the completion, and charge them.
  const output = isCount(total) ? Math.max(completion, total - input) : completion;
  const cached = isRecord(details) ? details.cached_tokens : undefined;
  return {
    inputTokens: input,
    ...(isCount(cached) ? { cachedInputTokens: Math.min(cached, input) } : {}),
    outputTokens: output,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
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
