import { join } from 'node:path';
import { z } from 'zod';
import {
  END,
  pathFault,
  REFERENCE,
  sharedTools,
  type Target,
  targetsOf,
  type Workflow,
  type WorkflowNode,
} from '../../conversation/index.ts';
import { isRecord, type JsonRecord, nearest } from '../../kernel/index.ts';
import { check } from '../files/check.ts';
import { listFiles, readIfThere } from '../files/read-file.ts';
import { parseMapping, type YamlSource } from '../files/yaml-file.ts';
import { didYouMean, type KeyPath, overlap, type Problems, show } from '../problems.ts';
import type { ToolsConfig } from '../schema/config.ts';
import { toolName } from '../schema/tools-file.ts';
import { type LoadedAgent, SCHEMA_WANTED, schemaCheck } from './agents.ts';
import { unknownTool } from './tools.ts';

/**
 * Reads `workflows/<id>.yaml`.
 *
 * WORKFLOWS-1 Every name in a workflow is known: agents, nodes and tools; and a node's agent has its tools.
 * WORKFLOWS-2 Every node is reachable from the start, and `end` is reachable from every node.
 * WORKFLOWS-4 A value that a brief or a condition names is one that its node gives, with this path (NODE-VALUES-2).
 * WORKFLOWS-3 A mistake is reported once: paths are checked only if every node and every outcome is valid.
 */

interface WorkflowContext {
  readonly agents: readonly LoadedAgent[];
  readonly tools: ToolsConfig;
}

interface Surroundings extends WorkflowContext {
  readonly faultOf: (schema: unknown) => string | null;
}

/** Every node has this tool in a run, even if its agent does not list it. */
const IMPLICIT_TOOL = 'complete_node';
const ENDING = '.yaml';

export async function loadWorkflows(
  directory: string,
  surroundings: WorkflowContext,
  problems: Problems,
): Promise<Workflow[]> {
  const folder = join(directory, 'workflows');
  const workflows: Workflow[] = [];
  for (const name of await listFiles(folder, ENDING, problems)) {
    const file = join(folder, name);
    const text = await readIfThere(file, problems);
    if (text === null) continue;
    const source = parseMapping(file, text, problems);
    if (!source.isValid) continue;
    const faultOf = text.includes('answers') ? await schemaCheck() : () => null;
    const reader = new WorkflowReader(
      name.slice(0, -ENDING.length),
      source,
      { ...surroundings, faultOf },
      problems,
    );
    const workflow = reader.read();
    if (workflow) workflows.push(workflow);
  }
  return workflows;
}

/** Reads one file. Reports every problem; returns a workflow only without one. */
class WorkflowReader {
  readonly #id: string;
  readonly #source: YamlSource;
  readonly #surroundings: Surroundings;
  readonly #problems: Problems;
  readonly #reported: KeyPath[] = [];
  /** All names in the file, including those of invalid nodes: a reference to one is not a second mistake (WORKFLOWS-3). */
  readonly #nodeNames: readonly string[];

  constructor(id: string, source: YamlSource, surroundings: Surroundings, problems: Problems) {
    this.#id = id;
    this.#source = source;
    this.#surroundings = surroundings;
    this.#problems = problems;
    this.#nodeNames = isRecord(source.data.nodes) ? Object.keys(source.data.nodes) : [];
  }

  read(): Workflow | null {
    const { data, locate } = this.#source;
    const input = { data, locate, origin: () => undefined, reported: this.#reported };
    const file = check(workflowFileSchema, input, this.#problems);
    this.#checkId(file);
    const nodes = this.#readNodes(file);
    if (file.answers) this.#checkSchema(['answers'], file.answers);
    for (const [name, node] of Object.entries(nodes)) this.#checkValues(name, node, nodes, file);
    const start = file.start ?? this.#missing(['start'], 'the node at which a run begins');
    if (start !== null && !this.#nodeNames.includes(start) && this.#nodeNames.length > 0) {
      this.#refuseName(['start'], start, 'a node', this.#nodeNames);
    }
    if (start === null || !this.#hasSoundPaths()) return null;
    this.#checkPaths(nodes, start);
    for (const { path, seen, expected } of branchFaults(nodes, start)) this.#refuse(path, seen, expected);
    return { id: this.#id, start, nodes, ...(file.answers && { answers: file.answers }) };
  }

  #checkId({ id }: WorkflowFile): void {
    if (!NAME_PATTERN.test(this.#id)) {
      const hint = 'the file name is the id by which a run is started: rename the file';
      this.#report([], `a file named ${show(this.#id)}`, `a name of ${NAME_RULE}`, { hint });
      return;
    }
    const expected = `${this.#id}, as the file is named`;
    if (id === undefined) this.#missing(['id'], expected);
    else if (id !== this.#id) this.#refuse(['id'], show(id), expected);
  }

  #readNodes({ nodes }: WorkflowFile): Record<string, WorkflowNode> {
    if (nodes === undefined) this.#missing(['nodes'], 'at least one node');
    else if (this.#nodeNames.length === 0) this.#refuse(['nodes'], null, 'at least one node');
    if (this.#nodeNames.includes(END)) {
      this.#report(['nodes', END], `a node named ${show(END)}`, 'another name: this one is where a run ends');
    }
    const read = Object.entries(nodes ?? {}).map(
      ([name, node]) => [name, this.#readNode(name, node)] as const,
    );
    return Object.fromEntries(read);
  }

  #readNode(name: string, { agent, brief, tools, outcomes, answers, next, after }: NodeFile): WorkflowNode {
    const path = ['nodes', name];
    if (agent === undefined) this.#missing([...path, 'agent'], 'the agent that works on this node');
    if (brief === undefined) this.#missing([...path, 'brief'], 'what is to be done here; the agent reads it');
    const known = agent === undefined ? undefined : this.#findAgent([...path, 'agent'], agent);
    for (const [place, tool] of (tools ?? []).entries())
      this.#checkTool([...path, 'tools', place], tool, known);
    this.#checkOutcomes([...path, 'outcomes'], outcomes);
    if (answers) this.#checkSchema([...path, 'answers'], answers);
    return {
      agent: agent ?? '',
      brief: brief ?? '',
      ...(tools && { tools }),
      outcomes: outcomes ?? {},
      ...(answers && { answers }),
      ...(next && { next }),
      ...(after && { after: this.#checkAfter([...path, 'after'], after) }),
    };
  }

  #findAgent(path: KeyPath, slug: string): LoadedAgent | undefined {
    const { agents } = this.#surroundings;
    const found = agents.find(({ config }) => config.slug === slug);
    const slugs = agents.map(({ config }) => config.slug);
    if (!found && slugs.length > 0) this.#refuseName(path, slug, 'an agent', slugs);
    return found;
  }

  /** WORKFLOWS-1: a tool that the agent does not have would be omitted silently. */
  #checkTool(path: KeyPath, tool: string, agent: LoadedAgent | undefined): void {
    if (tool === IMPLICIT_TOOL) return;
    const unknown = unknownTool(tool, this.#surroundings.tools);
    if (unknown !== null) {
      this.#refuse(path, show(tool), `a tool that is offered: ${unknown}`);
    } else if (
      agent &&
      sharedTools(agent.config.tools, [tool]).length === 0 &&
      !agent.isReported(['tools'])
    ) {
      const { slug, tools, file } = agent.config;
      const hint = `add it to the tools of ${file}, or remove it here`;
      const has = tools.length === 0 ? 'it has none' : `one of ${tools.join(', ')}`;
      this.#refuse(path, show(tool), `a tool that ${slug} has: ${has}`, { hint });
    }
  }

  #checkOutcomes(path: KeyPath, outcomes: NodeFile['outcomes']): void {
    const expected = `at least one outcome and where it leads: a node, or ${END}`;
    if (outcomes === undefined) this.#missing(path, expected);
    else if (Object.keys(outcomes).length === 0) this.#refuse(path, 'no outcomes', expected);
    for (const [outcome, next] of Object.entries(outcomes ?? {})) this.#checkTarget([...path, outcome], next);
  }

  #checkTarget(path: KeyPath, target: string | readonly string[]): void {
    const names = targetsOf(target);
    if (new Set(names).size < names.length) this.#refuse(path, show(names), 'each node once');
    for (const name of names) {
      if (names.length > 1 && name === END)
        this.#refuse(path, show(names), `nodes side by side, or ${END} alone`);
      else if (name !== END && !this.#nodeNames.includes(name))
        this.#refuseName(path, name, 'a node', [...this.#nodeNames, END]);
    }
  }

  #checkAfter(path: KeyPath, after: readonly string[]): readonly string[] {
    for (const name of after)
      if (!this.#nodeNames.includes(name)) this.#refuseName(path, name, 'a node', this.#nodeNames);
    return after;
  }

  #checkSchema(path: KeyPath, schema: JsonRecord): void {
    const fault = this.#surroundings.faultOf(schema);
    if (fault !== null) this.#refuse(path, fault, SCHEMA_WANTED);
  }

  /** WORKFLOWS-4 */
  #checkValues(name: string, node: WorkflowNode, nodes: Nodes, { answers }: WorkflowFile): void {
    const brief = ['nodes', name, 'brief'];
    for (const [whole, of = '', path = ''] of node.brief.matchAll(REFERENCE)) {
      const giver = Object.hasOwn(nodes, of) ? nodes[of] : undefined;
      const givers = Object.keys(nodes).filter((one) => nodes[one]?.answers);
      if (!giver) this.#refuseName(brief, of, `a node in ${whole}`, Object.keys(nodes));
      else if (!giver.answers)
        this.#refuse(
          brief,
          whole,
          `the value of a node with \`answers\`: ${givers.join(', ') || 'there is none'}`,
        );
      else this.#checkPath(brief, whole, giver.answers, path);
    }
    const [odd] = /\{\{\s*node[^}]*\}\}/.exec(node.brief.replaceAll(REFERENCE, '')) ?? [];
    if (odd) this.#refuse(brief, odd, '{{nodes.NAME.value}} or {{nodes.NAME.value.PATH}}');
    for (const [place, { when, to }] of (node.next ?? []).entries()) {
      const path = ['nodes', name, 'next', place];
      this.#checkTarget([...path, 'to'], to);
      const schema = node.answers ?? (to === END ? answers : undefined);
      if (!schema) this.#refuse(path, 'a condition', `\`answers\` beside it: ${name} gives no value`);
      else this.#checkPath([...path, 'when', 'path'], when.path, schema, when.path);
    }
  }

  #checkPath(key: KeyPath, seen: string, schema: JsonRecord, path: string): void {
    const fault = pathFault(schema, path);
    if (fault !== null) this.#refuse(key, seen, `a path in the value: ${fault}`);
  }

  #hasSoundPaths(): boolean {
    return !this.#reported.some(
      ([section, , key]) =>
        section === 'start' ||
        (section === 'nodes' &&
          (key === undefined || key === 'outcomes' || key === 'next' || key === 'after')),
    );
  }

  #checkPaths(nodes: Readonly<Record<string, WorkflowNode>>, start: string): void {
    const reached = reachable(nodes, start);
    const ends = ending(nodes);
    const stuck = [...reached].filter((name) => !ends.has(name));
    for (const name of this.#nodeNames) {
      if (reached.has(name)) continue;
      const hint = `name it in an outcome of ${[...reached].join(', ')}, or remove it`;
      this.#report(['nodes', name], 'an unreachable node', `a path from ${start} to it`, { hint });
    }
    if (stuck.length === reached.size) {
      this.#report(['nodes'], `no path from ${start} to ${END}`, `an outcome that leads to ${END}`);
      return;
    }
    for (const name of stuck) {
      const leadsTo = [...new Set(nextOf(nodes, name))].join(', ');
      const path = ['nodes', name, 'outcomes'];
      this.#report(
        path,
        `outcomes that lead to ${leadsTo}`,
        `a path from ${name} to ${END}, in any number of steps`,
      );
    }
  }

  #missing(path: KeyPath, expected: string): null {
    this.#refuse(path, null, expected);
    return null;
  }

  #refuseName(path: KeyPath, value: string, what: string, names: readonly string[]): void {
    const hint = didYouMean(nearest(value, names));
    this.#refuse(path, show(value), `${what}: one of ${names.join(', ')}`, hint);
  }

  #refuse(path: KeyPath, seen: string | null, expected: string, hint: { hint?: string } = {}): void {
    if (!this.#reported.some((one) => overlap(one, path))) this.#report(path, seen, expected, hint);
  }

  #report(path: KeyPath, seen: string | null, expected: string, hint: { hint?: string } = {}): void {
    if (path.length > 0) this.#reported.push(path);
    this.#problems.add({ source: this.#source.locate(path), key: path, seen, expected, ...hint });
  }
}

const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const NAME_RULE = 'letters, digits, _ and -, at most 64, that begin with a letter or digit';

/** Ids, nodes and outcomes: agents read and repeat them. */
const name = z.string().regex(NAME_PATTERN, `a name: ${NAME_RULE}`);

/** Each is a turn at once. */
const MOST_BRANCHES = 16;

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const condition = z
  .strictObject({
    path: z.string().min(1).describe('What of the value: keys joined by dots'),
    equals: scalar.optional().describe('It is this'),
    above: z.number().optional().describe('It is a number above this'),
    below: z.number().optional().describe('It is a number below this'),
  })
  .refine(
    ({ equals, above, below }) => [equals, above, below].filter((one) => one !== undefined).length === 1,
    {
      error: 'expected one of equals, above and below',
    },
  );
const target = z.union([
  z.string().min(1),
  z
    .array(name)
    .min(2)
    .max(MOST_BRANCHES)
    .describe('Nodes that run side by side, until they meet at a node with after'),
]);
const branch = z.strictObject({
  when: condition.describe('A condition on the value'),
  to: target.describe('The node that follows, or end'),
});
const jsonSchema = z.record(z.string(), z.unknown());

const node = z.strictObject({
  agent: z.string().min(1).optional().describe('The slug of the agent that works on this node'),
  brief: z.string().trim().min(1).optional().describe('What is to be done here; the agent reads it'),
  tools: z.array(toolName).optional().describe('Narrows the tools of the agent (default: all that it has)'),
  outcomes: z.record(name, target).optional().describe('Each outcome and the node that follows it, or end'),
  after: z
    .array(name)
    .min(2)
    .optional()
    .describe(
      'The nodes that run side by side and meet here: this one begins once all their branches have come',
    ),
  answers: jsonSchema.optional().describe('The JSON Schema of the value of this node'),
  next: z
    .array(branch)
    .optional()
    .describe('Where the run continues by the value: the first that holds; else by the outcome'),
});
type NodeFile = z.infer<typeof node>;

/**
 * The shape of `workflows/<id>.yaml`.
 *
 * Every key is optional here: `WorkflowReader` reports missing keys, so that the rest of the file is still checked
 * (FILES-CHECK-1).
 */
export const workflowFileSchema = z.strictObject({
  id: z.string().optional().describe('As the file is named, without .yaml'),
  start: z.string().min(1).optional().describe('The node at which a run begins'),
  nodes: z.record(name, node).optional().describe('The nodes by name'),
  answers: jsonSchema.optional().describe('The JSON Schema of the value of a run'),
});
type WorkflowFile = z.infer<typeof workflowFileSchema>;

/** For editors, which mark missing keys by the schema alone. */
export const completeWorkflowSchema = workflowFileSchema.required().extend({
  answers: workflowFileSchema.shape.answers,
  nodes: z
    .record(name, node.required({ agent: true, brief: true, outcomes: true }))
    .describe('The nodes by name'),
});

/** Every outcome names a node of the table, or `end`. */
type Outcomes = Readonly<Record<string, Pick<WorkflowNode, 'outcomes' | 'next'>>>;
type Nodes = Readonly<Record<string, WorkflowNode>>;

function nextOf(nodes: Outcomes, name: string): readonly string[] {
  const node = Object.hasOwn(nodes, name) ? nodes[name] : undefined;
  return [...Object.values(node?.outcomes ?? {}), ...(node?.next ?? []).map(({ to }) => to)].flatMap(
    targetsOf,
  );
}

/** The nodes that a run can reach, including `start`. */
function reachable(nodes: Outcomes, start: string): ReadonlySet<string> {
  const found = new Set([start]);
  for (const name of found) {
    // Iterating over a set includes values that are added during the iteration.
    for (const next of nextOf(nodes, name)) if (next !== END) found.add(next);
  }
  return found;
}

/** The nodes from which `end` is reachable. */
function ending(nodes: Outcomes): ReadonlySet<string> {
  const found = new Set<string>([END]);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const name of Object.keys(nodes)) {
      if (nextOf(nodes, name).some((next) => found.has(next))) found.add(name);
    }
  }
  found.delete(END);
  return found;
}

/**
 * Nodes that run side by side: what would be ambiguous is refused.
 *
 * WORKFLOWS-5 Each fork has one node at which its branches meet: `after` names the nodes that they begin at.
 * WORKFLOWS-6 Branches share no node and no agent. One is entered by its fork alone, forks no further, and is left only for the node
 *    where they meet, or `end`. A fork on a branch is reported alone: a node where it meets would not help.
 */
interface BranchFault {
  readonly path: KeyPath;
  readonly seen: string;
  readonly expected: string;
}

interface Edge {
  readonly from: string;
  readonly path: KeyPath;
  readonly to: readonly string[];
}

function branchFaults(nodes: Nodes, start: string): BranchFault[] {
  const edges = Object.entries(nodes).flatMap(([name, node]) => edgesOf(name, node));
  const joins = Object.entries(nodes).flatMap(([name, { after }]) => (after ? [{ name, after }] : []));
  const forks = edges.filter(({ to }) => to.length > 1);
  const sameAs = (list: readonly string[]) => (other: readonly string[]) =>
    list.length === other.length && list.every((one) => other.includes(one));
  const faults = nestedForks(edges, nodes);
  for (const { path, to } of forks) {
    if (faults.some((nested) => nested.path === path)) continue;
    const found = joins.filter(({ after }) => sameAs(to)(after));
    const expected = `one node with \`after: [${to.join(', ')}]\`, at which they meet`;
    if (found.length !== 1) faults.push({ path, seen: `[${to.join(', ')}]`, expected });
  }
  for (const { name, after } of joins) {
    const path = ['nodes', name, 'after'];
    if (!forks.some(({ to }) => sameAs(after)(to)))
      faults.push({ path, seen: show(after), expected: `an outcome that leads to [${after.join(', ')}]` });
  }
  if (faults.length > 0) return faults;
  for (const join of joins) faults.push(...faultsOfJoin(nodes, start, edges, join));
  return faults;
}

function nestedForks(edges: readonly Edge[], nodes: Nodes): BranchFault[] {
  const forks = edges.filter(({ to }) => to.length > 1);
  const branchOf = (fork: Edge, first: string) => {
    const own = new Set([first]);
    for (const name of own)
      for (const { to } of edges.filter(({ from }) => from === name))
        for (const target of to) if (!nodes[target]?.after && target !== fork.from) own.add(target);
    return own;
  };
  return forks.flatMap(({ from, path, to }) => {
    const outer = forks.find((fork) => {
      const on = fork.to.filter((first) => branchOf(fork, first).has(from));
      return on.length === 1; // a node that several branches lead to is where they are meant to meet
    });
    if (!outer || outer.from === from) return [];
    const [seen, meet] = [`[${to.join(', ')}]`, `[${outer.to.join(', ')}]`];
    const expected = `one node: ${from} is on a branch of ${meet}, and a branch forks no further. Fork where the branches of ${meet} have met, or let ${outer.from} lead to all of them`;
    return [{ path, seen, expected }];
  });
}

function edgesOf(from: string, { outcomes, next = [] }: WorkflowNode): Edge[] {
  const edge = (target: Target, ...key: (string | number)[]): Edge => ({
    from,
    path: ['nodes', from, ...key],
    to: targetsOf(target),
  });
  return [
    ...Object.entries(outcomes).map(([outcome, to]) => edge(to, 'outcomes', outcome)),
    ...next.map(({ to }, place) => edge(to, 'next', place, 'to')),
  ];
}

function faultsOfJoin(
  nodes: Nodes,
  start: string,
  edges: readonly Edge[],
  { name: join, after }: { readonly name: string; readonly after: readonly string[] },
): BranchFault[] {
  const faults: BranchFault[] = [];
  const fault = (path: KeyPath, seen: string, expected: string) => faults.push({ path, seen, expected });
  const meet = `a branch that leads to ${join}, where it meets the others, or to ${END}`;
  const branchOf = new Map<string, string>();
  for (const branch of after) {
    const own = new Set([branch]);
    for (const name of own) {
      const other = branchOf.get(name);
      if (other !== undefined)
        fault(['nodes', name], `a node of the branches ${other} and ${branch}`, 'a node of one branch only');
      else branchOf.set(name, branch);
      for (const { path, to } of edges.filter(({ from }) => from === name)) {
        const [target = ''] = to;
        const isBack = edges.some(
          (one) => one.from === target && after.every((each) => one.to.includes(each)),
        );
        if (isBack || (nodes[target]?.after && target !== join)) fault(path, show(target), meet);
        else if (target !== join && target !== END) own.add(target);
      }
    }
    const leads = edges.some(({ from, to }) => own.has(from) && to[0] === join);
    if (!leads)
      fault(
        ['nodes', branch, 'outcomes'],
        `a branch that never comes to ${join}`,
        `an outcome that leads to ${join}`,
      );
  }
  const agents = new Map<string, string>();
  for (const [name, branch] of branchOf) {
    const { agent = '', brief = '' } = nodes[name] ?? {};
    const other = agents.get(agent) ?? branch;
    const alone = `an agent of its own: an agent has one turn at a time, and ${agent} works on the branch ${other} beside it`;
    if (other !== branch) fault(['nodes', name, 'agent'], show(agent), alone);
    agents.set(agent, other);
    for (const [whole, of = ''] of brief.matchAll(REFERENCE))
      if ((branchOf.get(of) ?? branch) !== branch)
        fault(['nodes', name, 'brief'], whole, `a value that is there: ${of} runs side by side with ${name}`);
  }
  for (const { from, path, to } of edges)
    for (const target of to) {
      const own = branchOf.get(target);
      const isFork = to.length > 1 && after.includes(target);
      if (own !== undefined && !isFork && branchOf.get(from) !== own)
        fault(
          path,
          show(target),
          `another node: ${target} belongs to the branch ${own}, which its fork enters`,
        );
      if (target === join && !branchOf.has(from))
        fault(path, show(target), `another node: ${join} is entered by its branches alone`);
    }
  if (branchOf.has(start) || start === join)
    fault(['start'], show(start), 'a node before the one that leads to several');
  return faults;
}
