import { Readable } from 'node:stream';
import { z } from 'zod';
import { CONTRACT } from '../../bus/contract.ts';
import {
  agentNamed,
  createTurnWatch,
  type Entry,
  isOfAPerson,
  type OwnPublisher,
  schemaIn,
  turnInputOf,
  unknownMentionsText,
} from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { digest } from '../client-ids.ts';
import { authorOf, type Identity, type Role } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { actingFor, ask, orElse, readTail, stoppedOf } from '../progress/ask.ts';
import { approvalsOf, approvalText, indented, pageOf, type Told } from './render.ts';

/** The tools that this daemon offers to agents of other programs. */

export interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly role: Role;
  readonly description: string;
  readonly input: Input;
  /** Every key is optional, as in a refusal: clients check those, too. */
  readonly output?: z.ZodObject;
  call(input: z.infer<Input>, caller: ToolCaller): Promise<Told>;
}

/** The caller, and what is needed to answer it. */
export interface ToolCaller {
  readonly daemon: GatewayPort;
  readonly identity: Identity;
  readonly newId: () => string;
  /** A signal that aborts after so many seconds or when the caller disconnects; released after `use`. */
  patiently<T>(seconds: number, use: (enough: AbortSignal) => Promise<T>): Promise<T>;
}

/** Keeps the types of a tool's input in its own row of the table; the server parses the input by `row` before each call. */
function tool<Input extends z.ZodObject>(row: Tool<Input>): Tool {
  return row as unknown as Tool;
}

const conversation = z
  .string()
  .max(1_024)
  .describe('Its id: 1 to 128 letters, digits, _ or -; any other text is mapped to one');
const waitSeconds = z
  .int()
  .min(0)
  .max(600)
  .default(0)
  .describe(
    'Seconds to wait until no agent works any more or a person is needed; 0: no wait. Many clients time out after 60',
  );

const ENTRIES = 50;
/** Limit of one answer of `explain`, in characters of JSON. */
const MOST_EXPLAINED = 200_000;

const readInput = z.strictObject({
  conversation,
  from: CONTRACT.entries.request.shape.from.describe(
    'The first index wanted; by default the newest entries are read',
  ),
  limit: z.int().min(1).max(200).default(ENTRIES),
  waitSeconds,
});

const read = tool({
  name: 'read',
  role: 'read',
  description:
    'The entries of a conversation. Continue from `next`. With `waitSeconds`, it first waits until the agents are done.',
  input: readInput,
  async call(input, caller) {
    const { length, entries, status } = await found(input, caller);
    const approvals = await approvalsOf(caller.daemon, input.conversation);
    const more = { ...(status && { status }), approvals };
    const page = pageOf({ conversation: input.conversation, length }, entries, input.limit, more);
    return { ...page, text: [page.text, ...approvals.map(approvalText)].join('\n') };
  },
});

/** The text of the tool `read`. */
export async function newestEntries(conversation: string, caller: ToolCaller): Promise<string> {
  return (await read.call(read.input.parse({ conversation }), caller)).text;
}

const agents = tool({
  name: 'agents',
  role: 'read',
  description: 'The agents that take part in conversations: whom a post can be addressed to.',
  input: z.strictObject({}),
  async call(_, { daemon }) {
    const data = await ask(daemon, 'agents', {});
    const lines = data.agents.map(
      ({ slug, name, description, status }) => `${slug} (${name}, ${status}): ${description}`,
    );
    return { text: lines.join('\n'), data };
  },
});

const list = tool({
  name: 'list',
  role: 'read',
  description: 'Conversations by id. Where `next` is not null there are more: pass it as `after`.',
  input: z.strictObject({
    after: z.string().optional().describe('Only those after this id'),
    limit: z.int().min(1).max(200).default(50),
  }),
  async call(input, { daemon }) {
    const data = await ask(daemon, 'conversations', input);
    const lines = data.conversations.map(
      ({ id, title, phase, length }) =>
        `${id}: ${JSON.stringify(title ?? '')}, phase ${phase}, ${length} entries`,
    );
    const more = data.next === null ? [] : [`(more: after ${data.next})`];
    return { text: [...lines, ...more].join('\n') || '(no conversations)', data };
  },
});

const explain = tool({
  name: 'explain',
  role: 'read',
  description:
    'The exact request that an agent is sent, with a report of what is in it, what was left out, and why.',
  input: z.strictObject({
    conversation,
    agent: z
      .string()
      .optional()
      .describe('The slug of an agent. Default: the agent that wrote entry `at`, else the newest answer'),
    at: CONTRACT.view.request.shape.at.describe('As if this entry were the last one'),
  }),
  async call(input, { daemon }) {
    const { report, messages } = await ask(daemon, 'view', input);
    const data = { report, messages };
    if (JSON.stringify(data).length > MOST_EXPLAINED) {
      throw new ParleyError('TOO_LARGE', 'this request is too large for one answer of a tool', {
        hint: 'GET /api/conversations/<id>/view, or `parley explain`, gives all of it',
      });
    }
    const said = messages.map(({ role, content }, place) => {
      const text = typeof content === 'string' ? content : JSON.stringify(content ?? '');
      return `[${place}] ${role}: ${indented(text)}`;
    });
    return { text: [...said, `[report] ${JSON.stringify(report)}`].join('\n'), data };
  },
});

const approvals = tool({
  name: 'approvals',
  role: 'read',
  description: 'Calls of tools that wait for a person’s word, in one conversation or in all.',
  input: z.strictObject({ conversation: conversation.optional() }),
  async call(input, { daemon }) {
    const waiting = await approvalsOf(daemon, input.conversation);
    return { text: waiting.map(approvalText).join('\n') || '(nothing waits)', data: { approvals: waiting } };
  },
});

/** A wait reads the whole log, because it must know which turns are open; otherwise only the shown part is read. */
async function found(
  { conversation, from, limit, waitSeconds: seconds }: z.infer<typeof readInput>,
  caller: ToolCaller,
) {
  const { daemon, patiently } = caller;
  if (seconds === 0) {
    const first = from ?? Math.max(0, (await ask(daemon, 'conversation', { conversation })).length - limit);
    const page = await ask(daemon, 'entries', { conversation, from: first, limit });
    return { ...page, status: null };
  }
  await ask(daemon, 'conversation', { conversation }); // an unknown one is not waited for
  const { entries, status } = await patiently(seconds, (enough) =>
    readUntilQuiet(daemon, { conversation, from: 0 }, enough),
  );
  const first = from ?? Math.max(0, entries.length - limit);
  return { length: entries.length, entries: entries.slice(first), status };
}

/** The publisher of a caller without a name. */
const ANONYMOUS: OwnPublisher = 'mcp';

const act = ({ daemon, identity }: ToolCaller) => actingFor(daemon, identity, ANONYMOUS);

const told = z.looseObject({
  conversation: z.string().optional(),
  index: z.int().optional().describe('Of the message in its conversation'),
  agents: z.array(z.string()).optional().describe('Those that answer'),
  status: z.enum(['done', 'waits-for-a-person', 'running']).optional(),
  value: z.unknown().optional().describe('With `schema` and `waitSeconds`: the answer, checked against it'),
  entries: z.array(z.looseObject({})).optional().describe('What followed in the log'),
  next: z.int().optional().describe('To `read` from'),
  code: z.string().optional(),
  message: z.string().optional(),
  hint: z.string().optional(),
});

const MOST_FILES = 16;
const sentFile = z.strictObject({
  name: z.string().max(255).optional(),
  data: z.base64().min(1).optional().describe('The bytes in base64'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('Instead of data: of a file that is stored already'),
});

const post = tool({
  name: 'post',
  role: 'post',
  description:
    'Says something in a conversation, which begins with it if there is none of that id. Answers once the message is durable; with `waitSeconds`, with what the agents did about it. The same `id` again posts nothing and waits again.',
  input: z.strictObject({
    conversation: conversation.optional().describe('Its id; made if there is none'),
    content: z.string().default('').describe('The message. `@slug` addresses an agent'),
    files: z
      .array(sentFile)
      .max(MOST_FILES)
      .default([])
      .describe(
        'Files of the message: small ones as base64, others by the hash that PUT /api/blobs returned',
      ),
    to: z
      .array(z.string())
      .optional()
      .describe('Agents, by slug or name; by default the conversation decides who answers'),
    name: z.string().optional().describe('Who says it, where the token does not say so'),
    id: z.string().optional().describe('Makes it safe to try again'),
    replyTo: z.string().optional().describe('The id of the message that this one answers'),
    delivery: CONTRACT.post.request.shape.delivery,
    schema: CONTRACT.post.request.shape.schema.describe(
      'A JSON Schema that the answer must match: the result then has the `value`',
    ),
    sessionId: CONTRACT.post.request.shape.sessionId.describe(
      'The session of the agents that it wakes, if the publisher may set it',
    ),
    waitSeconds,
  }),
  output: told,
  async call({ waitSeconds: seconds, name, files, ...given }, caller) {
    const { daemon, identity, newId, patiently } = caller;
    const parts: unknown[] = [];
    for (const [at, file] of files.entries()) parts.push(await partOf(file, `files.${at}`, caller));
    // The same `id` begins the same conversation.
    const made =
      given.id === undefined ? newId() : `mcp-${digest([authorOf(identity, ANONYMOUS), given.id])}`;
    const conversation = given.conversation ?? made;
    const message = {
      ...given,
      ...(parts.length > 0 && { parts }),
      conversation,
      ...(given.to && { to: await slugsOf(daemon, given.to, conversation) }),
      ...(name !== undefined && { author: { name } }),
    };
    const posted = await act(caller)('post', message);
    const { index, agents } = posted;
    const stopped = await stoppedOf(daemon, posted.conversation, agents);
    const noEffect = (posted.ignored ?? []).map((field) => `${field} has no effect: no right to it`);
    const notes = [unknownMentionsText(posted.unknownMentions), ...noEffect].filter((note) => note !== '');
    const answering = `${agents.join(', ') || 'no agent'} will answer`;
    const where = [`posted as [${index}] in ${posted.conversation}`, answering, ...notes].join('; ');
    if (seconds === 0) return { text: where, data: { ...posted, next: index + 1 } };
    const progress = await patiently(seconds, (enough) =>
      readUntilQuiet(
        daemon,
        { conversation: posted.conversation, from: index, agents, stopped: stopped.agents },
        enough,
      ),
    );
    const { entries, status, paused } = progress;
    const approvals = status === 'done' ? [] : await approvalsOf(daemon, posted.conversation);
    const facts = { conversation: posted.conversation, length: index + entries.length };
    const typed = given.schema && valueIn(entries);
    const page = pageOf(facts, entries.slice(1), entries.length, { ...posted, status, approvals, ...typed });
    const untyped = given.schema && !typed && status === 'done' ? [NO_VALUE] : [];
    const last =
      status === 'running' ? ['(not done yet: read with waitSeconds)'] : approvals.map(approvalText);
    const waiting = paused.length > 0 ? [`(${stopped.refusal.message})`] : [];
    return { ...page, text: [where, page.text, ...untyped, ...last, ...waiting].join('\n') };
  },
});

/** The newest value that has the schema of the first entry, which is a post. */
function valueIn(entries: readonly Entry[]): { readonly value: unknown } | undefined {
  const post = entries[0]?.index ?? 0;
  const own = new Set<string>();
  let typed: { readonly value: unknown } | undefined;
  for (const entry of entries) {
    const taken = turnInputOf(entry);
    const asking = taken?.messages.filter((index) => schemaIn(entries[index - post])) ?? [];
    if (taken && Math.max(...asking) === post) own.add(taken.turnId); // TYPED-1
    if (entry.type === 'message' && 'value' in entry && own.has(entry.turnId ?? ''))
      typed = { value: entry.value };
  }
  return typed;
}

const NO_VALUE = '(no answer matched the schema)';

async function partOf(
  { name, data, sha256 }: z.infer<typeof sentFile>,
  where: string,
  { daemon, identity }: ToolCaller,
): Promise<object> {
  if ((data === undefined) === (sha256 === undefined))
    throw new ParleyError('INVALID_FIELD', `${where}: expected data or sha256, and not both`);
  if (data === undefined) return { type: 'file', sha256, name };
  const publisher = identity.publisher ?? ANONYMOUS;
  return daemon.keepFile(Readable.from([Buffer.from(data, 'base64')]), { name, publisher }, {});
}

/** As `delegate` takes them. */
async function slugsOf(
  daemon: GatewayPort,
  named: readonly string[],
  conversation: string,
): Promise<readonly string[]> {
  const { agents } = await ask(daemon, 'agents', {});
  const known = new Map(agents.map(({ slug, name }) => [slug, { slug, name }]));
  for (const [slug, hired] of await hiredIn(daemon, conversation)) known.set(slug, { slug, name: hired });
  return named.map((text) => {
    const slug = agentNamed(text, known);
    if (slug !== undefined) return slug;
    throw new ParleyError('UNKNOWN_AGENT', `there is no agent ${JSON.stringify(text)}`, {
      hint: `known agents: ${[...known.keys()].join(', ')}`,
    });
  });
}

/** Slugs and names of the agents that were hired in a conversation, if it exists. */
async function hiredIn(daemon: GatewayPort, conversation: string): Promise<[string, string][]> {
  const found = await orElse(ask(daemon, 'conversation', { conversation }), null);
  return Object.entries(found?.agents ?? {}).flatMap(([slug, { hired }]) =>
    hired && !hired.dismissed ? [[slug, hired.name]] : [],
  );
}

const { shape: verdict } = CONTRACT.answer.request;

const answer = tool({
  name: 'answer',
  role: 'approve',
  description:
    'Answers an approval: approve or deny; of a call that may have run already: rerun, failed, or result with what it gave.',
  input: z.strictObject({
    approvalId: verdict.approvalId,
    answer: verdict.answer,
    reason: verdict.reason.describe('The reason that the agent receives'),
    result: verdict.result.describe('With `result`: text or JSON'),
    arguments: verdict.arguments.describe('With `approve`: the call runs with these arguments instead'),
    always: verdict.always.describe('With `approve`, for operators: also later calls that it `covers`'),
  }),
  async call(given, caller) {
    const data = await act(caller)('answer', given);
    return {
      text: `${given.approvalId}: ${given.answer}. Read the conversation with waitSeconds for what follows.`,
      data,
    };
  },
});

const STEERING = {
  stop: 'Aborts what agents are doing in a conversation; nothing starts until it is resumed.',
  resume: 'Continues the work that waits since a stop.',
};

const steering = (['stop', 'resume'] as const).map((name) =>
  tool({
    name,
    role: 'operate',
    description: STEERING[name],
    input: z.strictObject({
      conversation,
      agent: z.string().optional().describe('The slug of one agent; by default all'),
    }),
    async call(given, caller) {
      const data = await act(caller)(name, given);
      return { text: `${name}: ${given.agent ?? 'everybody'} in ${given.conversation}`, data };
    },
  }),
);

export const TOOLS: readonly Tool[] = [
  ...[agents, list, read, explain, approvals],
  ...[post, answer, ...steering],
];

interface Awaited {
  readonly conversation: string;
  /** Index of the first entry to return. */
  readonly from: number;
  /** The agents that must answer the entry at `from`. Absent: those that the log names. */
  readonly agents?: readonly string[];
  /** Those of them that a person stopped. */
  readonly stopped?: readonly string[];
}

/**
 * Every entry from `from` on, until no work is outstanding, only a person can continue, or the signal aborts. `paused`: stopped
 * agents with an outstanding turn.
 */
async function readUntilQuiet(
  daemon: GatewayPort,
  { conversation, from, agents, stopped = [] }: Awaited,
  enough: AbortSignal,
) {
  const watch = createTurnWatch();
  for (const entry of await readTail(daemon, conversation, from)) watch.observe(entry);
  if (agents) watch.addOutstanding(from, agents);
  watch.markStopped(stopped);
  const entries: Entry[] = [];
  const arrivals = new Arrivals(daemon, conversation);
  const stop = () => arrivals.close();
  const ended = (status: 'waits-for-a-person' | 'running') => ({
    entries,
    status,
    paused: watch.stoppedAgents,
  });
  try {
    for await (const received of arrivals.from(from)) {
      if (received.kind === 'live') continue;
      for (const entry of received.entries) {
        entries.push(entry);
        if (!agents && isOfAPerson(entry)) watch.addOutstanding(entry.index, entry.to ?? []);
        watch.observe(entry);
      }
      if (!received.isCurrent) continue;
      if (watch.settled) return { entries, status: 'done', paused: [] } as const;
      if (watch.held) return ended('waits-for-a-person');
      if (enough.aborted) break;
      enough.addEventListener('abort', stop); // not before: a wait of no time returns what there is
    }
    return ended('running');
  } finally {
    enough.removeEventListener('abort', stop);
  }
}
