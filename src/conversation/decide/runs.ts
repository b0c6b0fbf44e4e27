import { type Author, SYSTEM_AUTHOR } from '../log/entry.ts';
import { type ConversationState, isStopped, type OpenCall, settingAt, type Turn } from '../state/state.ts';
import { END, nodeOf, type Workflow } from '../state/workflow.ts';
import type { ToolArguments } from '../tools/conversation-tools.ts';
import type { DecideContext, Drafting } from './drafting.ts';
import { addLimit, addResult, refuse } from './records.ts';

/** Runs: a workflow executed node by node. Where a run stands is a fold of the log, so a crash goes on at the same node. */

/** Begins a run at its first node. Its input is the message `input`, else the next one that is routed to the node's agent (R4). */
export function startRun(drafting: Drafting, workflow: Workflow, by: Author, input?: string): void {
  const runId = drafting.context.newId();
  drafting.add({ type: 'run-started', author: by, runId, workflowId: workflow.id });
  const run = { runId, workflowId: workflow.id, node: workflow.start };
  enterNode(drafting, run, { hops: 0, by: by.id, wakes: false });
  const { mode, phase, run: entered } = drafting.state;
  if (input === undefined || !entered?.agent) return;
  // A turn of its own: the agent may be at work on something else.
  const to = [entered.agent];
  drafting.add({
    type: 'message',
    role: 'user',
    author: by,
    content: input,
    to,
    delivery: 'queue',
    mode,
    phase,
  });
}

const STOPPED =
  'is stopped and does nothing until a person resumes it: tell the person, and complete your node after that';

/** `complete_node`: the run moves on, or ends. True: the turn is over. */
export function completeNode(
  drafting: Drafting,
  turn: Turn,
  call: OpenCall,
  { outcome, summary }: ToolArguments<'complete_node'>,
): boolean {
  const { run } = drafting.state;
  const { workflows, limits } = drafting.context;
  const node = run && nodeOf(workflows, run.workflowId, run.node);
  const asked = settingAt(drafting.state, call.askedAt).run; // it may have been another run, or another node
  const isTheirs = run?.agent === turn.agent && asked?.runId === run.runId && asked.node === run.node;
  if (!run || !node || !isTheirs) {
    return refuse(drafting, turn, call, 'NO_NODE', 'no node of a run is yours now');
  }
  const next = Object.hasOwn(node.outcomes, outcome) ? node.outcomes[outcome] : undefined;
  if (next === undefined) {
    const known = Object.keys(node.outcomes).join(', ');
    return refuse(
      drafting,
      turn,
      call,
      'UNKNOWN_OUTCOME',
      `the outcomes of ${run.node} are ${known}; not ${outcome}`,
    );
  }
  if (next !== END && turn.hops + 1 > limits.hopsPerTrigger) {
    const message = `this run went from node to node ${turn.hops} times; the limit is ${limits.hopsPerTrigger}`;
    addLimit(drafting, turn, 'hopsPerTrigger', message);
    return refuse(drafting, turn, call, 'HOP_LIMIT', `${message}. Tell the person where things stand.`);
  }
  const to = nodeOf(workflows, run.workflowId, next)?.agent;
  if (to !== undefined && isStopped(drafting.state, to))
    return refuse(drafting, turn, call, 'AGENT_STOPPED', `${to}, the agent of ${next}, ${STOPPED}`);
  addResult(drafting, turn, call, {
    content: next === END ? 'The run has ended.' : `The run goes on at ${next}.`,
  });
  if (next === END)
    endRun(drafting, drafting.agentAuthor(turn.agent), { outcome, summary, turnId: turn.turnId });
  else
    enterNode(
      drafting,
      { ...run, node: next },
      { outcome, summary, hops: turn.hops + 1, by: turn.agent, wakes: true },
    );
  return true;
}

interface RunEnd {
  readonly outcome: string;
  readonly summary: string;
  readonly turnId?: string;
}

function endRun(drafting: Drafting, author: Author, end: RunEnd): void {
  const { run, mode } = drafting.state;
  if (!run) return;
  const { runId, workflowId } = run;
  drafting.add({ type: 'run-ended', author, runId, workflowId, ...end });
  // A finished run leaves no directive behind.
  drafting.add({ type: 'mode-entered', author, from: mode, to: 'agent', by: author.name });
}

/** What the run needs and the configuration no longer has; null: nothing. */
export function missingForRun(
  { run }: ConversationState,
  { roster, workflows }: Pick<DecideContext, 'roster' | 'workflows'>,
): string | null {
  if (!run) return null;
  const { workflowId, node, agent } = run;
  if (!workflows.has(workflowId)) return `workflow ${workflowId}`;
  if (!nodeOf(workflows, workflowId, node)) return `node ${node} of ${workflowId}`;
  return agent === null || roster.agents.has(agent) ? null : `agent ${agent}`;
}

/** No message can move this run on. */
export function endRunOfRemoved(drafting: Drafting): void {
  const missing = missingForRun(drafting.state, drafting.context);
  if (missing === null) return;
  const summary = `${missing} was removed from the configuration`;
  endRun(drafting, SYSTEM_AUTHOR, { outcome: 'aborted', summary });
}

interface NodeEntry {
  readonly hops: number;
  readonly outcome?: string;
  readonly summary?: string;
  /** The agent or person that moved the run here. */
  readonly by: string;
  /** False: the agent waits for the run's input. */
  readonly wakes: boolean;
}

/** Enters a node: its agent is woken (L14), or waits for the run's input. */
function enterNode(
  drafting: Drafting,
  run: { readonly runId: string; readonly workflowId: string; readonly node: string },
  { hops, outcome, summary, by, wakes }: NodeEntry,
): void {
  const node = nodeOf(drafting.context.workflows, run.workflowId, run.node);
  if (!node) return;
  drafting.add({
    type: 'node-entered',
    author: SYSTEM_AUTHOR,
    runId: run.runId,
    workflowId: run.workflowId,
    node: run.node,
    brief: node.brief,
    ...(wakes ? { to: [node.agent] } : { agent: node.agent }),
    outcome,
    summary,
    hops,
    meta: { by },
  });
}
