import { z } from 'zod';
import { count, fields, index, list, used } from './answers.ts';
import { slugShape } from './post.ts';

/** Requests and answers of the verbs about what-ifs; `contract.ts` has the table. */

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
  /** Entries of the turns to send again, or every turn of the agent. */
  at: z.union([index, z.array(index).min(1).max(MOST_TURNS), z.literal('all')]),
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

const summary = {
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
  change: fields({ model: z.string().nullable(), persona: z.boolean() }),
  runs: count.describe('Of each side, for each turn'),
  done: count.describe('Runs that ended, of both sides'),
  total: count,
  turns: count,
  control: tally,
  changed: tally,
};

export const whatIfSummary = fields(summary);
export const whatIfList = fields({ whatIfs: list(whatIfSummary) });
export const whatIfResult = fields({
  ...summary,
  results: list(turn).describe('From the position `from` on, as many as fit'),
  next: z.int().nullable().describe('The `from` of the next page'),
});

export type WhatIfSummary = z.output<typeof whatIfSummary>;
export type WhatIfTurn = z.output<typeof turn>;
export type WhatIfRun = z.output<typeof run>;
export type WhatIfTally = z.output<typeof tally>;
