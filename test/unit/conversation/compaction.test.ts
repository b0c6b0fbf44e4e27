import { describe, expect, it } from 'vitest';
import {
  AgentView,
  DEFAULT_VIEW_POLICY,
  type Entry,
  estimateTokens,
  expand,
  type NewEntry,
  type ReductionInput,
  type ReductionPlan,
  sizeOf,
  viewOf,
} from '../../../src/conversation/index.ts';
import {
  asks,
  ended,
  exchange,
  exchanges,
  limitsOf,
  planOf,
  summed,
  tokensOf,
  WORDS,
} from './compaction-support.ts';
import { messagesOf } from './core.ts';
import { ALICE, called, DEV, logOf, PM, result, said, started } from './recall-log.ts';

/** What a reduction takes out of a view, in which order, and what the view then contains. */

const delegation = (request: string): NewEntry => ({
  ...{ type: 'delegation-requested', author: DEV, from: 'dev', to: 'pm', request },
  call: { index: 0, position: 0 },
});

describe('a reduction of a view', () => {
  it('a reduction takes nothing below the limit, and above it the oldest entries down to the target', () => {
    const log = logOf(...exchanges(5), ...asks(20));
    expect(planOf(log, limitsOf(2_000))).toBeNull();
    const plan = planOf(log, limitsOf(1_200));
    expect(plan).toMatchObject({ leftOut: [], shortened: [], newestOfAPerson: 20 });
    expect(plan?.covered).toEqual([[0, 12]]);
  });

  it('a reduction covers a history of any length, and a view names the whole range of what was said meanwhile', () => {
    const many = 150_000; // a call with so many arguments fails
    const history = Array.from({ length: many }, () => said(ALICE, 'so', { to: ['dev'] }));
    const at = many + 4;
    const question = [said(ALICE, 'and you?', { to: ['pm'] }), started('pm', at), said(PM, 'yes')];
    const shown = { ...ended, turnId: `turn-${at}`, lastProcessedMessageIndex: at };
    const log = [...exchange(0), ...history, ...question, shown, ...asks(at + 4)].map(
      (draft, index) => ({ index, id: `e${index}`, createdAt: 't', ...draft }) as Entry,
    );
    const block = viewOf(log.slice(0, at + 2), 'pm').tail[0];
    expect(block?.message.content).toContain('earlier messages, entries 4 to 149');
    expect(planOf(log, limitsOf(2_000))?.covered[0]?.[0]).toBe(0);
  });

  it('a reduction first shortens old results to previews, no more than necessary', () => {
    const big = 'r'.repeat(8_000);
    const turn = (at: number): NewEntry[] => [
      said(ALICE, 'go', { to: ['pm'] }),
      started('pm', at),
      called(PM, null, ['shell', '{}']),
      result(PM, at + 2, big),
      said(PM, 'done'),
      { ...ended, turnId: `turn-${at}` },
    ];
    const log = logOf(...turn(0), ...turn(6), ...turn(12), ...asks(18));
    expect(planOf(log, limitsOf(7_000))).toMatchObject({ covered: [], leftOut: [], shortened: [3, 9] });
    const all = planOf(log, limitsOf(400));
    expect(all?.covered.length).toBe(1); // Previews do not suffice.
  });

  it('a reduction takes finished groups of the running turn last, and nothing that no request has contained yet', () => {
    const steps = Array.from({ length: 8 }, (_, n) => [
      called(PM, WORDS, ['shell', '{}']),
      result(PM, 2 + 2 * n, WORDS),
    ]).flat();
    const log = logOf(said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), ...steps);
    expect(planOf(log, limitsOf(1_500))?.covered).toEqual([[2, 13]]);
    // A delivered message follows the newest results and is as new as they are.
    const delivered: NewEntry = {
      type: 'message-delivered',
      author: PM,
      turnId: 'turn-0',
      agent: 'pm',
      entries: [18],
    };
    const more = logOf(
      ...[said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), ...steps],
      ...[said(ALICE, 'and?', { to: ['pm'] }), delivered],
    );
    expect(planOf(more, limitsOf(700))?.covered).toEqual([[2, 15]]);
  });

  it('if nothing else suffices, a reduction shortens the largest newest results to previews, then to pointers', () => {
    const step = [called(PM, null, ['shell', '{}'], ['shell', '{}'], ['shell', '{}'])];
    const results = [2_000, 6_000, 4_000].map((length, position) => ({
      ...result(PM, 2, 'r'.repeat(length)),
      call: { index: 2, position },
    }));
    const log = logOf(said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), ...step, ...results);
    expect(planOf(log, limitsOf(3_010))).toBeNull(); // Above the limit, but the request can be sent: nothing is shortened.
    expect(planOf(log, limitsOf(2_800))).toMatchObject({ covered: [], shortened: [4], previewLength: 500 });
    expect(planOf(log, limitsOf(600))).toMatchObject({ shortened: [3, 4, 5], previewLength: 500 });
    expect(planOf(log, limitsOf(200))).toMatchObject({ shortened: [3, 4, 5], previewLength: 0 });
    const texts = messagesOf(viewOf(summed(log, planOf(log, limitsOf(200))!, ''), 'pm', DEFAULT_VIEW_POLICY));
    expect(texts.map(({ content }) => content).slice(2)).toEqual([
      '[shortened: recall 3]',
      '[shortened: recall 4]',
      '[shortened: recall 5]',
    ]);
  });

  it('a reduction takes nothing if prefix and trigger alone are too large, so that no summary is written in vain', () => {
    expect(planOf(logOf(...exchanges(5), ...asks(20)), limitsOf(-10))).toBeNull();
    expect(
      planOf(logOf(said(ALICE, WORDS.repeat(9), { to: ['pm'] }), started('pm', 0)), limitsOf(500)),
    ).toBeNull();
  });

  it('a reduction leaves out the oldest entries that a late agent was never shown, no more than necessary', () => {
    const others = Array.from({ length: 10 }, () => said(DEV, WORDS));
    const plan = planOf(logOf(...others, ...asks(10)), limitsOf(900));
    expect(plan).toMatchObject({ covered: [], shortened: [] });
    expect(plan?.leftOut).toEqual([[0, 5]]);
  });

  it('a reduction obeys the hard limits in a window of any size', () => {
    const log = logOf(...exchanges(5), ...asks(20));
    const messages = planOf(log, limitsOf(1_000_000, { messages: { max: 8, target: 5 } }));
    expect(messages?.covered).toEqual([[0, 12]]);
    const chars = planOf(log, limitsOf(1_000_000, { chars: { max: 3_000, target: 1_875 } }));
    expect(chars?.covered[0]?.[0]).toBe(0);
    expect(4 * (chars?.summaryTokens ?? 0)).toBeLessThan(1_000); // The summary obeys them as well.
  });

  it('a summary may have a fifth of the window beside the fixed part, even if little of the share remains', () => {
    const log = logOf(...exchanges(5), ...asks(20));
    const fixed = { tokens: { max: 300, target: 50 }, windowTokens: 1_000 };
    expect(planOf(log, limitsOf(0, fixed))?.summaryTokens).toBe(200);
  });
});

describe('the newest message of a person', () => {
  it('the plan names the newest message when it is covered, and again when the summary that quotes it is merged', () => {
    const agents = Array.from({ length: 10 }, () => said(PM, WORDS));
    const delegated = delegation('go on');
    const log = logOf(...exchange(0, `PINNED ${WORDS}`), ...agents, delegated, started('pm', 14));
    const first = planOf(log, limitsOf(900));
    expect(first).toMatchObject({ newestOfAPerson: 0 });
    expect(expand(first?.covered ?? [])).toContain(0);
    const early = { covered: [[0, 6]], leftOut: [], shortened: [] } as unknown as ReductionPlan;
    const quoting = summed(log, early, `[0] Alice:\n> PINNED ${WORDS}`);
    const second = planOf(quoting, limitsOf(600));
    expect(second).toMatchObject({ newestOfAPerson: 0 });
    expect(expand(second?.covered ?? [])).toEqual(expect.arrayContaining([0, quoting.length - 1]));
  });

  it('the plan never names a message that the agent is not shown, though the ranges of a summary include it', () => {
    const delegated = delegation('go on');
    const log = logOf(
      ...[said(ALICE, WORDS, { to: ['pm'] }), said(ALICE, 'aside', { isCollapsed: true }), started('pm', 0)],
      ...[said(PM, WORDS), said(PM, WORDS), ended, delegated, started('pm', 6)],
    );
    const early = { covered: [[0, 3]], leftOut: [], shortened: [] } as unknown as ReductionPlan;
    expect(planOf(summed(log, early, WORDS), limitsOf(220))).toMatchObject({ newestOfAPerson: 0 });
  });
});

describe('a message of a person that is larger than the window beside the trigger', () => {
  const huge = `PINNED ${WORDS.repeat(9)}`;
  const delegated = delegation(WORDS);

  it('a message larger than the window is quoted as far as it fits, again when the summaries are merged', () => {
    const log = logOf(...exchange(0, huge), delegated, started('pm', 4));
    const plan = planOf(log, limitsOf(900));
    expect(plan).toMatchObject({ covered: [[0, 2]], newestOfAPerson: 0 });
    expect(plan?.quotedTokens).toBeLessThan(900 - 100 - (plan?.summaryTokens ?? 0));
    const merged = logOf(...exchange(0, huge), ...exchange(4, WORDS).slice(1), delegated, started('pm', 7));
    expect(planOf(merged, limitsOf(900))?.newestOfAPerson).toBe(0);
  });

  it('a message larger than the window is left out if the agent was never shown it, and only then', () => {
    const log = logOf(said(ALICE, huge), delegated, started('pm', 1));
    expect(planOf(log, limitsOf(1_100))).toBeNull(); // The request can be sent.
    expect(planOf(log, limitsOf(900))?.leftOut).toEqual([[0, 0]]);
  });
});

describe('V17: a summary in the log', () => {
  const log = logOf(...exchanges(3), ...asks(12));
  const contents = (entries: readonly Entry[]) =>
    messagesOf(viewOf(entries, 'pm', DEFAULT_VIEW_POLICY)).map(({ content }) => content);
  const planned = { covered: [[0, 6]], leftOut: [], shortened: [] } as unknown as ReductionPlan;

  it('a summary replaces what it covers in the view of its agent only', () => {
    expect(contents(summed(log, planned))).toEqual([
      '=== SUMMARY OF ENTRIES 0 TO 6 ===\nS',
      WORDS,
      WORDS,
      'now?',
    ]);
    const forDev = (entries: readonly Entry[]) => messagesOf(viewOf(entries, 'dev', DEFAULT_VIEW_POLICY));
    expect(forDev(summed(log, planned))).toEqual(forDev(log));
  });

  it('L6: a summary is replaced by the one that covers it, with the same bytes step by step and at once', () => {
    const first = summed(log, planned);
    const second = summed(first, { ...planned, covered: [[0, 10], [14, 14]] } as never, 'S2'); // biome-ignore format: one line
    expect(contents(second)).toEqual(['=== SUMMARY OF ENTRIES 0 TO 14 ===\nS2', 'now?']);
    const growing: Entry[] = [];
    const agentView = new AgentView(growing, 'pm', DEFAULT_VIEW_POLICY);
    for (const entry of second) {
      growing.push(entry);
      expect(messagesOf(agentView.build())).toEqual(messagesOf(viewOf(growing, 'pm', DEFAULT_VIEW_POLICY)));
    }
  });

  it('entries that were left out count as never shown: the cursor passes them, the block does not list them', () => {
    const late = logOf(...exchange(0), said(DEV, 'unheard'), said(DEV, 'heard'), ...asks(6));
    const left = summed(late, { covered: [], leftOut: [[4, 4]], shortened: [] } as never);
    const texts = contents(left).join('\n');
    expect(texts).not.toContain('unheard');
    expect(texts).toContain('[Dev]: heard');
    const agentView = new AgentView(left, 'pm', DEFAULT_VIEW_POLICY);
    agentView.build();
    const answer = logOf(...Array(9).fill(ended), said(PM, 'ok')).slice(-1);
    expect(agentView.knowledge.cursorAfter(answer, 11)).toBe(11);
  });

  it('a summary covers no entry that was left out before, wherever its ranges are', () => {
    const late = logOf(...exchange(0), said(DEV, 'unheard'), ...exchange(5), ...exchange(9), ...asks(13));
    const left = summed(late, { covered: [], leftOut: [[4, 4]], shortened: [] } as never);
    const agentView = new AgentView(left, 'pm', DEFAULT_VIEW_POLICY);
    agentView.build();
    expect(agentView.knowledge.isUnshown(4)).toBe(true);
    const plan = planOf(left, limitsOf(600));
    expect(expand(plan?.leftOut ?? [])).toEqual([4]);
    expect(expand(plan?.covered ?? [])).not.toContain(4);
  });

  it('a view shows the shortened results as previews that split no character', () => {
    const big = '😀'.repeat(2_000);
    const tool = logOf(
      ...[said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), called(PM, null, ['shell', '{}'])],
      ...[result(PM, 2, big), said(PM, 'done'), ended, ...asks(6)],
    );
    const short = summed(tool, { covered: [], leftOut: [], shortened: [3] } as never, '');
    expect(contents(short)[2]).toBe(`${'😀'.repeat(500)}\n[shortened: recall 3]`);
    expect(contents(short)).toHaveLength(contents(tool).length);
  });
});

it('a summary does not grow over a hundred reductions, and counts each person that it no longer quotes', () => {
  let log = logOf();
  for (let at = 0; at < 100; at++) {
    const next = log.length;
    log = [...log, ...logOf(...Array(next).fill(ended), ...exchange(next)).slice(next)];
    const parts = viewOf([...log, ...logOf(...Array(log.length).fill(ended), ...asks(log.length)).slice(log.length)], 'pm', DEFAULT_VIEW_POLICY); // biome-ignore format: one line
    const plan = planOf(log, limitsOf(700));
    if (plan) log = summed(log, plan, 'S'.repeat(4 * plan.summaryTokens));
    expect(sizeOf([...parts.history, ...parts.tail], tokensOf).tokens).toBeLessThan(1_000);
  }
});

describe('the smallest window that a reduction can reach', () => {
  const steps = [called(PM, WORDS, ['shell', '{}']), result(PM, 2, WORDS)];
  const summary = { covered: [[0, 10]], leftOut: [], shortened: [] } as unknown as ReductionPlan;
  const standing = summed(logOf(...exchanges(3), ...asks(12)), summary, WORDS);
  const ASKED = estimateTokens('now?');
  const SHORT = 60 + 30;

  it.each<[string, number, readonly Entry[], Partial<ReductionInput>, Partial<ReductionPlan>]>([
    [
      'a lone summary in fewer words',
      ASKED + estimateTokens('=== SUMMARY OF ENTRIES 0 TO 10 ===\nS'),
      ...[standing, {}, { covered: [[0, 10], [14, 14]], isRewrite: true }] as const, // biome-ignore format: one line
    ],
    [
      'a message that was never shown, before others that were',
      ASKED + SHORT,
      ...([logOf(...exchanges(2), ...asks(8)), { isUnshown: (index: number) => index === 0 }] as const),
      { leftOut: [[0, 0]], covered: [[2, 6]], isRewrite: false },
    ],
    [
      'a mere pointer to the newest result',
      estimateTokens('go') + estimateTokens(WORDS) + estimateTokens('[shortened: recall 3]'),
      logOf(said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), ...steps),
      {},
      { shortened: [3], previewLength: 0 },
    ],
  ])(
    'a reduction is planned where its result equals the window, and not one token below: %s',
    (_, least, log, more, plan) => {
      expect(planOf(log, limitsOf(least), more)).toMatchObject(plan);
      expect(planOf(log, limitsOf(least - 1), more)).toBeNull();
    },
  );

  it('no reduction is planned where the summary is as short as possible, so that it is not rewritten endlessly', () => {
    for (const room of [20, 60, 100])
      expect(planOf(standing, limitsOf(room), { write: () => WORDS })).toBeNull();
  });
});
