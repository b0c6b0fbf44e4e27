import { describe, expect, it } from 'vitest';
import { planRepair } from '../../../src/conversation/index.ts';
import { expectCursors, messagesOf, rulesFor, typesOf, World } from './world.ts';

describe('a turn', () => {
  it('L8: the answer and the cursor come in one batch', () => {
    const world = new World().posted('hello');
    const { entries } = world.answer(world.callOf('pm'), 'hi');
    expect(typesOf(entries)).toEqual(['assistant', 'title-set', 'turn-ended']);
    expect(entries[2]).toMatchObject({ outcome: 'completed', lastProcessedMessageIndex: 5 });
    expect(world.conversation.state.agents.pm?.lastProcessedMessageIndex).toBe(5);
  });

  it('L9: the intent to run each tool is in the batch of the message that requests it, before any effect', () => {
    const world = new World().posted('hello');
    const { entries, effects } = world.answer(world.callOf('pm'), null, ['look', 'write']);
    expect(typesOf(entries)).toEqual(['assistant', 'tool-started', 'tool-started']);
    expect(effects).toMatchObject([
      { type: 'run-tool', name: 'look', call: { index: 2, position: 0 }, key: 3 },
      { type: 'run-tool', name: 'write', call: { index: 2, position: 1 }, key: 4 },
    ]);
  });

  it('L10 V7: results that arrive in any order are in call order, with ids of their position, although the provider repeats its ids', () => {
    const world = new World().posted('hello');
    world.answer(world.callOf('pm'), null, ['a', 'b', 'c']);
    const [a, b, c] = world.tools;
    if (!a || !b || !c) throw new Error('three tools run');
    world.finish(c, 'third');
    world.finish(a, 'first');
    expect(world.calls).toEqual([]);
    world.finish(b, 'second');
    expect(messagesOf(world.view('pm')).map((message) => [message.tool_call_id, message.content])).toEqual([
      [undefined, 'hello'],
      [undefined, null],
      ['c2_0', 'first'],
      ['c2_1', 'second'],
      ['c2_2', 'third'],
    ]);
  });

  it('TURNS-3: a report that is repeated, late, or comes while tools run changes nothing', () => {
    const world = new World().posted('hello');
    const call = world.callOf('pm');
    const report = {
      agent: 'pm',
      turnId: call.turnId,
      duration: 1,
      requestHash: 'h',
      upTo: world.entries.length,
    };
    const toolCall = { id: 'x', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
    const answered = {
      type: 'model-answered',
      ...report,
      answer: { content: null, toolCalls: [toolCall] },
    } as const;
    world.do(answered);
    const length = world.entries.length;
    expect(world.do(answered)).toEqual({ entries: [], effects: [], reply: { kind: 'stale' } }); // Its tool runs.
    expect(world.do({ ...answered, upTo: length }).reply).toEqual({ kind: 'stale' }); // For any length that it names.
    const [tool] = world.tools;
    if (!tool) throw new Error('a tool runs');
    world.finish(tool, 'looked');
    expect(world.do(answered).reply).toEqual({ kind: 'stale' }); // The next model call is running.
    expect(
      world.do({ type: 'model-failed', ...report, code: 'X', message: 'x', partial: '' }).reply.kind,
    ).toBe('stale');
    const { agent, turnId } = call;
    expect(
      world.do({ type: 'tool-finished', agent, turnId, call: tool.call, result: 'looked', duration: 1 }).reply
        .kind,
    ).toBe('stale');
    expect(world.entries.length).toBe(length + 1);
    world.answer(world.callOf('pm'));
    expect(world.do({ ...answered, upTo: world.entries.length }).reply).toEqual({ kind: 'stale' }); // The turn has ended.
    expect(world.do({ type: 'model-aborted', ...report, partial: 'x' }).reply).toEqual({ kind: 'stale' });
  });

  it('L15: a turn that made its last model call ends as limited, which people and the agent see', () => {
    const world = new World(rulesFor(['pm'], { modelCallsPerTurn: 2 })).posted('hello');
    world.answer(world.callOf('pm'), null, ['a']);
    world.finish(world.tools[0] ?? expect.unreachable());
    world.answer(world.callOf('pm'), null, ['b']);
    const { entries, effects } = world.finish(world.tools[0] ?? expect.unreachable());
    expect(typesOf(entries)).toEqual(['tool', 'limit-reached', 'turn-ended']);
    expect(effects).toEqual([]);
    const limit = world.last('limit-reached');
    expect(limit).toMatchObject({ limit: 'modelCallsPerTurn', agent: 'pm' });
    expect(world.last('turn-ended')).toMatchObject({
      outcome: 'limited',
      lastProcessedMessageIndex: limit.index,
    });
    world.post('go on');
    expect(messagesOf(world.view('pm')).some((m) => m.content?.startsWith('=== LIMIT REACHED'))).toBe(true);
    expectCursors(world.entries);
  });

  it('L15: a crash does not grant a turn another model call', () => {
    const world = new World(rulesFor(['pm'], { modelCallsPerTurn: 1 })).posted('hello');
    world.answer(world.callOf('pm'), null, ['a']);
    world.crash();
    world.crash(); // The tool ran once more, and was interrupted again.
    expect(world.calls).toEqual([]);
    expect(world.last('turn-ended').outcome).toBe('limited');
  });
});

describe('L16: a failure is content', () => {
  it.each([
    ['', 'LLM_ERROR {"code":"TIMEOUT","message":"too late"}'],
    ['half a sen', 'half a sen\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}'],
  ])(
    'a failure after the text %j makes the entry %j, fails the turn and settles its trigger',
    (partial, content) => {
      const world = new World().posted('hello');
      const { entries } = world.fail(world.callOf('pm'), partial);
      expect(entries[0]).toMatchObject({ role: 'assistant', partType: 'error', content });
      expect(entries[1]).toMatchObject({ outcome: 'failed', lastProcessedMessageIndex: 4 });
      expect(world.conversation.state.agents.pm?.waiting).toHaveLength(0);
      world.post('continue');
      expect(messagesOf(world.view('pm')).map((message) => message.content)).toEqual([
        'hello',
        content,
        'continue',
      ]);
    },
  );

  it('an abort by a person is no error: the partial text is kept as a message', () => {
    const world = new World().posted('hello');
    const { entries } = world.abort(world.callOf('pm'), 'half');
    expect(entries).toMatchObject([
      { role: 'assistant', partType: 'text', content: 'half' },
      { outcome: 'aborted', lastProcessedMessageIndex: 4 },
    ]);
  });

  it('V3 V10: after an abort before the first word the trigger counts as not shown, and is in the next block', () => {
    const world = new World().posted('one');
    world.answer(world.callOf('pm'), 'first');
    world.post('two');
    const { entries } = world.abort(world.callOf('pm'));
    expect(typesOf(entries)).toEqual(['turn-ended']);
    expect(entries[0]).toMatchObject({ outcome: 'aborted', lastProcessedMessageIndex: 5 });
    world.post('three');
    expect(messagesOf(world.view('pm')).map((message) => message.content)).toEqual([
      'one',
      'first',
      'two',
      '=== MESSAGES WHILE YOU WERE AWAY ===\n[Alice]: two',
      '=== NEW INTERACTION ===',
      'three',
    ]);
  });

  it('L12: the result of a tool that ran when its turn was aborted is unknown, in the same append', () => {
    const world = new World().posted('hello');
    const call = world.callOf('pm');
    world.answer(call, null, ['write']);
    const { entries } = world.abort(call);
    expect(typesOf(entries)).toEqual(['tool', 'turn-ended']);
    expect(entries[0]).toMatchObject({
      content: expect.stringContaining('unknown'),
      call: { index: 2, position: 0 },
    });
  });
});

describe('messages for a busy agent', () => {
  it('V8: a steered message is delivered after the last result, never between a call and its result', () => {
    const world = new World().posted('go');
    world.answer(world.callOf('pm'), null, ['a', 'b']);
    const [a, b] = world.tools;
    if (!a || !b) throw new Error('two tools run');
    world.finish(a);
    expect(world.post('and quickly').effects).toEqual([]);
    const { entries } = world.finish(b);
    expect(typesOf(entries)).toEqual(['tool', 'message-delivered']);
    expect(messagesOf(world.view('pm')).map((message) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
    ]);
  });

  it('V12: a queued message, and an interruption of the turn before, are not delivered into a running turn', () => {
    const world = new World().posted('long work');
    const call = world.callOf('pm');
    world.post('queued before', { delivery: 'queue' });
    world.post('stop that', { delivery: 'interrupt' });
    world.abort(call);
    world.answer(world.callOf('pm'), null, ['look']);
    world.post('queued meanwhile', { delivery: 'queue' });
    expect(typesOf(world.finish(world.tools[0] ?? expect.unreachable()).entries)).toEqual(['tool']);
    expect(world.conversation.state.agents.pm?.waiting.map((item) => item.index)).toEqual([3, 8]);
  });

  it('V12: steered messages make up the next trigger together, queued ones come singly, the oldest first', () => {
    const world = new World().posted('0');
    for (const delivery of ['steer', 'queue', 'steer', 'queue'] as const) world.post('x', { delivery });
    world.drain();
    const triggers = world.entries.flatMap((entry) => (entry.type === 'turn-started' ? [entry.trigger] : []));
    expect(triggers).toEqual([[0], [2, 4], [3], [5]]);
  });

  it('an interruption aborts the running turn and is answered next', () => {
    const world = new World().posted('long work');
    const call = world.callOf('pm');
    const { effects } = world.post('stop that', { delivery: 'interrupt' });
    expect(effects).toEqual([{ type: 'abort-turn', agent: 'pm', turnId: call.turnId, key: 2 }]);
    const aborted = world.abort(call, 'half');
    expect(typesOf(aborted.entries)).toEqual(['assistant', 'turn-ended', 'turn-started']);
    expect(world.last('turn-started').trigger).toEqual([2]);
  });

  it('TURNS-4: an answer that requests tools after the interruption starts none of them', () => {
    const world = new World().posted('long work');
    const call = world.callOf('pm');
    world.post('stop that', { delivery: 'interrupt' });
    const { entries, effects } = world.answer(call, 'I shall write', ['write']);
    expect(typesOf(entries)).toEqual(['assistant', 'tool', 'turn-ended', 'turn-started']);
    expect(entries[1]).toMatchObject({ content: '[not run: the turn was aborted]' });
    expect(effects.map((effect) => effect.type)).toEqual(['call-model']);
  });

  it('TURNS-4: a tool that ends after the interruption is the last step of the turn', () => {
    const world = new World().posted('long work');
    world.answer(world.callOf('pm'), null, ['write']);
    world.post('stop that', { delivery: 'interrupt' });
    const { entries } = world.finish(world.tools[0] ?? expect.unreachable(), 'written');
    expect(typesOf(entries)).toEqual(['tool', 'turn-ended', 'turn-started']);
    expect(entries[0]).toMatchObject({ content: 'written' });
    expect(entries[1]).toMatchObject({ outcome: 'aborted' });
  });

  it('an interruption ends the turn that was running, after a crash too, and no later one', () => {
    const world = new World().posted('long work');
    world.post('queued before', { delivery: 'queue' });
    world.post('stop that', { delivery: 'interrupt' });
    world.crash(); // The crash lost the abort, which is outstanding.
    const ended = world.last('turn-ended');
    expect(ended.outcome).toBe('aborted');
    const [owed] = planRepair(world.entries);
    expect(owed).toMatchObject({ type: 'resume-turn' }); // The turn of the queued message is not to be aborted.
    world.crash();
    expect(world.last('turn-ended')).toEqual(ended);
    world.drain();
    expect(world.entries.flatMap((entry) => (entry.type === 'turn-ended' ? [entry.outcome] : []))).toEqual([
      'aborted',
      'completed',
      'completed',
    ]);
  });
});
