import { z } from 'zod';
import { history } from '../../bus/contract.ts';
import { cut } from '../../kernel/index.ts';
import { conversationOf, digest } from '../conversation-id.ts';
import { contentOf, isEmpty, parsedBody, refusedField, textPart } from '../fields.ts';

/**
 * Reads a chat completion request as a message to a conversation.
 *
 * REQUEST-1  The last message, a user's, is posted. The ones before it are the history: they say which conversation is
 *            continued (`pick.ts`), and a new one begins with them.
 * REQUEST-2  Reasoning is not part of it. System messages are instructions of the caller: they follow its text in the post
 *            (`pick.ts`), as a quotation, so they come after the agent's own and mention no agent.
 * REQUEST-3  A setting that would change what the answer is, and cannot be honoured, is refused. Every other one, such as
 *            those of sampling, is the agents' own: it is not used, and named in a header of the answer. Keys of a text part
 *            but its text (`cache_control`) are ignored.
 */

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.unknown().optional(),
});

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
  tools: z.array(z.unknown()).max(0, { error: 'agents have their own tools' }).nullish(),
  functions: z.array(z.unknown()).max(0, { error: 'agents have their own tools' }).nullish(),
  response_format: z.looseObject({ type: z.literal('text', { error: 'agents answer in text' }) }).nullish(),
  modalities: z.array(z.literal('text', { error: 'agents answer in text' })).nullish(),
  audio: z.null({ error: 'agents answer in text' }).optional(),
  web_search_options: z.null({ error: 'agents have their own tools' }).optional(),
});

const KNOWN: ReadonlySet<string> = new Set(Object.keys(chatRequestSchema.shape));

/** One message before the last one. */
export type Past = Readonly<Record<string, unknown>> & {
  readonly role: 'user' | 'assistant' | 'tool' | 'function';
  readonly content: string | null;
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
  readonly content: string;
  /** REQUEST-2; empty: none. */
  readonly instructions: string;
  /** Digest of the client's idempotency key, if any. */
  readonly key: string | null;
  /** The client marks this as a retry. */
  readonly isRetry: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** REQUEST-3: fields that were sent and are not used. */
  readonly unused: readonly string[];
}

export interface RequestHeaders {
  readonly conversation: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** As OpenAI's clients count: `0` is the first attempt. */
  readonly retryCount: string | undefined;
}

export function readChatRequest(
  body: unknown,
  from: { readonly headers: RequestHeaders; readonly publisher: string; readonly secret: string },
): ChatRequest {
  const { headers, publisher, secret } = from;
  const given = parsedBody(chatRequestSchema, body);
  const { model, messages, metadata, stream, stream_options } = given;
  const { user, safety_identifier: safety, prompt_cache_key: cacheKey } = given;
  const last = messages.at(-1);
  if (last?.role !== 'user') throw refusedField('messages', 'the last message must be one of the user');
  const named = headers.conversation || metadata?.conversation;
  const caller = digest([publisher, user ?? null, safety ?? null, cacheKey ?? null]);
  return {
    model,
    conversation: named ? conversationOf(named) : null,
    author: publisher,
    caller,
    secret,
    history: messages.slice(0, -1).flatMap(pastOf),
    content: contentOf(last.content, `messages.${messages.length - 1}.content`),
    instructions: messages.flatMap(instructionOf).join('\n\n'),
    key: headers.idempotencyKey ? digest([secret, caller, headers.idempotencyKey]) : null,
    isRetry: Number(headers.retryCount ?? 0) > 0,
    stream: stream === true,
    includeUsage: stream_options?.include_usage === true,
    unused: Object.entries(given).flatMap(([name, value]) =>
      KNOWN.has(name) || isEmpty(value) ? [] : [name],
    ),
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

function instructionOf({ role, content: said }: z.infer<typeof message>): string[] {
  const words = role === 'system' || role === 'developer' ? plainText(shownText(said) ?? '') : '';
  return words === '' ? [] : [words];
}

function pastOf({ role, content: said, ...more }: z.infer<typeof message>): Past[] {
  if (role === 'system' || role === 'developer') return [];
  return [{ ...more, role, content: shownText(said) }];
}

/** Content that is not text is replaced by its type. */
function shownText(said: unknown): string | null {
  if (said === null || said === undefined) return null;
  if (!Array.isArray(said)) return typeof said === 'string' ? said : '[left out: not text]';
  const parts = said.map((part) => {
    const found = z.union([textPart, z.looseObject({ refusal: z.string() })]).safeParse(part);
    if (found.success) return 'text' in found.data ? String(found.data.text) : String(found.data.refusal);
    const type = part !== null && typeof part === 'object' && 'type' in part ? String(part.type) : 'not text';
    return `[left out: ${cut(type, 40)}]`;
  });
  return parts.join('\n');
}
