import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ApiHandler, type Bus, createSubjects } from '../../src/bus/index.ts';
import { createNatsBus, type NatsConnection, openNats } from '../../src/bus/nats/index.ts';
import { connect, type Entry, type FollowEvent, type ParleyClient } from '../../src/client/index.ts';
import { errorWith } from '../support/error-with.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** The client library on a real server, with a daemon whose log is a list. */

const ENDPOINTS = ['post', 'answer', 'entries', 'agents'];

let server: TestNatsServer;
beforeAll(async () => {
  server = await startNatsServer({ config: 'max_payload: 65536' });
});
afterAll(() => server.stop());

let connection: NatsConnection;
let bus: Bus;
let client: ParleyClient;
let log: Entry[];
let asked: string[];
let silent: number;

const handler: ApiHandler = async ({ endpoint, publisher, body }) => {
  asked.push(endpoint);
  if (silent-- > 0) return new Promise(() => {}); // as a daemon that was frozen
  if (endpoint === 'entries') {
    const { conversation, from = 0 } = body as { conversation: string; from?: number };
    return { ok: true, body: { conversation, length: log.length, entries: log.slice(from, from + 3) } };
  }
  if (endpoint === 'post') {
    const { conversation, id } = body as { conversation: string; id: string };
    const index = log.findIndex((entry) => entry.id === id);
    if (index < 0) append(1, id);
    const at = index < 0 ? log.length - 1 : index;
    return { ok: true, body: { conversation, id, index: at, duplicate: index >= 0, agents: [publisher] } };
  }
  if (endpoint === 'answer') return { ok: true, body: { accepted: true, publisher } };
  return { ok: false, refusal: { code: 'NOT_FOUND', message: 'no `agents` here', hint: 'ask elsewhere' } };
};

function append(count: number, id?: string): Entry[] {
  const author = { kind: 'system', id: 'parley', name: 'Parley' } as const;
  const added = Array.from({ length: count }, (_, offset): Entry => {
    const index = log.length + offset;
    return {
      index,
      id: id ?? `e${index}`,
      createdAt: '2026-01-01T00:00:00.000Z',
      type: 'note',
      author,
      content: 'x',
    };
  });
  log.push(...added);
  return added;
}

beforeEach(async () => {
  log = [];
  asked = [];
  silent = 0;
  connection = await openNats({ url: server.url });
  const quiet = () => {};
  bus = await createNatsBus(connection, {
    subjects: createSubjects(),
    log: { info: quiet, warn: quiet, error: quiet },
  });
  await bus.serve(ENDPOINTS, handler);
  client = await connect({ url: server.url, requests: { timeoutMs: 300, pauseMs: 10 } });
});
afterEach(async () => {
  await client.close();
  await bus.close();
  await connection.close();
});

async function take(events: AsyncIterator<FollowEvent>, count: number) {
  const taken: (number | string)[] = [];
  while (taken.length < count) {
    const { value, done } = await events.next();
    if (done) break;
    taken.push(value.kind === 'entry' ? value.entry.index : value.chunk.delta);
  }
  return taken;
}

const follow = (options: Parameters<ParleyClient['follow']>[1] = {}) =>
  client.follow('c', options)[Symbol.asyncIterator]();

describe('the client on a real server', () => {
  it('the client reports that no daemon runs if none left its address', async () => {
    await expect(connect(null)).rejects.toMatchObject(
      errorWith('DAEMON_NOT_RUNNING', 'no daemon has left its address', 'parley up'),
    );
  });

  it.each([[undefined], [{}], [{ url: '' }], [{ url: 7 }]])(
    'the client reports which option is missing: %j',
    async (options) => {
      await expect(connect(options as never)).rejects.toMatchObject(
        errorWith('CONFIG_INVALID', /^connect: url is/, 'readConnectionFile'),
      );
    },
  );

  it('the client posts on the subject of its publisher', async () => {
    const answer = await client.post({ conversation: 'c', content: 'hi', publisher: 'alice' });
    expect(answer).toMatchObject({ conversation: 'c', index: 0, duplicate: false, agents: ['alice'] });
  });

  it('the client answers on the subject of its publisher, and without one on the plain subject', async () => {
    const approval = { approvalId: 'a1', answer: 'approve' } as const;
    const named = await client.request('answer', { ...approval, publisher: 'alice' });
    expect(named).toEqual({ accepted: true, publisher: 'alice' });
    expect(await client.request('answer', approval)).toEqual({ accepted: true, publisher: null });
  });

  it('the client posts once even if the first answer is lost', async () => {
    silent = 1;
    const answer = await client.post({ conversation: 'c', content: 'hi', publisher: 'alice' });
    expect(answer.index).toBe(0);
    expect(asked).toEqual(['post', 'post']);
    const again = await client.post({ conversation: 'c', content: 'hi', publisher: 'alice', id: answer.id });
    expect(again).toMatchObject({ index: 0, duplicate: true });
  });

  it('the client returns the refusal of the service with code, message and hint', async () => {
    await expect(client.request('agents', {})).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'no `agents` here',
      hint: 'ask elsewhere',
    });
  });

  it('the client reports that no daemon runs if none answers', async () => {
    const stranger = untilTestEnds(
      await connect({ url: server.url, prefix: 'elsewhere', requests: { pauseMs: 1 } }),
    );
    await expect(stranger.request('agents', {})).rejects.toMatchObject(
      errorWith('DAEMON_NOT_RUNNING', '', 'parley up'),
    );
  });

  it('the client refuses a body that the server cannot carry, and a name that cannot be in a subject', async () => {
    const message = { conversation: 'c', content: 'x'.repeat(70_000), publisher: 'alice' };
    await expect(client.post(message)).rejects.toMatchObject({ code: 'TOO_LARGE' });
    await expect(client.post({ ...message, content: 'x', publisher: 'a.>' })).rejects.toMatchObject({
      code: 'INVALID_NAME',
    });
    expect(asked).toEqual([]);
  });

  it('the client follows the log and the live text in order', async () => {
    append(5);
    const events = follow();
    expect(await take(events, 5)).toEqual([0, 1, 2, 3, 4]);
    bus.publishLive('c', 'pm', { turnId: 't', call: 'k', n: 0, type: 'text', delta: 'Hel' });
    bus.publishEntries('c', append(1));
    expect(await take(events, 2)).toEqual(['Hel', 5]);
    await events.return?.();
  });

  it('the client reads from the log what the feed did not deliver', async () => {
    const events = follow();
    const first = take(events, 1);
    bus.publishEntries('c', append(1));
    await first;
    append(4); // never published
    bus.publishEntries('c', append(1));
    expect(await take(events, 5)).toEqual([1, 2, 3, 4, 5]);
    await events.return?.();
  });

  it('the client ignores what others publish on its subjects', async () => {
    append(1);
    const events = follow();
    await take(events, 1);
    for (const text of ['', 'null', '{', '{"entries":1}', '{"entries":[null,{}]}']) {
      connection.publish('parley.log.c', text);
      connection.publish('parley.live.c.pm', text);
    }
    bus.publishEntries('c', append(1));
    expect(await take(events, 1)).toEqual([1]);
    await events.return?.();
  });

  it('the client ends its subscriptions when it is closed', async () => {
    append(1);
    const events = follow();
    await take(events, 1);
    const waiting = events.next();
    await client.close();
    expect(await waiting).toMatchObject({ done: true });
    await expect(client.request('agents', {})).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  });

  it('the client continues without a gap after the server was killed', async () => {
    append(2);
    const reports: boolean[] = [];
    const events = follow({ pollMs: 200, onReachable: (isReachable) => void reports.push(isReachable) });
    await take(events, 2);
    await server.kill9();
    append(3);
    await expect.poll(() => reports.at(-1)).toBe(false);
    await server.restart();
    expect(await take(events, 3)).toEqual([2, 3, 4]);
    expect(reports.at(-1)).toBe(true);
    await events.return?.();
  });
});

describe('connecting', () => {
  it('connecting names a server that is not reachable', async () => {
    await expect(connect({ url: 'nats://127.0.0.1:1' })).rejects.toMatchObject({ code: 'NATS_UNREACHABLE' });
  });

  it('connecting refuses an invalid prefix before it connects', async () => {
    await expect(connect({ url: 'nats://127.0.0.1:1', prefix: 'a b' })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
  });
});
