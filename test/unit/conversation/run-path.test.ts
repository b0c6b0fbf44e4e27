import { describe, expect, it } from 'vitest';
import type { Workflow } from '../../../src/console/model/answers.ts';
import { type RunSoFar, runPath, runsWith } from '../../../src/conversation/progress/runs.ts';

type Given = Parameters<typeof runsWith>[1];

const WORKFLOW: Workflow = {
  id: 'article',
  start: 'plan',
  nodes: [
    { node: 'check', agent: 'ed', outcomes: { passed: ['end'], failed: ['write'] } },
    { node: 'plan', agent: 'ed', outcomes: { planned: ['write'], dropped: ['end'] } },
    { node: 'write', agent: 'will', outcomes: { written: ['check'] } },
  ],
};

let index = 0;
const of = (runId: string, type: Given['type'], more: object) =>
  ({ index: index++, type, runId, workflowId: 'article', ...more }) as unknown as Given;
const entered = (node: string, more: object = {}) => of('r', 'node-entered', { node, ...more });
const handedOn = (outcome: string) => ({ outcome, summary: `${outcome}: what to know` });
const fold = (...entries: readonly Given[]) => entries.reduce(runsWith, [] as readonly RunSoFar[]);

const LOG = [
  of('r', 'run-started', {}),
  entered('plan', { agent: 'ed' }),
  entered('write', { to: ['will'], ...handedOn('planned') }),
  entered('check', { to: ['ed'], ...handedOn('written') }),
  entered('write', { to: ['will'], ...handedOn('failed') }),
];

describe('the runs of a conversation', () => {
  it('a run has its steps with the outcome and the summary that each handed on', () => {
    const [run] = fold(...LOG);
    expect(run?.steps.map(({ node, agent, result }) => [node, agent, result?.outcome])).toEqual([
      ['plan', 'ed', 'planned'],
      ['write', 'will', 'written'],
      ['check', 'ed', 'failed'],
      ['write', 'will', undefined],
    ]);
    expect(run?.steps[0]?.result?.summary).toBe('planned: what to know');
    expect(run?.isOver).toBe(false);
  });

  it('a run that ended has the result of its last node, and a later run starts anew', () => {
    const runs = fold(
      ...LOG,
      of('r', 'run-ended', { author: { id: 'will' }, ...handedOn('written') }),
      of('s', 'run-started', {}),
    );
    expect(runs.map(({ isOver, steps }) => [isOver, steps.length])).toEqual([
      [true, 4],
      [false, 0],
    ]);
    expect(runs[0]?.steps.at(-1)?.result?.outcome).toBe('written');
  });

  it('the path has the nodes in the order in which they are reached, and counts visits and outcomes', () => {
    const [run] = fold(...LOG);
    const path = run ? runPath(run, WORKFLOW) : [];
    expect(path.map(({ node, state, visits }) => [node, state, visits])).toEqual([
      ['plan', 'done', 1],
      ['write', 'current', 2],
      ['check', 'done', 1],
    ]);
    expect(path[2]?.ways).toEqual([
      { by: 'passed', isCondition: false, to: ['end'], taken: 0 },
      { by: 'failed', isCondition: false, to: ['write'], taken: 1 },
    ]);
  });

  it('a run of a workflow that is gone or changed shows the nodes that it entered', () => {
    const [run] = fold(...LOG);
    const nodesOf = (workflow?: Workflow) => (run ? runPath(run, workflow).map(({ node }) => node) : []);
    expect(nodesOf()).toEqual(['plan', 'write', 'check']);
    expect(nodesOf({ ...WORKFLOW, start: 'check', nodes: WORKFLOW.nodes.slice(0, 1) })).toEqual([
      ...['plan', 'write', 'check'],
    ]);
  });

  it('the path shows the order that happened, also where the workflow names another branch first', () => {
    const nodes: Workflow['nodes'] = [
      { node: 'plan', agent: 'ed', outcomes: { small: ['draft'], large: ['research'] } },
      { node: 'draft', agent: 'will', outcomes: { written: ['check'] } },
      { node: 'research', agent: 'ed', outcomes: { found: ['draft'] } },
      { node: 'check', agent: 'ed', outcomes: { passed: ['end'] } },
    ];
    const path = (...entries: Given[]) => {
      const [run] = fold(of('r', 'run-started', {}), ...entries);
      return run ? runPath(run, { ...WORKFLOW, nodes }).map(({ node }) => node) : [];
    };
    expect(path(entered('plan'), entered('research', handedOn('large')))).toEqual([
      ...['plan', 'research', 'draft', 'check'],
    ]);
    expect(path()).toEqual(['plan', 'draft', 'research', 'check']);
  });

  it('the nodes of a branch are together in the path, before the node at which the branches meet', () => {
    const nodes: Workflow['nodes'] = [
      { node: 'plan', agent: 'ed', outcomes: { planned: ['write', 'draw'] } },
      { node: 'write', agent: 'will', outcomes: { written: ['polish'] } },
      { node: 'polish', agent: 'will', outcomes: { polished: ['check'], poor: ['write'] } },
      { node: 'draw', agent: 'dora', outcomes: { drawn: ['frame'] } },
      { node: 'frame', agent: 'dora', outcomes: { framed: ['check'] } },
      { node: 'check', agent: 'ed', after: ['write', 'draw'], outcomes: { read: ['end'] } },
    ];
    const [run] = fold(
      of('r', 'run-started', {}),
      entered('plan', { agent: 'ed' }),
      entered('write', { to: ['will'], branch: 'write', from: 'plan', ...handedOn('planned') }),
      entered('draw', { to: ['dora'], branch: 'draw', from: 'plan', ...handedOn('planned') }),
      entered('polish', { to: ['will'], branch: 'write', from: 'write', ...handedOn('written') }),
    );
    const path = run ? runPath(run, { ...WORKFLOW, nodes }) : [];
    expect(path.map(({ node, branch }) => [node, branch])).toEqual([
      ['plan', null],
      ['write', 'write'],
      ['polish', 'write'],
      ['draw', 'draw'],
      ['frame', 'draw'],
      ['check', null],
    ]);
  });

  it('several nodes are current while branches run, a branch that waits is done, and conditions are ways', () => {
    const nodes: Workflow['nodes'] = [
      { node: 'plan', agent: 'ed', outcomes: { planned: ['write', 'draw'] } },
      { node: 'write', agent: 'will', outcomes: { written: ['check'] } },
      { node: 'draw', agent: 'dora', outcomes: { drawn: ['check'] } },
      {
        ...{ node: 'check', agent: 'ed', after: ['write', 'draw'], outcomes: { read: ['end'] } },
        next: [{ when: 'score below 8', to: ['plan'] }],
      },
    ];
    const log = [
      of('r', 'run-started', {}),
      entered('plan', { agent: 'ed' }),
      entered('write', { to: ['will'], branch: 'write', from: 'plan', ...handedOn('planned') }),
      entered('draw', { to: ['dora'], branch: 'draw', from: 'plan', ...handedOn('planned') }),
    ];
    const path = (...more: Given[]) => {
      const [run] = fold(...log, ...more);
      return run ? runPath(run, { ...WORKFLOW, nodes }) : [];
    };
    const states = (...more: Given[]) => path(...more).map(({ node, state }) => `${node} ${state}`);
    expect(states()).toEqual(['plan done', 'write current', 'draw current', 'check ahead']);
    expect(path()[0]?.ways).toMatchObject([{ to: ['write', 'draw'], taken: 1 }]);
    const waits = entered('check', { branch: 'write', from: 'write', ...handedOn('written') });
    expect(states(waits)).toEqual(['plan done', 'write done', 'draw current', 'check ahead']);
    const met = entered('check', { to: ['ed'], from: 'draw', ...handedOn('drawn') });
    expect(states(waits, met)).toEqual(['plan done', 'write done', 'draw done', 'check current']);
    const again = entered('plan', { to: ['ed'], from: 'check', ...handedOn('read') });
    expect(path(waits, met, again).at(-1)?.ways).toEqual([
      { by: 'score below 8', isCondition: true, to: ['plan'], taken: 1 },
      { by: 'read', isCondition: false, to: ['end'], taken: 0 },
    ]);
  });

  it('the path says which nodes follow each other, and has none ahead that the run cannot reach any more', () => {
    const nodes: Workflow['nodes'] = [
      { node: 'look', agent: 'ed', outcomes: { fine: ['restock', 'letter'], damaged: ['refund'] } },
      { node: 'restock', agent: 'will', outcomes: { done: ['close'] } },
      { node: 'letter', agent: 'dora', outcomes: { sent: ['close'] } },
      { node: 'refund', agent: 'dora', outcomes: { paid: ['note'] } },
      { node: 'note', agent: 'dora', outcomes: { written: ['end'] } },
      { node: 'close', agent: 'ed', after: ['restock', 'letter'], outcomes: { closed: ['end'] } },
    ];
    const log = [of('r', 'run-started', {}), entered('look', { agent: 'ed' })];
    const path = (...more: Given[]) => {
      const [run] = fold(...log, ...more);
      const shown = run ? runPath(run, { ...WORKFLOW, start: 'look', nodes }) : [];
      return shown.map(({ node, relation }) => `${relation ?? ''} ${node}`.trim());
    };
    const begun = ['look', 'next restock', 'beside letter', 'next close'];
    expect(path()).toEqual([...begun, 'apart refund', 'next note']);
    const restock = entered('restock', {
      to: ['will'],
      branch: 'restock',
      from: 'look',
      ...handedOn('fine'),
    });
    const letter = entered('letter', { to: ['dora'], branch: 'letter', from: 'look', ...handedOn('fine') });
    expect(path(restock, letter)).toEqual(begun);
    const ended = of('r', 'run-ended', { author: { id: 'ed' }, ...handedOn('left') });
    expect(path(ended)).toEqual(['look']);
    expect(path(restock, letter, ended)).toEqual(begun.slice(0, 3));
    expect(path(entered('refund', { to: ['dora'], ...handedOn('damaged') }))).toEqual([
      ...['look', 'next refund', 'next note'],
    ]);
  });

  it('branches of two ways are not side by side', () => {
    const nodes: Workflow['nodes'] = [
      { node: 'look', agent: 'ed', outcomes: { fine: ['a', 'b'], damaged: ['c', 'd'] } },
      ...['a', 'b', 'c', 'd'].map((node) => ({ node, agent: 'ed', outcomes: { done: ['close'] } })),
      { node: 'close', agent: 'ed', after: ['a', 'b', 'c', 'd'], outcomes: { closed: ['end'] } },
    ];
    const [run] = fold(of('r', 'run-started', {}));
    const path = run ? runPath(run, { ...WORKFLOW, start: 'look', nodes }) : [];
    expect(path.map(({ node, relation }) => [node, relation])).toEqual([
      ['look', null],
      ['a', 'next'],
      ['b', 'beside'],
      ['c', 'apart'],
      ['d', 'beside'],
      ['close', 'next'],
    ]);
  });
});
