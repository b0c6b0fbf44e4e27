import { describe, expect, it } from 'vitest';
import { checkLaws, finishReasonOf } from '../../../src/conversation/index.ts';
import { messagesOf, World } from './world.ts';

const NOTICE = '=== CONTINUE YOUR ANSWER ===';

function paused(content: string | null = 'A beginning'): World {
  const world = new World().posted('go');
  world.answer(world.callOf('pm'), content, [], 'pause');
  return world;
}

describe('a paused answer', () => {
  it.each([
    ['pause_turn', 'pause'],
    ['model_context_window_exceeded', 'length'],
    ['RECITATION', 'content_filter'],
  ])('the reason %s of a provider is kept as %s', (given, kept) => {
    expect(finishReasonOf(given)).toBe(kept);
  });

  it('the same turn continues a paused answer, and its request ends with a notice after the answer', () => {
    const world = paused();
    const messages = messagesOf(world.view('pm'));
    expect(messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: 'A beginning' },
      { content: expect.stringContaining(NOTICE) },
    ]);
    const before = world.entries.length;
    world.answer(world.callOf('pm'), 'The end.');
    expect(world.entries.slice(before).map(({ type }) => type)).toEqual([
      'message',
      'title-set',
      'turn-ended',
    ]);
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('a paused answer is continued after a crash, with the same messages', () => {
    const world = paused();
    const messages = messagesOf(world.view('pm'));
    world.crash();
    expect(messagesOf(world.view('pm'))).toEqual(messages);
    world.answer(world.callOf('pm'), 'The end.');
    expect(world.conversation.state.agents.pm?.turn).toBeNull();
    expect(checkLaws(world.entries)).toEqual([]);
  });

  it('a repeated report of a paused answer changes nothing', () => {
    const world = new World().posted('go');
    const { agent, turnId } = world.callOf('pm');
    const { turn } = world.conversation.state.agents.pm ?? {}; // `upTo` has the value that the daemon reports.
    const answer = { content: 'A beginning', toolCalls: [], finishReason: 'pause' };
    const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: turn?.askedAt ?? -1 };
    const first = world.do({ type: 'model-answered', ...report, answer });
    expect(first.effects).toMatchObject([{ type: 'call-model' }]);
    expect(world.do({ type: 'model-answered', ...report, answer }).entries).toEqual([]);
  });

  it('a steered message is delivered before the paused turn continues', () => {
    const world = new World().posted('go');
    world.post('and quickly');
    const { entries } = world.answer(world.callOf('pm'), 'A beginning', [], 'pause');
    expect(entries.map(({ type }) => type)).toEqual(['message', 'message-delivered']);
    expect(messagesOf(world.view('pm')).at(-1)).toMatchObject({ role: 'user', content: 'and quickly' });
  });

  it('a paused answer of a stopped agent ends its turn', () => {
    const world = new World().posted('go');
    const call = world.callOf('pm');
    world.post('stop that', { delivery: 'interrupt' });
    world.answer(call, 'A beginning', [], 'pause');
    expect(world.entries.some((entry) => entry.type === 'turn-ended' && entry.outcome === 'aborted')).toBe(
      true,
    );
    expect(checkLaws(world.entries)).toEqual([]);
  });
});
