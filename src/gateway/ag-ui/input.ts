import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

/**
 * What of a `RunAgentInput` matters here.
 *
 * I1 The log has the history: of the messages, those of the user behind all others are posted, under their ids. If there
 *    are none, the last one of the user is: it is in the log already, and what came of it is told again.
 * I2 Tools, context and state of the application are not used: agents have their own.
 */

const textPart = z.looseObject({ type: z.literal('text'), text: z.string() });
const content = z.union([z.string(), z.array(textPart)], { error: 'only text is taken' });
const id = z.string().min(1).max(256);

export const runInputSchema = z.looseObject({
  threadId: z.string().regex(NAME_PATTERN, { error: 'expected 1 to 128 letters, digits, _ or -' }),
  runId: id,
  parentRunId: z.string().nullish(),
  messages: z.array(z.looseObject({ id: z.string(), role: z.string(), content: z.unknown().optional() })),
  resume: z
    .array(
      z.looseObject({
        interruptId: id,
        status: z.enum(['resolved', 'cancelled']),
        payload: z.unknown().optional(),
      }),
    )
    .nullish(),
});

export interface RunInput {
  readonly threadId: string;
  readonly runId: string;
  readonly parentRunId: string | undefined;
  /** I1 */
  readonly posts: readonly { readonly id: string; readonly content: string }[];
  readonly resume: readonly Resume[];
  /** Ids of the messages that the application has. */
  readonly known: readonly string[];
}

export interface Resume {
  readonly interruptId: string;
  readonly status: 'resolved' | 'cancelled';
  readonly payload?: unknown;
}

export function readRunInput(body: unknown): RunInput {
  const parsed = runInputSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(issue?.path.join('.') ?? '', issue?.message ?? 'not understood');
  }
  const { threadId, runId, parentRunId, messages, resume } = parsed.data;
  const isSaid = ({ role }: { role: string }) =>
    role !== 'system' && role !== 'developer' && role !== 'activity';
  const said = messages.filter(isSaid);
  const fresh = said.slice(said.findLastIndex(({ role }) => role !== 'user') + 1);
  const again = resume?.length ? [] : said.filter(({ role }) => role === 'user').slice(-1);
  return {
    threadId,
    runId,
    parentRunId: parentRunId ?? undefined,
    posts: (fresh.length > 0 ? fresh : again).map((message) => ({
      id: message.id,
      content: textOf(message),
    })),
    resume: resume ?? [],
    known: said.map((message) => message.id),
  };
}

function textOf(message: { readonly id: string; readonly content?: unknown }): string {
  const parsed = content.safeParse(message.content);
  if (!parsed.success) throw invalid(`message ${message.id}`, 'only text is taken');
  return typeof parsed.data === 'string' ? parsed.data : parsed.data.map((part) => part.text).join('\n');
}

export function invalid(where: string, message: string): ParleyError {
  return new ParleyError('BAD_REQUEST', where === '' ? message : `${where}: ${message}`, {
    hint: 'docs/interop.md says what is taken',
  });
}
