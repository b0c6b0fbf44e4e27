import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { typed } from './life.ts';
import { type Called, expectGuarded, expectSound, TeamCore } from './team-core.ts';

/**
 * A tree of tasks whose agents do exactly what their task says. After a crash at any point the same agents do the
 * same tasks with the same answers.
 */

interface Task {
  /** Larger than its asker's, so that delegations form no cycle. */
  readonly agent: number;
  readonly looks: boolean;
  readonly asks: boolean;
  readonly parts: readonly Task[];
}

const SLUGS = ['a', 'b', 'c', 'd'] as const;

function taskArbitrary(from: number): fc.Arbitrary<Task> {
  return fc.record({
    agent: fc.integer({ min: from, max: SLUGS.length - 1 }),
    looks: fc.boolean(),
    asks: fc.boolean(),
    parts:
      from + 1 < SLUGS.length
        ? fc.array(
            fc.constantFrom(...SLUGS.keys()).chain(() => taskArbitrary(from + 1)),
            { maxLength: 2 },
          )
        : fc.constant([]),
  });
}

/** The agent of the root hands over to the second root at the end, if there is one. */
const planArbitrary = fc.record({
  first: taskArbitrary(0),
  second: fc.option(taskArbitrary(0), { nil: null }),
});
type Plan = typeof planArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** Every task by its path: `0`, `0.1`, `1`. */
function tasksOf({ first, second }: Plan): Map<string, Task> {
  const found = new Map<string, Task>();
  const add = (task: Task, path: string) => {
    found.set(path, task);
    // Within one tree an agent is below agents with smaller numbers only.
    task.parts.forEach((part, at) => {
      add({ ...part, agent: Math.max(part.agent, Math.min(task.agent + 1, 3)) }, `${path}.${at}`);
    });
  };
  add(first, '0');
  if (second) add(second, '1');
  return found;
}

/** Completes the oldest tool, else the oldest model call, else answers a question. */
function step(core: TeamCore, tasks: Map<string, Task>): boolean {
  const tool = core.tools[0];
  if (tool) {
    core.finish(tool, 'seen');
    return true;
  }
  const call = core.calls[0];
  if (call) {
    const turn = core.turn(call.agent);
    const trigger = core.entries[turn?.trigger[0] ?? -1];
    const said =
      trigger && 'request' in trigger
        ? trigger.request
        : trigger && 'summary' in trigger
          ? trigger.summary
          : trigger && 'content' in trigger
            ? trigger.content
            : '';
    const path = /task ([\d.]+)/.exec(String(said))?.[1] ?? '';
    const task = tasks.get(path);
    if (!task) throw new Error(`what is ${said}?`);
    const calls: Called[] = task.parts.flatMap((_, at) => {
      const part = tasks.get(`${path}.${at}`);
      const to = SLUGS[part?.agent ?? 0] ?? 'a';
      return to === call.agent ? [] : [['delegate', { to, request: `task ${path}.${at}` }] as const];
    });
    if (task.looks) calls.push(['look']);
    if (task.asks) calls.push(['ask', { question: `question ${path}` }]);
    const second = path === '0' ? tasks.get('1') : undefined;
    const over = second && SLUGS[second.agent] !== call.agent ? SLUGS[second.agent] : undefined;
    if (turn?.modelCalls === 0 && calls.length > 0) core.actOn(call, `begun ${path}`, calls);
    else if (over) core.actOn(call, `done ${path}`, [['handoff', { to: over, summary: 'task 1' }]]);
    else core.actOn(call, `done ${path}`, []);
    return true;
  }
  const asker = Object.values(core.conversation.state.agents).find(({ turn }) =>
    turn?.openCalls.some((open) => open.name === 'ask'),
  );
  const question = asker?.turn?.openCalls.find((open) => open.name === 'ask');
  if (!question || !asker?.turn) return false;
  const words = JSON.parse(question.arguments) as { question: string };
  const { index, position } = question.place;
  core.post(`answer to ${words.question}`, { to: [asker.turn.agent], replyTo: `c${index}_${position}` });
  return true;
}

/** The result, independent of the order and of the number of interruptions. */
function effectsOf(core: TeamCore): string[] {
  const found: string[] = [];
  for (const entry of core.entries) {
    if (entry.type === 'delegation-answered')
      found.push(
        `${entry.from} answered ${entry.to} ${entry.answers.map((at) => contentAt(core, at))} ${entry.late}`,
      );
    else if (entry.type === 'handoff') found.push(`${entry.from} gave ${entry.to} ${entry.summary}`);
    else if (entry.type === 'turn-ended' && entry.outcome !== 'waiting')
      found.push(`${entry.agent} ${entry.outcome}`);
    else if (entry.type === 'message' && entry.role === 'assistant')
      found.push(`${entry.author.id}: ${entry.content}`);
    else if (entry.type === 'message' && entry.role === 'tool' && entry.toolName !== 'look')
      found.push(`${entry.author.id} ${entry.toolName}: ${entry.content}`);
    else if (entry.type === 'tool-started' && !entry.rerun)
      found.push(`${entry.author.id} ran ${entry.toolName}`);
  }
  return found.sort();
}

function contentAt(core: TeamCore, at: number): string {
  const entry = core.entries[at];
  return entry?.type === 'message' ? (entry.content ?? '') : '';
}

function runPlan(plan: Plan, crashAt: number): { core: TeamCore; appends: number } {
  const tasks = tasksOf(plan);
  const core = new TeamCore({ slugs: SLUGS }, false).posted('task 0', {
    to: [SLUGS[plan.first.agent] ?? 'a'],
  });
  let crashed = false;
  for (let steps = 0; ; steps++) {
    if (steps > 500) throw new Error('this team never comes to rest');
    if (!crashed && core.boundaries.length > crashAt) {
      crashed = true;
      core.crash();
      expectSound(core);
      expectGuarded(core);
    }
    if (!step(core, tasks)) return { core, appends: core.boundaries.length };
  }
}

describe('a team that does what its tasks say', () => {
  it('the team has the same result when the process ends after any append: nothing is lost or done twice', () => {
    fc.assert(
      fc.property(planArbitrary, (plan) => {
        const { core, appends } = runPlan(plan, Number.POSITIVE_INFINITY);
        const expected = effectsOf(core);
        expect(expected.filter((effect) => / (failed|aborted|limited)$/.test(effect))).toEqual([]);
        for (let crashAt = 1; crashAt < appends; crashAt++)
          expect([crashAt, effectsOf(runPlan(plan, crashAt).core)]).toEqual([crashAt, expected]);
        for (const answer of typed(core.entries, 'delegation-answered')) expect(answer.late).toBe(false);
      }),
      { numRuns: 10 },
    );
  });
});
