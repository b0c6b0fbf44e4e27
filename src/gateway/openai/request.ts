import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ParleyError } from '../../kernel/index.ts';

/**
 * What of a chat completion is a message to a conversation.
 *
 * K1 The log has the history: of the messages only the last one, a user's, is posted.
 * K2 The same request again is the same post: its id is made of the conversation, the number of user messages and the
 *    text of the new one.
 * K3 Without a header, the conversation follows from the publisher, or the person whose token it is, `user`, and the
 *    messages up to the first of a user: they stay the same for as long as a client goes on with a chat.
 * K4 What would change the answer and cannot be honoured is refused. Settings of sampling are the agents' own: ignored.
 */

const text = z.strictObject({ type: z.literal('text'), text: z.string() });
const content = z.union([z.string(), z.array(text)], { error: 'only text is taken' });
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.unknown(),
});

export const chatRequestSchema = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  user: z.string().nullish(),
  n: z.literal(1, { error: 'one answer is given' }).nullish(),
  tools: z.array(z.unknown()).max(0, { error: 'agents have their own tools' }).nullish(),
  functions: z.array(z.unknown()).max(0, { error: 'agents have their own tools' }).nullish(),
  response_format: z.looseObject({ type: z.literal('text', { error: 'agents answer in text' }) }).nullish(),
  modalities: z.array(z.literal('text', { error: 'agents answer in text' })).nullish(),
});

export interface ChatRequest {
  readonly model: string;
  readonly conversation: string;
  readonly postId: string;
  readonly content: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export function readChatRequest(
  body: unknown,
  { header, publisher }: { header: string | undefined; publisher: string },
): ChatRequest {
  const parsed = chatRequestSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(issue?.path.join('.') ?? '', issue?.message ?? 'not understood');
  }
  const { model, messages, stream, stream_options, user } = parsed.data;
  const last = messages.at(-1);
  if (last?.role !== 'user') throw invalid('messages', 'the last message must be one of the user'); // K1
  const said = textOf(last.content, `messages.${messages.length - 1}.content`);
  const users = messages.filter(({ role }) => role === 'user');
  const first = messages.slice(0, messages.findIndex(({ role }) => role === 'user') + 1);
  const opening = first.map(({ role, content: words }) => [role, words]);
  const conversation = header || `chat-${digest([publisher, user ?? null, opening])}`; // K3
  return {
    model,
    conversation,
    postId: `chat-${digest([conversation, users.length, said])}`, // K2
    content: said,
    stream: stream === true,
    includeUsage: stream_options?.include_usage === true,
  };
}

function textOf(value: unknown, where: string): string {
  const parsed = content.safeParse(value);
  if (!parsed.success) throw invalid(where, 'only text is taken'); // K4
  return typeof parsed.data === 'string' ? parsed.data : parsed.data.map((part) => part.text).join('\n');
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);
}

function invalid(where: string, message: string): ParleyError {
  return new ParleyError('BAD_REQUEST', where === '' ? message : `${where}: ${message}`, {
    hint: 'docs/interop.md says what is taken',
  });
}
