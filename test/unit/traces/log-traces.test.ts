import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { hasNoCaller, Lineage, LogTraces, type Span } from '../../../src/traces/index.ts';

/** The spans of logs that are written by hand. */

const ALICE = { kind: 'person', id: 'web/Alice', name: 'Alice' };
const agent = (id: string) => ({ kind: 'agent', id, name: id });

/** One entry a second. */
function logOf(...entries: readonly object[]): Entry[] {
  return entries.map((entry, index) => {
    const createdAt = new Date(1_700_000_000_000 + index * 1_000).toISOString();
    return { index, id: `e${index}`, createdAt, author: ALICE, ...entry } as Entry;
  });
}

const post = (to: string[] | undefined, more = {}) => ({
  type: 'message',
  role: 'user',
  content: 'TEXT',
  to,
  ...more,
});
const start = (turnId: string, slug: string, trigger: number[], more = {}) => {
  return { type: 'turn-started', turnId, agent: slug, trigger, ...more };
};
const end = (turnId: string, slug: string, outcome = 'completed') => {
  return { type: 'turn-ended', turnId, agent: slug, outcome, lastProcessedMessageIndex: 0 };
};
const answer = (turnId: string, slug: string, more = {}) => ({
  ...{ type: 'message', role: 'assistant', author: agent(slug), turnId, content: 'TEXT', partType: 'text' },
  ...{ requestHash: `${turnId}-hash`, duration: 400, model: 'm', ...more },
});
const asks = (turnId: string, slug: string, name: string) =>
  answer(turnId, slug, {
    tool_calls: [{ id: 'x', type: 'function', function: { name, arguments: '{"TEXT":1}' } }],
  });
const result = (turnId: string, slug: string, index: number, toolName: string, content = 'TEXT') => ({
  ...{ type: 'message', role: 'tool', author: agent(slug), turnId, content, toolName },
  call: { index, position: 0 },
});

const spansOf = (entries: Entry[], content = false) => new LogTraces('demo', entries, content).spans();
const byName = (spans: readonly Span[], name: string) => spans.filter((span) => span.name === name);
const parentOf = (span: Span | undefined, spans: readonly Span[]) =>
  spans.find(({ spanId }) => spanId === span?.parentId)?.name;

const HANDOVER = logOf(
  post(['pm']),
  start('t1', 'pm', [0]),
  asks('t1', 'pm', 'shell'),
  { type: 'tool-started', turnId: 't1', call: { index: 2, position: 0 }, toolName: 'shell', risk: 'risky' },
  result('t1', 'pm', 2, 'shell', '{"error":{"code":"TOOL_FAILED","message":"TEXT"}}'),
  asks('t1', 'pm', 'handoff'),
  { type: 'handoff', turnId: 't1', from: 'pm', to: 'dev', summary: 'TEXT', call: { index: 5, position: 0 } },
  result('t1', 'pm', 5, 'handoff'),
  end('t1', 'pm'),
  start('t2', 'dev', [6]),
  answer('t2', 'dev', { usage: { inputTokens: 7, outputTokens: 3 }, finishReason: 'stop' }),
  end('t2', 'dev'),
);

describe('the spans of a log', () => {
  it('a handoff continues the trace of the post', () => {
    const spans = spansOf(HANDOVER);
    expect(spans.map(({ name }) => name).sort()).toEqual([
      'chat m',
      'chat m',
      'chat m',
      'execute_tool handoff',
      'execute_tool shell',
      'invoke_agent dev',
      'invoke_agent pm',
      'post',
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(parentOf(byName(spans, 'invoke_agent dev')[0], spans)).toBe('execute_tool handoff');
    expect(parentOf(byName(spans, 'execute_tool handoff')[0], spans)).toBe('invoke_agent pm');
    expect(parentOf(byName(spans, 'invoke_agent pm')[0], spans)).toBe('post');
    expect(byName(spans, 'post')[0]?.parentId).toBeNull();
  });

  it('times and attributes come from the entries', () => {
    const spans = spansOf(HANDOVER);
    const [shell] = byName(spans, 'execute_tool shell');
    expect(shell).toMatchObject({ start: 1_700_000_003_000, end: 1_700_000_004_000, isError: true });
    expect(shell?.attributes).toMatchObject({ 'error.type': 'TOOL_FAILED', 'parley.tool.risk': 'risky' });
    const last = byName(spans, 'chat m').at(-1);
    expect(last).toMatchObject({ kind: 'client', start: 1_700_000_009_600, end: 1_700_000_010_000 });
    expect(last?.attributes).toMatchObject({
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.conversation.id': 'demo',
    });
  });

  it('a failed attempt is a call of its own; one that was not sent, or that another key repeats, has no span', () => {
    const attempt = (model: string, next: string, requestHash?: string) => ({
      ...{ type: 'attempt-failed', author: agent('pm'), turnId: 't1', agent: 'pm', message: 'TEXT', upTo: 1 },
      ...{ model, code: 'TIMEOUT', duration: 300, requestHash, next: { model: next } },
    });
    const log = logOf(
      ...[post(['pm']), start('t1', 'pm', [0]), attempt('a', 'a', 'h1'), attempt('a', 'b', 'h1')],
      ...[attempt('b', 'c'), answer('t1', 'pm', { model: 'c' }), end('t1', 'pm')],
    );
    const calls = spansOf(log).filter(({ name }) => name.startsWith('chat'));
    expect(calls.map(({ name, isError }) => [name, isError])).toEqual([
      ['chat a', true],
      ['chat c', false],
    ]);
    expect(calls[0]?.attributes['error.type']).toBe('TIMEOUT');
    expect(calls[0]?.spanId).toBe(new Lineage('demo', log).modelCall('t1', 'h1').spanId);
    expect(JSON.stringify(calls)).not.toContain('TEXT');
  });

  it('no attribute contains a text, unless content is asked for', () => {
    expect(JSON.stringify(spansOf(HANDOVER))).not.toContain('TEXT');
    const whole = spansOf(HANDOVER, true);
    expect(byName(whole, 'execute_tool shell')[0]?.attributes['gen_ai.tool.call.arguments']).toBe(
      '{"TEXT":1}',
    );
    const long = spansOf(logOf(post(undefined, { content: 'x'.repeat(100_000) })), true);
    expect(JSON.stringify(long).length).toBeLessThan(20_000);
  });

  it('the spans of a growing log are those of the whole log, each once', () => {
    const parts = HANDOVER.flatMap((_, index) =>
      new LogTraces('demo', HANDOVER.slice(0, index + 1)).spans(index),
    );
    expect(parts).toEqual(spansOf(HANDOVER));
  });

  it('the context of a running call has the ids of the span that it becomes', () => {
    const spans = spansOf(HANDOVER);
    const { lineage } = new LogTraces('demo', HANDOVER.slice(0, 4));
    expect(spans).toContainEqual(expect.objectContaining(lineage.toolCall('t1', { index: 2, position: 0 })));
    expect(spans).toContainEqual(expect.objectContaining(lineage.modelCall('t1', 't1-hash')));
  });

  it('a post to two agents ends with the second answer, and a turn links its further posts', () => {
    const log = logOf(
      post(['pm', 'dev']),
      start('t1', 'pm', [0]),
      post(['dev']),
      end('t1', 'pm'),
      start('t2', 'dev', [0, 2]),
      end('t2', 'dev'),
    );
    const spans = spansOf(log);
    const [first, second] = byName(spans, 'post');
    expect([first?.end, second?.end]).toEqual([1_700_000_005_000, 1_700_000_005_000]);
    const [dev] = byName(spans, 'invoke_agent dev');
    expect(dev?.parentId).toBe(first?.spanId);
    expect(dev?.links).toEqual([{ traceId: second?.traceId, spanId: second?.spanId, parentId: null }]);
  });

  it('a turn that waits has no span until it ends, and an approval has its own', () => {
    const log = logOf(
      post(['pm']),
      start('t1', 'pm', [0]),
      asks('t1', 'pm', 'shell'),
      {
        type: 'approval-requested',
        approvalId: 'a1',
        call: { index: 2, position: 0 },
        tool: 'shell',
        risk: 'risky',
        mayHaveRun: false,
      },
      end('t1', 'pm', 'waiting'),
      { type: 'approval-answered', approvalId: 'a1', answer: 'approve' },
      start('t1', 'pm', [0], { resumed: true }),
      result('t1', 'pm', 2, 'shell'),
      end('t1', 'pm'),
    );
    expect(spansOf(log.slice(0, 5)).map(({ name }) => name)).toEqual(['chat m']);
    const spans = spansOf(log);
    expect(byName(spans, 'approval')[0]).toMatchObject({ start: 1_700_000_003_000, end: 1_700_000_005_000 });
    expect(byName(spans, 'invoke_agent pm')[0]).toMatchObject({
      start: 1_700_000_001_000,
      attributes: { 'parley.turn.waits': 1 },
    });
    expect(byName(spans, 'invoke_agent pm')).toHaveLength(1);
  });

  it('a node of a run belongs to the trace of the call that completed the one before', () => {
    const log = logOf(
      post(['pm']),
      start('t1', 'pm', [0]),
      asks('t1', 'pm', 'complete_node'),
      result('t1', 'pm', 2, 'complete_node'),
      {
        type: 'node-entered',
        runId: 'r',
        node: 'build',
        to: ['dev'],
        author: { kind: 'system', id: 'parley', name: 'Parley' },
      },
      end('t1', 'pm'),
      start('t2', 'dev', [4]),
      end('t2', 'dev'),
    );
    const spans = spansOf(log);
    expect(parentOf(byName(spans, 'invoke_agent dev')[0], spans)).toBe('execute_tool complete_node');
  });

  it('copied entries have no span, and what follows them refers to the conversation of their origin', () => {
    const copies = HANDOVER.slice(0, 2).map((entry) => ({ ...entry, copiedFrom: 'demo' }));
    const rest = logOf(post(['pm']), end('t1', 'pm', 'aborted'), start('t3', 'pm', [0]), end('t3', 'pm'));
    const log = [
      ...copies,
      ...rest.slice(1).map((entry) => ({ ...entry, index: entry.index + 1 })),
    ] as Entry[];
    const spans = new LogTraces('fork', log).spans();
    expect(spans.map(({ name }) => name)).toEqual(['invoke_agent pm']);
    expect(spans[0]?.parentId).toBe(byName(spansOf(HANDOVER), 'post')[0]?.spanId);
  });

  it('a post with a traceparent is a child of its publisher, and an invalid one is a root', () => {
    const [traceId, parentId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
    const traced = logOf(post(undefined, { traceparent: `00-${traceId}-${parentId}-01` }));
    expect(spansOf(traced)).toMatchObject([{ name: 'post', traceId, parentId }]);
    expect(spansOf(logOf(post(undefined, { traceparent: 'wrong' })))).toMatchObject([{ parentId: null }]);
  });

  it('the quick check finds no caller only where the lineage has none', () => {
    const traceparent = '00-11111111111111111111111111111111-2222222222222222-01';
    const named = logOf(post(['pm'], { traceparent }), ...HANDOVER.slice(1));
    const resumed = logOf(...HANDOVER, start('t1', 'pm', [4], { resumed: true }));
    expect([hasNoCaller('t1', HANDOVER), new Lineage('demo', HANDOVER).caller('t1')]).toEqual([true, null]);
    for (const turnId of ['t1', 't2'])
      expect([hasNoCaller(turnId, named), new Lineage('demo', named).caller(turnId)]).toEqual([
        false,
        traceparent,
      ]);
    expect(hasNoCaller('t2', HANDOVER)).toBe(false); // a handoff: its own cause may have one
    expect(hasNoCaller('t1', resumed)).toBe(false);
    expect(hasNoCaller('t9', HANDOVER)).toBe(false);
  });

  it('a damaged log whose handoffs name each other as cause has spans', () => {
    const handoff = (turnId: string) => ({ type: 'handoff', turnId, from: 'a', to: 'b', summary: '' });
    const log = logOf(
      handoff('t2'),
      handoff('t1'),
      start('t1', 'pm', [0]),
      start('t2', 'dev', [1]),
      end('t1', 'pm'),
      end('t2', 'dev'),
    );
    expect(spansOf(log)).toHaveLength(2);
  });
});
