import { describe, expect, it } from 'vitest';
import { Watchers } from '../../../src/daemon/api/watchers.ts';
import { answer, end, logOf, say } from '../console/support.ts';

describe('the live text of running calls', () => {
  const tell = (watchers: Watchers, n: number, delta: string, more: object = {}) =>
    watchers.tell('demo', {
      kind: 'live',
      agent: 'pm',
      chunk: { turnId: 'turn-pm', call: 'c1', n, type: 'text', delta, ...more },
    });
  const shown = (watchers: Watchers, conversation = 'demo') =>
    watchers
      .textsOf(conversation)
      .map((one) => one.kind === 'live' && [one.chunk.from, one.chunk.n, one.chunk.type, one.chunk.delta]);

  it('it is kept without watchers, in pieces of one kind, with the chunks in each', () => {
    const watchers = new Watchers();
    tell(watchers, 0, 'hm', { type: 'reasoning' });
    tell(watchers, 1, 'One ');
    tell(watchers, 2, 'two');
    expect(shown(watchers)).toEqual([
      [0, 0, 'reasoning', 'hm'],
      [1, 2, 'text', 'One two'],
    ]);
    expect(shown(watchers, 'other')).toEqual([]);
  });

  it('another attempt replaces it', () => {
    const watchers = new Watchers();
    tell(watchers, 0, 'first');
    tell(watchers, 0, 'second', { call: 'c2' });
    expect(shown(watchers)).toEqual([[0, 0, 'text', 'second']]);
  });

  it.each([
    ['its message', answer('pm', 'Hello')],
    ['the end of its turn', end('pm', 'failed', 0)],
  ])('it is dropped when the log has %s, and only then', (_, over) => {
    const watchers = new Watchers();
    tell(watchers, 0, 'Hel');
    watchers.tell('demo', { kind: 'entries', entries: logOf(say('x'), answer('dev', 'x')) });
    expect(shown(watchers)).toHaveLength(1);
    watchers.tell('demo', { kind: 'entries', entries: logOf(over) });
    expect(shown(watchers)).toEqual([]);
  });
});
