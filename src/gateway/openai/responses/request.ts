import { z } from 'zod';
import { history } from '../../../bus/contract.ts';
import { openAiPart } from '../../../conversation/index.ts';
import { cut, isRecord } from '../../../kernel/index.ts';
import { isEmpty, parsedBody, refusedField, unusedIn } from '../../fields.ts';
import { type ChatRequest, readChatRequest, type Sender } from '../request.ts';

/**
 * Reads a request of the Responses API as one of chat completions, which has the same words.
 *
 * RESPONSES-REQUEST-1 The user's messages at the end of `input` are one post; results of calls there continue their turn. What is before
 *    them is the history.
 * RESPONSES-REQUEST-2 After an earlier response or in a named conversation, the history is in the log: `input` is only what is new.
 *    So does a reference to the answer of an earlier response, before the user's messages: what it follows is in the log.
 * RESPONSES-REQUEST-3 Everything is stored, because the log is the memory of the agents: `store: false` is refused.
 */

const item = z.looseObject({
  type: z.string().optional(),
  role: z.string().optional(),
  content: z.unknown().optional(),
});
type Item = z.infer<typeof item>;

const tool = z.looseObject({
  type: z.literal('function', {
    error: 'only tools of the type function are taken: agents have their own others',
  }),
});
const toolChoice = z.union(
  [z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.literal('function'), name: z.string() })],
  { error: 'expected auto, none, required, or a function of `tools`' },
);

export const responseRequestSchema = z.looseObject({
  model: z.string(),
  prompt: z.null({ error: 'there are no stored prompts: send `instructions` and `input`' }).optional(),
  input: z.union([z.string(), history(item)], { error: 'expected a text, or a list of items' }),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.union([z.string(), z.looseObject({ id: z.string() })]).nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  store: z
    .literal(true, { error: 'the log is the memory of the agents, so that every response is stored' })
    .nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  context_management: z.null({ error: 'agents reduce their own context' }).optional(),
});

const KNOWN: ReadonlySet<string> = new Set(Object.keys(responseRequestSchema.shape));

/** What the response says about its request. */
export interface ResponseMeta {
  readonly background?: true;
  readonly previous?: string;
  readonly instructions?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ResponseRequest {
  readonly chat: ChatRequest;
  /** The response that is continued, or an item of its output; null: none. */
  readonly previous: string | null;
  readonly meta: ResponseMeta;
}

export function readResponseRequest(body: unknown, from: Sender): ResponseRequest {
  const given = parsedBody(responseRequestSchema, body);
  const { model, input, instructions, previous_response_id: previous, conversation, metadata } = given;
  if (previous && conversation)
    throw refusedField('previous_response_id', 'name it or `conversation`, not both');
  const named = typeof conversation === 'string' ? conversation : conversation?.id;
  const { referred, items, instructed } = withoutReferences(input);
  const messages = messagesOf(items);
  const isNamed = Boolean(previous || named || from.headers.conversation);
  if ((isNamed || referred) && messages.some(({ role }) => role !== 'user' && role !== 'tool'))
    throw refusedField('input', 'the history is in the log: send only new messages of the user and results');
  const own = instructions ? [message('system', instructions, 'instructions')] : [];
  const all = [...own, ...instructed, ...messages];
  const { user, safety_identifier, prompt_cache_key, stream } = given;
  const chat = readChatRequest(
    {
      messages: all.map(({ fields: _, ...said }) => said),
      model,
      stream,
      user,
      safety_identifier,
      prompt_cache_key,
      ...(named && { metadata: { conversation: named } }),
      tools: given.tools?.map(({ type, ...described }) => ({ type, function: described })),
      tool_choice: choiceOf(given.tool_choice),
      parallel_tool_calls: given.parallel_tool_calls,
      response_format: formatOf(given.text?.format),
    },
    { ...from, named: (path) => namedIn(all, path) },
  );
  return {
    chat: { ...chat, unused: unusedIn(given, KNOWN) },
    previous: previous || (isNamed ? null : referred),
    meta: {
      ...(given.background && { background: true }),
      ...(previous && { previous }),
      ...(instructions && { instructions }),
      ...(metadata && !isEmpty(metadata) && { metadata }),
    },
  };
}

function choiceOf(choice: z.infer<typeof toolChoice> | null | undefined): unknown {
  return typeof choice === 'object' && choice
    ? { type: 'function', function: { name: choice.name } }
    : choice;
}

function formatOf(format: { readonly type: string } | null | undefined): unknown {
  if (format?.type !== 'json_schema') return format;
  const { type, ...schema } = format;
  return { type, json_schema: schema };
}

interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  /** The field with the id of its call, and that of each part of its content, or of the whole. */
  readonly fields: readonly [of: string, ...content: string[]];
  readonly [more: string]: unknown;
}

/** The field of the request for one in the form of chat completions. */
function namedIn(messages: readonly ChatMessage[], path: string): string {
  const [, message, of, part = 0] = /^messages\.(\d+)(?:\.(\w+)(?:\.(\d+))?)?/.exec(path) ?? [];
  const [call = 'input', ...content] = messages[Number(message)]?.fields ?? [];
  if (message !== undefined) return of === 'content' ? (content[Number(part)] ?? 'input') : call;
  return path
    .replace(/^response_format\.(json_schema\.)?/, 'text.format.')
    .replace(/^(tools\.\d+|tool_choice)\.function\./, '$1.')
    .replace(/^messages$/, 'input');
}

interface Sent {
  /** The answer that the messages follow; null: none. */
  readonly referred: string | null;
  readonly items: string | readonly (readonly [Item, where: string])[];
  /** Instructions before a reference. */
  readonly instructed: readonly ChatMessage[];
}

/** RESPONSES-REQUEST-2. Results find their turn by the ids of their calls: what was said before them is not needed. */
function withoutReferences(input: string | readonly Item[]): Sent {
  if (typeof input === 'string') return { referred: null, items: input, instructed: [] };
  const placed = input.map((one, at) => [one, `input.${at}`] as const);
  const isReference = ([{ type, role, id }]: (typeof placed)[number]) =>
    (type ?? role ?? 'item_reference') === 'item_reference' && /^(msg|fc|rs)_/.test(String(id));
  const items = placed.filter((one) => !isReference(one));
  const end = placed.findLastIndex((one) => isReference(one) && String(one[0].id).startsWith('msg_'));
  if (end === -1 || input.at(-1)?.type === 'function_call_output')
    return { referred: null, items, instructed: [] };
  return {
    referred: String(input[end]?.id),
    items: placed.slice(end + 1).filter((one) => !isReference(one)),
    instructed: placed
      .slice(0, end)
      .filter(([{ role }]) => role === 'system' || role === 'developer')
      .flatMap(([one, where]) => messageOf(one, where)),
  };
}

function messagesOf(input: Sent['items']): ChatMessage[] {
  if (typeof input === 'string') return [message('user', input, 'input')];
  const messages = input.flatMap(([one, where]) => messageOf(one, where));
  const end = messages.findLastIndex(({ role }) => role !== 'user') + 1;
  const [last, ...others] = messages.slice(end);
  if (!last && messages.at(-1)?.role === 'tool') return messages;
  if (!last)
    throw refusedField('input', 'the last item must be a message of the user, or a result of a call');
  if (others.length === 0) return messages;
  const content = [last, ...others].flatMap(({ content: parts }) => parts as unknown[]);
  const fields = [last, ...others].flatMap(({ fields: [, ...ofParts] }) => ofParts);
  return [...messages.slice(0, end), { role: 'user', content, fields: ['input', ...fields] }];
}

/** What has no place in a conversation is refused by its type; what the model of the caller thought is left out. */
function messageOf(given: Item, where: string): ChatMessage[] {
  const { type = 'message', role = '', content } = given;
  if (type === 'reasoning') return [];
  if (type === 'function_call') {
    const { call_id: id, name, arguments: called } = given;
    const call = { id, type: 'function', function: { name, arguments: called } };
    return [{ ...message('assistant', null, where), tool_calls: [call] }];
  }
  if (type === 'function_call_output') {
    const { call_id, output } = given;
    const parts = Array.isArray(output)
      ? output.map((part, at) => partOf(part, `${where}.output.${at}`))
      : output;
    return [{ ...message('tool', parts, `${where}.output`, `${where}.call_id`), tool_call_id: call_id }];
  }
  if (type !== 'message')
    throw refusedField(where, `an item of the type ${cut(type, 40)} is not taken: expected a message`);
  if (!['user', 'assistant', 'system', 'developer'].includes(role))
    throw refusedField(`${where}.role`, 'expected user, assistant, system or developer');
  if (typeof content === 'string')
    return [message(role, [{ type: 'text', text: content }], `${where}.content`)];
  if (!Array.isArray(content)) throw refusedField(`${where}.content`, 'expected a text, or a list of parts');
  const parts = content.map((part, at) => partOf(part, `${where}.content.${at}`));
  return [message(role, parts, `${where}.content`)];
}

/** `field`: of its content. */
function message(role: string, content: unknown, field: string, call = field): ChatMessage {
  const fields = Array.isArray(content) ? content.map((_, at) => `${field}.${at}`) : [field];
  return { role, content, fields: [call, ...fields] };
}

/** A part in the form of chat completions. */
function partOf(given: unknown, where: string): unknown {
  if (isRecord(given) && given.type === 'input_file') {
    const { filename, file_data, file_url, file_id } = given;
    return partOf({ type: 'file', file: { filename, file_data: file_data ?? file_url, file_id } }, where);
  }
  if (isRecord(given) && given.type === 'input_image' && given.image_url == null && given.file_id != null)
    throw refusedField(where, 'file_id names a file of another service: send a data URL as image_url');
  const part = openAiPart(given);
  if (part.kind === 'text') return { type: 'text', text: part.text };
  if (part.kind === 'other')
    throw refusedField(where, `a part of the type ${cut(part.type, 40)} is not taken: ${part.reason}`);
  return given;
}
