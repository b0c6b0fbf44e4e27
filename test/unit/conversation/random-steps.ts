import fc from 'fast-check';
import type { Author } from '../../../src/conversation/index.ts';
import { type Core, SLUGS } from './core.ts';

/** Random steps of a conversation: what people do, and the order in which models and tools report. */

export const OPERATOR: Author = { kind: 'person', id: 'operator', name: 'Operator' };
const PEOPLE = ['alice', 'bob', 'carol'] as const;
const PHASES = ['chat', 'plan', 'execute', 'verification'] as const;

const small = fc.nat({ max: 7 });

const stepArbitrary = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      by: fc.constantFrom(...PEOPLE),
      address: fc.constantFrom('none', 'none', 'to', 'mention', 'two'),
      agent: small,
      delivery: fc.constantFrom('steer', 'steer', 'queue', 'interrupt'),
      hidden: fc.constantFrom(false, false, false, false, false, true),
      collapsed: fc.constantFrom(false, false, false, false, false, false, true),
      again: fc.constantFrom(false, false, false, true),
      session: fc.constantFrom(undefined, undefined, 's1', 's2', 's3'),
      right: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('answer' as const), pick: small, tools: fc.nat({ max: 3 }) }),
  },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: small }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('fail' as const), pick: small, partial: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('attempt' as const), pick: small }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('abort' as const), pick: small, partial: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('phase' as const), pick: small }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('mode' as const), pick: small }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), pick: small, all: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('resume' as const), pick: small, all: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), lost: fc.nat({ max: 2 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('unappended' as const), by: fc.constantFrom(...PEOPLE) }),
  },
);

export type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

export const stepsArbitrary = fc.array(stepArbitrary, { minLength: 1, maxLength: 45, size: 'max' });

export function pickFrom<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[at % list.length];
}

export function take(core: Core, step: Step): void {
  const slugs = [...core.rules.roster.agents.keys()];
  const call = 'pick' in step ? pickFrom(core.calls, step.pick) : undefined;
  switch (step.kind) {
    case 'post':
      post(core, step, slugs);
      return;
    case 'answer':
      if (call) core.answer(call, undefined, ['look', 'write', 'ask'].slice(0, step.tools));
      return;
    case 'finish': {
      const tool = pickFrom(core.tools, step.pick);
      if (tool) core.finish(tool);
      return;
    }
    case 'fail':
      if (call) core.fail(call, step.partial ? `w${core.words++};` : '');
      return;
    case 'attempt':
      if (call) core.attempt(call);
      return;
    case 'abort':
      abortOne(core, step.pick, step.partial);
      return;
    case 'phase':
      if (step.pick % 3 === 0)
        core.do({ type: 'label', title: 'Renamed', archived: step.pick % 2 === 0, by: OPERATOR });
      if (step.pick % 3 === 1) rate(core, step.pick);
      core.do({ type: 'set-phase', phase: PHASES[step.pick % PHASES.length] ?? 'chat', by: OPERATOR });
      return;
    case 'mode':
      core.do({
        type: 'set-mode',
        mode: 'agent',
        agent: slugs[step.pick % slugs.length] ?? 'pm',
        by: OPERATOR,
      });
      return;
    case 'stop':
    case 'resume': {
      const agent = step.all ? null : (slugs[step.pick % slugs.length] ?? 'pm');
      core.do({ type: step.kind, agent, by: OPERATOR });
      return;
    }
    case 'crash':
      core.crash(step.lost);
      return;
    case 'unappended':
      loseOne(core, step.by);
      return;
  }
}

/** Words of people that no agent may see. */
function rate(core: Core, pick: number): void {
  const answer = core.entries.findLast(({ author, type }) => author.kind === 'agent' && type === 'message');
  const value = pick % 2 === 0 ? 'up' : 'down';
  if (answer) core.do({ type: 'feedback', on: answer.index, value, note: 'unseen', by: OPERATOR });
}

function post(core: Core, step: Extract<Step, { kind: 'post' }>, slugs: readonly string[]): void {
  const agent = slugs[step.agent % slugs.length] ?? 'pm';
  const other = slugs[(step.agent + 1) % slugs.length] ?? 'pm';
  const to = step.address === 'to' ? [agent] : step.address === 'two' ? [agent, other] : undefined;
  const id = `id-${core.words++}`;
  const content = `w${core.words++};${step.address === 'mention' ? ` please, @${agent}` : ''}`;
  const fields = {
    by: step.by,
    id,
    delivery: step.delivery,
    ...(to ? { to } : {}),
    ...(step.hidden ? { includeInContext: false } : {}),
    ...(step.collapsed ? { isCollapsed: true } : {}),
    ...(step.session ? { sessionId: step.session } : {}),
    ...(step.right ? { setsSession: true as const } : {}),
  } as const;
  const first = core.post(content, fields);
  if (!step.again) return;
  const second = core.post(content, fields);
  if (second.entries.length + second.effects.length > 0 || first.reply.kind !== 'posted')
    throw new Error('the same post took effect twice');
}

/** Aborts work that a stop or interruption ended; if there is none, a worker aborts by itself. */
function abortOne(core: Core, pick: number, partial: boolean): void {
  const tool = pickFrom(
    core.tools.filter((candidate) => core.toAbort.has(candidate.turnId)),
    pick,
  );
  if (tool) {
    core.abort({ ...tool, type: 'call-model' });
    return;
  }
  const asked = core.calls.filter((candidate) => core.toAbort.has(candidate.turnId));
  const call = pickFrom(asked.length > 0 ? asked : core.calls, pick);
  if (call) core.abort(call, partial ? `w${core.words++};` : '');
}

/** A decision whose append fails: the conversation discards it. */
function loseOne(core: Core, by: string): void {
  const before = core.entries.length;
  const state = JSON.stringify(core.conversation.state);
  core.conversation.apply(
    {
      type: 'post',
      post: { id: `lost-${core.words++}`, content: 'lost', author: { id: by, name: by }, delivery: 'steer' },
    },
    core.now++,
  );
  core.conversation.truncate(before);
  if (JSON.stringify(core.conversation.state) !== state) throw new Error('truncate left something behind');
}

export const sizesArbitrary = fc.record({
  agents: fc.integer({ min: 1, max: SLUGS.length }),
  limit: fc.integer({ min: 1, max: 5 }),
});
