import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Gateway } from '../../../src/gateway/index.ts';
import { oneTimeCode } from '../../../src/kernel/index.ts';
import { openGateway } from './support.ts';

const TOKENS = [
  { role: 'operate', secret: 'the-operator-of-it', publisher: null },
  { role: 'post', secret: 'alice-of-the-office', publisher: 'office', name: 'Alice' },
] as const;
const PARTNER = 'https://partner.example';

describe('the session of a browser', () => {
  let gateway: Gateway;
  let close: () => Promise<void>;
  const open = async (tokens: readonly (typeof TOKENS)[number][] = TOKENS, port = 0) => {
    const known = { hosts: [], origins: [PARTNER], publicUrl: 'https://team.example' };
    ({ gateway, close } = await openGateway({ tokens, known, port }));
  };
  beforeEach(() => open());
  afterEach(async () => {
    vi.useRealTimers();
    await close();
  });

  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, { method, headers });
  const signIn = async (authorization: string, more: Record<string, string> = {}) => {
    const answer = await ask('POST', '/api/session', { authorization, ...more });
    expect(answer.status).toBe(204);
    return answer.headers.get('set-cookie') ?? '';
  };
  const cookieOf = (set: string) => set.split(';')[0] ?? '';
  const identity = async (cookie: string, more: Record<string, string> = {}) => {
    const answer = await ask('GET', '/api/identity', { cookie, ...more });
    return answer.status === 200 ? answer.json() : answer.status;
  };
  const ALICE = { role: 'post', publisher: 'office', name: 'Alice', isSession: true };

  it('a token is exchanged for a cookie that no script reads, no other site sends, and that does not hold the token', async () => {
    const set = await signIn('Bearer alice-of-the-office');
    const { port } = new URL(gateway.url);
    expect(set).toMatch(
      new RegExp(`^parley-session-${port}=\\d{10}\\.[\\w-]{43}; Max-Age=2592000; HttpOnly; SameSite=Strict$`),
    );
    expect(await identity(cookieOf(set))).toEqual(ALICE);
    expect(await identity(`theme=dark; ${cookieOf(set)}; a=b`)).toEqual(ALICE);
    expect(await signIn('Bearer alice-of-the-office', { origin: 'https://team.example' })).toMatch(
      /; Secure$/,
    );
  });

  it('the code of an address is for one person, and is taken once', async () => {
    const code = oneTimeCode(gateway.codeKey, 1);
    expect(await identity(cookieOf(await signIn(`Code ${code}`)))).toEqual(ALICE);
    for (const refused of [code, oneTimeCode('other', 1), oneTimeCode(gateway.codeKey, 2), 'x']) {
      const answer = await ask('POST', '/api/session', { authorization: `Code ${refused}` });
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null]);
      expect(await answer.json()).toMatchObject({ hint: expect.stringContaining('parley token --url') });
    }
  });

  it('a token that is unknown or missing says why, and sets no cookie', async () => {
    for (const [headers, why] of [
      [{ authorization: 'Bearer of-another-daemon' }, 'the daemon has no such token'],
      [{}, 'this needs a token'],
    ] as const) {
      const answer = await ask('POST', '/api/session', headers);
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null]);
      expect(await answer.json()).toMatchObject({ detail: why });
    }
  });

  it('a cookie acts only for a page of the daemon, and without an origin only reads (SIGN-IN-2)', async () => {
    const cookie = cookieOf(await signIn('Bearer the-operator-of-it'));
    const stop = async (headers: Record<string, string>) => {
      const { status } = await ask('POST', '/api/conversations/a/stop', { cookie, ...headers });
      return status;
    };
    expect(await stop({ origin: gateway.url })).toBe(200);
    expect(await stop({ origin: 'https://team.example' })).toBe(200);
    expect(await stop({})).toBe(401);
    expect(await stop({ origin: PARTNER })).toBe(401);
    expect(await stop({ origin: `http://127.0.0.1:${Number(new URL(gateway.url).port) + 1}` })).toBe(403);
    expect(await identity(cookie, { origin: PARTNER })).toBe(401);
    expect(await identity(cookie, { 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'image' })).toBe(403);
  });

  it('a cookie counts only below the place where the page signed in, which other ports of the host do not know (SIGN-IN-4)', async () => {
    const authorization = 'Bearer the-operator-of-it';
    const place = '/s/1-2-3-4/api';
    const answer = await ask('POST', `${place}/session`, { authorization });
    const set = answer.headers.get('set-cookie') ?? '';
    expect(set).not.toMatch(/; path=/i); // so its path is the folder of the request
    const cookie = cookieOf(set);
    const statusAt = async (path: string, method = 'GET') => {
      const { status } = await ask(method, path, { cookie, origin: gateway.url });
      return status;
    };
    expect(await statusAt(`${place}/identity`)).toBe(200);
    expect(await statusAt(`${place}/conversations/a/stop`, 'POST')).toBe(200);
    for (const path of ['/api/identity', '/s/1-2-3-5/api/identity', '/s/x/s/1-2-3-4/api/identity'])
      expect([path, await statusAt(path)]).toEqual([path, 401]);
    const plain = cookieOf(await signIn(authorization));
    expect((await ask('GET', `${place}/identity`, { cookie: plain })).status).toBe(401);
    for (const path of [
      `${place}/identity`,
      `/s/1/api/conversations/a/stop`,
      '/s/1/v1/models',
      '/s//api/identity',
    ])
      expect([path, (await ask('GET', path)).status]).toEqual([path, 401]);
    expect((await ask('DELETE', `${place}/session`)).headers.get('set-cookie')).toContain('Max-Age=0');
  });

  it('the token of a request counts, not its cookie', async () => {
    const cookie = cookieOf(await signIn('Bearer alice-of-the-office'));
    expect(await identity(cookie, { authorization: 'Bearer the-operator-of-it' })).toMatchObject({
      role: 'operate',
      isSession: false,
    });
    expect(await identity(cookie, { authorization: 'Bearer wrong' })).toBe(401);
  });

  it('a changed cookie, one of another port, and one that is over are refused', async () => {
    const cookie = cookieOf(await signIn('Bearer alice-of-the-office'));
    const [name = '', value = ''] = cookie.split('=');
    const later = value.replace(/^\d+/, (expiry) => String(Number(expiry) + 1));
    for (const wrong of [
      `${name}=${later}`,
      `${name}1=${value}`,
      `${cookie}x`,
      `${name}=`,
      `${name}=9999999999.`,
    ])
      expect([wrong, await identity(wrong)]).toEqual([wrong, 401]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31 * 86_400_000 });
    expect(await identity(cookie)).toBe(401);
  });

  it('a session outlives the daemon, and ends with its token', async () => {
    const cookie = cookieOf(await signIn('Bearer alice-of-the-office'));
    const port = Number(new URL(gateway.url).port);
    await close();
    await open(TOKENS, port);
    expect(await identity(cookie)).toEqual(ALICE);
    await close();
    await open(TOKENS.slice(0, 1), port);
    expect(await identity(cookie)).toBe(401);
  });

  it('signing out removes the cookie', async () => {
    const answer = await ask('DELETE', '/api/session', { origin: gateway.url });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('set-cookie')).toMatch(/^parley-session-\d+=; Max-Age=0; HttpOnly/);
  });
});
