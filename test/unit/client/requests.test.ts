import { describe, expect, it } from 'vitest';
import type { NatsConnection } from '../../../src/bus/nats/index.ts';
import { sendRequest } from '../../../src/client/requests.ts';
import { errorWith } from '../../support/error-with.ts';

const POLICY = { attempts: 3, timeoutMs: 100, pauseMs: 1 };
const REQUEST = { subject: 'parley.api.post.alice', endpoint: 'post', body: { id: 'x', content: 'hi' } };

type Reply = { body: string; headers?: Record<string, string> } | { throws: string; with?: object };

function natsError(code: string, more: object = {}): Error {
  return Object.assign(new Error(code), { code, ...more });
}

/** A connection that gives these replies, one per request, and the last one from then on. */
function fakeConnection(replies: Reply[], maxPayload = 1_000_000) {
  const sent: string[] = [];
  const waits: number[] = [];
  const connection = {
    info: { max_payload: maxPayload },
    async request(_subject: string, payload: Uint8Array, { timeout }: { timeout: number }) {
      waits.push(timeout);
      sent.push(Buffer.from(payload).toString());
      const reply = replies[Math.min(sent.length, replies.length) - 1]!;
      if ('throws' in reply) throw natsError(reply.throws, reply.with);
      return { headers: { get: (name: string) => reply.headers?.[name] ?? '' }, string: () => reply.body };
    },
  };
  return { sent, waits, connection: connection as unknown as NatsConnection };
}

describe('a request to the daemon', () => {
  it('a request is repeated byte for byte until it is answered', async () => {
    const replies = [{ throws: '503' }, { throws: 'TIMEOUT' }, { body: '{"index":3}' }];
    const { connection, sent } = fakeConnection(replies);
    expect(await sendRequest(connection, REQUEST, POLICY)).toEqual({ index: 3 });
    expect(new Set(sent)).toEqual(new Set(['{"id":"x","content":"hi"}']));
    expect(sent).toHaveLength(3);
  });

  it.each([
    ['503', 'DAEMON_NOT_RUNNING', /parley up/],
    ['TIMEOUT', 'DAEMON_TIMEOUT', /same id/],
  ])('a request fails after all attempts ended with %s', async (thrown, code, hint) => {
    const { connection, sent } = fakeConnection([{ throws: thrown }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({
      code,
      hint: expect.stringMatching(hint),
    });
    expect(sent).toHaveLength(3);
  });

  it.each([
    ['CONNECTION_CLOSED', 'CONNECTION_CLOSED'],
    ['PERMISSIONS_VIOLATION', 'NATS_FORBIDDEN'],
    ['BAD_SUBJECT', 'NATS_REQUEST_FAILED'],
  ])('a request is not repeated after an error that is not retryable: %s', async (thrown, code) => {
    const { connection, sent } = fakeConnection([{ throws: thrown }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({ code });
    expect(sent).toHaveLength(1);
  });

  it('a request names the inbox as the cause if it may not subscribe to replies', async () => {
    const permissionContext = { operation: 'subscription', subject: '_INBOX.x.*' };
    const { connection } = fakeConnection([{ throws: 'PERMISSIONS_VIOLATION', with: { permissionContext } }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({
      code: 'NATS_FORBIDDEN',
      message: 'these credentials may not receive answers on _INBOX.x.*',
      hint: expect.stringMatching(/done all the same.*inboxPrefix/),
    });
  });

  it.each(['post', 'seed', 'entries'])(
    'the idempotent request %s is repeated with growing delays',
    async (endpoint) => {
      const { connection, waits } = fakeConnection([{ throws: 'TIMEOUT' }]);
      const policy = { attempts: 5, timeoutMs: 10_000, pauseMs: 1 };
      await expect(sendRequest(connection, { ...REQUEST, endpoint }, policy)).rejects.toThrow(
        'within 10000 ms',
      );
      expect(waits).toEqual([1_000, 1_250, 2_500, 5_000, 10_000]);
    },
  );

  it('a request waits no longer than the given time', async () => {
    const { connection, waits } = fakeConnection([{ throws: 'TIMEOUT' }]);
    const policy = { attempts: 5, timeoutMs: 10_000, pauseMs: 1 };
    await expect(sendRequest(connection, REQUEST, { ...policy, attempts: 1 })).rejects.toThrow();
    expect(waits).toEqual([10_000]);
    waits.length = 0;
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toThrow();
    expect(waits).toEqual([100, 100, 100]);
  });

  it.each(['answer', 'delete', 'phase', 'mode', 'stop', 'resume', 'dead-retry'])(
    'the request %s is sent once and waits the whole time, as it should not be repeated',
    async (endpoint) => {
      const { connection, waits } = fakeConnection([{ throws: 'TIMEOUT' }]);
      const policy = { attempts: 2, timeoutMs: 10_000, pauseMs: 1 };
      await expect(sendRequest(connection, { ...REQUEST, endpoint }, policy)).rejects.toThrow();
      expect(waits).toEqual([10_000, 10_000]);
    },
  );

  it('a reload, which may wait for MCP servers to start, is sent once and waits longer', async () => {
    const { connection, waits } = fakeConnection([{ throws: 'TIMEOUT' }]);
    const policy = { attempts: 3, timeoutMs: 10_000, pauseMs: 1 };
    const reloading = sendRequest(connection, { ...REQUEST, endpoint: 'reload' }, policy);
    await expect(reloading).rejects.toThrow('no answer to reload within 90000 ms, asked 1 time');
    expect(waits).toEqual([90_000]);
  });

  it('a refusal of the daemon is returned unchanged and once', async () => {
    const body = JSON.stringify({
      code: 'UNKNOWN_AGENT',
      message: 'no agent `x`',
      hint: 'ask `parley agents`',
    });
    const { connection, sent } = fakeConnection([{ body, headers: { 'Nats-Service-Error-Code': '404' } }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({
      code: 'UNKNOWN_AGENT',
      message: 'no agent `x`',
      hint: 'ask `parley agents`',
    });
    expect(sent).toHaveLength(1);
  });

  it('a request is repeated if the daemon is temporarily unavailable', async () => {
    const unavailable = { body: '{"code":"BROKER_UNAVAILABLE","message":"…"}' };
    const headers = { 'Nats-Service-Error-Code': '503' };
    const { connection, sent } = fakeConnection([{ ...unavailable, headers }, { body: '{}' }]);
    expect(await sendRequest(connection, REQUEST, POLICY)).toEqual({});
    expect(sent).toHaveLength(2);
  });

  it('a refusal that consists of headers only is understood', async () => {
    const headers = { 'Nats-Service-Error-Code': '500', 'Nats-Service-Error': 'it broke' };
    const { connection } = fakeConnection([{ body: '', headers }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({
      code: 'SERVICE_ERROR_500',
      message: 'it broke',
    });
  });

  it('a reply that is not JSON is refused', async () => {
    const { connection } = fakeConnection([{ body: 'hello' }]);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject({ code: 'INVALID_ANSWER' });
  });

  it('a body that the server cannot carry is refused before it is sent', async () => {
    const { connection, sent } = fakeConnection([{ body: '{}' }], 20);
    await expect(sendRequest(connection, REQUEST, POLICY)).rejects.toMatchObject(
      errorWith('TOO_LARGE', '20'),
    );
    expect(sent).toEqual([]);
  });

  it('a request ends at once when its signal aborts', async () => {
    const { connection } = fakeConnection([]);
    connection.request = () => new Promise(() => {});
    const abort = new AbortController();
    const outcome = expect(sendRequest(connection, REQUEST, POLICY, abort.signal)).rejects.toThrow(/abort/i);
    abort.abort();
    await outcome;
  });
});
