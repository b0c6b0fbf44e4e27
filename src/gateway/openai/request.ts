import { z } from 'zod';
import { history } from '../../bus/contract.ts';
import { type BroughtTools, clientToolsSchema, openAiPart, readDataUrl } from '../../conversation/index.ts';
import { cut, type JsonRecord, ParleyError } from '../../kernel/index.ts';
import { conversationOf, digest } from '../client-ids.ts';
import { parsedBody, refusedField, unusedIn } from '../fields.ts';
import { referenceOf, type SentFile, type SentPart, sentFile } from '../files.ts';

/**
 * Reads a chat completion request as a message to a conversation.
 *
 * REQUEST-1  The last message, a user's, is posted. The ones before it are the history: they say which conversation is
 *            continued (`pick.ts`), and a new one begins with them.
 * REQUEST-2  Reasoning is not part of it. System messages are instructions of the caller: they follow its text in the post
 *            (`pick.ts`), as a quotation, so they come after the agent's own and mention no agent.
 * REQUEST-3  A setting that would change what the answer is, and cannot be honoured, is refused. Every other one, such as
 *            those of sampling, is the agents' own: it is not used, and named in a header of the answer. Keys of a part that
 *            name neither text nor file (`cache_control`, `detail`) are ignored.
 * REQUEST-5  Results of tools at the end answer the calls of the newest answer; nothing is posted. Before a message of the user they
 *            answer them too, and calls without one are answered as not answered.
 * REQUEST-4  A file of the history is a reference to its bytes in the text, so that the same history has the same text. A new
 *            conversation begins with those whose bytes are in the request (`sentPast`).
 */

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.unknown().optional(),
});

const answerForm = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({ schema: z.record(z.string(), z.unknown()) }),
  }),
]);

function schemaOf(form: z.infer<typeof answerForm> | null | undefined): JsonRecord | undefined {
  if (form?.type === 'json_object') return { type: 'object' };
  return form?.type === 'json_schema' ? form.json_schema.schema : undefined;
}

const chatTool = z.looseObject({
  type: z.literal('function', {
    error: 'only tools of the type function are taken: agents have their own others',
  }),
  function: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
    strict: z.boolean().nullish(),
  }),
});

const chatToolChoice = z.union(
  [
    z.enum(['auto', 'none', 'required']),
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
  ],
  { error: 'expected auto, none, required, or a function of `tools`' },
);

export const chatRequestSchema = z.looseObject({
  model: z.string(),
  messages: history(message).refine(({ length }) => length > 0, { error: 'expected a list of at least 1' }),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  metadata: z.looseObject({ conversation: z.string().nullish() }).nullish(),
  n: z.literal(1, { error: 'one answer is given' }).nullish(),
  tools: z.array(chatTool).nullish(),
  tool_choice: chatToolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: z
    .array(z.unknown())
    .max(0, { error: 'this form of tools is no longer taken: send `tools`' })
    .nullish(),
  response_format: answerForm.nullish(),
  modalities: z.array(z.literal('text', { error: 'agents answer in text' })).nullish(),
  audio: z.null({ error: 'agents answer in text' }).optional(),
  web_search_options: z.null({ error: 'agents have their own tools' }).optional(),
});

const KNOWN: ReadonlySet<string> = new Set(Object.keys(chatRequestSchema.shape));

/** One message before the last one. */
export type Past = Readonly<Record<string, unknown>> & {
  readonly role: 'user' | 'assistant' | 'tool' | 'function';
  readonly content: string | null;
  /** The content as it was sent. */
  readonly said: unknown;
  readonly fieldAt: FieldOfPart;
};

export interface ChatRequest {
  readonly model: string;
  /** Named by the client; null: found by the history. */
  readonly conversation: string | null;
  /** The author id of this caller's posts. */
  readonly author: string;
  /** The caller as one digest: the token's publisher and person, and the end user that the client names. */
  readonly caller: string;
  /** Part of the conversation's id, so that others cannot compute it. Not stored. */
  readonly secret: string;
  readonly history: readonly Past[];
  /** The field of the client's request for one of chat completions. */
  readonly fieldOf: Named;
  /** The last message; empty if results are the last ones. */
  readonly parts: readonly SentPart[];
  /** The same as one text, as it will be in the history of the next request (REQUEST-4). */
  readonly asked: string;
  /** The answer has this form; absent: any text. */
  readonly schema?: JsonRecord | undefined;
  /** REQUEST-2; empty: none. */
  readonly instructions: string;
  /** Results of the calls in the newest answer of the history, or at its end. */
  readonly results: readonly ChatResult[];
  /** The results are the last messages: they continue the turn, and nothing is posted. */
  readonly endsWithResults: boolean;
  /** The tools that the request brings, as fields of a post. */
  readonly brought: BroughtTools;
  /** Digest of the client's idempotency key, if any. */
  readonly key: string | null;
  /** The client marks this as a retry. */
  readonly isRetry: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** REQUEST-3: fields that were sent and are not used. */
  readonly unused: readonly string[];
  /** What else the post keeps about its request. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

interface RequestHeaders {
  readonly conversation: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** As OpenAI's clients count: `0` is the first attempt. */
  readonly retryCount: string | undefined;
}

/** Who asks. */
export interface Sender {
  readonly headers: RequestHeaders;
  /** The author id. */
  readonly publisher: string;
  /** The caller's digest (`Identity`). */
  readonly secret: string;
  /** The field of the client's request for one of this form; absent: the same. */
  readonly named?: Named;
}
type Named = (path: string) => string;

export function readChatRequest(body: unknown, from: Sender): ChatRequest {
  const { headers, publisher, secret, named: fieldOf = (path: string) => path } = from;
  const given = parsedBody(chatRequestSchema, body, fieldOf);
  const { model, messages, metadata, stream, stream_options } = given;
  const { user, safety_identifier: safety, prompt_cache_key: cacheKey } = given;
  const last = messages.at(-1);
  const endsWithResults = last?.role === 'tool';
  if (last?.role !== 'user' && !endsWithResults)
    throw refusedField('messages', 'the last message must be one of the user, or the result of a tool');
  const named = headers.conversation || metadata?.conversation;
  const caller = digest([publisher, user ?? null, safety ?? null, cacheKey ?? null]);
  return {
    model,
    conversation: named ? conversationOf(named) : null,
    author: publisher,
    caller,
    secret,
    fieldOf,
    history: messages.slice(0, -1).flatMap((one, at) => pastOf(one, contentAt(at, fieldOf))),
    parts: endsWithResults ? [] : partsOf(last.content, contentAt(messages.length - 1, fieldOf)),
    asked: endsWithResults ? '' : (shownText(last.content) ?? ''),
    results: resultsIn(messages, fieldOf),
    endsWithResults,
    brought: broughtBy(given, fieldOf),
    schema: schemaOf(given.response_format),
    instructions: messages.flatMap((one, at) => instructionOf(one, contentAt(at, fieldOf))).join('\n\n'),
    key: headers.idempotencyKey ? digest([secret, caller, headers.idempotencyKey]) : null,
    isRetry: Number(headers.retryCount ?? 0) > 0,
    stream: stream === true,
    includeUsage: stream_options?.include_usage === true,
    unused: unusedIn(given, KNOWN),
  };
}

const FIELDS_OF_POST: Readonly<Record<string, string>> = {
  schema: 'response_format.json_schema.schema',
  toolChoice: 'tool_choice',
};

/** An error; the refusal of a field of the post names the one that the client sent. */
export function asSent(error: unknown, { fieldOf }: ChatRequest): unknown {
  if (!(error instanceof ParleyError)) return error;
  const [, field, problem = ''] =
    /^field (schema|toolChoice|tools\.\d+\.\w+): (.*)$/s.exec(error.message) ?? [];
  if (field === undefined) return error;
  const path = FIELDS_OF_POST[field] ?? field.replace(/^(tools\.\d+)\./, '$1.function.');
  return refusedField(fieldOf(path), problem, error);
}

/** The field of a content, or of one of its parts. */
type FieldOfPart = (part?: number) => string;

const contentAt =
  (message: number, fieldOf: Named): FieldOfPart =>
  (part) =>
    fieldOf(`messages.${message}.content${part === undefined ? '' : `.${part}`}`);

/** What a tool of the caller gave. */
export interface ChatResult {
  readonly id: string;
  /** The field with the id. */
  readonly where: string;
  readonly parts: readonly SentPart[];
}

function resultsIn(messages: readonly z.infer<typeof message>[], fieldOf: Named): ChatResult[] {
  const answered = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.flatMap(({ role, content: said, tool_call_id: id }, at) => {
    if (role !== 'tool' || at < answered) return [];
    const where = fieldOf(`messages.${at}.tool_call_id`);
    if (typeof id !== 'string') throw refusedField(where, 'expected the id of a call');
    return [{ id, where, parts: partsOf(said ?? '', contentAt(at, fieldOf)) }];
  });
}

function broughtBy(
  { tools, tool_choice: choice, parallel_tool_calls: parallel }: z.infer<typeof chatRequestSchema>,
  fieldOf: Named,
): BroughtTools {
  const given = (tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? undefined,
    parameters: parameters ?? undefined,
  }));
  const brought = parsedBody(z.object({ tools: clientToolsSchema }), { tools: given }, (path) =>
    fieldOf(path.replace(/^(tools\.\d+)\./, '$1.function.')),
  ).tools;
  if (brought.length === 0 || choice === 'none') return {};
  const named = typeof choice === 'object' && choice ? { name: choice.function.name } : choice;
  return {
    tools: brought,
    ...(named && { toolChoice: named }),
    ...(parallel === false && { parallelToolCalls: parallel }),
  };
}

/** The digest ignores differences in line ends and parts. */
export function digestOf(history: readonly Past[]): string {
  const said = history.flatMap(({ role, content: words }) => {
    const plain = plainText(words ?? '');
    return plain === '' || role === 'tool' || role === 'function' ? [] : [[role, plain]];
  });
  return digest(said);
}

export function plainText(words: string): string {
  return words.replaceAll('\r\n', '\n').trim();
}

function instructionOf({ role, content: said }: z.infer<typeof message>, fieldAt: FieldOfPart): string[] {
  if (role !== 'system' && role !== 'developer') return [];
  if (Array.isArray(said) && said.some((part) => openAiPart(part).kind !== 'text'))
    throw refusedField(fieldAt(), `a message of the role ${role} has text only`);
  const words = plainText(shownText(said) ?? '');
  return words === '' ? [] : [words];
}

/** The content of the message that is posted. */
function partsOf(said: unknown, fieldAt: FieldOfPart): SentPart[] {
  if (typeof said === 'string') return [{ type: 'text', text: said }];
  if (!Array.isArray(said)) throw refusedField(fieldAt(), 'expected a text, or a list of parts');
  return said.map((given, at): SentPart => {
    const part = openAiPart(given);
    const where = fieldAt(at);
    if (part.kind === 'text') return { type: 'text', text: part.text };
    if (part.kind === 'file') return sentFile(part.url, { ...part, where });
    throw refusedField(where, `a part of the type ${cut(part.type, 40)} is not taken: ${part.reason}`);
  });
}

function pastOf({ role, content: said, ...more }: z.infer<typeof message>, fieldAt: FieldOfPart): Past[] {
  if (role === 'system' || role === 'developer') return [];
  return [{ ...more, role, content: shownText(said), said, fieldAt }];
}

/** A message of the history, with its files whose bytes are in the request (REQUEST-4). */
export function sentPast({ said, fieldAt, files: _, ...message }: Past) {
  const files: SentFile[] = [];
  const others = (Array.isArray(said) ? said : []).filter((given, at) => {
    const part = openAiPart(given);
    const isHere = part.kind === 'file' && readDataUrl(part.url) !== null;
    if (isHere) files.push(sentFile(part.url, { ...part, where: fieldAt(at) }));
    return !isHere;
  });
  return { message: files.length > 0 ? { ...message, content: shownText(others) } : message, files };
}

/** Content that is not text is replaced by its type (REQUEST-4). */
function shownText(said: unknown): string | null {
  if (said === null || said === undefined) return null;
  if (!Array.isArray(said)) return typeof said === 'string' ? said : '[left out: not text]';
  const parts = said.map((given) => {
    const part = openAiPart(given);
    if (part.kind === 'text') return part.text;
    return part.kind === 'file'
      ? `[left out: ${part.type} ${referenceOf(part.url)}]`
      : `[left out: ${cut(part.type, 40)}]`;
  });
  return parts.join('\n');
}
