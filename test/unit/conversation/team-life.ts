import fc from 'fast-check';
import type { CallModel } from './core.ts';
import { pickFrom } from './random-steps.ts';
import { type Called, PERSON, TeamCore } from './team-core.ts';

/** Random steps of a team: agents hand over, delegate, ask and fail; people post, stop, resume; the process crashes. */

const small = fc.nat({ max: 7 });

const actionArbitrary = fc.record({
  kind: fc.constantFrom(
    'delegate',
    'delegate',
    'delegate',
    'delegate',
    'delegate',
    'handoff',
    'handoff',
    'ask',
    'phase',
    'tool',
    'tool',
    'node',
    'wrong',
  ),
  agent: small,
});

const teamStep = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      agent: small,
      two: fc.boolean(),
      address: fc.constantFrom(
        'none',
        'none',
        'none',
        'none',
        'to',
        'to',
        'mention',
        'mention',
        'reply',
        'reply',
        'run',
      ),
      delivery: fc.constantFrom('steer', 'steer', 'queue', 'interrupt'),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant('act' as const),
      pick: small,
      words: fc.boolean(),
      deeds: fc.array(actionArbitrary, { maxLength: 3 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: small }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('fail' as const), pick: small, partial: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('abort' as const),
      pick: small,
      partial: fc.boolean(),
      limit: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('mode' as const), pick: small }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), pick: small, all: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('resume' as const), pick: small, all: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), lost: fc.nat({ max: 2 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('team' as const), pick: small, opens: fc.boolean() }),
  },
);

export type TeamStep = typeof teamStep extends fc.Arbitrary<infer T> ? T : never;

export const teamSteps = fc.array(teamStep, { minLength: 1, maxLength: 40, size: 'max' });
export const teamSizes = fc.record({
  agents: fc.constantFrom(2, 2, 3, 3, 4, 5),
  modelCallsPerTurn: fc.integer({ min: 1, max: 6 }),
  hopsPerTrigger: fc.integer({ min: 0, max: 4 }),
});

const SLUGS = ['pm', 'dev', 'qa', 'ops', 'doc'] as const;

export function teamOf(
  sizes: { agents: number; modelCallsPerTurn: number; hopsPerTrigger: number },
  check: boolean,
): TeamCore {
  const core = new TeamCore({ ...sizes, slugs: SLUGS.slice(0, sizes.agents) }, check);
  return core;
}

function slugsOf(core: TeamCore): string[] {
  return [...core.rules.roster.agents.keys()];
}

export function applyStep(core: TeamCore, step: TeamStep): void {
  const slug = pickFrom(slugsOf(core), 'pick' in step ? step.pick : 0) ?? 'pm';
  const call = 'pick' in step ? pickFrom(core.calls, step.pick) : undefined;
  switch (step.kind) {
    case 'post':
      post(core, step);
      return;
    case 'act':
      if (call)
        core.actOn(
          call,
          step.words ? `w${core.words++};` : null,
          step.deeds.map((one) => called(core, one)),
        );
      return;
    case 'finish': {
      const tool = pickFrom(core.tools, step.pick);
      if (tool) core.finish(tool);
      return;
    }
    case 'fail':
      if (call) core.fail(call, step.partial ? `w${core.words++};` : '');
      return;
    case 'abort':
      abortOne(core, step);
      return;
    case 'mode':
      if (step.pick % 2 === 0) core.do({ type: 'set-mode', mode: 'agent', agent: slug, by: PERSON });
      else
        core.do({
          type: 'set-mode',
          mode: 'run',
          workflow: workflowFor(core, step.pick),
          ...(step.pick % 4 === 3 ? { input: `w${core.words++};` } : {}),
          by: PERSON,
        });
      return;
    case 'stop':
    case 'resume':
      core.do({ type: step.kind, agent: step.all ? null : slug, by: PERSON });
      return;
    case 'crash':
      core.crash(step.lost);
      return;
    case 'team':
      changeTeam(core, step);
      return;
  }
}

/** Removes an agent from the configuration, or brings all back, by a reload or at a start. */
function changeTeam(core: TeamCore, { pick, opens }: Extract<TeamStep, { kind: 'team' }>): void {
  const { defaultAgent } = core.rules.roster;
  const others = slugsOf(core).filter((slug) => slug !== defaultAgent);
  const left = others.filter((slug) => slug !== pickFrom(others, pick));
  core.configure(pick % 2 === 0 ? [defaultAgent, ...left] : core.everybody);
  if (opens) core.crash();
  else core.do({ type: 'change-team', changes: [], by: PERSON });
}

function called(core: TeamCore, { kind, agent }: { kind: string; agent: number }): Called {
  const to = pickFrom([...slugsOf(core), 'nobody'], agent) ?? 'pm';
  switch (kind) {
    case 'delegate':
      return ['delegate', { to, request: `w${core.words++};` }];
    case 'handoff':
      return ['handoff', { to, summary: `w${core.words++};`, ...(agent > 5 ? { phase: 'plan' } : {}) }];
    case 'ask':
      return ['ask', { question: `w${core.words++};` }];
    case 'phase':
      return ['set_phase', { phase: pickFrom(['chat', 'plan', 'execute'], agent), reason: 'so' }];
    case 'node':
      return [
        'complete_node',
        {
          outcome: pickFrom(
            ['planned', 'built', 'passed', 'failed', 'blocked', 'unblocked', 'described', 'planned'],
            agent,
          ),
          summary: 's',
        },
      ];
    case 'wrong':
      return [pickFrom(['delegate', 'handoff', 'ask', 'nothing'], agent) ?? '', '{"to":'];
    default:
      return [pickFrom(['look', 'write'], agent) ?? 'look'];
  }
}

function post(core: TeamCore, step: Extract<TeamStep, { kind: 'post' }>): void {
  const slugs = slugsOf(core);
  const agent = pickFrom(slugs, step.agent) ?? 'pm';
  const other = pickFrom(slugs, step.agent + 1) ?? 'pm';
  const question = openQuestions(core)[step.agent % 2];
  core.post(`w${core.words++};${step.address === 'mention' ? ` @${agent}` : ''}`, {
    by: pickFrom(['alice', 'bob'], step.agent) ?? 'alice',
    delivery: step.delivery,
    ...(step.address === 'run' && { workflow: 'talk' }),
    ...(step.address === 'to' ? { to: step.two ? [agent, other] : [agent] } : {}),
    ...(step.address === 'reply' && question ? { replyTo: question.id } : {}),
  });
}

/** One whose agents the team has. */
function workflowFor(core: TeamCore, pick: number): string {
  const slugs = slugsOf(core);
  if (slugs.includes('doc') && pick !== 5) return 'side';
  return pick > 4 || slugs.length < 3 ? 'talk' : 'ship-it';
}

/** Aborts work that a stop ended; if there is none, a worker may reach its time limit. */
function abortOne(core: TeamCore, step: Extract<TeamStep, { kind: 'abort' }>): void {
  const works: CallModel[] = [
    ...core.calls,
    ...core.tools.map((tool) => ({ ...tool, type: 'call-model' as const })),
  ];
  const told = works.filter((work) => core.toAbort.has(work.turnId));
  const work = pickFrom(told, step.pick) ?? (step.limit ? pickFrom(works, step.pick) : undefined);
  if (!work) return;
  const { agent, turnId } = work;
  const limit = told.length === 0 ? { name: 'turnSeconds', message: 'too long' } : undefined;
  const report = { agent, turnId, duration: 1, requestHash: '', upTo: core.entries.length };
  const partial = step.partial && core.turn(agent)?.openCalls.length === 0 ? `w${core.words++};` : '';
  core.do({ type: 'model-aborted', partial, ...(limit ? { limit } : {}), ...report });
}

/** Open questions, the oldest first: the asking agent, and the id of the call. */
export function openQuestions(core: TeamCore): { agent: string; id: string }[] {
  return Object.entries(core.conversation.state.agents)
    .flatMap(([agent, { turn }]) => (turn?.openCalls ?? []).map((call) => ({ agent, call })))
    .filter(({ call }) => call.name === 'ask')
    .sort((a, b) => a.call.place.index - b.call.place.index || a.call.place.position - b.call.place.position)
    .map(({ agent, call }) => ({ agent, id: `c${call.place.index}_${call.place.position}` }));
}

/** Resumes all agents, completes all work and answers all questions, until nothing is outstanding. */
export function settle(core: TeamCore): void {
  core.configure(core.everybody);
  core.do({ type: 'change-team', changes: [], by: PERSON });
  for (const agent of [null, ...slugsOf(core)]) core.do({ type: 'resume', agent, by: PERSON });
  for (let rounds = 0; ; rounds++) {
    if (rounds > 200) throw new Error('there is always another question');
    core.drain();
    const [question] = openQuestions(core);
    if (!question) return;
    core.post(`w${core.words++};`, { to: [question.agent], replyTo: question.id });
  }
}
