import type { AgentSetup, Model, RequestSources, RetryPolicy, Summariser, Toolbox } from '../agents/index.ts';
import type { PublishersConfig } from '../config/index.ts';
import type { ConversationRules, ConversationState } from '../conversation/index.ts';
import type { ConfiguredModels } from './what-if/models.ts';

/** An agent with its model. */
export interface RunningAgent extends AgentSetup {
  readonly model: Model;
  /** Null: an extract without a model replaces what does not fit. */
  readonly summariser: Summariser | null;
  /** `absentMsOf` */
  readonly absentMs?: number | null;
}

/** The limits that are enforced while a turn runs (L15); the others are decided by the core. */
export interface RunLimits {
  readonly turnSeconds: number;
  readonly tokensPerConversation: number | null;
  readonly usdPerConversation: number | null;
}

/**
 * Everything that comes from the files of agents, prompts, phases, workflows, models, tool policy, limits and approvals.
 *
 * TEAM-1 A team is immutable. A reload replaces it as a whole, so no decision sees parts of two configurations.
 * TEAM-2 Decisions use the team of their moment. The request, model, window and price of a turn come from the definition
 *        that the turn started with (DEFINITIONS-2).
 */
export interface Team {
  readonly sources: RequestSources;
  readonly rules: ConversationRules;
  readonly agents: ReadonlyMap<string, RunningAgent>;
  readonly retry: RetryPolicy;
  /** Under the tool policy. */
  readonly toolbox: Toolbox;
  /** Publishers that may answer approvals; `*`: all. Empty: only the operator. */
  readonly approvers: readonly string[];
  /** How long a call waits for an approval; null: without limit. */
  readonly approvalExpiryMs: number | null;
  readonly limits: RunLimits;
  readonly publishers: PublishersConfig;
  readonly models: ConfiguredModels;
  /** The team in a conversation. */
  for(state: ConversationState): Team;
}

/** How long a turn of this agent waits for its program to connect; null: it does not wait. */
export function absentMsOf({ agents, limits }: Pick<Team, 'agents' | 'limits'>, slug: string): number | null {
  const absentMs = agents.get(slug)?.absentMs ?? null;
  return absentMs && Math.min(absentMs, limits.turnSeconds * 1_000);
}
