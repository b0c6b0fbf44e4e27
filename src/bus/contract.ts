import { z } from 'zod';
import {
  CONVERSATION_TOOLS,
  type Entry,
  type ExplainedRequest,
  entrySchema,
  FEEDBACK,
  filePartSchema,
  modeSchema,
  NAME_PATTERN,
  placeOfCallId,
  SHA256,
  SPENT_DAYS,
  serverAsksSchema,
} from '../conversation/index.ts';
import { fieldFault, hasVisible, ParleyError } from '../kernel/index.ts';
import {
  accepted,
  agent,
  agents,
  count,
  deleted,
  detail,
  fields,
  index,
  letter,
  list,
  listFilter,
  MOST_STATUS_ROWS,
  page,
  posted,
  reading,
  reloaded,
  searchAnswer,
  searchRequest,
  status,
  tools,
  turnsAnswer,
  turnsRequest,
  whatIfId,
  whatIfList,
  whatIfRequest,
  whatIfResult,
  whatIfSummary,
} from './answers.ts';
import { MOST_OF_A_NAME, type PostedPart, postedFiles, postedParts, postShape, slugShape } from './post.ts';

/**
 * The request API: request and answer of each verb, once. The daemon's handlers, the client, the HTTP routes, the OpenAPI
 * document and the MCP tools are typed by this table.
 *
 * CONTRACT-1 A request with an unknown field is refused by the field's name. An answer may gain fields: its reader ignores
 *    what it does not know, and older daemons leave out what is newer than they are.
 * CONTRACT-2 The daemon does not check its answers at run time: the types do.
 */

const conversation = z.string().regex(NAME_PATTERN, { error: 'expected 1 to 128 letters, digits, _ or -' });
const publisher = conversation.optional();
const visibleText = z.string().refine(hasVisible, { error: 'expected at least one visible character' });
const sha256 = z.string().regex(SHA256, { error: 'expected a SHA-256: 64 digits, 0 to 9 and a to f' });
/** Bytes of a file in one request, decoded: as base64 they fit the payload of a nats-server by default. */
export const MOST_PIECE_BYTES = 512 * 1_024;
/** Who acts: a publisher, or a person at it; by default the daemon's operator. */
const actor = { publisher, author: postShape.shape.author };
/** Results of one request: an answer has seldom more calls. */
export const MOST_RESULTS = 128;
const stopping = { conversation, agent: slugShape.nullish(), ...actor };
const nothing = z.strictObject({});

/** Reading, comparing and appending a history occupies the process: about half a second for this many. */
const MOST_HISTORY = 10_000;

/** The messages of a request that brings its history. */
export function history<T extends z.ZodType>(message: T): z.ZodType<readonly z.output<T>[]> {
  const error = `a history has at most ${MOST_HISTORY} messages: leave out the oldest`;
  return z.array(message).max(MOST_HISTORY, { error });
}
/** Also what model calls used on each of so many days, today included. */
const days = z.int().positive().max(SPENT_DAYS).optional();

export const CONTRACT = {
  /** `decodePost` reads the request, in this shape and with codes of its own. A post is known by its id. */
  post: {
    request: postShape.extend({ conversation, publisher }),
    answer: posted,
    actsAsPublisher: true,
    namesConversation: true,
    isRepeatable: true,
  },
  /**
   * A piece of a file. `last`: with the last one; the answer has the file. `received`: the bytes that have arrived, so the offset of
   * the next piece.
   */
  upload: {
    request: z.strictObject({
      /** Chosen by the client, the same in each piece. */
      upload: conversation,
      offset: index,
      data: z.base64().max((MOST_PIECE_BYTES / 3) * 4 + 4),
      /** The size of the whole file: in the first piece, if it is known. */
      size: index.optional(),
      last: z
        .strictObject({ sha256, size: index, name: z.string().max(MOST_OF_A_NAME).optional() })
        .optional(),
      publisher,
    }),
    answer: fields({ received: index, file: filePartSchema.optional() }),
    actsAsPublisher: true,
    isRepeatable: true,
  },
  /** A piece of a file that a message of this conversation names. */
  blob: {
    request: z.strictObject({
      conversation,
      sha256,
      offset: index.optional(),
      limit: z.int().positive().optional(),
      publisher,
    }),
    answer: fields({ data: z.base64(), size: index, mediaType: z.string() }),
    actsAsPublisher: true,
    namesConversation: true,
    isRepeatable: true,
  },
  entries: {
    request: z.strictObject({ conversation, from: index.optional(), limit: z.int().positive().optional() }),
    answer: fields({
      conversation: z.string(),
      length: index,
      entries: list(entrySchema as unknown as z.ZodType<Entry>), // without the index signature of unknown fields
    }),
    isRepeatable: true,
  },
  conversation: { request: z.strictObject({ conversation }), answer: detail, isRepeatable: true },
  conversations: {
    request: z.strictObject({ after: z.string().nullish(), limit: z.int().positive().optional(), days }),
    answer: page,
    isRepeatable: true,
  },
  /** Words in the messages of all conversations. */
  search: { request: searchRequest, answer: searchAnswer, isRepeatable: true },
  /**
   * What the daemon keeps for the person of a token: how many entries of each conversation they have read, and filters of the
   * list. What the request has is merged.
   */
  reading: {
    request: z.strictObject({
      read: z.record(conversation, index).optional(),
      filters: z.array(listFilter).max(50).optional(),
      ...actor,
    }),
    answer: reading,
    isRepeatable: true,
  },
  /** The turns of all conversations, as a table. */
  turns: { request: turnsRequest, answer: turnsAnswer, isRepeatable: true },
  view: {
    request: z.strictObject({
      conversation,
      /** Without one: the agent that wrote entry `at`; without both, the newest answer of the conversation. */
      agent: slugShape.optional(),
      at: index.optional(),
      /** Parts of the definition whose texts `report.definition.texts` contains. */
      texts: list(z.string()).optional(),
      /** The exact bytes that are sent, instead of the messages; `prompt`: the content blocks that a coding agent is told. */
      body: z.union([z.boolean(), z.literal('prompt')]).optional(),
    }),
    answer: z.looseObject({
      messages: z.array(z.looseObject({ role: z.string(), content: z.string().nullable() })),
      report: z.record(z.string(), z.unknown()),
      body: z.string().optional(),
    }) as unknown as z.ZodType<ExplainedRequest>, // checked as far as clients need
    isRepeatable: true,
  },
  /** `lastEntryBefore`: deletes nothing unless the newest entry is older, and nothing is under way. */
  delete: {
    request: z.strictObject({ conversation, lastEntryBefore: z.iso.datetime().optional() }),
    answer: deleted,
  },
  /** The title, and whether lists show the conversation among the archived ones. */
  label: {
    request: z
      .strictObject({
        conversation,
        title: visibleText.max(200).optional(),
        archived: z.boolean().optional(),
        ...actor,
      })
      .refine(({ title, archived }) => title !== undefined || archived !== undefined, {
        error: 'expected a title, or archived',
        path: ['title'],
      }),
    answer: detail,
    isRepeatable: true,
  },
  /** A thumb for an answer, from the caller; the newest one counts, and `none` takes it back. */
  feedback: {
    request: z.strictObject({
      conversation,
      index,
      value: z.enum(FEEDBACK),
      note: visibleText.max(2_000).optional(),
      ...actor,
    }),
    answer: accepted,
    actsAsPublisher: true,
    namesConversation: true,
    isRepeatable: true,
  },
  phase: {
    request: z.strictObject({ conversation, phase: z.string(), reason: z.string().optional(), ...actor }),
    answer: detail,
  },
  mode: {
    request: z.strictObject({
      conversation,
      mode: modeSchema,
      /** It has the floor; null: no agent has it. */
      agent: slugShape.nullish(),
      workflow: z.string().optional(),
      /** The message that a run begins with. */
      input: visibleText.optional(),
      ...actor,
    }),
    answer: detail,
  },
  /** Messages from elsewhere, oldest first, that an empty conversation begins with. Known by their content. */
  seed: {
    request: z
      .strictObject({
        conversation,
        /** Empty: `post` is checked, and nothing is kept. */
        messages: history(z.looseObject({ role: z.string(), files: postedFiles.optional() })),
        /** The post that follows, as `post` takes it: if it would be refused, so is this, and nothing is kept. */
        post: z.looseObject({}).optional(),
        ...actor,
      })
      .refine(({ messages, post }) => messages.length > 0 || post !== undefined, {
        error: 'expected at least one message, or a post to check',
        path: ['messages'],
      }),
    answer: z.union([detail, accepted]),
    isRepeatable: true,
  },
  /** A copy of `conversation` up to entry `at` (default: the newest) that continues as `as`. */
  fork: {
    request: z.strictObject({ conversation, as: conversation, at: index.optional(), ...actor }),
    answer: detail,
    isRepeatable: true,
  },
  /** An agent for this conversation only. */
  hire: {
    request: z.strictObject({ conversation, ...CONVERSATION_TOOLS.hire.schema.shape, ...actor }),
    answer: detail,
    isRepeatable: true,
  },
  /** Also those that it hired. */
  dismiss: {
    request: z.strictObject({ conversation, agent: slugShape, reason: z.string().optional(), ...actor }),
    answer: detail,
    isRepeatable: true,
  },
  /** Reads the configuration again. All of it is checked first; a configuration that is not valid changes nothing. */
  reload: { request: z.strictObject(actor), answer: reloaded, isRepeatable: true },
  /** Starts to send requests of past turns again, with one change. Known by its id. */
  'what-if': {
    request: z.strictObject({ conversation, ...whatIfRequest, ...actor }),
    answer: whatIfSummary,
    isRepeatable: true,
  },
  'what-ifs': { request: z.strictObject({ conversation }), answer: whatIfList, isRepeatable: true },
  /** `from`: the position of the first turn; `limit` 0: the progress alone. */
  'what-if-result': {
    request: z.strictObject({ conversation, id: whatIfId, from: index.optional(), limit: index.optional() }),
    answer: whatIfResult,
    isRepeatable: true,
  },
  'what-if-stop': {
    request: z.strictObject({ conversation, id: whatIfId, ...actor }),
    answer: whatIfSummary,
    isRepeatable: true,
  },
  stop: { request: z.strictObject(stopping), answer: detail },
  /** `stop`: only if this entry is the newest stop. */
  resume: { request: z.strictObject({ ...stopping, stop: index.optional() }), answer: detail },
  approvals: {
    request: z.strictObject({ conversation: conversation.optional() }),
    answer: fields({
      approvals: list(
        fields({
          approvalId: z.string(),
          conversation: z.string(),
          agent,
          tool: z.string(),
          /** JSON text, whole, as it runs (HIDDEN-4). */
          arguments: z.unknown(),
          risk: z.string(),
          mayHaveRun: z.boolean(),
          /** The later calls that `always` allows with it; absent: none. */
          covers: z.string().optional(),
          /** The server of the running call asks: `arguments` proposes the answer, "approve" gives it. */
          asks: serverAsksSchema.optional(),
        }),
      ),
      /** How many more there are: the list did not fit. */
      more: count.optional(),
      incomplete: list(z.string()).optional().describe('Daemons that did not answer'),
    }),
    isRepeatable: true,
  },
  /** What an outstanding call would change now. Null: the tool shows none. `why`: there is no difference to show. `seen`: for `answer`. */
  change: {
    request: z.strictObject({
      approvalId: z.string(),
      /** Instead of those of the call, judged as in `answer`. */
      arguments: z.record(z.string(), z.unknown()).optional(),
    }),
    answer: fields({ change: z.string().nullable(), why: z.string().optional(), seen: sha256.optional() }),
    isRepeatable: true,
  },
  answer: {
    request: z.strictObject({
      approvalId: z.string(),
      answer: z.enum(['approve', 'deny', 'rerun', 'result', 'failed']),
      reason: z.string().optional(),
      /** With `approve`, from an operator: also later calls that the request `covers`, in this conversation, until the agent is stopped. */
      always: z.boolean().optional(),
      /** With `result`: the result of the call; text, or JSON that is kept as text. */
      result: z.unknown().optional(),
      /** With `approve`: the call runs with these arguments instead. */
      arguments: z.record(z.string(), z.unknown()).optional(),
      /** With `approve`: from `change`. Refused if the call would change something else by now. */
      seen: sha256.optional(),
      ...actor,
    }),
    answer: accepted,
    actsAsPublisher: true,
  },
  /**
   * The results of calls of tools that a post brought, from its author. All of them count, or none; the same ones again change
   * nothing. `index`: the first new one in the log, or if it has all of them, the last.
   */
  results: {
    request: z.strictObject({
      conversation,
      results: z
        .array(
          z.strictObject({
            /** The id of the call, `c12_0`. */
            call: z.string().refine((id) => placeOfCallId(id) !== null, {
              error: 'expected the id of a call, such as c12_0',
            }),
            content: z.string().default(''),
            parts: (postedParts as z.ZodType<readonly PostedPart[]>).optional(),
            /** The tool failed; `content` says why. */
            isError: z.boolean().optional(),
          }),
        )
        .min(1)
        .max(MOST_RESULTS)
        .refine((results) => new Set(results.map(({ call }) => call)).size === results.length, {
          error: 'two results are of one call',
        }),
      ...actor,
    }),
    answer: fields({ accepted: z.literal(true), index }),
    actsAsPublisher: true,
    namesConversation: true,
    isRepeatable: true,
  },
  dead: {
    request: z.strictObject({
      publisher,
      conversation: conversation.optional(),
      code: z.string().optional(),
      /** Only letters before this sequence. */
      before: z.int().positive().optional(),
      limit: z.int().positive().optional(),
    }),
    /** Newest first; `next` is the `before` of the next page, which may come after an empty one. */
    answer: fields({ letters: list(fields(letter)), next: z.int().nullable() }),
    isRepeatable: true,
  },
  'dead-letter': {
    request: z.strictObject({ sequence: z.int().positive() }),
    answer: fields({ ...letter, original: z.string() }),
    isRepeatable: true,
  },
  'dead-retry': { request: z.strictObject({ sequence: z.int().positive() }), answer: posted },
  /** Removes a dead letter for good; its post is not posted. */
  'dead-discard': { request: z.strictObject({ sequence: z.int().positive() }), answer: accepted },
  /** `persona`: the agent whose persona the answer contains. */
  agents: { request: z.strictObject({ persona: slugShape.optional() }), answer: agents, isRepeatable: true },
  tools: { request: nothing, answer: tools, isRepeatable: true },
  /** `limit`: rows of each group. */
  status: {
    request: z.strictObject({ limit: z.int().positive().max(MOST_STATUS_ROWS).optional(), days }),
    answer: status,
    isRepeatable: true,
  },
  phases: {
    request: nothing,
    answer: fields({
      /** `next`: phases that an agent may enter from there; a person may enter any. */
      phases: list(fields({ phase: z.string(), description: z.string(), next: list(z.string()) })),
    }),
    isRepeatable: true,
  },
  workflows: {
    request: nothing,
    answer: fields({
      workflows: list(
        fields({
          id: z.string(),
          start: z.string(),
          nodes: list(
            fields({
              node: z.string(),
              agent,
              /** Each outcome and the nodes that follow: several run side by side. */
              outcomes: z.record(z.string(), list(z.string())),
              /** By the value, before the outcome. */
              next: list(fields({ when: z.string(), to: list(z.string()) })).optional(),
              /** The branches that meet at this node. */
              after: list(z.string()).optional(),
            }),
          ),
        }),
      ),
    }),
    isRepeatable: true,
  },
} satisfies Record<string, Row>;

interface Row extends Partial<Record<Trait, true>> {
  readonly request: z.ZodObject;
  readonly answer: z.ZodType;
}

type Trait =
  /** The publisher's name may end the subject, so that a server's permissions can bind it. */
  | 'actsAsPublisher'
  /** The subject may name the conversation too: `parley.api.post.<publisher>.<conversation>`. */
  | 'namesConversation'
  /** A second request changes nothing. */
  | 'isRepeatable';

export type Verb = keyof typeof CONTRACT;
export type RequestOf<V extends Verb> = z.output<(typeof CONTRACT)[V]['request']>;
export type AnswerOf<V extends Verb> = z.output<(typeof CONTRACT)[V]['answer']>;

export const VERBS = Object.keys(CONTRACT) as Verb[];

export function isVerb(name: string): name is Verb {
  return Object.hasOwn(CONTRACT, name);
}

function verbsThat(trait: Trait): ReadonlySet<string> {
  const rows: Record<Verb, Row> = CONTRACT;
  return new Set(VERBS.filter((verb) => rows[verb][trait]));
}

export const PUBLISHER_VERBS = verbsThat('actsAsPublisher');
export const CONVERSATION_VERBS = verbsThat('namesConversation');
export const REPEATABLE_VERBS = verbsThat('isRepeatable');

/** Throws `BAD_REQUEST`, naming the field and what was expected. */
export function parseRequest<V extends Verb>(verb: V, body: unknown): RequestOf<V> {
  const schema: z.ZodObject = CONTRACT[verb].request;
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data as RequestOf<V>;
  const [issue] = parsed.error.issues;
  const fault = issue ? fieldFault(issue, body) : 'not understood';
  throw new ParleyError('BAD_REQUEST', `${verb}: ${fault}`, {
    hint: `${verb} takes ${Object.keys(schema.shape).join(', ') || 'an empty object'}`,
  });
}
