import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ApiHandler } from '../../src/bus/index.ts';
import { ParleyError } from '../../src/kernel/index.ts';
import { perTest } from '../support/lifetime.ts';
import { startBroker, until } from '../unit/bus/support.ts';

const broker = perTest(() => startBroker('max_payload: 65536'));

describe('the request API', () => {
  const handler: ApiHandler = async ({ endpoint, publisher, body }) => {
    if (endpoint === 'agents') throw new TypeError('a bug');
    if (endpoint === 'stop') throw new ParleyError('BROKER_UNAVAILABLE', 'away', { hint: 'wait' });
    if (endpoint === 'entries') return { ok: true, body: { entries: 'x'.repeat(70_000) } };
    if (endpoint === 'view') return { ok: true, body: { big: 1n } };
    if (endpoint === 'conversation') {
      return { ok: false, refusal: { code: 'NOT_FOUND', message: 'no such conversation', hint: 'ls' } };
    }
    return { ok: true, body: { endpoint, publisher, body } };
  };
  const endpoints = ['post', 'conversation', 'entries', 'agents', 'stop', 'view'];
  const ask = async (subject: string, body: string | Uint8Array = '') => {
    const reply = await broker.plain.request(subject, body, { timeout: 5_000 });
    const status = reply.headers?.get('Nats-Service-Error-Code') || null;
    return { status, description: reply.headers?.get('Nats-Service-Error') ?? null, body: reply.json() };
  };

  it('the request API answers a plain NATS client, with and without a publisher in the subject', async () => {
    const daemon = await broker.bus();
    await daemon.serve(endpoints, handler);
    const answer = { endpoint: 'post', publisher: null, body: { a: 1 } };
    expect(await ask('parley.api.post', '{"a":1}')).toMatchObject({ status: null, body: answer });
    const bound = { endpoint: 'post', publisher: 'alice', body: {} };
    expect(await ask('parley.api.post.alice')).toMatchObject({ status: null, body: bound });
    const placed = { ...bound, body: { conversation: 'demo' } };
    expect(await ask('parley.api.post.alice.demo')).toMatchObject({ status: null, body: placed });
    const other = await ask('parley.api.post.alice.demo', '{"conversation":"other"}');
    expect(other.body).toMatchObject({ code: 'FORBIDDEN' });
    expect((await ask('parley.api.post.alice.demo', 'null')).body).toMatchObject({ body: null });
    await expect(broker.plain.request('parley.api.conversation.alice')).rejects.toMatchObject({
      code: '503',
    });
  });

  it('the request API is listed by the micro protocol', async () => {
    const daemon = await broker.bus({ version: '1.2.3' });
    await daemon.serve(endpoints, handler);
    expect((await broker.plain.request('$SRV.PING.parley')).json()).toMatchObject({
      name: 'parley',
      version: '1.2.3',
    });
    const info = (await broker.plain.request('$SRV.INFO.parley')).json<{
      endpoints: { name: string; subject: string }[];
    }>();
    const subjects = info.endpoints.map(({ subject }) => subject);
    expect(subjects).toContain('parley.api.entries');
    expect(subjects).toContain('parley.api.post.*');
    expect((await broker.plain.request('$SRV.STATS')).json()).toMatchObject({ name: 'parley' });
  });

  it('the micro protocol reports correctly whether a daemon starts or serves', async () => {
    const states = async () => {
      const asked = ['PING.parley', 'INFO.parley', 'STATS.parley', 'PING'].map(async (subject) => {
        const answer = (await broker.plain.request(`$SRV.${subject}`)).json<{
          metadata: { state?: string };
        }>();
        return answer.metadata.state ?? null;
      });
      return Promise.all(asked);
    };
    broker.plain.subscribe('$SRV.INFO.parley'); // as of a frozen daemon: the registration waits for its answer for some time
    await broker.plain.flush();
    const registering = (await broker.bus()).register();
    await expect
      .poll(() => states().catch(() => []), { interval: 5 })
      .toEqual([null, 'starting', 'starting', null]);
    await registering;
    expect(await states()).toEqual([null, 'serving', 'serving', null]);
  });

  it('the request API reports an error in headers and body, and continues', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await daemon.serve(endpoints, handler);
    const code = async (subject: string, body?: string | Uint8Array) => {
      const answer = await ask(subject, body);
      return [answer.status, (answer.body as { code: string }).code];
    };
    expect(await ask('parley.api.conversation', '{}')).toEqual({
      status: '404',
      description: 'NOT_FOUND: no such conversation',
      body: { code: 'NOT_FOUND', message: 'no such conversation', hint: 'ls' },
    });
    expect(await code('parley.api.post', '{nope')).toEqual(['400', 'MALFORMED_JSON']);
    expect(await code('parley.api.post', Uint8Array.of(0xff))).toEqual(['400', 'INVALID_UTF8']);
    expect(await code('parley.api.post.ü')).toEqual(['400', 'INVALID_NAME']);
    expect(await code('parley.api.entries')).toEqual(['413', 'TOO_LARGE']);
    expect(await code('parley.api.agents')).toEqual(['500', 'INTERNAL']);
    expect(await code('parley.api.view')).toEqual(['500', 'INTERNAL']);
    expect(await code('parley.api.stop')).toEqual(['503', 'BROKER_UNAVAILABLE']);
    expect(await code('parley.api.post', '{}')).toEqual([null, undefined]);
    expect(lines.filter(({ level }) => level === 'error').length).toBeGreaterThanOrEqual(2);
  });

  it('the request API logs an expected outage as one warning without a stack, and a bug as an error with its stack', async () => {
    const { bus: daemon, lines } = await broker.recording();
    await daemon.serve(endpoints, handler);
    await broker.plain.request('parley.api.stop', '{}');
    await broker.plain.request('parley.api.agents', '{}');
    expect(lines.filter(({ message }) => message === 'a request failed')).toEqual([
      {
        level: 'warn',
        fields: { endpoint: 'stop', code: 'BROKER_UNAVAILABLE', reason: 'away' },
        message: 'a request failed',
      },
      {
        level: 'error',
        fields: { endpoint: 'agents', err: expect.any(TypeError) },
        message: 'a request failed',
      },
    ]);
  });

  it('the request API answers again after the server was killed', async () => {
    const daemon = await broker.bus();
    await daemon.serve(endpoints, handler);
    await broker.server.kill9();
    await broker.server.restart();
    await until('it answers', () =>
      broker.plain.request('parley.api.post', '{}', { timeout: 300 }).then(
        () => true,
        () => false,
      ),
    );
  });

  it('the request API answers running requests before it closes, and none after', async () => {
    const daemon = await broker.bus();
    let release = () => {};
    let started = false;
    const held: ApiHandler = () =>
      new Promise((resolve) => {
        started = true;
        release = () => resolve({ ok: true, body: { done: true } });
      });
    await daemon.serve(['post'], held);
    const asked = ask('parley.api.post');
    await until('it started', () => started);
    const closing = daemon.close();
    await pause(100); // time enough to close if it did not wait
    release();
    expect((await asked).body).toEqual({ done: true });
    await closing;
    await expect(broker.plain.request('parley.api.post', '', { timeout: 500 })).rejects.toMatchObject({
      code: '503',
    });
  });
});
