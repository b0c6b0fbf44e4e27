import { END, type WorkflowNode } from '../../conversation/index.ts';

/** Where the outcomes of a workflow's nodes lead. Every outcome names a node of the table, or `end`. */

type Outcomes = Readonly<Record<string, Pick<WorkflowNode, 'outcomes'>>>;

function nextOf(nodes: Outcomes, name: string): readonly string[] {
  return Object.hasOwn(nodes, name) ? Object.values(nodes[name]?.outcomes ?? {}) : [];
}

/** The nodes that a run can come to, `start` included. */
export function reachable(nodes: Outcomes, start: string): ReadonlySet<string> {
  const found = new Set([start]);
  for (const name of found) {
    // A set hands out what is added to it while it is walked through.
    for (const next of nextOf(nodes, name)) if (next !== END) found.add(next);
  }
  return found;
}

/** The nodes from which some way leads to `end`. */
export function ending(nodes: Outcomes): ReadonlySet<string> {
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
