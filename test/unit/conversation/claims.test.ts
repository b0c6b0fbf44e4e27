import { describe, expect, it } from 'vitest';
import { checkLaws, type Entry } from '../../../src/conversation/index.ts';
import { messagesOf, World } from './world.ts';

function claimsOf(entries: readonly Entry[]) {
  return entries.filter((entry) => entry.type === 'claim');
}

/** Takes over as another daemon does: it loses the work in progress, which the log contains as outstanding. */
function takeOver(world: World, daemon: string, more: object = {}) {
  world.calls = [];
  world.tools = [];
  return world.do({ type: 'claim', daemon, ingress: 'life-1', ...more }).reply;
}

describe('a claim', () => {
  it('a claim records its daemon and is numbered', () => {
    const world = new World();
    takeOver(world, 'first');
    takeOver(world, 'second');
    expect(claimsOf(world.entries)).toMatchObject([
      { daemon: 'first', epoch: 1 },
      { daemon: 'second', epoch: 2 },
    ]);
    expect(world.conversation.state.claim).toMatchObject({ daemon: 'second', epoch: 2 });
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('a claim resumes running turns with the same request, and is shown to no agent', () => {
    const world = new World().posted('one');
    const before = JSON.stringify(messagesOf(world.view('pm')));
    takeOver(world, 'second');
    expect(world.entries.slice(-2)).toMatchObject([
      { type: 'claim', attempt: 1 },
      { type: 'turn-started', resumed: true, trigger: [0] },
    ]);
    expect(JSON.stringify(messagesOf(world.view('pm')))).toBe(before);
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('L15: a turn that was resumed five times without progress is aborted, and the conversation continues', () => {
    const world = new World().posted('one');
    for (let n = 1; n <= 5; n++) takeOver(world, `daemon-${n}`);
    world.post('meanwhile');
    expect(claimsOf(world.entries).map((entry) => entry.type === 'claim' && entry.attempt)).toEqual([
      1, 2, 3, 4, 5,
    ]);
    const reply = takeOver(world, 'daemon-6');
    expect(reply).toMatchObject({ kind: 'recovered', givenUp: [{ agent: 'pm', trigger: [0] }] });
    expect(world.entries.find((entry) => entry.type === 'limit-reached')).toMatchObject({
      limit: 'attempts',
    });
    expect(world.entries.find((entry) => entry.type === 'turn-ended')).toMatchObject({ outcome: 'failed' });
    expect(world.entries.at(-1)).toMatchObject({ type: 'turn-started', trigger: [expect.any(Number)] });
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('the resume count excludes daemons that handed over, and restarts at one after progress', () => {
    const world = new World().posted('one');
    for (let n = 0; n < 9; n++) takeOver(world, `leaving-${n}`, { handedOver: true });
    expect(world.conversation.state.claim).toMatchObject({ attempt: 1 });
    world.answer(world.callOf('pm'), null, ['a']);
    world.finish(world.tools.at(-1) ?? expect.unreachable(), 'fine');
    takeOver(world, 'next');
    expect(world.conversation.state.claim).toMatchObject({ attempt: 1, epoch: 10 });
  });

  it('the count of posts restarts at 0 for another ingress stream', () => {
    const world = new World();
    takeOver(world, 'first');
    const post = {
      id: 'p1',
      content: 'x',
      author: { id: 'alice', name: 'alice' },
      delivery: 'steer' as const,
    };
    world.do({ type: 'post', post, ingressSequence: 70 });
    expect(world.conversation.state.ingress).toEqual({ stream: 'life-1', sequence: 70 });
    takeOver(world, 'first', { ingress: 'life-2' });
    expect(world.conversation.state.ingress).toEqual({ stream: 'life-2', sequence: 0 });
    world.do({ type: 'post', post: { ...post, id: 'p2' }, ingressSequence: 3 });
    expect(checkLaws(world.entries)).toEqual([]);
    const unclaimed = world.entries.filter((entry) => entry.type !== 'claim');
    expect(checkLaws(unclaimed.map((entry, index) => ({ ...entry, index })))).toContainEqual(
      expect.stringContaining('a post out of order'),
    );
  });
});
