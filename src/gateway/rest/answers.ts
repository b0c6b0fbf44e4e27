import { z } from 'zod';
import { entrySchema, modeSchema } from '../../conversation/index.ts';

/** What the REST doors answer with. More fields may come: pass over what you do not know. */

const index = z.int().nonnegative();
const agent = z.string();

export const posted = z.looseObject({
  conversation: z.string(),
  id: z.string(),
  index,
  /** The id was in the log already. */
  duplicate: z.boolean(),
  agents: z.array(agent),
});

const standing = {
  id: z.string(),
  title: z.string().nullable(),
  phase: z.string(),
  mode: modeSchema,
  activeAgent: agent.nullable(),
  length: index,
};

export const conversations = z.looseObject({
  conversations: z.array(
    z.looseObject({
      ...standing,
      updatedAt: z.string(),
      tokens: z.number().optional(),
      usd: z.number().optional(),
      /** Whose turn runs, and whose waits for somebody. */
      running: z.array(agent),
      waiting: z.array(agent),
      /** Whose last turn a limit ended; `resume` continues them. */
      limited: z.array(agent),
      /** Stopped, with messages or a node of a run that wait for them; `resume` continues them. */
      stopped: z.array(agent),
    }),
  ),
  next: z.string().nullable(),
  /** Daemons that share the work and did not answer. */
  incomplete: z.array(z.string()).optional(),
});

export const conversation = z.looseObject({
  ...standing,
  run: z
    .looseObject({
      runId: z.string(),
      workflow: z.string(),
      node: z.string(),
      agent: agent.nullable(),
      awaitsInput: z.boolean().describe('True: the run begins with the first message to that agent'),
    })
    .nullable(),
  metadata: z.record(z.string(), z.unknown()),
  agents: z.record(
    agent,
    z.looseObject({
      lastProcessedMessageIndex: z.int(),
      sessionId: z.string().optional(),
      status: z.string(),
    }),
  ),
});

export const entries = z.looseObject({
  conversation: z.string(),
  length: index,
  entries: z.array(entrySchema),
});

export const view = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.string().nullable() })),
  report: z.record(z.string(), z.unknown()),
});

const count = z.int().nonnegative();

export const deleted = z.discriminatedUnion('deleted', [
  z.looseObject({
    deleted: z.literal(true),
    existed: z.boolean().describe('False: there was no such conversation'),
    erased: z
      .looseObject({
        entries: count.describe('Of the log'),
        records: count.describe('Of tool calls'),
        outputs: count.describe('Results of tools that were too large for the log'),
        posts: count.describe('In the ingress stream'),
        deadLetters: count.describe('Refused posts to this conversation'),
      })
      .describe('How many of each were removed'),
    left: z.array(z.string()).describe('What the daemon could not remove yet and tries again'),
    notReached: z.array(z.string()).describe('Where texts may be that no daemon can remove'),
  }),
  z
    .looseObject({
      deleted: z.literal(false),
      existed: z.literal(true),
      kept: z.string().describe('Why: it has a newer entry, or something is under way'),
    })
    .describe('With `lastEntryBefore` alone: the conversation stays'),
]);
export const accepted = z.looseObject({ accepted: z.literal(true) });

export const approvals = z.looseObject({
  approvals: z.array(
    z.looseObject({
      approvalId: z.string(),
      conversation: z.string(),
      agent,
      tool: z.string(),
      arguments: z.unknown(),
      risk: z.string(),
      mayHaveRun: z.boolean(),
    }),
  ),
});

export const agents = z.looseObject({
  agents: z.array(
    z.looseObject({
      slug: agent,
      name: z.string(),
      description: z.string(),
      phases: z.array(z.string()),
      modes: z.array(modeSchema),
      runtime: z.string(),
      status: z.string(),
    }),
  ),
});

export const tools = z.looseObject({
  tools: z.array(z.looseObject({ name: z.string(), risk: z.string() })),
  servers: z.array(z.looseObject({ server: z.string(), state: z.string() })),
});

export const phases = z.looseObject({
  phases: z.array(z.looseObject({ phase: z.string(), description: z.string(), next: z.array(z.string()) })),
});

export const workflows = z.looseObject({
  workflows: z.array(
    z.looseObject({
      id: z.string(),
      start: z.string(),
      nodes: z.array(z.looseObject({ node: z.string(), agent, outcomes: z.record(z.string(), z.string()) })),
    }),
  ),
});

/** Who the caller is to this daemon; a null publisher may act as any, a null name is for the caller to say. */
export const identity = z.looseObject({
  role: z.string(),
  publisher: z.string().nullable(),
  name: z.string().nullable(),
});

export const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  hint: z.string().optional(),
});
