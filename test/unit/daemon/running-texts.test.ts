import { describe, expect, it } from 'vitest';
import type { LiveArrival } from '../../../src/conversation/index.ts';
import { Watchers } from '../../../src/daemon/feed/watchers.ts';
import type { Arrival } from '../../../src/gateway/index.ts';
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

  it('a chunk is added once, and text from the beginning replaces what is known (DRAFT-TEXT-3)', () => {
    const watchers = new Watchers();
    tell(watchers, 1, 'two');
    tell(watchers, 1, 'two');
    expect(shown(watchers)).toEqual([[1, 1, 'text', 'two']]);
    tell(watchers, 2, 'One two three', { from: 0 });
    tell(watchers, 2, ' three');
    expect(shown(watchers)).toEqual([[0, 2, 'text', 'One two three']]);
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

describe('the live text of a call that another daemon runs (WATCHED-TEXT-1)', () => {
  const live = (n: number, delta: string, more: object = {}): LiveArrival => ({
    kind: 'live',
    agent: 'pm',
    chunk: { turnId: 'turn-pm', call: 'c1', n, type: 'text', delta, ...more },
  });

  function watch() {
    let publish: (arrival: Arrival) => void = () => undefined;
    const answers: ((texts: readonly LiveArrival[]) => void)[] = [];
    let fail = () => {};
    const asked: string[] = [];
    const watchers = new Watchers({
      follow: (_, tell) => {
        publish = tell;
        return { ready: Promise.resolve(), stop: () => undefined };
      },
      textsOf: (conversation) => {
        asked.push(conversation);
        return new Promise((resolve, reject) => {
          answers.push(resolve);
          fail = () => reject(new Error('no answer'));
        });
      },
    });
    const got: (string | number)[] = [];
    const take = (arrival: Arrival) =>
      void got.push(arrival.kind === 'live' ? arrival.chunk.delta : (arrival.entries[0]?.type ?? ''));
    const stop = watchers.watch('demo', take);
    const settle = () => new Promise((resolve) => setTimeout(resolve));
    /** Answers the newest question, or an earlier one. */
    const done = async (texts: readonly LiveArrival[] | null, question = -1) => {
      await settle();
      if (texts) answers.at(question)?.(texts);
      else fail();
      await settle();
    };
    return {
      settle,
      watchers,
      publish: (arrival: Arrival) => publish(arrival),
      done,
      got,
      take,
      asked,
      stop,
    };
  }

  it('a watcher gets the text so far before what continues it, each chunk once', async () => {
    const { publish, done, got, watchers, asked } = watch();
    publish(live(4, 'five'));
    publish(live(5, 'six'));
    await done([live(4, 'one to five', { from: 0 })]);
    publish(live(6, 'seven'));
    expect(got).toEqual(['one to five', 'six', 'seven']);
    expect(asked).toEqual(['demo']);
    expect(watchers.textsOf('demo').map(({ chunk }) => [chunk.from, chunk.n, chunk.delta])).toEqual([
      [0, 6, 'one to fivesixseven'],
    ]);
  });

  it('entries do not wait for that text, and text whose entry came is dropped', async () => {
    const { publish, done, got, watchers } = watch();
    publish(live(4, 'five'));
    publish({ kind: 'entries', entries: logOf(answer('pm', 'Hello')) });
    expect(got).toHaveLength(1);
    await done([live(4, 'one to five', { from: 0 })]);
    expect(got).toHaveLength(1);
    expect(watchers.textsOf('demo')).toEqual([]);
  });

  it('without an answer, the text begins with what the daemon received', async () => {
    const { publish, done, got } = watch();
    publish(live(4, 'five'));
    await done(null);
    publish(live(5, 'six'));
    expect(got).toEqual(['five', 'six']);
  });

  it('text of an attempt that a newer one replaced is dropped, wherever the newer one begins', async () => {
    const { publish, done, watchers } = watch();
    publish(live(5, 'of the first attempt'));
    publish(live(0, 'again', { call: 'c2' }));
    await done([live(0, 'again', { call: 'c2', from: 0 })]);
    publish(live(1, ' and again', { call: 'c2' }));
    expect(watchers.textsOf('demo').map(({ chunk }) => chunk.delta)).toEqual(['again and again']);
  });

  it('an answer for watchers that left is not given to those that came later', async () => {
    const { settle, done, got, watchers, stop, take } = watch();
    await settle();
    stop();
    watchers.watch('demo', take);
    await done([live(4, 'an older state', { from: 0 })], 0);
    expect(got).toEqual([]);
    await done([live(5, 'the state', { from: 0 })]);
    expect(got).toEqual(['the state']);
  });

  it('it is forgotten with the last watcher: its end would be missed', async () => {
    const { publish, done, watchers, stop } = watch();
    await done([]);
    publish(live(0, 'one'));
    expect(watchers.textsOf('demo')).toHaveLength(1);
    stop();
    expect(watchers.textsOf('demo')).toEqual([]);
  });
});
