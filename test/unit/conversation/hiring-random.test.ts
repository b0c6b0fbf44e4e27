import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { checkLaws, listsTool, type TeamChange } from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { card } from './core.ts';
import { typed } from './life.ts';
import { type Called, PERSON, TeamCore } from './team-core.ts';

vi.setConfig({ testTimeout: 120_000 });

const OWN = ['hire', 'dismiss', 'delegate', 'ask', 'look'];
const LIMITS = { depth: 2, agents: 3 };
const small = fc.nat({ max: 7 });

const step = fc.record({
  kind: fc.constantFrom('act', 'act', 'act', 'act', 'post', 'dismiss', 'abort', 'finish', 'crash', 'reload'),
  pick: small,
  deeds: fc.array(
    fc.record({ kind: fc.constantFrom('hire', 'hire', 'dismiss', 'delegate', 'ask', 'look'), agent: small }),
    { maxLength: 3 },
  ),
});

const pickFrom = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];

function called({ kind, agent }: { kind: string; agent: number }): Called {
  const slug = `w${agent}`;
  if (kind === 'hire')
    return ['hire', { slug, persona: 'x', tools: OWN.slice(agent % 3), budget: { tokens: 9 - agent } }];
  if (kind === 'dismiss') return ['dismiss', { agent: slug }];
  if (kind === 'delegate') return ['delegate', { to: slug, request: 'go' }];
  return kind === 'ask' ? ['ask', { question: 'What?' }] : ['look'];
}

function live(
  core: TeamCore,
  { kind, pick, deeds }: typeof step extends fc.Arbitrary<infer T> ? T : never,
): void {
  const call = pickFrom(core.calls, pick);
  const tool = pickFrom(core.tools, pick);
  if (kind === 'post')
    core.post('go', { to: [pickFrom([...core.conversation.roster.agents.keys()], pick) ?? 'pm'] });
  else if (kind === 'dismiss') core.do({ type: 'dismiss', agent: `w${pick}`, by: PERSON });
  else if (kind === 'crash') core.crash();
  else if (kind === 'reload') reload(core);
  else if (kind === 'finish' && tool) core.finish(tool);
  else if (kind === 'abort' && call) core.abort(call);
  else if (call) core.actOn(call, 'w', deeds.map(called));
}

/** TEAM-CHANGE-2: no turn of an agent that is still there ends. */
function reload(core: TeamCore): void {
  const changes: TeamChange[] = [{ agent: 'pm', change: 'changed', parts: ['persona'] }];
  const { entries } = core.do({ type: 'change-team', changes, by: PERSON });
  const ended = typed(entries, 'turn-ended').map(({ agent }) => agent);
  expect(ended.filter((agent) => core.conversation.roster.agents.has(agent))).toEqual([]);
}

/** HIRING-2, HIRING-6 and HIRING-7, computed from the entries alone. */
function expectBounds(core: TeamCore): void {
  const made = new Map<string, { tools: readonly string[]; depth: number; maker: string }>();
  const active = new Set<string>();
  for (const entry of core.entries) {
    if (entry.type === 'agent-hired') {
      expect(made.has(entry.agent)).toBe(false);
      const maker = made.get(entry.by);
      const has = maker?.tools ?? OWN;
      expect(entry.tools.filter((tool) => !listsTool(has, tool))).toEqual([]);
      expect(entry.depth).toBe((maker?.depth ?? 0) + 1);
      expect(entry.depth).toBeLessThanOrEqual(LIMITS.depth);
      made.set(entry.agent, { tools: entry.tools, depth: entry.depth, maker: entry.by });
      active.add(entry.agent);
      expect(active.size).toBeLessThanOrEqual(LIMITS.agents);
    }
    if (entry.type === 'agent-dismissed') active.delete(entry.agent);
    for (const slug of active) {
      const { maker = '' } = made.get(slug) ?? {};
      // The dismissals of one decision are one batch that begins with the entry of the maker.
      if (entry.type !== 'agent-dismissed') expect(maker === 'pm' || active.has(maker)).toBe(true);
    }
  }
  for (const [slug, { isDismissed }] of Object.entries(core.conversation.state.hired)) {
    const turn = isDismissed ? core.turn(slug) : null;
    if (turn) expect([slug, turn.status, core.toAbort.has(turn.turnId)]).toEqual([slug, 'running', true]);
  }
  expect([...core.conversation.roster.agents.keys()]).toEqual([...active, 'pm'].sort());
}

describe('any life of a team that hires', () => {
  it('a team that hires keeps the laws and the bounds of hiring, and no agent waits for an answer that never comes', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), (steps) => {
        const cards = [card('pm', { tools: OWN, model: 'm' })];
        const core = new TeamCore({ cards, slugs: ['pm'], models: ['m'], hiring: LIMITS }).posted('begin');
        for (const one of steps) live(core, one); // `expectSound` checks each append.
        expect(checkLaws(core.entries)).toEqual([]);
        expectBounds(core);
      }),
      { numRuns: runs(150) },
    );
  });
});
