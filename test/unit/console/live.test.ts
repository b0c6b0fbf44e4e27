import { describe, expect, it } from 'vitest';
import {
  type Chunk,
  contentOf,
  type Drafts,
  interrupted,
  NO_DRAFTS,
  Said,
  withChunk,
  withoutInterrupted,
  withoutSaid,
} from '../../../src/console/model/thread/live.ts';
import { answer, begin, end, logOf, say } from './support.ts';

const chunk = (delta: string, more: Partial<Chunk> = {}): Chunk => ({
  agent: 'pm',
  turnId: 'turn-pm',
  call: 'call-1',
  n: 0,
  type: 'text',
  delta,
  ...more,
});

const shown = (drafts: Drafts, turnId = 'turn-pm') => {
  const draft = drafts.get(turnId);
  return draft && { ...draft, ...contentOf(draft) };
};

describe('text that is being generated', () => {
  it('live text is collected by call and kind', () => {
    const drafts = [
      chunk('Hel'),
      chunk('lo', { n: 1 }),
      chunk('hm', { n: 2, type: 'reasoning' }),
      chunk('{', { n: 3, type: 'tool_call_delta', toolName: 'ask' }),
      chunk('}', { n: 4, type: 'tool_call_delta', toolName: 'ask' }),
      chunk('Other', { agent: 'dev', turnId: 'turn-dev' }),
    ].reduce(withChunk, NO_DRAFTS);
    expect(shown(drafts)).toMatchObject({
      text: 'Hello',
      reasoning: 'hm',
      tools: ['ask'],
      isPartial: false,
    });
    expect(shown(drafts, 'turn-dev')?.text).toBe('Other');
  });

  it('calls that an agent reports are named by their newest title, and what comes last is known', () => {
    const call = (n: number, toolCallId: string, toolName: string) =>
      chunk('', { n, type: 'tool_call_delta', toolCallId, toolName });
    const calls = [call(0, 'a', 'bash'), call(1, 'a', 'npm test'), call(2, 'b', 'Edit')];
    const drafts = calls.reduce(withChunk, NO_DRAFTS);
    expect(shown(drafts)).toMatchObject({ tools: ['npm test', 'Edit'], newest: 'tool_call_delta' });
    expect(shown(withChunk(drafts, chunk('Done', { n: 3 })))).toMatchObject({ text: 'Done', newest: 'text' });
  });

  it('W2: live text restarts with a new attempt', () => {
    const drafts = [chunk('Hello'), chunk('Good', { call: 'call-2' })].reduce(withChunk, NO_DRAFTS);
    expect(shown(drafts)?.text).toBe('Good');
  });

  it('live text whose beginning was missed is marked', () => {
    expect(shown(withChunk(NO_DRAFTS, chunk('lo', { n: 7 })))?.isPartial).toBe(true);
  });

  it('text that was streamed before replaces a draft that it overlaps, and is continued', () => {
    const drafts = [
      chunk('lo ', { n: 1 }),
      chunk('hm', { n: 0, from: 0, type: 'reasoning' }),
      chunk('Hello ', { n: 2, from: 1 }),
      chunk('lo ', { n: 2 }),
      chunk('world', { n: 3 }),
    ].reduce(withChunk, NO_DRAFTS);
    expect(shown(drafts)).toMatchObject({ text: 'Hello world', reasoning: 'hm', isPartial: false });
  });

  it('an interrupted draft stays until the thread is loaded, or its text comes again', () => {
    const torn = interrupted(withChunk(NO_DRAFTS, chunk('Hel')));
    expect(shown(torn)).toMatchObject({ text: 'Hel', isInterrupted: true });
    expect(withoutInterrupted(torn).size).toBe(0);
    const again = withChunk(torn, chunk('Hello', { n: 3, from: 0 }));
    expect(shown(withoutInterrupted(again))).toMatchObject({ text: 'Hello' });
  });

  it('LIVE-1: chunks that arrive after their message or the end of their turn are dropped', () => {
    const drafts = withChunk(NO_DRAFTS, chunk('Hel'));
    const [called, over] = logOf(answer('pm', 'Hello'), end('pm', 'failed', 0));
    const said = new Said();
    said.add(drafts, called!);
    expect([said.has(chunk('lo', { n: 1 })), said.has(chunk('Next', { call: 'call-2' }))]).toEqual([
      true,
      false,
    ]);
    said.add(NO_DRAFTS, over!);
    expect(said.has(chunk('Next', { call: 'call-2' }))).toBe(true);
    expect(said.has(chunk('Other', { turnId: 'turn-dev', call: 'call-3' }))).toBe(false);
  });

  it('W1: live text disappears with its answer or its turn', () => {
    const drafts = withChunk(NO_DRAFTS, chunk('Hel'));
    const [said, over, others, person, begun] = logOf(
      answer('pm', 'Hello'),
      end('pm', 'failed', 0),
      answer('dev', 'x'),
      say('x'),
      begin('pm'),
    );
    expect(withoutSaid(drafts, said!).size).toBe(0);
    expect(withoutSaid(drafts, over!).size).toBe(0);
    expect(withoutSaid(drafts, others!)).toBe(drafts);
    expect(withoutSaid(drafts, person!)).toBe(drafts);
    expect(withoutSaid(drafts, begun!)).toBe(drafts);
  });
});
