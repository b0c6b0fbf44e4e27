import { cut, type JsonRecord, type Refusal, refusal } from '../../kernel/index.ts';
import { type Author, SYSTEM_AUTHOR } from '../log/entry.ts';
import {
  type Condition,
  END,
  nodeOf,
  type Target,
  targetsOf,
  type Workflow,
  type WorkflowNode,
} from '../state/roster.ts';
import {
  type ConversationState,
  isStopped,
  type Run,
  type RunBranch,
  runFor,
  settingAt,
  type Turn,
  visitsOf,
} from '../state/state.ts';
import { escapeMarkers } from '../text/text.ts';
import type { ToolArguments } from '../tools/conversation-tools.ts';
import type { CallStep } from './call-step.ts';
import type { Post } from './command.ts';
import type { DecideContext, DecisionBuilder } from './decision-builder.ts';
import { addLimit } from './turn-entries.ts';

/**
 * Runs: a workflow executed node by node. The current nodes are part of the state, so a crash does not lose them.
 *
 * RUN-BRANCH-1 An outcome that leads to several nodes forks the run: one branch for each, with agents of their own. A message that names no
 *    agent is for the first of their agents that is neither at work nor stopped, else for the first.
 * RUN-BRANCH-2 Each branch is entered once, in the append that forks, and continues by itself. The configuration allows no fork within one.
 * RUN-BRANCH-3 A node with `after` is entered when the last branch comes. An entry without `to` says that a branch waits there.
 * RUN-BRANCH-4 A branch that leads to `end` ends the run, and the turns of the other branches.
 */

/**
 * Begins a run at its first node. Returns who receives its input, which is the next message that is routed to this agent (ROUTING-4).
 * An input of the same append has the delivery `queue`: it gets a turn of its own, also if the agent is busy.
 */
export function startRun(builder: DecisionBuilder, workflow: Workflow, by: Author): string[] {
  const runId = builder.context.newId();
  builder.add({ type: 'run-started', author: by, runId, workflowId: workflow.id });
  const run = { runId, workflowId: workflow.id, node: workflow.start };
  enterNode(builder, run, { hops: 0, by: by.id, wakes: false });
  const agent = builder.state.run?.agent;
  return agent ? [agent] : [];
}

/** Why a post may not start a run of `workflow` now; null: it may. */
export function refusalOfStart(builder: DecisionBuilder, message: Post, workflow: string): Refusal | null {
  const { workflows } = builder.context;
  if (!workflows.has(workflow)) return unknownWorkflow(workflow, workflows);
  const besides = Object.entries({
    to: message.to?.length,
    replyTo: message.replyTo,
    'delivery interrupt': message.delivery === 'interrupt',
    'includeInContext false': message.includeInContext === false,
    isCollapsed: message.isCollapsed,
    schema: message.schema,
  }).filter(([, given]) => given);
  if (besides.length > 0) {
    const names = besides.map(([name]) => name).join(', ');
    const message = `field workflow: it cannot be combined with ${names}`;
    return refusal(
      'INVALID_FIELD',
      message,
      'leave that out: the agent of the first node receives the text, and `answers` of the workflow is the schema of its value',
    );
  }
  const { run } = builder.state;
  if (!run) return null;
  return refusal(
    'RUN_CONFLICT',
    `a run of ${run.workflowId} is active in this conversation, at ${visitsOf(run)
      .map(({ node }) => `the node ${node}`)
      .join(' and ')}`,
    `post without workflow to take part in it, end it with \`parley mode ID chat\`, or use another conversation; ${knownWorkflows(workflows)}`,
  );
}

type Workflows = DecideContext['workflows'];

export function unknownWorkflow(name: string, workflows: Workflows): Refusal {
  return refusal('UNKNOWN_WORKFLOW', `there is no workflow ${name}`, knownWorkflows(workflows));
}

export function knownWorkflows(workflows: Workflows): string {
  return workflows.size > 0
    ? `workflows: ${[...workflows.keys()].join(', ')}`
    : 'add one to the folder workflows/ of the configuration';
}

const STOPPED =
  'is stopped and does nothing until a person resumes it: tell the person, and complete your node after that';

/** `complete_node`: the run enters the next node or ends. True: the turn is over. */
export function completeNode(step: CallStep, given: ToolArguments<'complete_node'>): boolean {
  const { outcome, summary, value } = given;
  const { builder, turn, call } = step;
  const { workflows, limits } = builder.context;
  const run = builder.state.run && runFor(builder.state.run, turn.agent);
  const node = run && nodeOf(workflows, run.workflowId, run.node);
  const asked = settingAt(builder.state, call.upTo, turn.agent).run; // may be another run or node than the current one
  const isTheirs = run?.agent === turn.agent && asked?.runId === run.runId && asked.node === run.node;
  if (!run || !node || !isTheirs) return step.refuse('NO_NODE', 'no node of a run is yours now');
  const named = Object.hasOwn(node.outcomes, outcome) ? node.outcomes[outcome] : undefined;
  if (named === undefined) {
    const known = Object.keys(node.outcomes).join(', ');
    return step.refuse('UNKNOWN_OUTCOME', `the outcomes of ${run.node} are ${known}; not ${outcome}`);
  }
  const next = nextNodes(node, named, value);
  const isEnd = next[0] === END;
  const schema = schemaOfNode(workflows.get(run.workflowId), node, next);
  const fault = schema && valueFault(builder, schema, value);
  if (fault) return step.refuse('INVALID_ARGUMENTS', `complete_node: ${fault}`);
  const valued = schema ? { value } : {};
  if (!isEnd && turn.hops + 1 > limits.hopsPerTrigger) {
    const message = `this run went from node to node ${turn.hops} times; the limit is ${limits.hopsPerTrigger}`;
    addLimit(builder, turn, 'hopsPerTrigger', message);
    return step.refuse('HOP_LIMIT', `${message}. Report the state of the work to the person.`);
  }
  const awaited = awaitedAt(builder, run, next);
  for (const name of awaited.length > 0 ? [] : next) {
    const to = nodeOf(workflows, run.workflowId, name)?.agent;
    if (to !== undefined && isStopped(builder.state, to))
      return step.refuse('AGENT_STOPPED', `${to}, the agent of ${name}, ${STOPPED}`);
  }
  const where = next.join(' and ');
  const waits = `Your branch of the run waits at ${where} for ${awaited.map(({ node: name }) => name).join(' and ')}.`;
  const continues = `The run continues at ${where}${next.length > 1 ? ', side by side' : ''}.`;
  step.addResult({
    content: isEnd ? 'The run has ended.' : awaited.length > 0 ? waits : continues,
  });
  if (isEnd) {
    endRun(builder, step.author, { outcome, summary, ...valued, turnId: turn.turnId });
    return true;
  }
  enterNext(builder, turn, run, next, { outcome, summary, ...valued, wakes: awaited.length === 0 });
  return true;
}

/** A node that does not wake waits for other branches. */
function enterNext(
  builder: DecisionBuilder,
  turn: Turn,
  run: Run,
  next: readonly string[],
  entry: NodeResult & Pick<NodeEntry, 'wakes'>,
): void {
  const isMeeting = run.branch !== undefined && isJoin(builder, run, next);
  for (const name of next) {
    const branch = next.length > 1 ? name : isMeeting && entry.wakes ? undefined : run.branch;
    const hops = Math.max(turn.hops, ...(branch === undefined ? hopsOfBranches(builder, run) : [])) + 1;
    enterNode(
      builder,
      { ...run, node: name, branch },
      { ...entry, from: run.node, hops, by: turn.agent, waits: !entry.wakes },
    );
  }
}

/** The branches meet at this node. */
function isJoin({ context }: DecisionBuilder, run: Run, [next = '']: readonly string[]): boolean {
  return nodeOf(context.workflows, run.workflowId, next)?.after !== undefined;
}

/** RUN-BRANCH-3: the branches that have not come to the node where they meet. */
function awaitedAt(builder: DecisionBuilder, run: Run, next: readonly string[]): readonly RunBranch[] {
  if (run.branch === undefined || !isJoin(builder, run, next)) return [];
  return (run.branches ?? []).filter(({ branch, agent }) => branch !== run.branch && agent !== null);
}

function hopsOfBranches(builder: DecisionBuilder, { branches = [] }: Run): number[] {
  return branches.map(({ enteredAt }) => {
    const entry = builder.entryAt(enteredAt);
    return entry?.type === 'node-entered' ? (entry.hops ?? 0) - 1 : 0;
  });
}

function valueFault({ context }: DecisionBuilder, schema: JsonRecord, value: unknown): string | null {
  if (value === undefined)
    return `value is missing: this node needs one that matches ${JSON.stringify(schema)}`;
  return context.tools.argumentsFault?.('value', schema, value, 'workflow') ?? null;
}

interface NodeResult {
  readonly outcome: string;
  readonly summary: string;
  readonly value?: unknown;
}

interface RunEnd extends NodeResult {
  readonly turnId?: string;
}

export function endRun(builder: DecisionBuilder, author: Author, end: RunEnd): void {
  const { run, mode } = builder.state;
  if (!run) return;
  const { runId, workflowId } = run;
  builder.add({ type: 'run-ended', author, runId, workflowId, ...end });
  // Leaves mode run, so that no directive remains after the run.
  builder.add({ type: 'mode-entered', author, from: mode, to: 'agent', by: author.name });
}

/** What the run needs and the configuration no longer contains; null: nothing is missing. */
export function missingForRun(
  { run }: ConversationState,
  { roster, workflows }: Pick<DecideContext, 'roster' | 'workflows'>,
): string | null {
  if (!run) return null;
  const { workflowId } = run;
  if (!workflows.has(workflowId)) return `workflow ${workflowId}`;
  for (const { node, agent } of run.branches ?? [run]) {
    if (!nodeOf(workflows, workflowId, node)) return `node ${node} of ${workflowId}`;
    if (agent !== null && !roster.agents.has(agent)) return `agent ${agent}`;
  }
  return null;
}

/** Ends a run that no message can advance. */
export function endRunOfRemoved(builder: DecisionBuilder): void {
  const missing = missingForRun(builder.state, builder.context);
  if (missing === null) return;
  const summary = `${missing} was removed from the configuration`;
  endRun(builder, SYSTEM_AUTHOR, { outcome: 'aborted', summary });
}

/** With the result of the node before. */
interface NodeEntry extends Partial<NodeResult> {
  readonly hops: number;
  /** The node before. */
  readonly from?: string;
  /** The agent or person that caused it. */
  readonly by: string;
  /** False: the agent waits for the run's input, or the branch for the others. */
  readonly wakes: boolean;
  readonly waits?: boolean;
}

/** Enters a node: its agent starts a turn (L14), or waits for the run's input. */
function enterNode(
  builder: DecisionBuilder,
  { runId, workflowId, node: name, branch }: Pick<Run, 'runId' | 'workflowId' | 'node' | 'branch'>,
  { by, wakes, waits = false, ...more }: NodeEntry,
): void {
  const node = nodeOf(builder.context.workflows, workflowId, name);
  if (!node) return;
  const known = builder.state.run?.values;
  const values = { ...known, ...('value' in more && more.from ? { [more.from]: more.value } : {}) };
  builder.add({
    type: 'node-entered',
    author: SYSTEM_AUTHOR,
    runId,
    workflowId,
    node: name,
    ...(!waits && { brief: filledBrief(node.brief, values) }),
    ...(wakes ? { to: [node.agent] } : !waits && { agent: node.agent }),
    ...(branch !== undefined && { branch }),
    ...more,
    meta: { by },
  });
}

/** Characters of one reference. */
const LONGEST = 8_192;

export const REFERENCE = /\{\{\s*nodes\.([\w-]+)\.value((?:\.[\w-]+)*)\s*\}\}/g;

/** The value of the outcome that ends the run is that of the workflow, if it has one. Undefined: the node gives none if it ends so. */
export function schemaOfNode(
  workflow: Workflow | undefined,
  node: WorkflowNode,
  [next]: readonly string[],
): JsonRecord | undefined {
  return next === END ? (workflow?.answers ?? node.answers) : node.answers;
}

/** Where the run continues after this outcome. */
function nextNodes({ next = [] }: WorkflowNode, ofOutcome: Target, value: unknown): readonly string[] {
  return targetsOf(next.find(({ when }) => holds(when, value))?.to ?? ofOutcome);
}

function holds({ path, equals, above, below }: Condition, value: unknown): boolean {
  const found = valueAt(value, keysOf(path));
  if (above !== undefined) return typeof found === 'number' && found > above;
  return below === undefined ? found === equals : typeof found === 'number' && found < below;
}

export function conditionText({ path, equals, above, below }: Condition): string {
  if (above !== undefined) return `${path} above ${above}`;
  return below === undefined ? `${path} is ${JSON.stringify(equals)}` : `${path} below ${below}`;
}

const keysOf = (path: string): string[] => path.split('.').filter((key) => key !== '');

function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined,
    value,
  );
}

/**
 * Values that the nodes of a run give: passed on in briefs, and branched on.
 *
 * NODE-VALUES-1 `{{nodes.NAME.value.PATH}}` in a brief is replaced where the node is entered. What a model wrote forges no marker.
 * NODE-VALUES-2 The configuration is refused if a reference or a condition can never have a value.
 */
export function filledBrief(brief: string, values: Readonly<Record<string, unknown>> = {}): string {
  return brief.replaceAll(REFERENCE, (_, node: string, path: string) => {
    const found = Object.hasOwn(values, node) ? valueAt(values[node], keysOf(path)) : undefined;
    if (found === undefined) return '(no value)';
    return escapeMarkers(cut(typeof found === 'string' ? found : JSON.stringify(found), LONGEST));
  });
}

/** Why a value of this schema never has this path; null: it can. */
export function pathFault(schema: JsonRecord, path: string): string | null {
  let at: unknown = schema;
  for (const key of keysOf(path)) {
    const properties = valueAt(at, ['properties']);
    const items = valueAt(at, ['items']);
    if (typeof properties === 'object' && properties !== null) {
      if (!Object.hasOwn(properties, key))
        return `there is no ${key}, but ${Object.keys(properties).join(', ')}`;
      at = Reflect.get(properties, key);
    } else if (/^\d+$/.test(key) && typeof items === 'object') at = items;
    else if (isClosed(at)) return `a value of the type ${String(valueAt(at, ['type']))} has no ${key}`;
    else return null; // the schema leaves it open
  }
  return null;
}

function isClosed(schema: unknown): boolean {
  const type = valueAt(schema, ['type']);
  return typeof type === 'string' && type !== 'object' && type !== 'array';
}
