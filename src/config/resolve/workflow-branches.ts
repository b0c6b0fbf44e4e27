import { END, REFERENCE, type Target, targetsOf, type WorkflowNode } from '../../conversation/index.ts';
import { type KeyPath, show } from '../problems.ts';

/**
 * Nodes that run side by side: what would be ambiguous is refused.
 *
 * WORKFLOWS-5 Each fork has one node at which its branches meet: `after` names the nodes that they begin at.
 * WORKFLOWS-6 Branches share no node and no agent. One is entered by its fork alone, forks no further, and is left only for the node
 *    where they meet, or `end`. A fork on a branch is reported alone: a node where it meets would not help.
 */

type Nodes = Readonly<Record<string, WorkflowNode>>;

export interface BranchFault {
  readonly path: KeyPath;
  readonly seen: string;
  readonly expected: string;
}

interface Edge {
  readonly from: string;
  readonly path: KeyPath;
  readonly to: readonly string[];
}

export function branchFaults(nodes: Nodes, start: string): BranchFault[] {
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
    ...{ from, path: ['nodes', from, ...key], to: targetsOf(target) },
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
