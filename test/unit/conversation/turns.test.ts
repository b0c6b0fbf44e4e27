import { describe, expect, it } from 'vitest';
import { planRepair } from '../../../src/conversation/index.ts';
import { Core, expectCursors, messagesOf, rulesFor, typesOf } from './core.ts';

describe('a turn', () => {
  it('L8: the answer and the cursor come in one batch', () => {
    const core = new Core().posted('hello');
    const { entries } = core.answer(core.callOf('pm'), 'hi');
    expect(typesOf(entries)).toEqual(['assistant', 'title-set', 'turn-ended']);
    expect(entries[2]).toMatchObject({ outcome: 'completed', lastProcessedMessageIndex: 5 });
    expect(core.conversation.state.agents.pm?.lastProcessedMessageIndex).toBe(5);
  });

  it('L9: the intent to run each tool is in the batch of the message that requests it, before any effect', () => {
    const core = new Core().posted('hello');
    const { entries, effects } = core.answer(core.callOf('pm'), null, ['look', 'write']);
    expect(typesOf(entries)).toEqual(['assistant', 'tool-started', 'tool-started']);
    expect(effects).toMatchObject([
      { type: 'run-tool', name: 'look', call: { index: 2, position: 0 }, key: 3 },
      { type: 'run-tool', name: 'write', call: { index: 2, position: 1 }, key: 4 },
    ]);
  });

  it('L10 V7: results that arrive in any order are in call order, with ids of their position, although the provider repeats its ids', () => {
    const core = new Core().posted('hello');
    core.answer(core.callOf('pm'), null, ['a', 'b', 'c']);
    const [a, b, c] = core.tools;
    if (!a || !b || !c) throw new Error('three tools run');
    core.finish(c, 'third');
    core.finish(a, 'first');
    expect(core.calls).toEqual([]);
    core.finish(b, 'second');
    expect(messagesOf(core.view('pm')).map((message) => [message.tool_call_id, message.content])).toEqual([
      [undefined, 'hello'],
      [undefined, null],
      ['c2_0', 'first'],
      ['c2_1', 'second'],
      ['c2_2', 'third'],
    ]);
  });

  it('TURNS-3: a report that is repeated, late, or comes while tools run changes nothing', () => {
    const core = new Core().posted('hello');
    const call = core.callOf('pm');
    const report = {
      agent: 'pm',
      turnId: call.turnId,
      duration: 1,
      requestHash: 'h',
      upTo: core.entries.length,
    };
    const toolCall = { id: 'x', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
    const answered = {
      type: 'model-answered',
      ...report,
      answer: { content: null, toolCalls: [toolCall] },
    } as const;
    core.do(answered);
    const length = core.entries.length;
    expect(core.do(answered)).toEqual({ entries: [], effects: [], reply: { kind: 'stale' } }); // Its tool runs.
    expect(core.do({ ...answered, upTo: length }).reply).toEqual({ kind: 'stale' }); // For any length that it names.
    const [tool] = core.tools;
    if (!tool) throw new Error('a tool runs');
    core.finish(tool, 'looked');
    expect(core.do(answered).reply).toEqual({ kind: 'stale' }); // The next model call is running.
    expect(
      core.do({ type: 'model-failed', ...report, code: 'X', message: 'x', partial: '' }).reply.kind,
    ).toBe('stale');
    const { agent, turnId } = call;
    expect(
      core.do({ type: 'tool-finished', agent, turnId, call: tool.call, result: 'looked', duration: 1 }).reply
        .kind,
    ).toBe('stale');
    expect(core.entries.length).toBe(length + 1);
    core.answer(core.callOf('pm'));
    expect(core.do({ ...answered, upTo: core.entries.length }).reply).toEqual({ kind: 'stale' }); // The turn has ended.
    expect(core.do({ type: 'model-aborted', ...report, partial: 'x' }).reply).toEqual({ kind: 'stale' });
  });

  it('L15: a turn that made its last model call ends as limited, which people and the agent see', () => {
    const core = new Core(rulesFor(['pm'], { modelCallsPerTurn: 2 })).posted('hello');
    core.answer(core.callOf('pm'), null, ['a']);
    core.finish(core.tools[0] ?? expect.unreachable());
    core.answer(core.callOf('pm'), null, ['b']);
    const { entries, effects } = core.finish(core.tools[0] ?? expect.unreachable());
    expect(typesOf(entries)).toEqual(['tool', 'limit-reached', 'turn-ended']);
    expect(effects).toEqual([]);
    const limit = core.last('limit-reached');
    expect(limit).toMatchObject({ limit: 'modelCallsPerTurn', agent: 'pm' });
    expect(core.last('turn-ended')).toMatchObject({
      outcome: 'limited',
      lastProcessedMessageIndex: limit.index,
    });
    core.post('go on');
    expect(messagesOf(core.view('pm')).some((m) => m.content?.startsWith('=== LIMIT REACHED'))).toBe(true);
    expectCursors(core.entries);
  });

  it('L15: a crash does not grant a turn another model call', () => {
    const core = new Core(rulesFor(['pm'], { modelCallsPerTurn: 1 })).posted('hello');
    core.answer(core.callOf('pm'), null, ['a']);
    core.crash();
    core.crash(); // The tool ran once more, and was interrupted again.
    expect(core.calls).toEqual([]);
    expect(core.last('turn-ended').outcome).toBe('limited');
  });
});

describe('L16: a failure is content', () => {
  it.each([
    ['', 'LLM_ERROR {"code":"TIMEOUT","message":"too late"}'],
    ['half a sen', 'half a sen\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}'],
  ])(
    'a failure after the text %j makes the entry %j, fails the turn and settles its trigger',
    (partial, content) => {
      const core = new Core().posted('hello');
      const { entries } = core.fail(core.callOf('pm'), partial);
      expect(entries[0]).toMatchObject({ role: 'assistant', partType: 'error', content });
      expect(entries[1]).toMatchObject({ outcome: 'failed', lastProcessedMessageIndex: 4 });
      expect(core.conversation.state.agents.pm?.waiting).toHaveLength(0);
      core.post('continue');
      expect(messagesOf(core.view('pm')).map((message) => message.content)).toEqual([
        'hello',
        content,
        'continue',
      ]);
    },
  );

  it('an abort by a person is no error: the partial text is kept as a message', () => {
    const core = new Core().posted('hello');
    const { entries } = core.abort(core.callOf('pm'), 'half');
    expect(entries).toMatchObject([
      { role: 'assistant', partType: 'text', content: 'half' },
      { outcome: 'aborted', lastProcessedMessageIndex: 4 },
    ]);
  });

  it('V3 V10: after an abort before the first word the trigger counts as not shown, and is in the next block', () => {
    const core = new Core().posted('one');
    core.answer(core.callOf('pm'), 'first');
    core.post('two');
    const { entries } = core.abort(core.callOf('pm'));
    expect(typesOf(entries)).toEqual(['turn-ended']);
    expect(entries[0]).toMatchObject({ outcome: 'aborted', lastProcessedMessageIndex: 5 });
    core.post('three');
    expect(messagesOf(core.view('pm')).map((message) => message.content)).toEqual([
      'one',
      'first',
      'two',
      '=== MESSAGES WHILE YOU WERE AWAY ===\n[Alice]: two',
      '=== NEW INTERACTION ===',
      'three',
    ]);
  });

  it('L12: the result of a tool that ran when its turn was aborted is unknown, in the same append', () => {
    const core = new Core().posted('hello');
    const call = core.callOf('pm');
    core.answer(call, null, ['write']);
    const { entries } = core.abort(call);
    expect(typesOf(entries)).toEqual(['tool', 'turn-ended']);
    expect(entries[0]).toMatchObject({
      content: expect.stringContaining('unknown'),
      call: { index: 2, position: 0 },
    });
  });
});

describe('messages for a busy agent', () => {
  it('V8: a steered message is delivered after the last result, never between a call and its result', () => {
    const core = new Core().posted('go');
    core.answer(core.callOf('pm'), null, ['a', 'b']);
    const [a, b] = core.tools;
    if (!a || !b) throw new Error('two tools run');
    core.finish(a);
    expect(core.post('and quickly').effects).toEqual([]);
    const { entries } = core.finish(b);
    expect(typesOf(entries)).toEqual(['tool', 'message-delivered']);
    expect(messagesOf(core.view('pm')).map((message) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
    ]);
  });

  it('V12: a queued message, and an interruption of the turn before, are not delivered into a running turn', () => {
    const core = new Core().posted('long work');
    const call = core.callOf('pm');
    core.post('queued before', { delivery: 'queue' });
    core.post('stop that', { delivery: 'interrupt' });
    core.abort(call);
    core.answer(core.callOf('pm'), null, ['look']);
    core.post('queued meanwhile', { delivery: 'queue' });
    expect(typesOf(core.finish(core.tools[0] ?? expect.unreachable()).entries)).toEqual(['tool']);
    expect(core.conversation.state.agents.pm?.waiting.map((item) => item.index)).toEqual([3, 8]);
  });

  it('V12: steered messages make up the next trigger together, queued ones come singly, the oldest first', () => {
    const core = new Core().posted('0');
    for (const delivery of ['steer', 'queue', 'steer', 'queue'] as const) core.post('x', { delivery });
    core.drain();
    const triggers = core.entries.flatMap((entry) => (entry.type === 'turn-started' ? [entry.trigger] : []));
    expect(triggers).toEqual([[0], [2, 4], [3], [5]]);
  });

  it('V12: a post with tools or a schema gets a turn of its own, however it was sent: none of its tools is lost', () => {
    const core = new Core().posted('0');
    const call = core.callOf('pm');
    const [one, other] = ['now', 'then'].map((name) => ({ name }));
    if (!one || !other) throw new Error('no tool');
    core.post('1', { delivery: 'steer' });
    core.post('2', { delivery: 'steer', tools: [one] });
    core.answer(call, null, ['look']);
    const { entries } = core.finish(core.tools[0] ?? expect.unreachable());
    expect(entries.find(({ type }) => type === 'message-delivered')).toMatchObject({ entries: [2] });
    for (const more of [{ tools: [other] }, { schema: { type: 'object' } }, {}])
      core.post('x', { delivery: 'interrupt', ...more });
    core.abort(core.callOf('pm'));
    const brought: unknown[] = [];
    for (let next = core.calls[0]; next; next = core.calls[0]) {
      brought.push(core.conversation.state.agents.pm?.turn?.toolsFrom);
      core.answer(next);
    }
    const triggers = core.entries.flatMap((entry) => (entry.type === 'turn-started' ? [entry.trigger] : []));
    expect(triggers).toEqual([[0], [3], [8], [9], [10]]);
    expect(brought).toEqual([3, 8, null, null]);
  });

  it.each<[string, Parameters<Core['post']>[1], boolean]>([
    ['the same tools', {}, true],
    ['other tools', { tools: [{ name: 'then' }] }, false],
    ['a schema beside', { schema: { type: 'object' } }, false],
    ['a demand', { toolChoice: 'required' }, false],
    ['a choice of none', { toolChoice: 'none' }, false],
    ['calls one at a time', { parallelToolCalls: false }, false],
    ['another author', { by: 'bob' }, false],
  ])(
    'V12: a steered post with tools joins the turn that has them only as the same post: with %s',
    (_, more, joins) => {
      const core = new Core().posted('0', { tools: [{ name: 'now' }] });
      core.post('1', { tools: [{ name: 'now' }], ...more });
      core.answer(core.callOf('pm'), null, ['look']);
      const { entries } = core.finish(core.tools[0] ?? expect.unreachable());
      expect(entries.some(({ type }) => type === 'message-delivered')).toBe(joins);
      core.drain();
      expect(core.entries.filter(({ type }) => type === 'turn-started')).toHaveLength(joins ? 1 : 2);
    },
  );

  it('an interruption aborts the running turn and is answered next', () => {
    const core = new Core().posted('long work');
    const call = core.callOf('pm');
    const { effects } = core.post('stop that', { delivery: 'interrupt' });
    expect(effects).toEqual([{ type: 'abort-turn', agent: 'pm', turnId: call.turnId, key: 2 }]);
    const aborted = core.abort(call, 'half');
    expect(typesOf(aborted.entries)).toEqual(['assistant', 'turn-ended', 'turn-started']);
    expect(core.last('turn-started').trigger).toEqual([2]);
  });

  it('TURNS-4: an answer that requests tools after the interruption starts none of them', () => {
    const core = new Core().posted('long work');
    const call = core.callOf('pm');
    core.post('stop that', { delivery: 'interrupt' });
    const { entries, effects } = core.answer(call, 'I shall write', ['write']);
    expect(typesOf(entries)).toEqual(['assistant', 'tool', 'turn-ended', 'turn-started']);
    expect(entries[1]).toMatchObject({ content: '[not run: the turn was aborted]' });
    expect(effects.map((effect) => effect.type)).toEqual(['call-model']);
  });

  it('TURNS-4: a tool that ends after the interruption is the last step of the turn', () => {
    const core = new Core().posted('long work');
    core.answer(core.callOf('pm'), null, ['write']);
    core.post('stop that', { delivery: 'interrupt' });
    const { entries } = core.finish(core.tools[0] ?? expect.unreachable(), 'written');
    expect(typesOf(entries)).toEqual(['tool', 'turn-ended', 'turn-started']);
    expect(entries[0]).toMatchObject({ content: 'written' });
    expect(entries[1]).toMatchObject({ outcome: 'aborted' });
  });

  it('an interruption ends the turn that was running, after a crash too, and no later one', () => {
    const core = new Core().posted('long work');
    core.post('queued before', { delivery: 'queue' });
    core.post('stop that', { delivery: 'interrupt' });
    core.crash(); // The crash lost the abort, which is outstanding.
    const ended = core.last('turn-ended');
    expect(ended.outcome).toBe('aborted');
    const [owed] = planRepair(core.entries);
    expect(owed).toMatchObject({ type: 'resume-turn' }); // The turn of the queued message is not to be aborted.
    core.crash();
    expect(core.last('turn-ended')).toEqual(ended);
    core.drain();
    expect(core.entries.flatMap((entry) => (entry.type === 'turn-ended' ? [entry.outcome] : []))).toEqual([
      'aborted',
      'completed',
      'completed',
    ]);
  });
});
