import { expect, it } from 'vitest';
import { type RemoteChannel, type RemoteResults, RemoteSession } from '../../../src/models/remote/session.ts';

it('a tool call that is repeated after a later one was answered gets its own answer and does not run again', async () => {
  const answers: [string | null, RemoteResults][] = [];
  const line = {
    answer: (to: string | null, results: RemoteResults) => answers.push([to, results]) > 0,
  } as unknown as RemoteChannel;
  const session = new RemoteSession(line, 1);
  const hear = (id: string, from: string) =>
    session.receive({
      type: 'message',
      from,
      message: { type: 'tool_call', id, calls: [{ name: id, arguments: '{}' }] },
    });
  const resultsOf = (id: string) =>
    ({ results: [{ id, status: 'ok', content: id }] }) as unknown as RemoteResults;
  const { signal } = new AbortController();
  hear('a', 'inbox-1');
  hear('b', 'inbox-2');
  for (const id of ['a', 'b']) {
    const heard = await session.next(signal, 1_000);
    if (heard.type !== 'tool_call') throw new Error(heard.type);
    expect(heard.message.id).toBe(id);
    session.expectResults(heard);
    session.answer(resultsOf(id));
  }
  hear('a', 'inbox-3');
  expect(answers.at(-1)).toEqual(['inbox-3', resultsOf('a')]);
  expect(await session.next(signal, 40)).toEqual({ type: 'silent' });
});

const silent = { answer: () => true } as unknown as RemoteChannel;

it('an agent that streams text without end keeps its beginning only', () => {
  const session = new RemoteSession(silent, 1);
  for (let sent = 0; sent < 100; sent++)
    session.receive({ type: 'text', call: 'c', delta: `${sent}`.padEnd(1_000_000, 'x') });
  expect(session.partial).toMatch(/^0x/);
  expect(session.partial.length).toBeLessThan(20_000_000);
});

it.each([
  ['many', 5_000, 10, 258],
  ['long', 50, 1_000_000, 18],
])(
  'an agent that sends %s messages which nothing reads fails, and few are kept',
  async (_, count, length, most) => {
    const session = new RemoteSession(silent, 1);
    for (let sent = 0; sent < count; sent++) {
      const calls = [{ name: 'x', arguments: 'x'.repeat(length) }];
      session.receive({ type: 'message', from: null, message: { type: 'tool_call', id: `${sent}`, calls } });
    }
    const { signal } = new AbortController();
    const read: string[] = [];
    for (let last = ''; last !== 'silent' && read.length < count; read.push(last))
      last = (await session.next(signal, 40)).type;
    expect(read.slice(-2)).toEqual(['invalid', 'silent']);
    expect(read.length).toBeLessThanOrEqual(most);
  },
);
