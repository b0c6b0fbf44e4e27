import { afterEach, describe, expect, it } from 'vitest';
import type { Assembled } from '../../../src/agents/index.ts';
import type { Decision, Entry, Reply } from '../../../src/conversation/index.ts';
import { createTelemetry, NO_TELEMETRY, type TelemetryEvent } from '../../../src/daemon/observe/telemetry.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createDaemon, postCommand, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

const CREATED = '2026-11-22T00:00:00.000Z';
const NOW = '2026-11-22T00:00:01.000Z';

function watched() {
  const events: TelemetryEvent[] = [];
  return {
    events,
    telemetry: createTelemetry(
      (event) => events.push(event),
      () => Date.parse(NOW),
    ),
  };
}

function entry(fields: { readonly type: Entry['type'] } & Record<string, unknown>): Entry {
  const author = { kind: 'agent', id: 'pm', name: 'Pam' };
  return {
    index: 4,
    id: 'a secret id',
    createdAt: CREATED,
    author,
    turnId: 't1',
    ...fields,
  } as unknown as Entry;
}

const decided = (entries: readonly Entry[], reply: Reply = { kind: 'done' }): Decision => ({
  entries,
  effects: [],
  reply,
});

const started = (more: object = {}) => entry({ type: 'turn-started', agent: 'pm', trigger: [3], ...more });
const result = (more: object = {}) =>
  entry({
    type: 'message',
    role: 'tool',
    agentId: 'pm',
    content: 'grüße',
    toolName: 'fs_read',
    call: { index: 2, position: 1 },
    duration: 12,
    ...more,
  });
const recovered = (count: Partial<Record<'repaired' | 'retried' | 'unknown', number>> = {}): Reply => ({
  kind: 'recovered',
  count: { repaired: 0, retried: 0, unknown: 0, ...count },
});

describe('telemetry', () => {
  it('reports the start and the end of a turn, and its tool results', () => {
    const { events, telemetry } = watched();
    const ended = entry({
      type: 'turn-ended',
      agent: 'pm',
      outcome: 'completed',
      lastProcessedMessageIndex: 9,
    });
    telemetry.applied('demo', decided([started({ requestHash: 'abc' }), result(), ended]));
    const base = { ts: CREATED, conversation: 'demo', agent: 'pm', turnId: 't1', index: 4 };
    expect(events).toEqual([
      { ...base, type: 'turn_started', trigger: [3], resumed: false, requestHash: 'abc' },
      {
        ...base,
        type: 'tool_result_persisted',
        tool: 'fs_read',
        call: { index: 2, position: 1 },
        bytes: 7,
        isPreview: false,
        durationMs: 12,
      },
      { ...base, type: 'turn_ended', outcome: 'completed', lastProcessedMessageIndex: 9 },
    ]);
  });

  it('contains no text of people or agents', () => {
    const { events, telemetry } = watched();
    const said = ['user', 'assistant', 'system'].map((role) =>
      entry({ type: 'message', role, content: 'x' }),
    );
    telemetry.applied('demo', decided([...said, entry({ type: 'title-set', title: 'x' })]));
    expect(events).toEqual([]);
  });

  it.each<[string, Entry[], Reply, object | null]>([
    ['resumes a turn', [started({ resumed: true })], recovered(), { resumed: 1 }],
    ['has a result that the log lacked', [], recovered({ repaired: 2 }), { repaired: 2 }],
    ['runs a call once more', [], recovered({ retried: 1 }), { retried: 1 }],
    ['does not know of a call', [], recovered({ unknown: 1 }), { unknown: 1 }],
    ['only begins what waited', [started()], recovered(), null],
  ])('reports a repair that %s, once', (_, entries, reply, counts) => {
    const { events, telemetry } = watched();
    telemetry.applied('demo', decided(entries, reply));
    const repairs = events.filter(({ type }) => type === 'conversation_repair_applied');
    const zeros = { resumed: 0, repaired: 0, retried: 0, unknown: 0 };
    const base = { ts: NOW, type: 'conversation_repair_applied', conversation: 'demo' };
    expect(repairs).toEqual(counts ? [{ ...base, ...zeros, ...counts }] : []);
  });

  it('reports no repair when a turn continues that waited for an agent or a person', () => {
    const { events, telemetry } = watched();
    telemetry.applied('demo', decided([started({ resumed: true })]));
    expect(events.map(({ type }) => type)).toEqual(['turn_started']);
  });

  it('leaves out a name that a model or a remote agent invented', () => {
    const { events, telemetry } = watched();
    telemetry.applied('demo', decided([result({ toolName: 'send "the password"' })]));
    const report = { agent: 'pm', turnId: 't1', duration: 5, requestHash: 'abc', upTo: 4 };
    const failed = { type: 'model-failed', message: 'secret', partial: 'secret', ...report } as const;
    telemetry.modelCalled('demo', 'default', 2, { ...failed, code: 'my key is 1' });
    telemetry.modelCalled('demo', 'default', 2, { ...failed, code: 'TIMEOUT' });
    const call = { type: 'model_call', outcome: 'failed', call: 2, durationMs: 5, requestHash: 'abc' };
    expect(events).toMatchObject([
      { tool: undefined },
      { ...call, code: undefined },
      { ...call, code: 'TIMEOUT' },
    ]);
    expect(JSON.stringify(events)).not.toMatch(/password|secret|my key/);
  });

  it('reports a request that the guard refused, with the reason', () => {
    const { events, telemetry } = watched();
    const request = { conversation: 'demo', agent: 'pm', turnId: 't1', hash: 'abc', headers: {} };
    const assembled: Assembled = {
      request: {
        ...request,
        messages: [{ role: 'user', content: 'hello' }],
        tools: [],
        body: [Buffer.alloc(4), Buffer.alloc(3)],
      },
      parts: [],
      estimatedTokens: 42,
      tokens: 42,
      fault: { code: 'CONTEXT_STILL_TOO_LARGE', message: 'hello is too long' },
    };
    telemetry.viewBuilt(assembled);
    expect(events).toEqual([
      {
        ...{ ts: NOW, type: 'view_built', conversation: 'demo', agent: 'pm', turnId: 't1' },
        ...{ requestHash: 'abc', messages: 1, tools: 0, tokens: 42, bytes: 7 },
        refused: 'CONTEXT_STILL_TOO_LARGE',
      },
    ]);
  });

  it('makes no events without a sink (DAEMON-TELEMETRY-3)', () => {
    expect(createTelemetry(undefined, Date.now)).toBe(NO_TELEMETRY);
  });
});

describe('telemetry of a conversation at work', () => {
  let daemon: TestDaemon;
  let events: TelemetryEvent[] = [];
  const setUp = (options: TestDaemonOptions = {}) => {
    events = [];
    daemon = createDaemon({ telemetry: (event) => events.push(event), ...options });
  };
  afterEach(() => daemon.end());
  const types = () => events.map(({ type }) => type);

  it('follows a turn from its start to its end', async () => {
    setUp();
    await daemon.posted('hello');
    const hash = daemon.calls[0]?.request.hash;
    expect(events).toMatchObject([
      { type: 'turn_started', requestHash: hash },
      { type: 'view_built', requestHash: hash, messages: daemon.calls[0]?.request.messages.length },
    ]);
    daemon.calls[0]?.answer('hi');
    await expect.poll(types).toEqual(['turn_started', 'view_built', 'model_call', 'turn_ended']);
    expect(events[2]).toMatchObject({ model: 'default', call: 1, outcome: 'answered', requestHash: hash });
  });

  it('a call of an agent in another process names no model', async () => {
    setUp({ runtimeOfAgents: 'bus', reply: () => 'hi' });
    await daemon.posted('hello');
    await expect.poll(types).toContain('turn_ended');
    const call = events.find(({ type }) => type === 'model_call');
    expect(call).toMatchObject({ agent: 'pm', outcome: 'answered' });
    expect(call).toHaveProperty('model', undefined);
  });

  it('reports nothing that could not be made durable', async () => {
    setUp();
    const worker = await daemon.workers.use('demo');
    daemon.faults.push(new Error('no space left'));
    await expect(worker.submit(postCommand('m1', 'hello'))).rejects.toThrow('no space');
    expect(events).toEqual([]);
  });

  it.each(['answered', 'failed', 'aborted'] as const)('reports a model call that was %s', async (outcome) => {
    setUp();
    const worker = await daemon.posted('hello');
    if (outcome === 'answered') daemon.calls[0]?.answer('hi');
    else if (outcome === 'failed') daemon.calls[0]?.fail('RATE_LIMITED');
    else await worker.submit({ type: 'stop', agent: null, by: { kind: 'person', id: 'a', name: 'A' } });
    await expect.poll(types).toContain('turn_ended');
    const code = outcome === 'failed' ? { code: 'RATE_LIMITED' } : {};
    expect(events.filter(({ type }) => type === 'model_call')).toMatchObject([{ outcome, ...code }]);
  });

  it('reports a repair at the next start, and not at the one after', async () => {
    const disk = createMemoryDisk();
    setUp({ disk });
    await (await daemon.workers.use('demo')).submit(postCommand('m1', 'hello'));
    await daemon.end();
    setUp({ disk, reply: () => 'hi' });
    await daemon.workers.recover();
    await expect.poll(types).toContain('turn_ended');
    expect(types().slice(0, 3)).toEqual(['turn_started', 'conversation_repair_applied', 'view_built']);
    expect(events[0]).toMatchObject({ resumed: true });
    await daemon.end();
    setUp({ disk });
    await daemon.workers.recover();
    await daemon.workers.use('demo');
    expect(events).toEqual([]);
  });

  it('continues when the sink throws (DAEMON-TELEMETRY-3)', async () => {
    setUp({
      telemetry: () => {
        throw new Error('no ear');
      },
      reply: () => 'hi',
    });
    const worker = await daemon.posted('hello');
    await expect.poll(() => worker.state.length).toBe(5);
  });
});
