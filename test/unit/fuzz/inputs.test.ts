import { request } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeRequest } from '../../../src/bus/index.ts';
import { startOf } from '../../../src/gateway/events/routes.ts';
import { identify } from '../../../src/gateway/guard/access.ts';
import { checkHost, checkOrigin } from '../../../src/gateway/guard/hosts.ts';
import type { Gateway } from '../../../src/gateway/index.ts';
import { readChatRequest } from '../../../src/gateway/openai/request.ts';
import { decodeBody, encodeBody } from '../../../src/persistence/jetstream/stream-log.ts';
import { runs } from '../../support/runs.ts';
import { type FakeDaemon, openGateway } from '../gateway/support.ts';
import { entry } from '../persistence/support.ts';
import { BODIES, CHATS, HOSTS, PATHS } from './corpus.ts';
import { mangled } from './mangle.ts';
import { refusalBy } from './refusal.ts';

/** Input by HTTP and from a stream is either accepted or refused with a message. */

const LONG_MS = 120_000;
const texts = (seeds: readonly string[]) => mangled(seeds).map((bytes) => bytes.toString());

/** Without the functions that name fields. */
const dataOf = (request: unknown): unknown => JSON.parse(JSON.stringify(request));

describe('the gateway', () => {
  let gateway: Gateway;
  let daemon: FakeDaemon;
  let faults: unknown[];
  beforeAll(async () => {
    ({ gateway, daemon, faults } = await openGateway({ requestsPerSecond: 1_000_000 }));
    const entries = { conversation: 'demo', length: 0, entries: [] };
    daemon.answer = () => ({ ok: true, body: { agents: [], ...entries } });
  });
  afterAll(() => gateway.close());

  /** The raw request line: `fetch` would normalise it. */
  function send(method: string, path: string, body?: Buffer): Promise<{ status: number; text: string }> {
    const { hostname, port } = new URL(gateway.url);
    const headers = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, method, path, headers, agent: false }, (response) => {
        const { statusCode: status = 0, headers: given } = response;
        if (given['content-type']?.startsWith('text/event-stream')) {
          response.destroy();
          resolve({ status, text: '{}' });
          return;
        }
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => resolve({ status, text }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }

  function check({ status, text }: { readonly status: number; readonly text: string }): void {
    expect(faults.splice(0)).toEqual([]);
    expect(status).toBeGreaterThanOrEqual(200);
    if (!text.includes('"CONSOLE_MISSING"')) expect(status).toBeLessThan(500); // a checkout need not have it built
    if (status < 400 || (status === 400 && text === '')) return; // no URL at all: refused before any daemon sees it
    const { error, ...problem } = JSON.parse(text); // OpenAI's routes answer in OpenAI's form
    expect(error ?? problem).toMatchObject({ code: expect.stringMatching(/^[A-Z_0-9]+$/) });
    expect(text.length).toBeLessThan(20_000);
  }

  it(
    'the gateway answers or refuses any body',
    async () => {
      for (const body of BODIES)
        check(await send('POST', '/api/conversations/demo/messages', Buffer.from(body)));
      const paths = fc.constantFrom(
        '/api/conversations',
        '/api/conversations/demo/messages',
        '/api/approvals/a',
      );
      await fc.assert(
        fc.asyncProperty(mangled(BODIES.slice(0, 4)), paths, async (body, path) =>
          check(await send('POST', path, body)),
        ),
        { numRuns: runs(200) },
      );
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
    LONG_MS,
  );

  it(
    'the gateway answers or refuses any path',
    async () => {
      const methods = fc.constantFrom('GET', 'DELETE', 'PUT', 'POST');
      // Node refuses to send what no request line can hold.
      const line = texts(PATHS).map((path) => path.replace(/^\/?/, '/').replace(/[^\x21-\x7e]/g, ''));
      await fc.assert(
        fc.asyncProperty(methods, line, async (method, path) => check(await send(method, path))),
        { numRuns: runs(200) },
      );
    },
    LONG_MS,
  );
});

describe('a request for a chat completion', () => {
  const HEADERS = { conversation: undefined, idempotencyKey: undefined, retryCount: undefined };
  const check = async (bytes: Buffer) => {
    const decoded = decodeRequest(bytes);
    if (!decoded.ok) {
      expect(decoded.refusal.code).toMatch(/^[A-Z_0-9]+$/);
      return;
    }
    let posted: unknown;
    const refusal = await refusalBy(() => {
      posted = readChatRequest(decoded.body, { headers: HEADERS, publisher: 'alice', secret: '' });
    });
    if (refusal) {
      expect(refusal.code).toBe('BAD_REQUEST');
      return;
    }
    expect(posted).toMatchObject({
      caller: expect.stringMatching(/^[0-9a-f]{32}$/),
      history: expect.any(Array),
      parts: expect.any(Array),
      asked: expect.any(String),
    });
    const again = readChatRequest(decoded.body, { headers: HEADERS, publisher: 'alice', secret: '' });
    expect(dataOf(again)).toEqual(dataOf(posted));
  };

  it(
    'a chat completion request becomes a post or is refused with a message, mangled or not',
    async () => {
      for (const chat of CHATS) await check(Buffer.from(chat));
      await fc.assert(fc.asyncProperty(mangled(CHATS.slice(0, -1)), check), { numRuns: runs(1_000) });
    },
    LONG_MS,
  );
});

describe('the headers of a request', () => {
  const known = {
    hosts: ['console.example.org'],
    origins: ['https://console.example.org'],
    publicUrl: null,
  };

  it('a Host header names a known host or an address, or is refused', async () => {
    const check = async (host: string) => {
      const refusal = await refusalBy(() => checkHost(host, known));
      if (refusal) expect(refusal.code).toBe('HOST_FORBIDDEN');
      else
        expect(host).toMatch(
          /^(\[[0-9a-f:.%]+\w*\]|[\d.]+|[0-9a-f:.]+|localhost|console\.example\.org)(:\d+)?$/i,
        );
    };
    await fc.assert(fc.asyncProperty(texts(HOSTS), check), { numRuns: runs(1_000) });
  });

  it('an Origin header names a known origin or the same one, or is refused', async () => {
    const check = async (origin: string, host: string) => {
      const refusal = await refusalBy(() => checkOrigin(origin, host, known));
      if (refusal) expect(refusal.code).toBe('ORIGIN_FORBIDDEN');
      else if (!known.origins.includes(origin))
        expect(new URL(origin).origin).toBe(new URL(`http://${host}`).origin);
    };
    const origins = texts(['https://console.example.org', 'http://127.0.0.1:8080', 'null', 'file:///a']);
    await fc.assert(fc.asyncProperty(origins, texts(HOSTS), check), { numRuns: runs(1_000) });
  });

  it('an Authorization header holds the whole token, or is refused', async () => {
    const token = { role: 'read', secret: 'correct horse', publisher: 'alice' } as const;
    const check = async (header: string) => {
      const refusal = await refusalBy(() => identify(header, [token]));
      if (refusal) expect(refusal.code).toBe('UNAUTHORIZED');
      else expect(header).toMatch(/^bearer +correct horse$/i);
    };
    await fc.assert(fc.asyncProperty(texts(['Bearer correct horse', 'Basic Y29ycmVjdA==']), check), {
      numRuns: runs(1_000),
    });
  });

  it('a Last-Event-ID header is the index from which a reader continues, or is refused', async () => {
    const numbers = texts(['0', '17', '999999999999999', '-1', '1e3']);
    const check = async (id: string, from: string) => {
      let start = -1;
      const refusal = await refusalBy(() => {
        start = startOf(id, from);
      });
      if (refusal) expect(refusal.code).toBe('BAD_REQUEST');
      else expect(Number.isSafeInteger(start) && start >= 0).toBe(true);
    };
    await fc.assert(fc.asyncProperty(numbers, numbers, check), { numRuns: runs(1_000) });
  });
});

describe('an append in a stream', () => {
  const entries = [entry(4, 'grüße 👋'), entry(5, '"}]}'), entry(6)];
  const whole = Buffer.from(encodeBody(entries.map((one) => JSON.stringify(one))));

  it('an intact append of a stream gives its entries at its own sequence only', () => {
    expect(decodeBody(whole, 4, 7)).toEqual(entries);
    expect(decodeBody(whole, 4, 8)).toBeNull();
    expect(decodeBody(whole, 3, 6)).toBeNull();
  });

  it('a mangled append of a stream gives as many entries as its sequence has, or none', () => {
    const check = (bytes: Buffer) => {
      const read = decodeBody(bytes, 4, 7);
      expect(read?.map(({ index }) => index) ?? [4, 5, 6]).toEqual([4, 5, 6]);
    };
    fc.assert(fc.property(mangled([whole]), check), { numRuns: runs(2_000) });
  });

  it('an append with bytes that are not UTF-8 gives no entries', () => {
    const broken = Buffer.from(whole);
    broken[whole.indexOf('👋')] = 0xff;
    expect(decodeBody(broken, 4, 7)).toBeNull();
  });

  it.each([
    'null',
    '[]',
    '{}',
    '{"entries":null}',
    '{"entries":"abc"}',
    '{"entries":[null]}',
    '{"entries":{}}',
  ])('an append with the body %s gives no entries', (body) =>
    expect(decodeBody(Buffer.from(body), 0, 1)).toBeNull(),
  );
});
