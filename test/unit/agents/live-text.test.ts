import { describe, expect, it } from 'vitest';
import { LivePublisher, type ModelDelta } from '../../../src/agents/index.ts';
import type { LiveChunk } from '../../../src/conversation/index.ts';
import { SimulatedTime } from '../../../src/testing/simulation.ts';

const text = (delta: string): ModelDelta => ({ type: 'text', delta });
const thought = (delta: string): ModelDelta => ({ type: 'reasoning', delta });
const tool = (position: number, delta: string, name?: string): ModelDelta => ({
  ...{ type: 'tool_call_delta', position, delta },
  ...(name === undefined ? {} : { name }),
});

function openLiveText() {
  const time = new SimulatedTime(0);
  let ids = 0;
  const live = new LivePublisher(time.timers, () => `call-${ids++}`);
  const chunks: LiveChunk[] = [];
  return {
    chunks,
    begin: (turnId = 't') => live.begin(turnId, (chunk) => void chunks.push(chunk)),
    pass: (ms: number) => time.advance(ms, async () => undefined),
    /** The texts published since the last call. */
    published: () => chunks.splice(0).map(({ delta }) => delta),
  };
}

describe('the live text of model calls', () => {
  it('the first delta is published at once, and what follows is merged (LIVE-TEXT-1)', async () => {
    const { begin, pass, published } = openLiveText();
    const attempt = begin();
    attempt.add(text('a'));
    expect(published()).toEqual(['a']);
    attempt.add(text('b'));
    attempt.add(text('c'));
    expect(published()).toEqual([]);
    await pass(50);
    expect(published()).toEqual(['bc']);
  });

  it('a delta after a pause is published at once (LIVE-TEXT-1)', async () => {
    const { begin, pass, published } = openLiveText();
    const attempt = begin();
    for (const delta of ['a', 'b', 'c']) {
      attempt.add(text(delta));
      expect(published()).toEqual([delta]);
      await pass(50);
    }
  });

  it('text keeps flowing while deltas arrive faster than the interval (LIVE-TEXT-1)', async () => {
    const { begin, pass, published } = openLiveText();
    const attempts = Array.from({ length: 100 }, () => begin());
    for (let step = 0; step < 10; step += 1) {
      for (const attempt of attempts) attempt.add(text(String(step)));
      await pass(20);
    }
    const all = published();
    expect(all.filter((delta) => delta === '0')).toHaveLength(100);
    expect(all.every((delta) => delta.length <= 3)).toBe(true);
    expect(all.length).toBeLessThanOrEqual(500);
  });

  it('with one attempt, deltas that are 20 ms apart are not merged (LIVE-TEXT-1)', async () => {
    const { begin, pass, published } = openLiveText();
    const attempt = begin();
    for (const delta of ['a', 'b', 'c', 'd']) {
      attempt.add(text(delta));
      await pass(20);
    }
    expect(published()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('kinds and tool calls are not mixed, and keep their order (LIVE-TEXT-2)', async () => {
    const { begin, pass, chunks } = openLiveText();
    const attempt = begin();
    const deltas = [
      ...[thought('a'), thought('b'), thought('c'), text('d'), text('e'), thought('f')],
      tool(0, '', 'recall'),
      tool(0, '{"a'),
      tool(0, '":1}'),
      tool(1, '{', 'find'),
      tool(1, '}'),
      text('g'),
      ...[tool(1, 'x'), tool(1, '{}', 'again')],
    ];
    for (const delta of deltas) attempt.add(delta);
    await pass(50);
    const base = { turnId: 't', call: 'call-0' };
    const ofTool = { ...base, type: 'tool_call_delta' };
    expect(chunks).toEqual([
      { ...base, n: 0, type: 'reasoning', delta: 'a' },
      { ...base, n: 1, type: 'reasoning', delta: 'bc' },
      { ...base, n: 2, type: 'text', delta: 'de' },
      { ...base, n: 3, type: 'reasoning', delta: 'f' },
      { ...ofTool, n: 4, delta: '{"a":1}', toolCallId: 'call-0_0', toolName: 'recall' },
      { ...ofTool, n: 5, delta: '{}', toolCallId: 'call-0_1', toolName: 'find' },
      { ...base, n: 6, type: 'text', delta: 'g' },
      { ...ofTool, n: 7, delta: 'x', toolCallId: 'call-0_1', toolName: undefined },
      { ...ofTool, n: 8, delta: '{}', toolCallId: 'call-0_1', toolName: 'again' },
    ]);
  });

  it('an attempt that ends publishes what is left, once (LIVE-TEXT-3)', async () => {
    const { begin, pass, published } = openLiveText();
    const attempt = begin();
    attempt.add(text('a'));
    attempt.add(text('b'));
    attempt.end();
    expect(published()).toEqual(['a', 'b']);
    await pass(1_000);
    expect(published()).toEqual([]);
  });

  it('all attempts publish at the same time, each with its own numbers (LIVE-TEXT-4)', async () => {
    const { begin, pass, chunks } = openLiveText();
    const [one, other] = [begin('t1'), begin('t2')];
    one.add(text('a'));
    await pass(5);
    other.add(text('x'));
    one.add(text('b'));
    other.add(text('y'));
    other.add(text('z'));
    expect(chunks).toHaveLength(2);
    await pass(15);
    expect(chunks.map(({ turnId, call, n, delta }) => `${turnId} ${call} ${n} ${delta}`)).toEqual([
      ...['t1 call-0 0 a', 't2 call-1 0 x', 't1 call-0 1 b', 't2 call-1 1 yz'],
    ]);
  });

  it('a burst of text is not merged into a chunk that a server would refuse', () => {
    const { begin, published } = openLiveText();
    const attempt = begin();
    const piece = 'x'.repeat(1_000);
    for (let count = 0; count < 100; count += 1) attempt.add(text(piece));
    attempt.end();
    const lengths = published().map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThan(20_000);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(100_000);
  });
});
