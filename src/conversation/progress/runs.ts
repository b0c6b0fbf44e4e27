import type { EntryOf } from '../log/entry.ts';
import { agentOfNode } from '../state/answering.ts';

/** The runs of a conversation, from its log, and the path of one through its workflow. */

/** A node that a run entered. */
export interface NodeVisit {
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
  /** The nodes that followed. */
  readonly to: readonly string[];
}

export interface RunSoFar {
  readonly runId: string;
  readonly workflowId: string;
  readonly steps: readonly NodeVisit[];
  readonly isOver: boolean;
}

type RunEntry = EntryOf<'run-started'> | EntryOf<'node-entered'> | EntryOf<'run-ended'>;

/** Oldest first. */
export function runsWith(runs: readonly RunSoFar[], entry: RunEntry): readonly RunSoFar[] {
  if (entry.type === 'run-started') {
    const { runId, workflowId } = entry;
    return [...runs, { runId, workflowId, steps: [], isOver: false }];
  }
  return runs.map((run) => (run.runId === entry.runId ? continued(run, entry) : run));
}

function continued(run: RunSoFar, entry: EntryOf<'node-entered'> | EntryOf<'run-ended'>): RunSoFar {
  const { outcome, summary = '', index } = entry;
  const to = entry.type === 'run-ended' ? 'end' : entry.node; // as workflows name it
  const steps = [...run.steps];
  const last = steps.length - 1;
  const from = entry.type === 'run-ended' ? stepOf(run, entry) : entry.from;
  const open = from === undefined ? last : run.steps.findLastIndex(({ node }) => node === from);
  const place = open < 0 ? last : open;
  const left = steps[place];
  if (outcome !== undefined && left) {
    const known = left.result?.to ?? [];
    steps[place] = { ...left, result: { outcome, summary, index, to: [...known, to] } };
  }
  if (entry.type === 'run-ended') return { ...run, steps, isOver: true };
  const agent = agentOfNode(entry);
  if (agent === null && entry.branch !== undefined) return { ...run, steps }; // it waits for the other branches
  return { ...run, steps: [...steps, { node: entry.node, index, agent, result: null }] };
}

/** The node of the agent that ended the run. */
function stepOf({ steps }: RunSoFar, { author }: EntryOf<'run-ended'>): string | undefined {
  return steps.findLast(({ agent, result }) => result === null && agent === author.id)?.node;
}

/** What a path needs of a workflow, as the verb `workflows` describes it. */
interface WorkflowNodes {
  readonly start: string;
  readonly nodes: readonly {
    readonly node: string;
    readonly agent: string;
    readonly outcomes: Readonly<Record<string, readonly string[]>>;
    readonly next?: readonly { readonly when: string; readonly to: readonly string[] }[] | undefined;
    readonly after?: readonly string[] | undefined;
  }[];
}

export interface PathNode {
  readonly node: string;
  readonly agent: string | null;
  readonly state: 'done' | 'current' | 'ahead';
  /** How often the run entered it. */
  readonly visits: number;
  /** Where it can lead, by the value and by the outcome. */
  readonly ways: readonly Way[];
  /** The first node of its branch, of those that are side by side; null: no others are. */
  readonly branch: string | null;
  /** To what is before it in the path: the workflow or the run leads here, it is side by side with that, or neither. */
  readonly relation: 'next' | 'beside' | 'apart' | null;
}

export interface Way {
  /** An outcome, or a condition on the value. */
  readonly by: string;
  readonly isCondition: boolean;
  readonly to: readonly string[];
  readonly taken: number;
}

/** The nodes in the order in which the run entered them, then those that it can still reach. Those of a branch are together. */
export function runPath(run: RunSoFar, workflow: WorkflowNodes | undefined): readonly PathNode[] {
  const known: Known = new Map(workflow?.nodes.map((one) => [one.node, one]));
  const branches = branchesOf(known);
  const path: string[] = [];
  for (const node of [...new Set(run.steps.map((step) => step.node)), ...aheadOf(run, workflow, known)]) {
    const branch = branches.get(node);
    const before = branch ? path.findLastIndex((other) => branches.get(other) === branch) : -1;
    path.splice(before < 0 ? path.length : before + 1, 0, node);
  }
  const relations = relationsIn(path, run, known);
  return path.map((node, place) => {
    const visits = run.steps.filter((step) => step.node === node);
    const isOpen = !run.isOver && visits.some(({ result }) => result === null);
    const ways = waysOf(known.get(node));
    return {
      node,
      agent: known.get(node)?.agent ?? visits[0]?.agent ?? null,
      state: isOpen ? 'current' : visits.length > 0 ? 'done' : 'ahead',
      visits: visits.length,
      branch: branches.get(node) ?? null,
      relation: relations[place] ?? null,
      ways: ways.map((way) => ({ ...way, taken: visits.filter((step) => wayOf(step, ways) === way).length })),
    };
  });
}

/** What the current nodes, else the newest, can lead to. A node is after the one before it, unless others lead there too. */
function aheadOf({ steps, isOver }: RunSoFar, workflow: WorkflowNodes | undefined, known: Known): string[] {
  if (isOver || !workflow) return [];
  const reached = (from: readonly string[]) => {
    const nodes = new Set(from);
    for (const node of nodes) for (const one of nextOf(node, known)) if (known.has(one)) nodes.add(one); // walked, too
    return nodes;
  };
  const open = steps.filter(({ result }) => result === null);
  const current = (open.length > 0 ? open : steps.slice(-1)).map(({ node }) => node).reverse();
  const rest = reached(current.length > 0 ? current : [workflow.start]);
  for (const { node } of steps) rest.delete(node);
  const ahead: string[] = [];
  for (let last = current[0] ?? ''; rest.size > 0; rest.delete(last)) {
    const [first = '', ...others] = rest;
    const next = nextOf(last, known);
    const isFree = (node: string) => ![...rest].some((one) => one !== node && reached([one]).has(node));
    last = next.includes(first) ? first : (others.find((one) => next.includes(one) && isFree(one)) ?? first);
    ahead.push(last);
  }
  return ahead;
}

/** How each node of a path is related to what is before it. */
function relationsIn(path: readonly string[], { steps }: RunSoFar, known: Known): PathNode['relation'][] {
  const leads = (from: string, to: string) =>
    nextOf(from, known).includes(to) ||
    steps.some(({ node, result }) => node === from && result?.to.includes(to));
  const forks = [...known.values()].flatMap(waysOf).map(({ to }) => to);
  const branches = branchesOf(known);
  let before: string[] = []; // the node before, or the nodes of the branches before
  return path.map((node, place) => {
    const last = path[place - 1] ?? '';
    const [branch = '', other = ''] = [branches.get(node), branches.get(last)];
    const isSame = branch !== '' && branch === other;
    const isBeside = !isSame && forks.some((to) => to.includes(branch) && to.includes(other));
    const isNext = (isSame ? [last] : before).some((one) => leads(one, node));
    const relation = place === 0 ? null : isBeside ? 'beside' : isNext ? 'next' : 'apart';
    before = isSame || isBeside ? [...before, node] : [node];
    return relation;
  });
}

type KnownNode = WorkflowNodes['nodes'][number];
type Known = ReadonlyMap<string, KnownNode>;

const nextOf = (node: string, known: Known): readonly string[] =>
  waysOf(known.get(node)).flatMap(({ to }) => to);

/** By node, the first one of its branch: until a node at which branches meet. */
function branchesOf(known: Known): ReadonlyMap<string, string> {
  const first = [...known.values()].flatMap(waysOf).filter(({ to }) => to.length > 1);
  const branches = new Map(first.flatMap(({ to }) => to).map((node) => [node, node]));
  for (const [node, branch] of branches)
    for (const one of nextOf(node, known))
      if (!branches.has(one) && known.has(one) && !known.get(one)?.after?.length) branches.set(one, branch); // walked, too
  return branches;
}

type KnownWay = Omit<Way, 'taken'>;

function waysOf(node: KnownNode | undefined): readonly KnownWay[] {
  const { next = [], outcomes = {} } = node ?? {};
  return [
    ...next.map(({ when, to }) => ({ by: when, isCondition: true, to })),
    ...Object.entries(outcomes).map(([by, to]) => ({ by, isCondition: false, to })),
  ];
}

/** The way that a step took: by its outcome if that leads where the run continued, else by a condition. */
export function wayOf<W extends KnownWay>({ result }: NodeVisit, ways: readonly W[]): W | undefined {
  if (!result) return undefined;
  const leads = ({ to }: W) => to.length === result.to.length && to.every((one) => result.to.includes(one));
  const own = ways.find(({ by, isCondition }) => !isCondition && by === result.outcome);
  return own && leads(own) ? own : (ways.find((way) => way.isCondition && leads(way)) ?? own);
}
