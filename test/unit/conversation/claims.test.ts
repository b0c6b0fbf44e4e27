import { describe, expect, it } from 'vitest';
import { checkLaws, type Entry } from '../../../src/conversation/index.ts';
import { Core, messagesOf } from './core.ts';

function claimsOf(entries: readonly Entry[]) {
  return entries.filter((entry) => entry.type === 'claim');
}

/** Takes over as another daemon does: it loses the work in progress, which the log contains as outstanding. */
function takeOver(core: Core, daemon: string, more: object = {}) {
  core.calls = [];
  core.tools = [];
  return core.do({ type: 'claim', daemon, ingress: 'life-1', ...more }).reply;
}

describe('a claim', () => {
  it('a claim records its daemon and is numbered', () => {
    const core = new Core();
    takeOver(core, 'first');
    takeOver(core, 'second');
    expect(claimsOf(core.entries)).toMatchObject([
      { daemon: 'first', epoch: 1 },
      { daemon: 'second', epoch: 2 },
    ]);
    expect(core.conversation.state.claim).toMatchObject({ daemon: 'second', epoch: 2 });
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a claim resumes running turns with the same request, and is shown to no agent', () => {
    const core = new Core().posted('one');
    const before = JSON.stringify(messagesOf(core.view('pm')));
    takeOver(core, 'second');
    expect(core.entries.slice(-2)).toMatchObject([
      { type: 'claim', attempt: 1 },
      { type: 'turn-started', resumed: true, trigger: [0] },
    ]);
    expect(JSON.stringify(messagesOf(core.view('pm')))).toBe(before);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('L15: a turn that was resumed five times without progress is aborted, and the conversation continues', () => {
    const core = new Core().posted('one');
    for (let n = 1; n <= 5; n++) takeOver(core, `daemon-${n}`);
    core.post('meanwhile');
    expect(claimsOf(core.entries).map((entry) => entry.type === 'claim' && entry.attempt)).toEqual([
      1, 2, 3, 4, 5,
    ]);
    const reply = takeOver(core, 'daemon-6');
    expect(reply).toMatchObject({ kind: 'recovered', givenUp: [{ agent: 'pm', trigger: [0] }] });
    expect(core.entries.find((entry) => entry.type === 'limit-reached')).toMatchObject({
      limit: 'attempts',
    });
    expect(core.entries.find((entry) => entry.type === 'turn-ended')).toMatchObject({ outcome: 'failed' });
    expect(core.entries.at(-1)).toMatchObject({ type: 'turn-started', trigger: [expect.any(Number)] });
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('the resume count excludes daemons that handed over, and restarts at one after progress', () => {
    const core = new Core().posted('one');
    for (let n = 0; n < 9; n++) takeOver(core, `leaving-${n}`, { handedOver: true });
    expect(core.conversation.state.claim).toMatchObject({ attempt: 1 });
    core.answer(core.callOf('pm'), null, ['a']);
    core.finish(core.tools.at(-1) ?? expect.unreachable(), 'fine');
    takeOver(core, 'next');
    expect(core.conversation.state.claim).toMatchObject({ attempt: 1, epoch: 10 });
  });

  it('the count of posts restarts at 0 for another ingress stream', () => {
    const core = new Core();
    takeOver(core, 'first');
    const post = {
      id: 'p1',
      content: 'x',
      author: { id: 'alice', name: 'alice' },
      delivery: 'steer' as const,
    };
    core.do({ type: 'post', post, ingressSequence: 70 });
    expect(core.conversation.state.ingress).toEqual({ stream: 'life-1', sequence: 70 });
    takeOver(core, 'first', { ingress: 'life-2' });
    expect(core.conversation.state.ingress).toEqual({ stream: 'life-2', sequence: 0 });
    core.do({ type: 'post', post: { ...post, id: 'p2' }, ingressSequence: 3 });
    expect(checkLaws(core.entries)).toEqual([]);
    const unclaimed = core.entries.filter((entry) => entry.type !== 'claim');
    expect(checkLaws(unclaimed.map((entry, index) => ({ ...entry, index })))).toContainEqual(
      expect.stringContaining('a post out of order'),
    );
  });
});
