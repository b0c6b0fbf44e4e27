import { describe, expect, it } from 'vitest';
import { OPERATOR } from './random-steps.ts';
import { expectAsRuled, messagesOf, rulesFor, typesOf, World } from './world.ts';

describe('a crash', () => {
  it('L6: after a crash during a model call the repeated request contains nothing that was posted since', () => {
    const world = new World().posted('one');
    world.post('two', { by: 'bob' });
    world.do({ type: 'set-phase', phase: 'plan', by: OPERATOR });
    const before = messagesOf(world.view('pm'));
    world.crash();
    expect(world.calls).toMatchObject([{ agent: 'pm' }]);
    expect(messagesOf(world.view('pm'))).toEqual(before);
    expect(world.last('turn-started')).toMatchObject({ resumed: true, trigger: [0] });
  });

  it('L12: after a crash each running safe tool runs once more, with a mark, then steered messages are delivered', () => {
    const world = new World().posted('one');
    world.answer(world.callOf('pm'), null, ['a', 'b']);
    world.finish(world.tools[0] ?? expect.unreachable(), 'fine');
    world.post('two');
    world.crash();
    expect(world.last('tool-started')).toMatchObject({ toolName: 'b', rerun: true });
    world.crash();
    expect(typesOf(world.entries).slice(-3)).toEqual(['turn-started', 'tool', 'message-delivered']);
    expect(messagesOf(world.view('pm')).map((message) => message.content)).toEqual([
      'one',
      null,
      'fine',
      '{"error":{"code":"INTERRUPTED","message":"b was interrupted twice: whether it took effect is unknown"}}',
      'two',
    ]);
    expect(world.calls).toHaveLength(1);
  });

  it('L9: recovery starts a call that was not started before the crash, with a start entry before it runs', () => {
    const world = new World().posted('one');
    world.answer(world.callOf('pm'), null, ['a']);
    const log = world.entries.filter((entry) => entry.type !== 'tool-started');
    world.conversation.truncate(0);
    world.conversation.entries.push(...log);
    world.boundaries = [log.length];
    world.crash();
    expect(typesOf(world.entries).slice(-2)).toEqual(['turn-started', 'tool-started']);
    expect(world.tools).toMatchObject([{ name: 'a', key: log.length + 1 }]);
  });

  it('recovery aborts a turn whose agent was removed from the configuration', () => {
    const world = new World().posted('one', { to: ['dev'] });
    const later = new World(rulesFor(['pm']));
    later.conversation.entries.push(...world.entries);
    later.boundaries = [world.entries.length];
    later.crash();
    expect(later.last('turn-ended')).toMatchObject({ agent: 'dev', outcome: 'aborted' });
    expect(later.calls).toEqual([]);
  });
});

describe('the view of a live conversation', () => {
  it('L3: the view contains nothing of a failed append', () => {
    const world = new World().posted('one');
    const before = messagesOf(world.view('pm'));
    const length = world.entries.length;
    const call = world.callOf('pm');
    world.answer(call, 'never durable');
    expect(messagesOf(world.view('pm'))).not.toEqual(before);
    world.conversation.truncate(length);
    // The log grows to the same length with other words.
    world.answer(call, 'durable');
    expect(messagesOf(world.view('pm')).map((message) => message.content)).toEqual(['one', 'durable']);
  });

  it('L6: the view can be built again for any length that it has passed', () => {
    const world = new World();
    for (const words of ['one', 'two', 'three']) {
      world.post(words);
      world.drain();
    }
    const view = world.conversation.view('pm');
    const whole = messagesOf(view.build());
    for (let length = 0; length <= world.entries.length; length++) {
      const entries = world.entries.slice(0, length);
      const built = view.build(length);
      expect(built.historyLength).toBe(built.history.length);
      expectAsRuled(entries, 'pm', built);
    }
    expect(messagesOf(view.build())).toEqual(whole);
  });
});
