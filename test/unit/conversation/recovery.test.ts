import { describe, expect, it } from 'vitest';
import {
  auditedOutcomes,
  checkAudit,
  checkLaws,
  mayHaveRunSince,
  recordsOfBackup,
} from '../../../src/conversation/index.ts';
import { Core, expectAsRuled, messagesOf, rulesFor, typesOf } from './core.ts';
import { OPERATOR } from './random-steps.ts';
import { ToolCore } from './tool-core.ts';

describe('a crash', () => {
  it('L6: after a crash during a model call the repeated request contains nothing that was posted since', () => {
    const core = new Core().posted('one');
    core.post('two', { by: 'bob' });
    core.do({ type: 'set-phase', phase: 'plan', by: OPERATOR });
    const before = messagesOf(core.view('pm'));
    core.crash();
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
    expect(messagesOf(core.view('pm'))).toEqual(before);
    expect(core.last('turn-started')).toMatchObject({ resumed: true, trigger: [0] });
  });

  it('an answer that does not match its schema is followed by one repair, whenever the daemon is killed (TYPED-2)', () => {
    const core = new Core().posted('one');
    const answerWrongly = () =>
      core.do({
        type: 'model-answered',
        ...core.report(core.callOf('pm')),
        answer: { content: 'Six.', toolCalls: [], typed: { kind: 'invalid', why: 'the answer is not JSON' } },
      });
    answerWrongly();
    core.crash();
    core.crash();
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
    expect(messagesOf(core.view('pm')).at(-1)?.content).toContain('the answer is not JSON');
    answerWrongly();
    expect(core.calls).toEqual([]);
    expect(core.last('turn-ended')).toMatchObject({ outcome: 'failed' });
    core.crash();
    expect(core.calls).toEqual([]);
    expect(
      core.entries.filter((entry) => entry.type === 'message' && entry.role === 'assistant'),
    ).toMatchObject([{ invalid: 'the answer is not JSON', partType: 'text' }, { partType: 'error' }]);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('L12: after a crash each running safe tool runs once more, with a mark, then steered messages are delivered', () => {
    const core = new Core().posted('one');
    core.answer(core.callOf('pm'), null, ['a', 'b']);
    core.finish(core.tools[0] ?? expect.unreachable(), 'fine');
    core.post('two');
    core.crash();
    expect(core.last('tool-started')).toMatchObject({ toolName: 'b', rerun: true });
    core.crash();
    expect(typesOf(core.entries).slice(-3)).toEqual(['turn-started', 'tool', 'message-delivered']);
    expect(messagesOf(core.view('pm')).map((message) => message.content)).toEqual([
      'one',
      null,
      'fine',
      '{"error":{"code":"INTERRUPTED","message":"b was interrupted twice: whether it took effect is unknown"}}',
      'two',
    ]);
    expect(core.calls).toHaveLength(1);
  });

  it('L9: recovery starts a call that was not started before the crash, with a start entry before it runs', () => {
    const core = new Core().posted('one');
    core.answer(core.callOf('pm'), null, ['a']);
    const log = core.entries.filter((entry) => entry.type !== 'tool-started');
    core.conversation.truncate(0);
    core.conversation.entries.push(...log);
    core.boundaries = [log.length];
    core.crash();
    expect(typesOf(core.entries).slice(-2)).toEqual(['turn-started', 'tool-started']);
    expect(core.tools).toMatchObject([{ name: 'a', key: log.length + 1 }]);
  });

  it('recovery aborts a turn whose agent was removed from the configuration', () => {
    const core = new Core().posted('one', { to: ['dev'] });
    const later = new Core(rulesFor(['pm']));
    later.conversation.entries.push(...core.entries);
    later.boundaries = [core.entries.length];
    later.crash();
    expect(later.last('turn-ended')).toMatchObject({ agent: 'dev', outcome: 'aborted' });
    expect(later.calls).toEqual([]);
  });
});

describe('the view of a live conversation', () => {
  it('L3: the view contains nothing of a failed append', () => {
    const core = new Core().posted('one');
    const before = messagesOf(core.view('pm'));
    const length = core.entries.length;
    const call = core.callOf('pm');
    core.answer(call, 'never durable');
    expect(messagesOf(core.view('pm'))).not.toEqual(before);
    core.conversation.truncate(length);
    // The log grows to the same length with other words.
    core.answer(call, 'durable');
    expect(messagesOf(core.view('pm')).map((message) => message.content)).toEqual(['one', 'durable']);
  });

  it('L6: the view can be built again for any length that it has passed', () => {
    const core = new Core();
    for (const words of ['one', 'two', 'three']) {
      core.post(words);
      core.drain();
    }
    const view = core.conversation.view('pm');
    const whole = messagesOf(view.build());
    for (let length = 0; length <= core.entries.length; length++) {
      const entries = core.entries.slice(0, length);
      const built = view.build(length);
      expect(built.historyLength).toBe(built.history.length);
      expectAsRuled(entries, 'pm', built);
    }
    expect(messagesOf(view.build())).toEqual(whole);
  });
});

type Word = 'requested' | 'started' | 'completed';
const TYPES = {
  requested: 'ToolCallRequested',
  started: 'ToolCallStarted',
  completed: 'ToolCallCompleted',
} as const;

/** `a` and `b` are two calls of one entry. `A` is the call of another entry at the position of `a`. */
const PLACES = { a: [3, 0], b: [3, 1], A: [5, 0] } as const;

function record(text: string) {
  const [name, word] = text.split(' ') as [keyof typeof PLACES, Word];
  const [entry, position] = PLACES[name];
  const result = word === 'completed' ? { result: `result of ${name}` } : {};
  return { type: TYPES[word], call: { entry, position }, tool: 'shell', ...result };
}

function outcomes(records: readonly string[], isFinal: boolean): string[] {
  return auditedOutcomes(records.map(record), isFinal).map(({ index, position, content }) => {
    const found = Object.entries(PLACES).find(([, place]) => place[0] === index && place[1] === position);
    return `${found?.[0]}: ${content ?? 'did not run'}`;
  });
}

describe('the outcomes that the audit log proves', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], []],
    [['a requested'], ['a: did not run']],
    [['a requested', 'a started'], []],
    [['a requested', 'a started', 'a completed'], ['a: result of a']],
    [
      ['a requested', 'a requested'],
      ['a: did not run', 'a: did not run'],
    ],
    [['a requested', 'a started', 'a requested'], []], // Requested again: the first start may have taken effect.
    [['a started'], []],
    [['a completed'], ['a: result of a']],
    [['a requested', 'a completed'], ['a: result of a']], // In a damaged log only the result of the call is known.
    [['a requested', 'b requested', 'a started'], ['b: did not run']],
    [['A requested', 'a requested', 'a started'], ['A: did not run']],
  ])('the final audit log %j proves the outcomes %j', (records, expected) => {
    expect(outcomes(records, true)).toEqual(expected);
    expect(outcomes(records, false)).toEqual(expected.filter((text) => !text.includes('did not run')));
  });
});

const AT = { newId: () => `new-${Math.random()}`, createdAt: '2026-11-26T02:15:00.000Z' };

function held(core: ToolCore): string[] {
  const { entries } = core.conversation;
  const starts = mayHaveRunSince(entries, AT);
  expect(checkLaws([...entries, ...starts])).toEqual([]);
  expect(mayHaveRunSince([...entries, ...starts], AT)).toEqual([]);
  return starts.map(({ toolName = '' }) => toolName);
}

describe('RESTORED-1: the risky calls of a copied log that may have run since', () => {
  it('are those that needed no decision of a person any more, also after a safe call that runs', () => {
    const core = ToolCore.calling('safe1', 'gated', 'risky', 'safe2');
    expect(held(core)).toEqual([]); // nothing starts after a call that waits for an approval
    core.answerApproval('gated', 'approve');
    expect(held(core)).toEqual(['gated', 'risky']);
    core.done('safe1');
    expect(held(core)).toEqual(['risky']); // the gated one is started
  });

  it('are none in a turn that is over, that waits, or that asked a person or another agent', () => {
    const over = ToolCore.calling('risky');
    over.done('risky');
    expect(held(over)).toEqual([]);
    expect(held(ToolCore.calling('gated', 'risky'))).toEqual([]);
    expect(held(ToolCore.calling(['ask', { question: 'which?' }]))).toEqual([]);
  });
});

it('RESTORED-2: the audit log of a copy proves nothing about open calls without a result, nor about later starts', () => {
  const core = ToolCore.calling('safe1', 'risky1', 'risky2');
  core.done('safe1');
  const { entries } = core.conversation;
  const index = entries.findIndex((entry) => entry.type === 'message' && entry.tool_calls !== undefined);
  const record = (type: string, position: number, tool: string, result?: string) => ({
    ...{ type, call: { entry: index, position }, tool },
    ...(result === undefined ? {} : { result }),
  });
  const run = (position: number, tool: string, result?: string) => [
    record('ToolCallRequested', position, tool),
    record('ToolCallStarted', position, tool),
    ...(result === undefined ? [] : [record('ToolCallCompleted', position, tool, result)]),
  ];
  const first = run(0, 'safe1', 'did safe1');
  const later = run(2, 'risky2', 'done after the copy of the log');
  expect(recordsOfBackup(entries, [...first, ...run(1, 'risky1'), ...later])).toEqual(first);
  const known = run(1, 'risky1', 'did risky1');
  expect(recordsOfBackup(entries, [...first, ...known, ...later])).toEqual([...first, ...known]);
  expect(checkAudit(entries, recordsOfBackup(entries, [...first, ...known, ...later]))).toEqual([]);
});
