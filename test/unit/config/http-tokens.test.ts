import { describe, expect, it } from 'vitest';
import { load, refusalOf } from './folder.ts';

const TOKENS = {
  read: 'a-token-to-read-with',
  post: 'a-token-to-post-with',
  approve: 'a-token-to-approve-with',
  operate: 'a-token-to-operate-with',
};

describe('the tokens for HTTP', () => {
  it.each([
    [
      'short',
      { PARLEY_HTTP_TOKENS_READ: 'geheim-geheim' },
      /PARLEY_HTTP_TOKENS_READ|http\.tokens\.read/,
      /at least 16/,
    ],
    [
      'given twice',
      { PARLEY_HTTP_TOKENS_READ: TOKENS.read, PARLEY_HTTP_TOKENS_POST: TOKENS.read },
      /http\.tokens\.read/,
      /the same as http\.tokens\.post/,
    ],
  ])('a token that is %s is refused and not shown', async (_, env, key, reason) => {
    const refusal = await refusalOf(load({}, { env }));
    expect(refusal).toMatch(key);
    expect(refusal).toMatch(reason);
    expect(refusal).not.toMatch(/geheim|to-read-with/);
  });

  const tokensOf = async (yaml: Record<string, string>, env = {}) =>
    (await load(yaml, { env })).daemon.http?.tokens.map(({ role, secret, publisher }) => [
      role,
      secret.reveal(),
      publisher,
    ]);

  it('tokens come from references in the file and from variables, each with its publisher', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: so the file refers to a variable
    const file = 'http:\n  tokens: { read: "${R}", post: "${P}" }\n  publishers: { post: alice }\n';
    const env = {
      R: TOKENS.read,
      P: TOKENS.post,
      PARLEY_HTTP_TOKENS_APPROVE: TOKENS.approve,
      PARLEY_HTTP_TOKEN: TOKENS.operate,
    };
    expect(await tokensOf({ 'parley.yaml': file }, env)).toEqual([
      ['operate', TOKENS.operate, null],
      ['approve', TOKENS.approve, 'http'],
      ['post', TOKENS.post, 'alice'],
      ['read', TOKENS.read, 'http'],
    ]);
  });

  it('each person can have a token, by reference only', async () => {
    const people = (token: string) =>
      `http:\n  people:\n    - { role: post, token: "${token}", publisher: office, name: Alice }\n`;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: so the file refers to a variable
    const named = { 'parley.yaml': people('${ALICE}') };
    const { http } = (await load(named, { env: { ALICE: TOKENS.post } })).daemon;
    expect(http?.tokens).toMatchObject([{ role: 'post', publisher: 'office', name: 'Alice' }]);
    expect(http?.tokens[0]?.secret.reveal()).toBe(TOKENS.post);
    const nameless = { 'parley.yaml': named['parley.yaml'].replace('publisher: office, ', '') };
    await expect(load(nameless, { env: { ALICE: 'x'.repeat(16) } })).rejects.toThrow(
      /publisher[\s\S]*such as the person's name/,
    );
    const written = { 'parley.yaml': people('geheim') };
    await expect(load(written)).rejects.toThrow(/http\.people\[?\.?0\]?\.token[\s\S]*plain text/);
    await expect(load(written)).rejects.not.toThrow(/geheim/);
    await expect(load(named)).rejects.toThrow(/ALICE is not set/);
  });

  it.each([
    ['https://parley.example.org/', 'https://parley.example.org'],
    ['http://10.0.0.1:8080/team/', 'http://10.0.0.1:8080/team'],
  ])('the public address %s is accepted', async (said, publicUrl) => {
    const file = { 'parley.yaml': `http: { publicUrl: "${said}" }\n` };
    expect((await load(file)).daemon.http?.publicUrl).toBe(publicUrl);
    const env = { PARLEY_HTTP_PUBLIC_URL: said };
    expect((await load({}, { env })).daemon.http?.publicUrl).toBe(publicUrl);
  });

  it.each([
    'parley.example.org',
    'ftp://x',
    'https://a:b@x',
    'https://x?y',
    'https://x#y',
    'https://x:99999',
  ])('the public address %s is refused', async (said) => {
    const file = { 'parley.yaml': `http: { publicUrl: "${said}" }\n` };
    await expect(load(file)).rejects.toThrow(/http\.publicUrl[\s\S]*https:\/\/parley\.example\.org/);
  });

  it('hosts of which files are fetched are named, and no address is', async () => {
    const file = (host: string) => ({ 'parley.yaml': `http: { fetch: { hosts: ["${host}"] } }\n` });
    for (const host of [
      'pictures.example.org',
      '*.example.org',
      'localhost',
      'xn--bcher-kva.example',
      '3.example',
    ])
      expect((await load(file(host))).daemon.http?.fetch.hosts).toEqual([host]);
    for (const host of [
      '127.0.0.1',
      '::1',
      '[::1]',
      '2130706433',
      '*',
      'a/b',
      'https://a.example',
      'a.example:80',
      '*.',
      'a..b',
    ])
      await expect(load(file(host))).rejects.toThrow(
        /http\.fetch\.hosts[\s\S]*a host name such as example\.org/,
      );
  });

  it.each(['https://Console.example.org', 'https://console.example.org:443', 'http://console.example.org/'])(
    'the origin %s is refused, since no browser sends it in this form',
    async (origin) => {
      const file = { 'parley.yaml': `http: { origins: ["http://127.0.0.1:5173", "${origin}"] }\n` };
      await expect(load(file)).rejects.toThrow(/http\.origins[\s\S]*an origin/);
    },
  );

  it('a token allows the daemon to listen on other addresses', async () => {
    const env = { PARLEY_HTTP: '0.0.0.0:1', PARLEY_HTTP_TOKENS_READ: TOKENS.read };
    expect((await load({}, { env })).daemon.http?.host).toBe('0.0.0.0');
  });

  it('neither a problem nor a log contains a token', async () => {
    const file = 'http:\n  tokens: { read: [geheim] }\n  publishers: { post: "a b" }\n';
    await expect(load({ 'parley.yaml': file })).rejects.toThrow(/http\.publishers\.post/);
    await expect(load({ 'parley.yaml': file })).rejects.not.toThrow(/geheim/);
    const config = await load({}, { env: { PARLEY_HTTP_TOKENS_READ: 'geheim-geheim-geheim' } });
    expect(JSON.stringify(config)).not.toContain('geheim');
  });
});
