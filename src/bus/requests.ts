import { z } from 'zod';
import { modeSchema, NAME_PATTERN } from '../conversation/index.ts';
import { fieldFault, hasVisible, ParleyError } from '../kernel/index.ts';
import { postShape, slugShape } from './post.ts';

/** What each endpoint of the request API takes (docs/spec/wire.md), `post` apart: `decodePost` reads that. */

const conversation = z.string().regex(NAME_PATTERN, { error: 'expected 1 to 128 letters, digits, _ or -' });
const index = z.int().nonnegative();
const publisher = z
  .string()
  .regex(NAME_PATTERN, { error: 'expected 1 to 128 letters, digits, _ or -' })
  .optional();
/** Who it is: a publisher, or a person at it. */
const actor = { publisher, author: postShape.shape.author };

const shapes = {
  entries: z.strictObject({ conversation, from: index.optional(), limit: z.int().positive().optional() }),
  conversation: z.strictObject({ conversation }),
  conversations: z.strictObject({ after: z.string().nullish(), limit: z.int().positive().optional() }),
  view: z.strictObject({ conversation, agent: slugShape, at: index.optional() }),
  /** `lastEntryBefore`: deletes nothing unless the newest entry is older, and nothing is under way. */
  delete: z.strictObject({ conversation, lastEntryBefore: z.iso.datetime().optional() }),
  phase: z.strictObject({ conversation, phase: z.string(), reason: z.string().optional(), ...actor }),
  mode: z.strictObject({
    conversation,
    mode: modeSchema,
    agent: slugShape.optional(),
    workflow: z.string().optional(),
    /** The message that a run begins with. */
    input: z.string().refine(hasVisible, { error: 'expected at least one visible character' }).optional(),
    ...actor,
  }),
  /** What was said elsewhere, oldest first: a conversation without messages begins with it. */
  seed: z
    .strictObject({
      conversation,
      /** Empty: `post` is checked, and nothing is kept. */
      messages: z.array(z.looseObject({ role: z.string() })),
      /** Whose words those of assistants are. */
      agent: slugShape.optional(),
      /** The post that follows, as `post` takes it: if it would be refused, so is this, and nothing is kept. */
      post: z.looseObject({}).optional(),
      ...actor,
    })
    .refine(({ messages, post }) => messages.length > 0 || post !== undefined, {
      error: 'expected at least one message, or a post to check',
      path: ['messages'],
    }),
  stop: z.strictObject({ conversation, agent: slugShape.nullish(), ...actor }),
  resume: z.strictObject({
    conversation,
    agent: slugShape.nullish(),
    /** Only if this entry is the newest stop. */
    stop: index.optional(),
    ...actor,
  }),
  approvals: z.strictObject({ conversation: conversation.optional() }),
  answer: z.strictObject({
    approvalId: z.string(),
    answer: z.enum(['approve', 'deny', 'rerun', 'result', 'failed']),
    reason: z.string().optional(),
    /** With `result`: what the call gave; text, or JSON that is kept as text. */
    result: z.unknown().optional(),
    ...actor,
  }),
  dead: z.strictObject({
    publisher,
    conversation: conversation.optional(),
    code: z.string().optional(),
    before: z.int().positive().optional(),
    limit: z.int().positive().optional(),
  }),
  'dead-letter': z.strictObject({ sequence: z.int().positive() }),
  'dead-retry': z.strictObject({ sequence: z.int().positive() }),
  agents: z.strictObject({}),
  tools: z.strictObject({}),
  phases: z.strictObject({}),
  workflows: z.strictObject({}),
};
type Shapes = typeof shapes;
/** The body of a request, by endpoint. */
export type ApiBodies = { readonly [E in keyof Shapes]: z.infer<Shapes[E]> };

/** What each endpoint takes, for whoever describes it; `post` is read by `decodePost`, in the same shape. */
export const REQUEST_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  ...shapes,
  post: postShape.extend({ conversation, publisher }),
};

export const ENDPOINTS = ['post', ...Object.keys(shapes)];

/** The verbs that act as a publisher: whose name may end their subject, so that a server's permissions can bind it. */
export const PUBLISHER_VERBS: ReadonlySet<string> = new Set(['post', 'answer']);

/** Of these, the verbs whose subject may name the conversation too: `parley.api.post.<publisher>.<conversation>`. */
export const CONVERSATION_VERBS: ReadonlySet<string> = new Set(['post']);

/** The verbs that change nothing when they come twice: those that only look, a post (known by its id) and a seed (by its messages). */
export const REPEATABLE_VERBS: ReadonlySet<string> = new Set([
  ...['post', 'seed', 'entries', 'conversation', 'conversations', 'view', 'approvals', 'dead', 'dead-letter'],
  ...['agents', 'tools', 'phases', 'workflows'],
]);

/** Throws `BAD_REQUEST`, naming the field and what was expected. */
export function parseRequest<E extends keyof Shapes>(endpoint: E, body: unknown): ApiBodies[E] {
  const parsed = shapes[endpoint].safeParse(body);
  if (parsed.success) return parsed.data as ApiBodies[E];
  const [issue] = parsed.error.issues;
  const fault = issue ? fieldFault(issue, body) : 'not understood';
  throw new ParleyError('BAD_REQUEST', `${endpoint}: ${fault}`, {
    hint: `${endpoint} takes ${Object.keys(shapes[endpoint].shape).join(', ') || 'an empty object'}`,
  });
}
