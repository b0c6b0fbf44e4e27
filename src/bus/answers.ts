import { z } from 'zod';
import { hireBudgetSchema, modeSchema, NAME_PATTERN } from '../conversation/index.ts';
import { hasVisible } from '../kernel/index.ts';
import { slugShape } from './post.ts';

/** The messages of the request API that several verbs share or that are long; `contract.ts` has the table. */

/** Fields of an answer. The type names these alone, the schema lets others pass (CONTRACT-1). */
export function fields<S extends z.ZodRawShape>(shape: S): z.ZodObject<S> {
  return z.looseObject(shape) as unknown as z.ZodObject<S>;
}

/** `.readonly()` would show in the OpenAPI document. */
export function list<T extends z.ZodType>(item: T): z.ZodType<readonly z.output<T>[]> {
  return z.array(item);
}

export const index = z.int().nonnegative();
export const count = z.int().nonnegative();
export const agent = z.string();

export const posted = fields({
  conversation: z.string(),
  id: z.string(),
  /** The index of its entry; for a duplicate, that of the first one. */
  index,
  /** The id was in the log already. */
  duplicate: z.boolean(),
  /** Slugs of the agents that the message was routed to. */
  agents: list(agent),
  /** Words after an `@` that name no agent; absent: none. */
  unknownMentions: list(z.string()).optional(),
  ignored: list(z.string())
    .optional()
    .describe(
      'Fields of the post that its publisher has no right to, such as `sessionId`: the entry has them, and they have no effect',
    ),
});

/** What one agent does or waits for. */
const activity = fields({
  agent,
  status: z.enum(['running', 'waiting', 'limited', 'stopped', 'failed']),
  since: z.string().nullable().describe('ISO 8601'),
  for: z
    .enum(['approval', 'outcome', 'question', 'agent', 'caller', 'program', 'input'])
    .optional()
    .describe(
      'What it waits for: an approval, a decision on a call that may have run, an answer, another agent, the result of a tool that the author of a post brought, its own program, a message to a run',
    ),
  of: z.string().optional().describe('The tool, the other agent, the workflow, or the code of the failure'),
  asks: z.string().optional().describe('Of an approval: the MCP server whose question it answers'),
  entry: index
    .optional()
    .describe(
      'The entry that requests the approval, asks the question, names the limit or says why the turn failed; of a run that waits, what its agent said last at its node, else the newest message',
    ),
  position: index.optional().describe('Of a question: the position of its call in that entry'),
  retry: fields({
    attempt: count.describe('Of the next attempt, or of the one that runs'),
    attempts: count.describe('In all'),
    at: z.string().describe('ISO 8601: when the attempt begins, or began'),
    code: z.string(),
    message: z.string(),
  })
    .optional()
    .describe(
      'Of a running turn whose model call failed and is repeated: which attempt, and why the last one failed',
    ),
  progress: fields({ tool: z.string(), text: z.string() })
    .optional()
    .describe('Of a running turn: what a tool that it called last reported about itself'),
});

const inList = {
  id: z.string(),
  title: z.string().nullable(),
  archived: z.boolean(),
  phase: z.string(),
  mode: modeSchema,
  activeAgent: agent.nullable(),
  length: index,
};

const spent = fields({
  day: z.string().describe('YYYY-MM-DD, UTC'),
  agent,
  calls: count.describe('Of its model'),
  tokens: z.number(),
  usd: z.number(),
  unpricedCalls: count.describe('Calls whose cost is unknown: `usd` does not include them'),
});

export const page = fields({
  conversations: list(
    fields({
      ...inList,
      newest: z
        .string()
        .nullable()
        .describe('The first 120 characters of the newest message, on one line and without Markdown'),
      /** ISO 8601. */
      updatedAt: z.string(),
      activeAt: z
        .string()
        .describe(
          'The time of the newest entry that is news: none about a title, the team, a claim of a daemon, or a step of a turn',
        ),
      activeLength: z.number().describe('The number of entries up to that one'),
      /** What model calls used so far. */
      tokens: z.number(),
      usd: z.number(),
      /** Calls whose cost is unknown (no price, or no usage reported): `usd` does not include them. */
      unpricedCalls: count,
      /** Slugs of the agents whose turn runs, and of those whose turn waits for an answer. */
      running: list(agent),
      waiting: list(agent),
      /** Agents whose last turn a limit ended; `resume` continues them. */
      limited: list(agent),
      /** Stopped agents that have outstanding messages or a node of a run; `resume` continues them. */
      stopped: list(agent),
      allStopped: z.literal(true).optional().describe('Also those without work'),
      /** Agents that took part, and ids of the first 50 persons who wrote. */
      agents: list(agent),
      people: list(z.string()),
      /** One element for each running turn, each thing that a turn waits for, and each agent that is halted. */
      activity: list(activity),
      /** With `days`: what model calls used, by day and agent. */
      spent: list(spent).optional(),
    }),
  ),
  next: z.string().nullable(),
  /** Daemons that share the work and did not answer: what they alone know is missing. */
  incomplete: list(z.string()).optional(),
});

const used = fields({
  calls: count,
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  cacheWriteTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
  usd: z.number(),
  unpricedCalls: count,
});

const hired = fields({
  name: z.string(),
  description: z.string(),
  model: z.string(),
  /** Those that it and its makers have now; after its dismissal, those of its hire. */
  tools: list(z.string()),
  budget: hireBudgetSchema,
  /** Slug of the agent that hired it; null: a person did. */
  maker: agent.nullable(),
  depth: z.int(),
  dismissed: z.boolean(),
});

export const detail = fields({
  ...inList,
  /** Null outside mode run. */
  run: fields({
    runId: z.string(),
    workflow: z.string(),
    node: z.string(),
    agent: agent.nullable(),
    branches: list(fields({ branch: z.string(), node: z.string(), agent: agent.nullable() }))
      .describe('While nodes run side by side; without an agent: it waits there for the others')
      .optional(),
    awaitsInput: z.boolean().describe('True: the run begins with the first message to that agent'),
  }).nullable(),
  metadata: fields({
    /** The newest summary that an agent is shown for what no longer fits its model. */
    summary: z.string().optional(),
    referencedArticles: list(z.string()),
    /** Milliseconds in model calls and tools, by slug. */
    executionMs: z.record(agent, z.number()),
    /** Tokens in and out, and their cost as far as prices are configured; `usage` has the same by slug. */
    tokens: z.number(),
    usd: z.number(),
    /** Calls whose cost is unknown (no price, or no usage reported): `usd` does not include them. */
    unpricedCalls: count,
    usage: z.record(agent, used),
  }),
  files: fields({ count, bytes: count, maxBytes: count.describe('That all may have together') })
    .optional()
    .describe('Of its messages, each counted once; absent: there are none'),
  agents: z.record(
    agent,
    fields({
      lastProcessedMessageIndex: z.int(),
      sessionId: z.string().optional(),
      sessionFrom: fields({ by: z.enum(['person', 'agent']), entry: index })
        .optional()
        .describe('Who named that session, and the message or the answer that did'),
      status: z.string(),
      limit: z.string().optional().describe('Of an agent whose last turn a limit ended: its key in `limits`'),
      hired: hired.optional().describe('Of an agent that was hired in this conversation'),
    }),
  ),
});

export const deleted = z.discriminatedUnion('deleted', [
  fields({
    deleted: z.literal(true),
    existed: z.boolean().describe('False: there was no such conversation'),
    erased: fields({
      entries: count.describe('Of the log'),
      records: count.describe('Of tool calls'),
      outputs: count.describe('Results of tools that were too large for the log'),
      files: count.describe('Files in messages that no other conversation names'),
      posts: count.describe('In the ingress stream'),
      deadLetters: count.describe('Refused posts to this conversation'),
    }).describe('How many of each were removed'),
    left: list(z.string()).describe('What the daemon could not remove yet and tries again'),
    notReached: list(z.string()).describe('Where texts may be that no daemon can remove'),
  }),
  fields({
    deleted: z.literal(false),
    existed: z.literal(true),
    kept: z.string().describe('Why: it has a newer entry, or something is under way'),
  }).describe('With `lastEntryBefore` alone: the conversation stays'),
]);

export const accepted = fields({ accepted: z.literal(true) });

export const letter = {
  /** The sequence in the stream of dead letters: newer letters have higher ones. */
  sequence: z.int().positive(),
  /** ISO 8601. */
  at: z.string(),
  publisher: z.string(),
  conversation: z.string(),
  code: z.string(),
  reason: z.string(),
  hint: z.string().optional(),
  /** The id that the post had, or would have had. */
  id: z.string().optional(),
  /** Bytes of the whole body. */
  size: count,
  /** Only the beginning of it was kept. */
  truncated: z.literal(true).optional(),
  /** The position of the whole post in the ingress stream. */
  ingress: fields({ stream: z.string(), sequence: z.int() }).optional(),
  /** Posts that were refused together; none of them was kept. */
  refused: fields({ count }).optional(),
};

export const reloaded = fields({
  agents: list(
    fields({
      agent,
      change: z.enum(['added', 'changed', 'removed']),
      parts: list(z.string()).describe('Of a changed agent: the parts of its definition that differ'),
    }),
  ),
  settings: list(z.string()).describe('Keys of the configuration that differ'),
  conversations: count.describe('In which an entry names the change'),
  daemons: list(fields({ daemon: z.string(), error: z.string().optional() }))
    .optional()
    .describe('The other daemons that share the logs; `error`: that one keeps its configuration'),
});

export const tools = fields({
  tools: list(fields({ name: z.string(), risk: z.enum(['safe', 'risky']) })),
  servers: list(
    fields({
      server: z.string(),
      state: z.enum(['connecting', 'ready', 'failed']),
      /** Wire names. */
      tools: list(z.string()),
      /** The tools that are new or changed since they were accepted. */
      unaccepted: list(z.string()).optional(),
      /** Tools that cannot be offered to models, each with the reason. */
      leftOut: list(z.string()).optional(),
      /** Why it failed. */
      error: z.string().optional(),
    }),
  ),
});

export const agents = fields({
  agents: list(
    fields({
      slug: agent,
      name: z.string(),
      description: z.string(),
      phases: list(z.string()),
      modes: list(modeSchema),
      runtime: z.string(),
      status: z.string(),
      /** Wire names of the tools that its file lists. */
      tools: list(z.string()),
      /** Only the agent that the request names has it. */
      persona: z.string().optional(),
      /** False: it is called with no tools of callers. */
      clientTools: z.boolean(),
      /** Its file has a schema for its answers. */
      typed: z.literal(true).optional(),
      /** The kinds of files that its model is shown; absent: not known here. */
      shownFiles: list(z.string()).optional(),
      /** Only an agent in another process has it. */
      connected: z.boolean().optional(),
      /** Its key in `models`, the parameters that its requests send, and the names of their extra headers. */
      model: z.string().optional(),
      parameters: z.record(z.string(), z.unknown()).optional(),
      headers: list(z.string()).optional(),
    }),
  ),
  /** The keys of `models`. */
  models: list(z.string()).optional(),
  /** The slug of the agent that answers if no other rule decides. */
  default: agent.optional(),
});

/** Messages of one answer, by default and at most. */
export const FOUND = 20;
const MOST_FOUND = 100;
const MOST_TURN_ROWS = 500;

const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: 'expected a time in ISO 8601, such as 2026-01-31 or 2026-01-31T12:00:00Z',
});

const filterText = z.string().max(200);

export const listFilter = z.strictObject({
  name: filterText,
  shown: filterText,
  agent: filterText,
  phase: filterText,
  text: filterText,
});

export const reading = fields({
  since: z.string().describe('ISO 8601. Conversations without news since then count as read'),
  lengths: z.record(z.string(), index).describe('Entries that the person has read, by conversation'),
  filters: list(listFilter),
});

const TURN_OUTCOMES = ['running', 'waiting', 'completed', 'failed', 'aborted', 'limited'] as const;

const rating = z.enum(['up', 'down']);

export const turnsRequest = z.strictObject({
  conversation: z.string().regex(NAME_PATTERN).optional(),
  agent: slugShape.optional(),
  /** As the configuration or the answers name it; also one that failed. */
  model: z.string().optional(),
  outcome: z.enum(TURN_OUTCOMES).optional(),
  /** It called this tool, or one of this pattern. */
  tool: z.string().optional(),
  /** A person rated an answer of it so. */
  rated: rating.optional(),
  /** Turns that began then or later. */
  since: time.optional(),
  /** The `next` of the page before. */
  after: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}:\d{1,16}$/, { error: 'expected the `next` of a page' })
    .optional(),
  limit: z.int().positive().max(MOST_TURN_ROWS).optional(),
});

export const turnsAnswer = fields({
  /** The conversation with the newest entry comes first, and in it the newest turn. */
  turns: list(
    fields({
      conversation: z.string(),
      title: z.string().nullable(),
      turnId: z.string(),
      agent,
      index: index.describe('Of its `turn-started`'),
      answer: index.nullable().describe('Its newest answer'),
      startedAt: z.string().describe('ISO 8601'),
      ms: z.number().nullable().describe('To its end, waits included'),
      outcome: z.enum(TURN_OUTCOMES),
      models: list(z.string()),
      tools: list(z.string()),
      rated: list(rating).describe('How people rated its answers'),
      calls: count.describe('Model calls'),
      tokens: z.number(),
      usd: z.number().describe('Without the `unpricedCalls`'),
      unpricedCalls: count,
    }),
  ),
  next: z.string().nullable().describe('There may be more: a page reads at most 100 logs'),
});

export const searchRequest = z.strictObject({
  q: z.string().max(1_000).refine(hasVisible, { error: 'expected at least one word' }),
  conversation: z.string().regex(NAME_PATTERN).optional(),
  /** Author of the message: the slug of an agent; the id or the name of a person. */
  agent: z.string().optional(),
  person: z.string().optional(),
  /** The phase at the message. */
  phase: z.string().optional(),
  /** Messages from `after` on and before `before`. */
  after: time.optional(),
  before: time.optional(),
  limit: z.int().positive().max(MOST_FOUND).optional(),
});

export const searchAnswer = fields({
  /** Best first. */
  hits: list(
    fields({
      conversation: z.string(),
      title: z.string().nullable(),
      index,
      at: z.string().describe('ISO 8601'),
      author: fields({ kind: z.enum(['person', 'agent', 'system']), id: z.string(), name: z.string() }),
      phase: z.string().nullable(),
      score: z.number().describe('Higher is better'),
      snippet: z.string(),
      marks: list(z.tuple([z.int(), z.int()])).describe('Start and end of each found word in `snippet`'),
    }),
  ),
  pending: count.describe('Conversations whose newest messages are not in the index yet; search again soon'),
  incomplete: list(z.string()).optional().describe('Daemons that did not answer'),
});

/** Rows of each group, by default and at most. */
export const STATUS_ROWS = 20;
export const MOST_STATUS_ROWS = 200;

/** The first rows, and how many there are in all. */
const group = fields({
  count,
  first: list(activity.extend({ conversation: z.string(), title: z.string().nullable() })),
});

const server = fields({
  server: z.string(),
  state: z.enum(['connecting', 'ready', 'failed']),
  leftOut: list(z.string())
    .optional()
    .describe('Tools that cannot be offered to models, each with the reason'),
  error: z.string().optional().describe('Why it failed'),
});

const calls = {
  calls: count.describe('Since the daemon started, retries included in each'),
  failed: count,
  answeredAt: z.string().optional().describe('The newest answer; ISO 8601'),
  failure: fields({ at: z.string(), code: z.string() }).optional().describe('The newest failure'),
};

const model = fields({
  model: z.string().describe('Its key in `models`'),
  ...calls,
  seconds: fields({ mean: z.number(), p95: z.number().describe('Estimated from the histogram of /metrics') })
    .optional()
    .describe('Of answered calls'),
  firstTokenSeconds: z.number().optional().describe('Mean time until the first part of an answer'),
});
export type ModelStatus = z.output<typeof model>;

const backOff = fields({
  model: z.string().describe('Its key in `models`'),
  key: count.optional().describe('Which of its keys, from 1; absent: it has at most one'),
  code: z.string().describe('Of the newest failure'),
  failures: count.describe('In a row'),
  until: z.string().describe('ISO 8601'),
});
export type BackOffStatus = z.output<typeof backOff>;

const program = fields({ agent, ...calls });
export type ProgramStatus = z.output<typeof program>;

const daemon = fields({
  daemon: z.string().nullable().describe('Its id among daemons that share logs; null: they are not shared'),
  version: z.string().optional(),
  pid: z.int().optional(),
  startedAt: z.string().optional().describe('ISO 8601'),
  store: z.string().optional(),
  data: z.string().optional().describe('The data directory'),
  nats: z.string().optional(),
  http: z.string().nullable().optional(),
  servers: list(server).optional().describe('Its MCP servers'),
  models: list(model).optional().describe('Absent without HTTP, for which calls are counted'),
  backOff: list(backOff)
    .optional()
    .describe('Models and keys that are not called where another one is left; absent: none'),
  programs: list(program)
    .optional()
    .describe('How it called the agents in other processes; absent as `models`'),
  owns: fields({ count, first: list(z.string()) })
    .optional()
    .describe('The conversations that it has in memory and works on'),
  error: z.string().optional().describe('Why the other fields are missing'),
});

const groups = {
  conversations: count,
  /** Longest first. */
  running: group,
  waiting: group,
  /** Newest first. */
  limited: group,
  stopped: group,
  failed: group,
};

export const status = fields({
  at: z.string().describe('ISO 8601'),
  ...groups,
  deadLetters: count.nullable().describe('Null: the server did not answer'),
  queue: fields({ posts: count, oldestAt: z.string().nullable() })
    .nullable()
    .describe('Posts that are not in a log yet; null: the server did not answer'),
  daemons: list(daemon),
  agents: list(
    fields({
      agent,
      connected: z.boolean(),
      absent: z.enum(['fail', 'wait']).describe('What a turn does while the program is not connected'),
    }),
  ).describe('Agents in other processes'),
  spent: list(spent)
    .optional()
    .describe('With `days`: what model calls used in all conversations, by day and agent'),
  incomplete: list(z.string()).optional().describe('Daemons that did not answer'),
});

export type StatusGroups = z.output<z.ZodObject<typeof groups>>;

/** The most runs of each side, for each turn. */
const MOST_RUNS = 20;
const MOST_TURNS = 5_000;

/** In lower case: it names a file, and many file systems ignore case. */
export const whatIfId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, { error: 'expected 1 to 64 lower-case letters, digits, _ or -' });

export const whatIfRequest = {
  /** Generated when it is left out. The same id again starts nothing. */
  id: whatIfId.optional(),
  /** Default: the agent of entry `at`. */
  agent: slugShape.optional(),
  /** Entries of the turns to send again, every turn of the agent, or those with an answer that people rated up or down. */
  at: z.union([index, z.array(index).min(1).max(MOST_TURNS), z.enum(['all', 'up', 'down'])]),
  /** `turn` (default): from the first request of the turn. `answer`: from the request that entry `at` answers. */
  start: z.enum(['turn', 'answer']).optional(),
  /** A key of `models`. */
  model: z.string().min(1).optional(),
  /** The instructions of the agent. */
  persona: z.string().optional(),
  /** How often the changed request is sent, and the unchanged one. Default: 1. */
  runs: z.int().min(1).max(MOST_RUNS).optional(),
};

const call = fields({ name: z.string(), arguments: z.string() });

const run = fields({
  outcome: z
    .enum(['answered', 'ended', 'diverged', 'failed', 'interrupted'])
    .describe('`ended`: it made the recorded calls to the end of the turn, which has no further answer'),
  content: z.string().nullable().describe('The text of its last answer'),
  toolCalls: list(call).describe('The calls of its last answer, which did not run'),
  finishReason: z.string().optional(),
  model: z.string().optional().describe('As reported by the provider'),
  steps: count.describe('Its model calls'),
  used,
  duration: z.number().describe('Milliseconds in model calls'),
  requestHash: z.string().describe('Of its first request'),
  code: z.string().optional(),
  message: z.string().optional().describe('Why it failed'),
  /** Against the recorded turn. */
  verdict: z.enum(['same', 'different', 'diverged', 'failed', 'interrupted']),
});

const turn = fields({
  at: index.describe('The last answer of the turn'),
  recorded: fields({
    content: z.string().nullable(),
    toolCalls: list(call),
    finishReason: z.string().optional(),
    model: z.string().optional(),
    steps: count,
    used,
    requestHash: z.string(),
  }),
  control: list(run).describe('Runs of the unchanged request'),
  changed: list(run),
  failure: fields({ code: z.string(), message: z.string() })
    .optional()
    .describe('Why it could not be sent again'),
  truncated: z.literal(true).optional().describe('Its texts are cut: it did not fit an answer'),
});

const tally = fields({
  same: count,
  different: count,
  diverged: count,
  failed: count,
  interrupted: count,
  used,
});

const whatIf = {
  id: z.string(),
  conversation: z.string(),
  agent: z.string(),
  state: z.enum(['queued', 'running', 'done', 'interrupted', 'stopped', 'limited']),
  /** Why it is `limited`. */
  reason: z.string().optional(),
  by: z.string().describe('Who started it'),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  start: z.enum(['turn', 'answer']),
  change: fields({
    model: z.string().nullable(),
    persona: z.string().nullable().describe('Of a long one, the beginning that fits the answer'),
  }),
  runs: count.describe('Of each side, for each turn'),
  done: count.describe('Runs that ended, of both sides'),
  total: count,
  turns: count,
  control: tally,
  changed: tally,
};

export const whatIfSummary = fields(whatIf);
export const whatIfList = fields({ whatIfs: list(whatIfSummary) });
export const whatIfResult = fields({
  ...whatIf,
  results: list(turn).describe('From the position `from` on, as many as fit'),
  next: z.int().nullable().describe('The `from` of the next page'),
});

export type WhatIfSummary = z.output<typeof whatIfSummary>;
export type WhatIfTurn = z.output<typeof turn>;
export type WhatIfRun = z.output<typeof run>;
export type WhatIfTally = z.output<typeof tally>;
