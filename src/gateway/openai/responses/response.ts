import type { CallersCall, Usage } from '../../../conversation/index.ts';
import { asError } from '../../../kernel/index.ts';
import { callerCallId } from '../../client-ids.ts';
import { publicErrorOf } from '../../problem.ts';
import { stopping } from '../completions.ts';
import type { Said } from '../reply.ts';
import type { ResponseMeta } from './request.ts';

/**
 * A reply as an object of the Responses API, or as its events.
 *
 * RESPONSE-1 Its output is one message with the whole text of the reply, as chat completions have it, and after it the calls of the
 *    caller's tools.
 * RESPONSE-2 The events are those of the protocol, in its order; each has the next `sequence_number`.
 */

export interface ResponseFacts {
  readonly id: string;
  readonly conversation: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly meta: ResponseMeta;
}

/** What is known of the reply so far. */
export interface Outcome {
  readonly text: string;
  readonly calls: readonly CallersCall[];
  /** Null: it is not over. */
  readonly end: Exclude<Said, { kind: 'text' | 'calls' }> | null;
}

export const NOTHING_YET: Outcome = { text: '', calls: [], end: null };

/** Throws why there is none, if it ends without its outcome. */
export async function outcomeOf(reply: AsyncIterable<Said>): Promise<Outcome> {
  const said: Said[] = [];
  for await (const one of reply) said.push(one);
  const outcome = outcomeIn(said);
  if (outcome.end) return outcome;
  throw stopping();
}

export function outcomeIn(said: readonly Said[]): Outcome {
  return {
    text: said.map((one) => (one.kind === 'text' ? one.text : '')).join(''),
    calls: said.flatMap((one) => (one.kind === 'calls' ? one.calls : [])),
    end: said.find((one) => one.kind === 'end' || one.kind === 'failed') ?? null,
  };
}

export function responseOf(facts: ResponseFacts, { text, calls, end }: Outcome): object {
  const { id, conversation, model, created, meta } = facts;
  const status = statusOf(end);
  const failure = end?.kind === 'failed' ? end.refusal : null;
  const reason = status === 'incomplete' && end?.kind === 'end' ? incompleteness(end.reason) : null;
  return {
    id,
    object: 'response',
    created_at: created,
    status,
    background: meta.background === true,
    error: failure && { code: failure.code, message: `${failure.message}` },
    incomplete_details: reason && { reason },
    instructions: meta.instructions ?? null,
    max_output_tokens: null,
    model,
    output: [
      ...(text === '' && (!end || calls.length > 0) ? [] : [messageItem(id, text, status)]),
      ...calls.map(callItem),
    ],
    output_text: text,
    parallel_tool_calls: true,
    previous_response_id: meta.previous ?? null,
    conversation: { id: conversation },
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: end?.kind === 'end' && end.usage ? usageOf(end.usage) : null,
    user: null,
    metadata: meta.metadata ?? {},
  };
}

function statusOf(end: Outcome['end']): string {
  if (!end) return 'in_progress';
  if (end.kind === 'failed') return end.refusal.code === 'AGENT_STOPPED' ? 'cancelled' : 'failed';
  if (end.isStopped) return 'cancelled';
  return end.reason === 'stop' || end.reason === 'tool_calls' ? 'completed' : 'incomplete';
}

function incompleteness(reason: string): string {
  return reason === 'content_filter' ? reason : 'max_output_tokens';
}

const messageId = (response: string): string => response.replace(/^resp_/, 'msg_');

function messageItem(response: string, text: string, status: string): object {
  return {
    id: messageId(response),
    type: 'message',
    role: 'assistant',
    status: status === 'completed' || status === 'in_progress' ? status : 'incomplete',
    content: [textPart(text)],
  };
}

function callItem({ asked, place, tool: name, arguments: given }: CallersCall) {
  const id = callerCallId(asked, place.position);
  return {
    id: `fc_${id}`,
    type: 'function_call',
    status: 'completed',
    call_id: id,
    name,
    arguments: given,
  };
}

function textPart(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function usageOf({ inputTokens, cachedInputTokens = 0, outputTokens, reasoningTokens = 0 }: Usage): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

/** RESPONSE-2. `onFault`: called with bugs. */
export async function* responseFrames(
  facts: ResponseFacts,
  reply: AsyncIterable<Said>,
  onFault: (error: unknown) => void,
): AsyncGenerator<string> {
  let number = 0;
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...more })}\n\n`;
  const item = { item_id: messageId(facts.id), output_index: 0, content_index: 0 };
  const begin = responseOf(facts, NOTHING_YET);
  yield event('response.created', { response: begin }) + event('response.in_progress', { response: begin });
  let text = '';
  let calls: readonly CallersCall[] = [];
  let isOpen = false;
  const opened = () => {
    isOpen = true;
    const message = { ...messageItem(facts.id, '', 'in_progress'), content: [] };
    return (
      event('response.output_item.added', { output_index: 0, item: message }) +
      event('response.content_part.added', { ...item, part: textPart('') })
    );
  };
  const finished = (end: Outcome['end']) => {
    const message = messageItem(facts.id, text, statusOf(end));
    return (
      event('response.output_text.done', { ...item, text, logprobs: [] }) +
      event('response.content_part.done', { ...item, part: textPart(text) }) +
      event('response.output_item.done', { output_index: 0, item: message })
    );
  };
  const called = () =>
    calls.map((call, at) => {
      const done = callItem(call);
      const place = { item_id: done.id, output_index: (isOpen ? 1 : 0) + at };
      const { output_index } = place;
      return (
        event('response.output_item.added', {
          output_index,
          item: { ...done, status: 'in_progress', arguments: '' },
        }) +
        event('response.function_call_arguments.delta', { ...place, delta: done.arguments }) +
        event('response.function_call_arguments.done', {
          ...place,
          name: done.name,
          arguments: done.arguments,
        }) +
        event('response.output_item.done', { output_index, item: done })
      );
    });
  try {
    for await (const said of reply) {
      if (said.kind === 'failed') throw asError(said.refusal);
      if (said.kind === 'calls') {
        calls = said.calls;
        continue;
      }
      const head = isOpen || (said.kind === 'end' && calls.length > 0) ? '' : opened();
      if (said.kind === 'text') {
        text += said.text;
        yield head + event('response.output_text.delta', { ...item, delta: said.text, logprobs: [] });
        continue;
      }
      const response = responseOf(facts, { text, calls, end: said });
      const type = statusOf(said) === 'completed' ? 'response.completed' : 'response.incomplete';
      yield head + (isOpen ? finished(said) : '') + called().join('') + event(type, { response });
      return;
    }
    throw stopping();
  } catch (error) {
    const end = { kind: 'failed' as const, refusal: publicErrorOf(error, onFault) };
    const response = responseOf(facts, { text, calls: [], end });
    yield (isOpen ? finished(end) : '') + event('response.failed', { response });
  }
}
