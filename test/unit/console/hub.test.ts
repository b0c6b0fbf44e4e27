import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Client, Hub, type Sent } from '../../../src/console/api/hub.ts';
import { logOf, say } from './support.ts';

/** A request for a stream, answered by the test. */
interface Opened {
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
  send(event: string, data: object): void;
  cut(): void;
}

const LOG = logOf(say('zero'), say('one'), say('two'), say('three'));

describe('the hub of the tabs', () => {
  let opened: Opened[];
  let refuse: number | null;
  beforeEach(() => {
    vi.useFakeTimers();
    opened = [];
    refuse = null;
    vi.stubGlobal('fetch', async (address: string, { signal }: { signal: AbortSignal }) => {
      if (refuse !== null) return new Response(JSON.stringify({ code: 'UNAUTHORIZED' }), { status: refuse });
      let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
      const body = new ReadableStream<Uint8Array>({
        start(own) {
          controller = own;
          signal.addEventListener('abort', () => own.error(signal.reason));
        },
      });
      opened.push({
        query: new URL(address).searchParams,
        signal,
        send: (event, data) =>
          controller?.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)),
        cut: () => controller?.error(new Error('cut')),
      });
      return new Response(body);
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  const settle = (ms = 20) => vi.advanceTimersByTimeAsync(ms);
  const hub = () => new Hub({ address: 'http://daemon/api/events', session: '' });
  const tab = () => {
    const got: Sent[] = [];
    const client: Client = (batch) => got.push(...batch);
    const indexes = () => got.flatMap((one) => (one.kind === 'entry' ? [one.entry.index] : []));
    const states = () => got.flatMap((one) => (one.kind === 'connection' ? [one.connection.kind] : []));
    const texts = () => got.flatMap((one) => (one.kind === 'chunk' ? [one.chunk.delta] : []));
    return { got, client, indexes, states, texts };
  };
  const wants = (conversation: string) => ({ list: false, follow: { conversation, id: 1, next: 0 } });
  const newest = () => opened.at(-1) as Opened;
  const sendEntries = async (stream: Opened, conversation: string, ...indexes: readonly number[]) => {
    for (const index of indexes) stream.send('entry', { conversation, entry: LOG[index] });
    await settle();
  };

  it('HUB-1 a tab that joins later gets the log from its index on, and the first tab nothing twice', async () => {
    const [shared, first, second] = [hub(), tab(), tab()];
    shared.want(first.client, wants('a'));
    await settle();
    await sendEntries(newest(), 'a', 0, 1);
    shared.want(second.client, wants('a'));
    await settle();
    expect(newest().query.get('follow')).toBe('a@0');
    await sendEntries(newest(), 'a', 0, 1, 2);
    expect([first.indexes(), second.indexes()]).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  it('HUB-1 a reconnection begins after the last entry, and text that two streams deliver comes once', async () => {
    const [shared, one] = [hub(), tab()];
    shared.want(one.client, wants('a'));
    await settle();
    await sendEntries(newest(), 'a', 0, 1);
    newest().cut();
    await settle(1_000);
    expect(newest().query.get('follow')).toBe('a@2');
    expect(one.states()).toEqual(['live', 'lost', 'live']);
    const chunk = (n: number) => ({
      conversation: 'a',
      agent: 'pm',
      turnId: 't',
      call: 'c',
      n,
      type: 'text',
      delta: `d${n}`,
    });
    const before = newest();
    shared.want(tab().client, wants('b'));
    await settle();
    for (const stream of [before, newest()]) for (const n of [0, 1]) stream.send('live', chunk(n));
    await settle();
    expect(one.texts()).toEqual(['d0', 'd1']);
  });

  it('HUB-1 a tab that joins later gets no text from the stream whose entries it does not have', async () => {
    const [shared, first, second] = [hub(), tab(), tab()];
    shared.want(first.client, wants('a'));
    await settle();
    await sendEntries(newest(), 'a', 0, 1);
    shared.want(second.client, wants('a'));
    const text = { conversation: 'a', agent: 'pm', turnId: 't', call: 'c', type: 'text' };
    newest().send('live', { ...text, n: 1, delta: 'end' });
    await settle(5); // the next stream is not asked for yet
    expect([first.texts(), second.texts()]).toEqual([['end'], []]);
    await settle();
    await sendEntries(newest(), 'a', 0, 1);
    newest().send('live', { ...text, n: 1, from: 0, delta: 'beginning and end' });
    await settle();
    expect(second.texts()).toEqual(['beginning and end']);
    expect(second.got.map(({ kind }) => kind).filter((kind) => kind !== 'connection')).toEqual([
      'entry',
      'entry',
      'chunk',
    ]);
  });

  it('HUB-2 the next stream is open before the last one is closed, and a tab that leaves is no longer followed', async () => {
    const [shared, first, second] = [hub(), tab(), tab()];
    shared.want(first.client, wants('a'));
    await settle();
    shared.want(second.client, wants('b'));
    await settle();
    const [last, next] = opened;
    expect([opened.length, last?.signal.aborted]).toEqual([2, false]);
    await settle(500);
    expect([last?.signal.aborted, next?.signal.aborted]).toEqual([true, false]);
    expect(first.states()).toEqual(['live']);
    shared.leave(first.client);
    await settle();
    expect(newest().query.get('follow')).toBe('b@0');
    shared.leave(second.client);
    await settle(500);
    expect([shared.isEmpty, opened.every(({ signal }) => signal.aborted)]).toEqual([true, true]);
  });

  it('HUB-3 a connection without data is lost, and a refusal is over for each tab', async () => {
    const [shared, one] = [hub(), tab()];
    shared.want(one.client, wants('a'));
    await settle(46_000);
    expect(one.states()).toEqual(['live', 'lost', 'live']);
    refuse = 401;
    newest().cut();
    await settle(10_000);
    expect(one.got.at(-1)).toMatchObject({ connection: { kind: 'over', code: 'UNAUTHORIZED' } });
  });

  it('HUB-4 a tab that is silent for too long is left out at the next change', async () => {
    const [shared, silent, alive] = [hub(), tab(), tab()];
    shared.want(silent.client, wants('a'));
    await settle(170_000);
    shared.want(alive.client, wants('b'));
    await settle();
    expect(newest().query.get('follow')).toBe('a@0,b@0');
    await settle(20_000);
    shared.want(alive.client, wants('b'));
    await settle();
    expect(newest().query.get('follow')).toBe('b@0');
  });

  it('a tab that asks for the list later gets all rows, and a reconnection only changes', async () => {
    const [shared, first, second] = [hub(), tab(), tab()];
    const listed = { list: true, follow: null };
    shared.want(first.client, listed);
    await settle();
    newest().send('list', {
      version: 'e-1',
      whole: true,
      conversations: [{ id: 'x' }, { id: 'y' }],
      deleted: [],
    });
    newest().send('list', { version: 'e-2', whole: false, conversations: [], deleted: ['y'] });
    await settle();
    shared.want(second.client, listed);
    await settle();
    const change = { whole: true, conversations: [{ id: 'x' }], deleted: [] };
    expect(second.got).toContainEqual({ kind: 'list', change });
    newest().cut();
    await settle(1_000);
    expect(newest().query.get('list')).toBe('e-2');
  });

  it('a deleted conversation is over for its tabs, and is not followed again', async () => {
    const [shared, first, second] = [hub(), tab(), tab()];
    shared.want(first.client, wants('a'));
    shared.want(second.client, wants('b'));
    await settle();
    newest().send('over', { conversation: 'a', code: 'CONVERSATION_DELETED', message: 'deleted' });
    await settle();
    expect([first.states(), second.states()]).toEqual([['live', 'over'], ['live']]);
    newest().cut();
    await settle(1_000);
    expect(newest().query.get('follow')).toBe('b@0');
  });
});
