import { expect, it } from 'vitest';
import { type ModelProfile, PLAIN_FORM, reductionFor } from '../../../src/agents/index.ts';
import { RequestAssembler } from '../../../src/agents/requests/assemble.ts';
import { AgentView, DEFAULT_VIEW_POLICY, expand } from '../../../src/conversation/index.ts';
import { Log, NO_HISTORY_LIMITS, PROFILE, partsOf } from './support.ts';

const SIGNATURE = 'x'.repeat(6_000); // 1,500 tokens

/** The entries that a reduction would cover: answers with signed reasoning fill most of the window. */
function coveredWith(profile: ModelProfile): readonly number[] {
  const log = new Log();
  for (let n = 0; n < 8; n++) {
    const at = log.answer('pm', log.start('pm', log.person(`question ${n}`)), `answer ${n}`);
    const list = [
      { type: 'reasoning', length: 2, opaque: { type: 'thinking', signature: SIGNATURE } },
      { type: 'text', length: 8 },
    ];
    const blocks = { boundTo: 'anthropic h m', list };
    Object.assign(log.entries[at] ?? {}, { reasoning: 'hm', blocks });
  }
  log.start('pm', log.person('the newest question'));
  const policy = { ...DEFAULT_VIEW_POLICY, otherAgentsAs: 'user', includeReasoning: true } as const;
  const agentView = new AgentView(log.entries, 'pm', policy);
  const view = agentView.build();
  const assembled = new RequestAssembler().draft(partsOf(log.entries, { view, profile }));
  const reduction = reductionFor({
    ...{
      entries: log.entries,
      agentView,
      view,
      assembled,
      tokenRatio: 1,
      window: profile,
      form: profile.form,
    },
    limits: NO_HISTORY_LIMITS,
  });
  return reduction ? expand(reduction.plan.covered) : [];
}

it('a reduction knows that signatures leave with their answers: the newest exchanges stay', () => {
  const form = { ...PLAIN_FORM, dialect: 'anthropic', boundTo: 'anthropic h m' } as const;
  const covered = coveredWith({ ...PROFILE, contextTokens: 15_000, form });
  expect(covered).toContain(0); // the first question
  expect(Math.max(...covered)).toBeLessThan(24); // the last two exchanges begin at entry 24
});

it('what another model signed is not sent, and needs no reduction', () => {
  const form = { ...PLAIN_FORM, dialect: 'anthropic', boundTo: 'anthropic h other' } as const;
  expect(coveredWith({ ...PROFILE, contextTokens: 15_000, form })).toEqual([]);
});
