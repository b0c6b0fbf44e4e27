import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/client/index.ts';
import { checkAnswered, outstandingIn } from '../../chaos/checks/answers.ts';
import { checkPosts } from '../../chaos/checks/posts.ts';
import { checkViews } from '../../chaos/checks/views.ts';
import { checkEffects, checkLogs, type SeenView, type Violation } from '../../chaos/findings.ts';
import { plannedPost, type RecordedRun, runOf, viewOf } from './recorded-run.ts';

/** Breaks each law once. The check that enforces it must report this. */

const lines = (violations: readonly Violation[]) =>
  violations.map(({ conversation, index, text }) => `${conversation} ${index}: ${text}`).join('\n');
type Spoil = (entries: Record<string, unknown>[]) => void;
const change =
  (at: number, fields: object): Spoil =>
  (entries) =>
    void Object.assign(entries[at] ?? {}, fields);

describe('the checks of a run', () => {
  it('the checks of a run report nothing for a correct run', () => {
    const run = { ...runOf(), views: [viewOf(11), viewOf(null)] };
    const all = [checkPosts, checkAnswered, checkEffects, checkLogs, checkViews].flatMap((check) =>
      check(run),
    );
    expect(all).toEqual([]);
    expect(outstandingIn('oak', run.logs.get('oak') ?? [])).toEqual([]);
  });
});

describe('the check of posts', () => {
  it.each<[string, Spoil, RegExp]>([
    ['a lost one', change(9, { id: 'other' }), /oak null: ann-oak-1 was acknowledged and is not in the log/],
    ['one that was not posted', change(9, { id: 'other' }), /oak 9: other was not posted/],
    ['one that is in the log twice', change(9, { id: 'ann-oak-0' }), /oak 9: ann-oak-0 is in the log twice/],
    ['another text', change(0, { content: 'changed' }), /oak 0: ann-oak-0 differs from what was posted/],
    ['another author', change(0, { author: { id: 'ben' } }), /oak 0: ann-oak-0 differs from what was posted/],
  ])('the check of posts reports %s', (_, spoil, fault) => {
    expect(lines(checkPosts(runOf(spoil)))).toMatch(fault);
  });

  it('the check of posts reports the dead letter of a lost post', () => {
    const refused = new Map([['ann-oak-1', 'LOG_CORRUPT: it is damaged']]);
    const found = checkPosts({ ...runOf(change(9, { id: 'other' })), refused });
    expect(lines(found)).toMatch(/is not in the log; its dead letter says LOG_CORRUPT: it is damaged$/m);
  });

  it('the check of posts reports an index that differs from the acknowledged one', () => {
    const run = runOf();
    run.acknowledged.push({ post: plannedPost(1), index: 8 });
    expect(lines(checkPosts(run))).toBe('oak 9: ann-oak-1 was acknowledged as entry 8');
  });

  it('the check of posts reports an order that differs from the order of posting', () => {
    const swap: Spoil = (entries) => {
      change(0, { id: 'ann-oak-1', content: 'wish 1' })(entries);
      change(9, { id: 'ann-oak-0', content: 'wish 0' })(entries);
    };
    expect(lines(checkPosts(runOf(swap)))).toMatch(/oak 9: ann-oak-0 is after number 1/);
  });

  it('the check of posts reports a post in another conversation, even if it exists once', () => {
    const run: RecordedRun = { ...runOf(), logs: new Map([['elm', runOf().logs.get('oak') ?? []]]) };
    expect(lines(checkPosts(run))).toMatch(/elm 0: ann-oak-0 is in another conversation/);
  });

  it('the check of posts reports a post that was acknowledged twice only once', () => {
    const lost = { ...runOf(), logs: new Map() };
    expect(checkPosts(lost)).toHaveLength(2);
  });
});

describe('the check of answers', () => {
  const passed = { type: 'note', turnId: 't' };
  it.each<[string, Spoil, RegExp]>([
    ['no answer', change(7, passed), /oak 8: turn t completed without an answer/],
    ['an error as an answer', change(7, { partType: 'error' }), /8: turn t completed without/],
    ['two answers', change(2, { tool_calls: undefined }), /8: turn t has 2 answers/],
    ['a silent failure', change(8, { outcome: 'failed' }), /8: turn t failed without a reason/],
    ['a silent limit', change(8, { outcome: 'limited' }), /8: turn t was limited without naming the limit/],
    ['a turn without an end', change(12, { type: 'note' }), /oak 10: turn u of pm has not ended/],
    ['a turn that waits', change(12, { outcome: 'waiting' }), /oak 10: turn u of pm has not ended/],
    ['a message that reached no agent', change(10, { trigger: [] }), /9: message ann-oak-1 never reached pm/],
    [
      'a handoff that reached no agent',
      change(7, { type: 'handoff', to: 'dev', id: 'hand' }),
      /oak 7: handoff hand never reached dev/,
    ],
    [
      'a call that waits for approval',
      (entries) => {
        change(7, { type: 'approval-requested', approvalId: 'a1', turnId: 'x' })(entries);
      },
      /oak 7: a1 waits for approval/,
    ],
  ])('the check of answers reports %s', (_, spoil, fault) => {
    expect(lines(checkAnswered(runOf(spoil)))).toMatch(fault);
  });

  it.each<[string, Spoil]>([
    [
      'a failure that is reported',
      (entries) =>
        [change(7, { partType: 'error' }), change(8, { outcome: 'failed' })].map((one) => one(entries)),
    ],
    [
      'a limit that is reported',
      (entries) =>
        [change(7, { type: 'limit-reached' }), change(8, { outcome: 'limited' })].map((one) => one(entries)),
    ],
    [
      'an abort',
      (entries) => [change(7, passed), change(8, { outcome: 'aborted' })].map((one) => one(entries)),
    ],
  ])('the check of answers accepts %s as an end', (_, spoil) => {
    expect(lines(checkAnswered(runOf(spoil)))).toBe('');
  });
});

describe('the check of effects', () => {
  const rerun =
    (fields: object): Spoil =>
    (entries) =>
      void Object.assign(entries[7] ?? {}, {
        ...{ type: 'tool-started', turnId: 't', call: { index: 2, position: 1 } },
        ...fields,
      });
  const twice = (run: RecordedRun) => ({ ...run, effects: new Map([...run.effects, ['oak:2:1', 2]]) });

  it('the check of effects reports an effect that happened more often than it was started (CHAOS-FINDINGS-1)', () => {
    const found = lines(checkEffects(twice(runOf())));
    expect(found).toBe('oak 6: the call oak:2:1 took effect 2 times and was started 1');
  });

  it('the check of effects reports a second start, unless it has a mark or a decision of a person (CHAOS-FINDINGS-2)', () => {
    const found = lines(checkEffects(twice(runOf(rerun({})))));
    expect(found).toBe('oak 7: the call oak:2:1 was started again without a mark');
    expect(checkEffects(twice(runOf(rerun({ rerun: true }))))).toEqual([]);
    const ordered = runOf((entries) => {
      rerun({})(entries);
      Object.assign(entries[8] ?? {}, {
        type: 'approval-answered',
        answer: 'rerun',
        call: { index: 2, position: 1 },
      });
    });
    expect(checkEffects(twice(ordered))).toEqual([]);
  });

  it('the check of effects reports a result of an effect that never happened (CHAOS-FINDINGS-3)', () => {
    const run = runOf();
    run.effects.delete('oak:2:0');
    expect(lines(checkEffects(run))).toBe('oak 4: the call oak:2:0 has a result and never took effect');
  });

  it('the check of effects reports an effect that is in no log (CHAOS-FINDINGS-4)', () => {
    const run = runOf();
    run.effects.set('oak:9:0', 1);
    expect(lines(checkEffects(run))).toBe('oak null: the call oak:9:0 took effect and is in no log');
  });
});

describe('the check of logs', () => {
  it('the check of logs reports each violated law of a log, and where', () => {
    expect(checkLogs(runOf(change(9, { id: 'ann-oak-0' })))).toEqual([
      { law: 'log', conversation: 'oak', index: 9, text: 'entry 9: the id ann-oak-0 is used twice' },
    ]);
  });
});

describe('the check of views', () => {
  const look = (view: SeenView, spoil?: Spoil) => lines(checkViews({ ...runOf(spoil), views: [view] }));
  const messages = viewOf(11).messages;

  const without = (at: number) => viewOf(11, { messages: messages.toSpliced(at, 1) });
  const withMessages = (...seen: SeenView['messages']) => viewOf(11, { messages: seen });
  const refusing = viewOf(null, { fault: { code: 'NO', message: 'why' } });
  const twice = viewOf(11, { parts: [{ kind: 'history', entries: [0, 0] }] });
  const PASSED = /oak 12: the cursor of pm passed entry 9, which it was never shown/;
  it.each<[string, SeenView, RegExp]>([
    [
      'a request that cannot be built again (W1)',
      viewOf(11, { requestHash: 'x' }),
      /oak 11: the request for this answer/,
    ],
    ['a request that the guard refuses (W2)', refusing, /NO: why/],
    ['a result at a wrong position (W2)', without(2), /message 2 is a result at/],
    ['a word before a result (W2)', without(3), /before the result of c2_1/],
    ['a call without a result (W2)', withMessages(...messages.slice(0, 2)), /c2_0, c2_1 has no result/],
    ['nothing to answer (W2)', withMessages({ role: 'assistant', content: '' }), /the agent’s own/],
    ['an entry twice (W3)', twice, /oak 11: entry 0 is twice in a request of pm/],
    ['a cursor that passed what was not shown (W4)', viewOf(11, { included: [0] }), PASSED],
  ])('the check of views reports %s', (_, view, fault) => {
    expect(look(view)).toMatch(fault);
  });

  it('the check of views counts what follows a call as shown, and does not expect what can never be shown (VIEWS-4)', () => {
    const behind: Spoil = change(6, { answers: [9] });
    expect(look(viewOf(11, { included: [0, 6] }), behind)).toBe('');
    const hidden: Spoil = change(9, { includeInContext: false });
    expect(look(viewOf(11, { included: [0] }), hidden)).toBe('');
    expect(look(viewOf(2, { included: [] }))).toBe(''); // A later request of the turn shows more.
  });

  it('the check of views reports each kind of notice that was skipped', () => {
    for (const type of ['handoff', 'note', 'phase-entered', 'limit-reached']) {
      const by = { author: { kind: 'agent', id: 'dev', name: 'DEV' } };
      const spoil: Spoil = change(9, { type, ...by, to: 'pm' });
      expect(look(viewOf(11, { included: [0] }), spoil)).toMatch(/passed entry 9/);
    }
    const other: Spoil = change(9, { type: 'delegation-requested', to: 'dev', author: { id: 'dev' } });
    expect(look(viewOf(11, { included: [0] }), other)).toBe('');
  });
});

describe('the state that is read from a log', () => {
  it('an empty log has no outstanding work', () => {
    expect(outstandingIn('oak', [] as Entry[])).toEqual([]);
  });
});
