import type { EntryOf } from '../../../conversation/index.ts';
import { agentOfNode } from '../../../conversation/state/answering.ts';
import type { Workflow } from '../answers.ts';

/** The runs of a conversation, from its log, and the path of one through its workflow. */

/** A node that a run entered. */
export interface Step {
  readonly node: string;
  readonly index: number;
  readonly agent: string | null;
  /** How it was completed, and the summary for the next node; null: it is not. */
  readonly result: Result | null;
}

interface Result {
  readonly outcome: string;
  readonly summary: string;
  /** The entry that says so. */
  readonly index: number;
}

export interface Run {
  readonly runId: string;
  readonly workflowId: string;
  readonly steps: readonly Step[];
  readonly isOver: boolean;
}

type RunEntry = EntryOf<'run-started'> | EntryOf<'node-entered'> | EntryOf<'run-ended'>;

/** Oldest first. */
export function runsWith(runs: readonly Run[], entry: RunEntry): readonly Run[] {
  if (entry.type === 'run-started') {
    const { runId, workflowId } = entry;
    return [...runs, { runId, workflowId, steps: [], isOver: false }];
  }
  return runs.map((run) => (run.runId === entry.runId ? continued(run, entry) : run));
}

function continued(run: Run, entry: EntryOf<'node-entered'> | EntryOf<'run-ended'>): Run {
  const { outcome, summary = '', index } = entry;
  const result = outcome === undefined ? null : { outcome, summary, index };
  const last = run.steps.length - 1;
  const steps = run.steps.map((step, place) => (place === last && result ? { ...step, result } : step));
  if (entry.type === 'run-ended') return { ...run, steps, isOver: true };
  const agent = agentOfNode(entry);
  return { ...run, steps: [...steps, { node: entry.node, index, agent, result: null }] };
}

export interface PathNode {
  readonly node: string;
  readonly agent: string | null;
  readonly state: 'done' | 'current' | 'ahead';
  /** How often the run entered it. */
  readonly visits: number;
  readonly outcomes: readonly { readonly outcome: string; readonly to: string; readonly taken: number }[];
}

/** The nodes in the order in which the run entered them; then those ahead, from the newest one on. */
export function pathOf(run: Run, workflow: Workflow | undefined): readonly PathNode[] {
  const known = new Map(workflow?.nodes.map((one) => [one.node, one]));
  const visited = run.steps.map(({ node }) => node);
  const order = new Set(visited);
  const ahead = new Set([...visited.slice(-1), ...visited, ...(workflow ? [workflow.start] : [])]);
  for (const node of ahead) {
    order.add(node);
    for (const to of Object.values(known.get(node)?.outcomes ?? {})) if (known.has(to)) ahead.add(to); // walked, too
  }
  const current = run.isOver ? undefined : run.steps.at(-1)?.node;
  return [...order].map((node) => {
    const visits = run.steps.filter((step) => step.node === node);
    const taken = (outcome: string) => visits.filter(({ result }) => result?.outcome === outcome).length;
    const outcomes = Object.entries(known.get(node)?.outcomes ?? {});
    return {
      node,
      agent: known.get(node)?.agent ?? visits[0]?.agent ?? null,
      state: node === current ? 'current' : visits.length > 0 ? 'done' : 'ahead',
      visits: visits.length,
      outcomes: outcomes.map(([outcome, to]) => ({ outcome, to, taken: taken(outcome) })),
    };
  });
}
