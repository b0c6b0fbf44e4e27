import { z } from 'zod';
import { activity, agent, count, fields, list, spent } from './answers.ts';

/** The answer of the verb `status`: what runs, waits or failed, and what the daemons are connected to. */

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
