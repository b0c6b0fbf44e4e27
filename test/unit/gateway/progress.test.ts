import { describe, expect, it } from 'vitest';
import { type Entry, Progress, type Rest, type Step } from '../../../src/conversation/index.ts';
import type { Arrival } from '../../../src/gateway/index.ts';
import { Arrivals } from '../../../src/gateway/progress/arrivals.ts';
import { eventStream } from '../../../src/gateway/progress/event-stream.ts';
import { createFakeDaemon, messageEntry } from './support.ts';

const base = { id: 'x', createdAt: '', author: { kind: 'agent' as const, id: 'pm', name: 'Pam' } };
const begun = (index: number): Entry =>
  ({ ...base, index, type: 'turn-started', turnId: 't', agent: 'pm', trigger: [0] }) as Entry;
const said = (index: number, content: string, more: object = {}): Entry =>
  ({ ...messageEntry(index, content), ...base, role: 'assistant', turnId: 't', ...more }) as Entry;
const ended = (index: number, outcome = 'completed'): Entry =>
  ({ ...base, index, type: 'turn-ended', turnId: 't', agent: 'pm', outcome }) as Entry;
const live = (n: number, delta: string, call = 'c'): Extract<Arrival, { kind: 'live' }> => ({
  kind: 'live',
  agent: 'pm',
  chunk: { turnId: 't', call, n, type: 'text', delta },
});
const entries = (...all: Entry[]) => ({ kind: 'entries' as const, entries: all, isCurrent: true });

describe('the events of a post', () => {
  const tell = (...heard: Parameters<Progress['accept']>[0][]): Step[] => {
    const progress = new Progress({ agent: 'pm', posts: [{ index: 0, agents: ['pm'] }] });
    return heard.flatMap((one) => [...progress.accept(one)]);
  };
  const words = (steps: Step[]) =>
    steps.flatMap((step): (string | Rest)[] =>
      step.kind === 'words' ? [step.delta] : step.kind === 'said' ? [step.text] : [],
    );

  it('an answer is sent live, and its entry sends the rest', () => {
    const steps = tell(
      entries(begun(1)),
      live(0, 'One '),
      live(1, 'two'),
      entries(said(2, 'One two.'), ended(3)),
    );
    expect(words(steps)).toEqual(['One ', 'two', { isMore: true, words: '.' }]);
    expect(steps.at(-1)).toEqual({ kind: 'over', ending: { kind: 'completed' } });
  });

  it.each([
    ['a branch ended the run', base.author, 'completed'],
    ['the daemon gave the run up', { kind: 'system', id: 'parley', name: 'Parley' }, 'aborted'],
  ])('a turn that is aborted since %s: %s', (_, author, kind) => {
    const over = { ...base, author, index: 2, type: 'run-ended', runId: 'r', outcome: 'done' } as Entry;
    const progress = new Progress({ agent: null, posts: [{ index: 0, agents: ['pm'] }] });
    const steps = [...progress.accept(entries(begun(1), over, ended(3, 'aborted')))];
    expect(steps.at(-1)).toEqual({ kind: 'over', ending: { kind } });
  });

  it('a turn that was given up ends with the limit as the reason', () => {
    const limit = { ...base, index: 2, type: 'limit-reached', limit: 'attempts', agent: 'pm', turnId: 't' };
    const steps = tell(entries(begun(1), { ...limit, content: 'Five daemons' } as Entry, ended(3, 'failed')));
    const refusal = { code: 'LIMIT_REACHED', message: 'Five daemons' };
    expect(steps.at(-1)).toEqual({ kind: 'over', ending: { kind: 'failed', refusal } });
  });

  it('text of a retried call is not sent twice, and other text waits for the entry', () => {
    const again = tell(entries(begun(1)), live(0, 'One'), live(0, 'One', 'd'), live(1, ' two', 'd'));
    expect(words(again)).toEqual(['One', ' two']);
    const other = tell(entries(begun(1)), live(0, 'Yes'), live(0, 'No', 'd'), entries(said(2, 'No.')));
    expect(words(other)).toEqual(['Yes', { isMore: false, words: 'No.' }]);
  });

  it('a message whose beginning was missed is sent with its entry', () => {
    expect(words(tell(entries(begun(1)), live(1, 'two'), entries(said(2, 'One two'))))).toEqual([
      { isMore: true, words: 'One two' },
    ]);
  });

  it('a message is named after the entries before it', () => {
    const steps = tell(entries(begun(1)), live(0, 'One'), entries(said(2, 'One'), said(3, 'Two')));
    const names = steps.flatMap((step) => ('message' in step ? [step.message] : []));
    expect(names).toEqual(['t-1', 't-1', 't-2']);
  });

  it('the events of a post end with a question to a person or with a failed call', () => {
    const ask = { id: 'a', type: 'function', function: { name: 'ask', arguments: '{"question":"Which?"}' } };
    const waiting = tell(
      entries(messageEntry(0, 'Hello'), begun(1), said(2, '', { tool_calls: [ask] }), ended(3, 'waiting')),
    );
    expect(waiting.at(-1)).toMatchObject({
      ending: { kind: 'waits', open: [{ place: { index: 2, position: 0 }, question: 'Which?', root: 0 }] },
    });
    const error = 'So far\n\nLLM_ERROR {"code":"MODEL_ERROR","message":"out of order"}';
    const failed = tell(entries(begun(1), said(2, error, { partType: 'error' }), ended(3, 'failed')));
    expect(words(failed)).toEqual([{ isMore: true, words: 'So far' }]);
    expect(failed.at(-1)).toMatchObject({ ending: { kind: 'failed', refusal: { code: 'MODEL_ERROR' } } });
  });
});

describe('the events of a conversation', () => {
  it('events arrive in order from the log and the feed, whatever the feed loses', async () => {
    const daemon = createFakeDaemon();
    daemon.append('demo', 'a', 'b');
    const arrivals = new Arrivals(daemon, 'demo');
    const [c, d] = daemon.append('demo', 'c', 'd');
    arrivals.begin(1);
    expect(await arrivals.take()).toMatchObject({ entries: [{ index: 1 }, { index: 2 }, { index: 3 }] });
    daemon.logs.get('demo')?.push(messageEntry(4, 'lost'));
    daemon.logs.get('demo')?.push(messageEntry(5, 'heard'));
    daemon.publish('demo', { kind: 'entries', entries: [messageEntry(5, 'heard')] });
    expect(await arrivals.take()).toMatchObject({ entries: [{ index: 4 }, { index: 5 }], isCurrent: true });
    arrivals.close();
    expect([await arrivals.take(), daemon.watchers('demo'), c?.index, d?.index]).toEqual([null, 0, 2, 3]);
  });

  it('live text from before the position of the reader is skipped', async () => {
    const daemon = createFakeDaemon();
    const arrivals = new Arrivals(daemon, 'demo');
    daemon.append('demo', 'a');
    daemon.publish('demo', live(0, 'old'));
    daemon.append('demo', 'b');
    daemon.publish('demo', live(0, 'new'));
    arrivals.begin(2);
    expect(await arrivals.take()).toMatchObject({ chunk: { delta: 'new' } });
  });

  it('an append that claims the conversation is read from the log, as the server may have refused it', async () => {
    const daemon = createFakeDaemon();
    daemon.append('demo', 'first');
    const reader = new Arrivals(daemon, 'demo');
    reader.begin(0);
    await reader.take();
    const publish = (content: string) => {
      const claim = { ...messageEntry(1, content), type: 'claim', daemon: content, epoch: 1 } as Entry;
      daemon.publish('demo', { kind: 'entries', entries: [claim, messageEntry(2, content)] });
    };
    publish('refused');
    publish('kept');
    setTimeout(() => daemon.append('demo', 'kept', 'also kept'), 100);
    const heard: unknown[] = [];
    while (heard.length < 2) {
      const next = await reader.take();
      if (next?.kind !== 'entries') continue;
      heard.push(...next.entries.map((entry) => 'content' in entry && entry.content));
    }
    expect(heard).toEqual(['kept', 'also kept']);
    reader.close();
  });

  it('an append that is older than the log is read from the log, as a resumed daemon may have published it', async () => {
    const daemon = createFakeDaemon();
    daemon.append('demo', 'first', 'second');
    const reader = new Arrivals(daemon, 'demo');
    reader.begin(0);
    await reader.take();
    daemon.publish('demo', { kind: 'entries', entries: [{ ...messageEntry(1, 'refused'), id: 'other' }] });
    daemon.append('demo', 'third');
    const heard: unknown[] = [];
    while (heard.length === 0) {
      const next = await reader.take();
      if (next?.kind === 'entries') heard.push(...next.entries);
    }
    expect(heard).toMatchObject([{ index: 2, content: 'third' }]);
    reader.close();
  });

  it('a post that came with a claim is delivered if two daemons claimed before it was requested', async () => {
    const daemon = createFakeDaemon();
    const reader = new Arrivals(daemon, 'demo');
    const claim = (id: string) =>
      ({ ...messageEntry(1, ''), id, type: 'claim', daemon: id, epoch: 2 }) as Entry;
    const [first, post] = [messageEntry(0, 'first'), messageEntry(2, 'post')];
    daemon.logs.set('demo', [first, claim('a'), post]);
    for (const entries of [[first], [claim('b'), { ...post, id: 'b' }], [claim('a'), post]])
      daemon.publish('demo', { kind: 'entries', entries });
    reader.begin(2);
    expect(await reader.take()).toMatchObject({ entries: [{ id: 'id-2' }] });
    reader.close();
  }, 3_000);

  it('a reader that is too slow is disconnected, and so is one whose conversation is deleted', async () => {
    const daemon = createFakeDaemon();
    daemon.append('demo', 'a');
    const slow = new Arrivals(daemon, 'demo');
    slow.begin(1);
    for (let n = 0; n < 5; n++) daemon.publish('demo', live(n, 'x'.repeat(1_000_000)));
    await expect(slow.take()).rejects.toMatchObject({ code: 'TOO_SLOW' });
    expect(daemon.watchers('demo')).toBe(0);
    const reader = new Arrivals(daemon, 'demo');
    reader.begin(1);
    await reader.take();
    daemon.logs.delete('demo');
    daemon.publish('demo', { kind: 'entries', entries: [messageEntry(0, 'anew')] });
    await expect(reader.take()).rejects.toMatchObject({ code: 'CONVERSATION_DELETED' });
  });
});

describe('a stream of frames', () => {
  it('a frame stream sends heartbeats, and releases its resources when the reader leaves', async () => {
    const frames = (async function* () {
      yield 'data: 1\n\n';
      await new Promise(() => undefined);
    })();
    let gone = 0;
    const { body } = eventStream(frames, {
      heartbeatMs: 10,
      closing: new AbortController().signal,
      onGone: () => {
        gone += 1;
      },
      onFault: () => undefined,
    });
    const reader = body!.getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    expect([await read(), await read()]).toEqual(['data: 1\n\n', ': still here\n\n']);
    await reader.cancel();
    expect(gone).toBe(1);
  });
});
