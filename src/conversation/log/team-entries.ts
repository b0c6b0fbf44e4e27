import { z } from 'zod';
import { commonFields } from './entry-parts.ts';

/** The entries about agents: stopped, resumed, hired, dismissed, changed by a reload. */

/** What a hired agent and the agents that it hires may use together. */
export const hireBudgetSchema = z.strictObject({
  tokens: z.int().positive().optional().describe('input and output tokens together'),
  usd: z.number().positive().optional().describe('US dollars; counts models that have a price'),
});
export type HireBudget = z.infer<typeof hireBudgetSchema>;

/** What a reload changed of one agent. The hashes name its definitions; absent: there was or is no such agent. */
export const teamChangeSchema = z.object({
  agent: z.string(),
  change: z.enum(['added', 'changed', 'removed']),
  before: z.string().optional(),
  after: z.string().optional(),
  /** The parts of the definition that differ: `persona`, `tool.read_file`. */
  parts: z.array(z.string()),
});
export type TeamChange = z.infer<typeof teamChangeSchema>;

export const teamFields = {
  'agent-stopped': {
    ...commonFields,
    type: z.literal('agent-stopped'),
    agent: z.string().nullable(),
    by: z.string(),
  },
  'agent-resumed': {
    ...commonFields,
    type: z.literal('agent-resumed'),
    agent: z.string().nullable(),
    by: z.string(),
  },
  'agent-hired': {
    ...commonFields,
    type: z.literal('agent-hired'),
    /** Its slug. It answers in this conversation only (docs/guides/hire-agents.md). */
    agent: z.string(),
    name: z.string(),
    description: z.string(),
    persona: z.string(),
    /** Names and patterns, all within those of its maker. */
    tools: z.array(z.string()),
    model: z.string(),
    budget: hireBudgetSchema.optional(),
    /** Id of the author: the agent or person who hired it. */
    by: z.string(),
    /** Number of hires from a configured agent or a person to this one: 1 or more. */
    depth: z.int().positive(),
  },
  'agent-dismissed': {
    ...commonFields,
    type: z.literal('agent-dismissed'),
    agent: z.string(),
    by: z.string(),
    reason: z.string().optional(),
  },
  /** The configuration of these agents was replaced (docs/guides/change-a-running-team.md). */
  'team-changed': {
    ...commonFields,
    type: z.literal('team-changed'),
    agents: z.array(teamChangeSchema),
  },
} as const;
