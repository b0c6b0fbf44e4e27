/** A workflow: nodes, each worked on by one agent, and where each outcome leads. */

export interface WorkflowNode {
  readonly agent: string;
  /** What is to be done here; the agent reads it. */
  readonly brief: string;
  /** Absent: all that the agent has. */
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

/** The outcome of a node that leads here ends the run. */
export const END = 'end';

export function nodeOf(workflows: Workflows, workflowId: string, node: string): WorkflowNode | undefined {
  const nodes = workflows.get(workflowId)?.nodes;
  return nodes && Object.hasOwn(nodes, node) ? nodes[node] : undefined;
}
