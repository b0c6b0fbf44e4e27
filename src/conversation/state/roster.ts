import type { JsonRecord } from '../../kernel/index.ts';
import type { HireBudget, Mode } from '../log/entry.ts';
import { sharedTools } from '../tools/tool-rules.ts';

/** The public fields of an agent: its file's front matter (docs/guides/configure-agents.md). */
export interface AgentCard {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  /** It answers in these phases. */
  readonly phases: readonly string[];
  /** It answers in these modes if no other rule decides. */
  readonly modes: readonly Mode[];
  /** `bus`: a program of yours; `acp`: a coding agent, which the daemon runs. */
  readonly runtime: 'local' | 'bus' | 'acp';
  /** Wire names of the tools its file lists. */
  readonly tools: readonly string[];
  /** It takes no tools that a post brings. */
  readonly clientTools?: false;
  /** The configured model that it calls; absent where no request is sent. */
  readonly model?: string;
}

/** The agents of a daemon or of a conversation, by slug, in slug order. */
export interface Roster {
  readonly agents: ReadonlyMap<string, AgentCard>;
  readonly defaultAgent: string;
  /** Names of the configured models, which a hired agent may call. */
  readonly models?: ReadonlySet<string>;
  /** The hired ones of `agents`. */
  readonly hired?: ReadonlyMap<string, HiredAgent>;
  /** Names and slugs of all agents that the conversation ever hired. */
  readonly takenNames?: readonly string[];
}

export function createRoster(
  cards: Iterable<AgentCard>,
  defaultAgent: string,
  models: Iterable<string> = [],
): Roster {
  return { agents: bySlug(cards), defaultAgent, models: new Set(models) };
}

function bySlug(cards: Iterable<AgentCard>): ReadonlyMap<string, AgentCard> {
  const sorted = [...cards].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  return new Map(sorted.map((card) => [card.slug, card]));
}

/** `project-manager` → `Project Manager`. */
export function nameFromSlug(slug: string): string {
  const words = slug.split('-').filter((word) => word !== '');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
}

/** An agent that an agent or an operator added to one conversation. Invariants: `decide/hiring.ts`. */
export interface HiredAgent {
  readonly card: AgentCard & { readonly model: string };
  readonly persona: string;
  readonly budget: HireBudget;
  /** Slug of the agent that hired it; null: a person did. */
  readonly maker: string | null;
  readonly depth: number;
  /** Index of its `agent-hired`. */
  readonly at: number;
  readonly isDismissed: boolean;
}

export type HiredAgents = Readonly<Record<string, HiredAgent>>;

/** Also the prototype of every `HiredAgents`: a slug like `constructor` finds nothing. */
export const NONE_HIRED: HiredAgents = Object.freeze(Object.create(null));

const rosters = new WeakMap<HiredAgents, WeakMap<Roster, Roster>>();

/** The roster of a conversation: the configured one, with the hired agents, without the dismissed ones (HIRING-4). */
export function rosterOf(configured: Roster, hired: HiredAgents): Roster {
  if (hired === NONE_HIRED) return configured;
  const known = rosters.get(hired) ?? new WeakMap<Roster, Roster>();
  rosters.set(hired, known);
  const roster = known.get(configured) ?? joined(configured, hired);
  known.set(configured, roster);
  return roster;
}

function joined(configured: Roster, hired: HiredAgents): Roster {
  const { defaultAgent, models = new Set() } = configured;
  const agents = new Map(configured.agents);
  const active = new Map<string, HiredAgent>();
  const inOrder = Object.values(hired).sort((a, b) => a.at - b.at); // makers first
  for (const one of inOrder) {
    const { slug, model } = one.card;
    const maker = one.maker === null ? null : agents.get(one.maker);
    if (one.isDismissed || maker === undefined || agents.has(slug) || !models.has(model)) continue;
    const tools = maker === null ? one.card.tools : sharedTools(one.card.tools, maker.tools);
    const card = { ...one.card, tools };
    agents.set(slug, card);
    active.set(slug, { ...one, card });
  }
  const takenNames = inOrder.flatMap(({ card }) => [card.slug, card.name]);
  return { agents: bySlug(agents.values()), defaultAgent, models, hired: active, takenNames };
}

/** The configured agent whose tool policy applies: of a hired agent its first maker's, or none if a person hired it. */
export function policyAgentOf(roster: Roster, slug: string): string {
  const maker = roster.hired?.get(slug)?.maker ?? null;
  return maker === null ? slug : policyAgentOf(roster, maker);
}

export interface WorkflowNode {
  readonly agent: string;
  /** Instructions for the agent. */
  readonly brief: string;
  /** Absent: all tools of the agent. */
  readonly tools?: readonly string[];
  /** Outcome → node, or `end`; several: they run side by side. */
  readonly outcomes: Readonly<Record<string, Target>>;
  /** Branches that meet here, by the nodes that they begin at: the node is entered once all have come. */
  readonly after?: readonly string[];
  /** The JSON Schema of the value that `complete_node` gives here. */
  readonly answers?: JsonRecord;
  /** The first that holds for the value has precedence over the node of the outcome. */
  readonly next?: readonly Branch[];
}

export interface Branch {
  readonly when: Condition;
  readonly to: Target;
}

/** A node or `end`; several nodes run side by side (RUN-BRANCH-1). */
export type Target = string | readonly string[];

export function targetsOf(target: Target): readonly string[] {
  return typeof target === 'string' ? [target] : target;
}

/** One of the three, of what is at `path` in the value. */
export interface Condition {
  readonly path: string;
  readonly equals?: string | number | boolean | null | undefined;
  readonly above?: number | undefined;
  readonly below?: number | undefined;
}

/** A workflow: nodes, the agent of each, and the node to which each outcome leads. */
export interface Workflow {
  readonly id: string;
  readonly start: string;
  readonly nodes: Readonly<Record<string, WorkflowNode>>;
  /** The JSON Schema of the value of a run: of the node that ends it. */
  readonly answers?: JsonRecord;
}

export type Workflows = ReadonlyMap<string, Workflow>;

/** An outcome that leads here ends the run. */
export const END = 'end';

export function nodeOf(workflows: Workflows, workflowId: string, node: string): WorkflowNode | undefined {
  const nodes = workflows.get(workflowId)?.nodes;
  return nodes && Object.hasOwn(nodes, node) ? nodes[node] : undefined;
}
