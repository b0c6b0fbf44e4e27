import type { Mode } from '../log/entry.ts';

/** What everybody may know of an agent: its file's front matter (docs/guides/configure-agents.md). */
export interface AgentCard {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  /** It answers in these phases. */
  readonly phases: readonly string[];
  /** It answers in these modes if no other rule decides. */
  readonly modes: readonly Mode[];
  readonly runtime: 'local' | 'bus';
  /** Wire names of the tools its file lists. */
  readonly tools: readonly string[];
}

/** The agents of a daemon, by slug, in slug order. */
export interface Roster {
  readonly agents: ReadonlyMap<string, AgentCard>;
  readonly defaultAgent: string;
}

export function createRoster(cards: Iterable<AgentCard>, defaultAgent: string): Roster {
  const sorted = [...cards].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  return { agents: new Map(sorted.map((card) => [card.slug, card])), defaultAgent };
}

/** A workflow: nodes, the agent of each, and the node to which each outcome leads. */

export interface WorkflowNode {
  readonly agent: string;
  /** Instructions for the agent. */
  readonly brief: string;
  /** Absent: all tools of the agent. */
  readonly tools?: readonly string[];
  /** Outcome → node, or `end`. */
  readonly outcomes: Readonly<Record<string, string>>;
}

export interface Workflow {
  readonly id: string;
  readonly start: string;
  readonly nodes: Readonly<Record<string, WorkflowNode>>;
}

export type Workflows = ReadonlyMap<string, Workflow>;

/** An outcome that leads here ends the run. */
export const END = 'end';

export function nodeOf(workflows: Workflows, workflowId: string, node: string): WorkflowNode | undefined {
  const nodes = workflows.get(workflowId)?.nodes;
  return nodes && Object.hasOwn(nodes, node) ? nodes[node] : undefined;
}
