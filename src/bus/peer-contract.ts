import { z } from 'zod';
import { deliveryModeSchema, type LiveChunk, type Part, partSchema } from '../conversation/index.ts';
import { fieldFault, ParleyError } from '../kernel/index.ts';
import type { ApiAnswer, ApiRequest } from './port.ts';
import { postShape } from './post.ts';
import { agentChunkShape } from './remote-turns.ts';

/**
 * Messages between daemons: request and answer of each verb (`parley.control.<daemon>.<verb>`).
 *
 * PEER-CONTRACT-1 A message is checked before it is used. An invalid one is refused with its fault, and changes nothing.
 * PEER-CONTRACT-2 Daemons of several versions work together: unknown fields are ignored, and a field that is newer than the
 *    first version is optional.
 */

const position = { stream: z.string(), sequence: z.number() };
const refusalShape = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  retryAfter: z.number().optional(),
});
const request: z.ZodType<Omit<ApiRequest, 'body'> & { readonly body?: unknown }> = z.object({
  endpoint: z.string(),
  publisher: z.string().nullable(),
  name: z.string().nullish(),
  mayOperate: z.boolean().optional(),
  traceparent: z.string().optional(),
  body: z.unknown().optional(),
  upTo: z.object(position).optional(),
  origin: z.number().nullable().optional(),
});
// Casts of answers: JSON leaves out undefined fields, so zod types them as optional.
const apiAnswer = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), body: z.unknown().optional() }),
  z.object({ ok: z.literal(false), refusal: refusalShape }),
]) as unknown as z.ZodType<ApiAnswer>;
const none = z.void();

const PEER_CONTRACT = {
  /** To all, at intervals. `fingerprint`: digests of the configuration. */
  alive: {
    request: z.object({
      daemon: z.string(),
      isNew: z.boolean().optional(),
      fingerprint: z.unknown().optional(),
    }),
    answer: none,
  },
  left: { request: z.object({ daemon: z.string() }), answer: none },
  /** Is it connected? */
  probe: { request: z.object({}), answer: z.object({}) },
  /**
   * A post of the ingress stream, from the daemon that reads it, decoded and admitted. Answered when it is durable, refused or
   * void (`done`). `failed`: it may be sent again. Null: the daemon does not work on that conversation.
   */
  post: {
    request: z.object({
      conversation: z.string(),
      publisher: z.string(),
      position: z.object(position),
      post: postShape.omit({ claudeSessionId: true }).extend({
        id: z.string(),
        content: z.string(),
        parts: (z.array(partSchema) as z.ZodType<readonly Part[]>).optional(),
        delivery: deliveryModeSchema,
        author: z.object({ id: z.string(), name: z.string() }),
        setsSession: z.literal(true).optional(),
      }),
    }),
    answer: z.object({
      outcome: z
        .discriminatedUnion('kind', [
          z.object({ kind: z.literal('done'), isAtWork: z.boolean().optional() }),
          z.object({ kind: z.literal('refused'), refusal: refusalShape }),
          z.object({ kind: z.literal('failed'), refusal: refusalShape }),
        ])
        .nullable(),
    }),
  },
  /** Which of these conversations it has open. */
  holds: {
    request: z.object({ conversations: z.array(z.string()) }),
    answer: z.object({ held: z.array(z.string()) }),
  },
  released: {
    request: z.object({
      conversation: z.string(),
      claim: z.object({ daemon: z.string(), epoch: z.number() }),
    }),
    answer: none,
  },
  /** A request of the request API. Null: it does not work on that conversation. */
  api: {
    request: z.object({ conversation: z.string().nullable(), request }),
    answer: z.object({ answer: apiAnswer.nullable() }),
  },
  /** The text so far of the model calls that it runs for this conversation. */
  texts: {
    request: z.object({ conversation: z.string() }),
    answer: z.object({
      texts: z.array(
        z.object({ agent: z.string(), chunk: agentChunkShape.extend({ from: z.number().optional() }) }),
      ),
    }) as z.ZodType<{
      readonly texts: readonly { readonly agent: string; readonly chunk: LiveChunk }[];
    }>,
  },
} satisfies Record<string, { readonly request: z.ZodType; readonly answer: z.ZodType }>;

export type PeerVerb = keyof typeof PEER_CONTRACT;
export type PeerRequestOf<V extends PeerVerb> = z.output<(typeof PEER_CONTRACT)[V]['request']>;
export type PeerAnswerOf<V extends PeerVerb> = z.output<(typeof PEER_CONTRACT)[V]['answer']>;
export type PeerHandlers = {
  readonly [V in PeerVerb]: (request: PeerRequestOf<V>) => PeerAnswerOf<V> | Promise<PeerAnswerOf<V>>;
};

const invalid = z.object({ invalid: z.string() });

/** Checks a message and has it handled. Throws `BAD_REQUEST` (PEER-CONTRACT-1); `invalidAnswer` is then the answer. */
export async function handlePeerMessage<V extends PeerVerb>(
  verb: string,
  body: unknown,
  handlers: PeerHandlers,
): Promise<PeerAnswerOf<V>> {
  if (!Object.hasOwn(PEER_CONTRACT, verb)) throw new ParleyError('BAD_REQUEST', `there is no verb ${verb}`);
  const handler = handlers[verb as V];
  return handler(checked(PEER_CONTRACT[verb as V].request, body, 'BAD_REQUEST') as PeerRequestOf<V>);
}

export function invalidAnswer(reason: string): z.output<typeof invalid> {
  return { invalid: reason };
}

/** Throws `INVALID_ANSWER`, also when the other daemon found the request invalid. */
export function readPeerAnswer<V extends PeerVerb>(verb: V, body: unknown): PeerAnswerOf<V> {
  const refused = invalid.safeParse(body);
  if (refused.success)
    throw new ParleyError('INVALID_ANSWER', `it refused the request: ${refused.data.invalid}`);
  return checked(PEER_CONTRACT[verb].answer, body, 'INVALID_ANSWER') as PeerAnswerOf<V>;
}

/** The fields by which lists that several daemons answer together are merged; other answers are passed on. */
const LISTS = {
  agents: z.looseObject({ agents: z.array(z.looseObject({ slug: z.string(), status: z.string() })) }),
  conversations: z.looseObject({
    conversations: z.array(z.looseObject({ id: z.string(), length: z.number() })),
    next: z.string().nullable(),
  }),
  approvals: z.looseObject({
    approvals: z.array(z.looseObject({ approvalId: z.string() })),
    more: z.number().optional(),
  }),
  search: z.looseObject({
    hits: z.array(z.looseObject({ conversation: z.string(), index: z.number(), score: z.number() })),
    pending: z.number(),
  }),
  status: z.looseObject({ daemons: z.array(z.looseObject({ daemon: z.string().nullable() })) }),
};
export type SharedList = keyof typeof LISTS;
export type PeerList<V extends SharedList> = z.output<(typeof LISTS)[V]>;

/** Throws `INVALID_ANSWER`. */
export function readPeerList<V extends SharedList>(verb: V, body: unknown): PeerList<V> {
  return checked(LISTS[verb], body, 'INVALID_ANSWER') as PeerList<V>;
}

function checked(schema: z.ZodType, body: unknown, code: string): unknown {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ParleyError(code, issue ? fieldFault(issue, body) : 'not understood');
}
