import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ParleyError } from '../../src/kernel/index.ts';
import { LoginStore, logIn, logOut } from '../../src/tools/mcp/index.ts';
import { Authorization } from '../../src/tools/mcp/oauth/authorization.ts';
import { type ProtectedMcp, startProtectedMcp } from '../support/mcp-oauth.ts';
import { type McpTestTools, openMcpTools, secrets } from '../support/mcp-tools.ts';

/** Logins at MCP servers that require one. */

const TIMES = { restartMs: 10, restartMaxMs: 30_000, answerGraceMs: 50, endMs: 1000 };

describe('a login at an MCP server', () => {
  let server: ProtectedMcp;
  let folder: string;
  let store: LoginStore;
  let toolbox: McpTestTools | null;

  beforeEach(async () => {
    server = await startProtectedMcp();
    folder = await mkdtemp(join(tmpdir(), 'parley-logins-'));
    store = new LoginStore(join(folder, 'mcp-logins'), undefined);
    toolbox = null;
  });
  afterEach(async () => {
    await toolbox?.close();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  const settings = (oauth: object = {}) => ({
    ...{ transport: 'http' as const, url: server.mcp.url, headers: {}, oauth },
  });
  const login = (oauth: object = {}, onUrl: (url: string) => void = (url) => void server.browse(url)) =>
    logIn({
      ...{ name: 'web', settings: settings(oauth), store, port: 0, onUrl, waitMs: 5_000 },
      signal: new AbortController().signal,
    });
  const open = async () => {
    toolbox = await openMcpTools(() => ({ web: settings() }), TIMES, store);
    await toolbox.tools.settled();
    return toolbox;
  };
  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('it was not refused'),
      (error: unknown) => {
        expect(error).toBeInstanceOf(ParleyError);
        return error as ParleyError;
      },
    );
  const stored = async () => (await store.read('web', server.mcp.url))!;

  it('the client registers, uses PKCE and names the resource; the tools are then callable', async () => {
    expect(await login()).toBe(server.issuer);
    const { register, authorize, token } = server.last;
    expect(register).toMatchObject({
      client_name: 'Parley',
      redirect_uris: [expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)],
    });
    expect(authorize?.get('code_challenge_method')).toBe('S256');
    expect([authorize?.get('resource'), token?.get('resource')]).toEqual([server.mcp.url, server.mcp.url]);
    expect(authorize?.get('scope')).toBe('tools');
    expect(await (await open()).run('mcp__web__echo')).toEqual({ kind: 'completed', content: 'echo' });
  });

  it('a registered client is used as configured, without a registration', async () => {
    await login({ clientId: 'mine', scope: 'all', authorizationServer: server.issuer });
    expect(server.asked).not.toContain('POST /register');
    expect([server.last.authorize?.get('client_id'), server.last.authorize?.get('scope')]).toEqual([
      'mine',
      'all',
    ]);
  });

  it('a server without a login needs one, says how, and is used as soon as there is one', async () => {
    const { tools } = await open();
    const [status] = tools.status();
    expect(status).toMatchObject({ state: 'failed' });
    expect(status?.error).toContain('needs login: run `parley mcp login web`');
    await login();
    await expect.poll(() => tools.status()[0]?.state).toBe('ready');
  });

  it('a login that was written between the last request and the wait for a login is used at once', async () => {
    const authorization = new Authorization('web', settings(), store);
    const refused = () => Promise.resolve(new Response('', { status: 401 }));
    await authorization.send(new Headers(), refused);
    await login();
    await authorization.send(new Headers(), async () => new Response('ok')); // ends the session that was refused
    const late = AbortSignal.timeout(5_000);
    await authorization.changed(late);
    expect(late.aborted).toBe(false);
    await authorization.send(new Headers(), async () => new Response('ok'));
    await authorization.changed(AbortSignal.timeout(100)); // the one that was sent is not a new one
    await rm(join(folder, 'mcp-logins'), { recursive: true });
    const later = AbortSignal.timeout(5_000);
    await authorization.changed(later);
    expect(later.aborted).toBe(false);
  });

  it('a server that opens a session to anyone, but lists no tools, needs a login', async () => {
    server.opensFreely = true;
    const { said } = await open();
    expect(said.find((line) => line.includes('cannot be used'))).toContain(
      'needs login: run `parley mcp login web`',
    );
  });

  it('a refused token is renewed once, and the call runs', async () => {
    await login();
    const { run } = await open();
    server.expire();
    const results = await Promise.all([run('mcp__web__echo'), run('mcp__web__echo'), run('mcp__web__echo')]);
    for (const result of results) expect(result).toEqual({ kind: 'completed', content: 'echo' });
    expect(server.asked.filter((one) => one === 'POST /token refresh_token')).toHaveLength(1);
    expect(server.last.token?.get('resource')).toBe(server.mcp.url);
  });

  it('a token is renewed before it expires', async () => {
    server.token.expires_in = 1;
    await login();
    const first = (await stored()).tokens.access_token;
    delete server.token.expires_in;
    await open();
    expect((await stored()).tokens.access_token).not.toBe(first);
  });

  it('a call whose login was revoked did nothing and says what to do; the refresh token is sent once', async () => {
    await login();
    const { run, tools } = await open();
    server.revoke();
    expect(await run('mcp__web__echo')).toMatchObject({
      ...{ kind: 'failed', code: 'MCP_SERVER_UNAVAILABLE' },
      message: expect.stringMatching(/needs login: run `parley mcp login web`.*Nothing was done/),
    });
    await expect.poll(() => tools.status()[0]?.error).toContain('needs login');
    expect(server.asked.filter((one) => one === 'POST /token refresh_token')).toHaveLength(1);
    await login();
    await expect.poll(() => tools.status()[0]?.state).toBe('ready');
  });

  it('an authorization server may name itself in the redirect (RFC 9207)', async () => {
    await login();
    const { issuer } = (await stored()).metadata ?? expect.unreachable();
    Object.assign(server.metadata, { authorization_response_iss_parameter_supported: true });
    Object.assign(server.redirect, { iss: issuer });
    await login();
    expect(await (await open()).run('mcp__web__echo')).toEqual({ kind: 'completed', content: 'echo' });
  });

  it('a call that runs when the login is revoked ends as unknown, and says what to do', async () => {
    await login();
    const { run } = await open();
    const hanging = run('mcp__web__hang');
    await expect.poll(() => server.mcp.marks).toContain('hanging');
    server.revoke();
    await run('mcp__web__echo');
    expect(await hanging).toMatchObject({
      ...{ kind: 'failed', code: 'MCP_CONNECTION_LOST' },
      message: expect.stringMatching(/needs login: run `parley mcp login web`.*is not known/),
    });
  });

  it('a token that is valid still is used while it cannot be renewed', async () => {
    server.token.expires_in = 25;
    await login();
    server.onToken = (response) => response.writeHead(503).end('down');
    expect(await (await open()).run('mcp__web__echo')).toEqual({ kind: 'completed', content: 'echo' });
    expect(server.asked).toContain('POST /token refresh_token');
  });

  it('an authorization server that is down is no reason for a login', async () => {
    await login();
    server.expire();
    server.onToken = (response) => response.writeHead(503).end('down');
    const { tools } = await open();
    expect(tools.status()[0]).toMatchObject({ state: 'failed', error: expect.stringContaining('503') });
    expect(tools.status()[0]?.error).not.toContain('needs login');
  });

  it('after a logout the login is revoked, and nothing is sent', async () => {
    await login();
    const { tokens } = await stored();
    expect(await logOut('web', settings(), store)).toBe(true);
    expect(server.asked).toContain('POST /revoke');
    expect(await logOut('web', settings(), store)).toBe(false);
    const { tools } = await open();
    expect(tools.status()[0]?.error).toContain('needs login');
    expect(server.mcp.headers.some(({ authorization }) => authorization?.includes(tokens.access_token))).toBe(
      false,
    );
  });

  describe('on the disk', () => {
    it('tokens are encrypted, in files that only their owner can read', async () => {
      await login();
      const { tokens } = await stored();
      const names = await readdir(join(folder, 'mcp-logins'));
      expect(names.sort()).toEqual(['key', 'web.login']);
      for (const name of names) {
        const path = join(folder, 'mcp-logins', name);
        expect((await stat(path)).mode & 0o777).toBe(0o600);
        const text = await readFile(path, 'latin1');
        for (const secret of [tokens.access_token, tokens.refresh_token!]) {
          expect(text).not.toContain(secret);
          expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, 20));
        }
      }
    });

    it('a login that was changed, moved to another server or encrypted with another key is refused', async () => {
      await login();
      const path = store.pathOf('web');
      const text = await readFile(path, 'utf8');
      await writeFile(store.pathOf('other'), text);
      expect((await refusal(store.read('other', server.mcp.url))).code).toBe('MCP_LOGIN_UNREADABLE');
      const otherKey = new LoginStore(join(folder, 'mcp-logins'), '0'.repeat(64));
      expect((await refusal(otherKey.read('web', server.mcp.url))).message).toContain('another key');
      const sealed = JSON.parse(text);
      for (const field of ['nonce', 'tag', 'data']) {
        const bytes = Buffer.from(sealed[field], 'base64');
        bytes[0]! ^= 1;
        await writeFile(path, JSON.stringify({ ...sealed, [field]: bytes.toString('base64') }));
        expect((await refusal(store.read('web', server.mcp.url))).code).toBe('MCP_LOGIN_UNREADABLE');
      }
      for (const bad of ['', 'null', '{}', '[1]', sealed.data]) {
        await writeFile(path, bad);
        expect((await refusal(store.read('web', server.mcp.url))).message).toContain('parley mcp login web');
      }
    });

    it('a shorter authentication tag is refused', async () => {
      await login();
      const sealed = JSON.parse(await readFile(store.pathOf('web'), 'utf8'));
      const tag = Buffer.from(sealed.tag, 'base64').subarray(0, 4).toString('base64');
      await writeFile(store.pathOf('web'), JSON.stringify({ ...sealed, tag }));
      expect((await refusal(store.read('web', server.mcp.url))).code).toBe('MCP_LOGIN_UNREADABLE');
    });

    it('a link in place of a login is not followed', async () => {
      await login();
      await rm(store.pathOf('web'));
      await symlink('/etc/hostname', store.pathOf('web'));
      expect((await refusal(store.read('web', server.mcp.url))).message).toContain('it is a link');
    });

    it('a key that is no key is named', async () => {
      await login();
      await writeFile(join(folder, 'mcp-logins', 'key'), 'short');
      expect((await refusal(store.read('web', server.mcp.url))).message).toContain('is no key');
    });

    it('stores that start at once make one key', async () => {
      await login();
      const all = await Promise.all(
        Array.from({ length: 5 }, async (_, at) => {
          const fresh = new LoginStore(join(folder, 'fresh'), undefined);
          await fresh.write(`s${at}`, await stored());
        }),
      );
      expect(all).toHaveLength(5);
      for (const at of all.keys())
        expect(
          await new LoginStore(join(folder, 'fresh'), undefined).read(`s${at}`, server.mcp.url),
        ).not.toBeNull();
      expect((await readdir(join(folder, 'fresh'))).filter((name) => name.startsWith('key'))).toEqual([
        'key',
      ]);
    });

    it('a server whose url was changed gets no token', async () => {
      await login();
      expect(await store.read('web', 'http://127.0.0.1:1/mcp')).toBeNull();
    });
  });

  it('a token is hidden in errors and results', async () => {
    await login();
    const { run, tools, said } = await open();
    const { access_token: token } = (await stored()).tokens;
    server.revoke();
    const outcome = await run('mcp__web__echo'); // the server repeats the token
    expect(JSON.stringify(outcome)).toContain('[secret]');
    await expect.poll(() => tools.status()[0]?.state).toBe('failed');
    expect(JSON.stringify([outcome, tools.status(), said])).not.toContain(token);
  });

  describe('is refused', () => {
    type Attack = (server: ProtectedMcp) => unknown;
    const metadata =
      (more: object): Attack =>
      (s) =>
        Object.assign(s.metadata, more);
    const authorizes = (url: string) => metadata({ authorization_endpoint: url });
    const tokensAt = (url: string) => metadata({ token_endpoint: url });
    const resource =
      (more: object): Attack =>
      (s) =>
        Object.assign(s.resource, more);
    const loginAt = (url: string) => resource({ authorization_servers: [url] });
    const redirect =
      (more: object): Attack =>
      (s) =>
        Object.assign(s.redirect, more);
    const onToken =
      (answer: ProtectedMcp['onToken']): Attack =>
      (s) =>
        Object.assign(s, { onToken: answer });
    const [PRIVATE, PLAIN, FOREIGN] = [
      /no public address/,
      /neither https nor/,
      /not from the authorization server/,
    ];
    const attacks: [string, Attack, RegExp][] = [
      ['an authorization endpoint of javascript:', authorizes('javascript:alert(1)'), /javascript:|URL/],
      ['an authorization endpoint of another kind', authorizes('file:///etc/passwd'), PLAIN],
      ['an authorization endpoint without TLS', authorizes('http://93.184.216.34/authorize'), PLAIN],
      ['an authorization endpoint at a private address', authorizes('https://10.0.0.1/authorize'), PRIVATE],
      ['a token endpoint at a link-local address', tokensAt('https://169.254.169.254/token'), PRIVATE],
      [
        'a registration endpoint at a mapped address',
        metadata({ registration_endpoint: 'https://[::ffff:10.0.0.1]/r' }),
        PRIVATE,
      ],
      ['a URL with a password', tokensAt('https://a:b@93.184.216.34/token'), /has a password/],
      ['an authorization server at a private address', loginAt('https://192.168.0.1'), PRIVATE],
      ['an authorization server without TLS', loginAt('http://example.org'), PLAIN],
      [
        'metadata with the name of another issuer',
        metadata({ issuer: 'https://honest.example' }),
        /names another issuer/,
      ],
      ['metadata without PKCE', metadata({ code_challenge_methods_supported: undefined }), /PKCE/],
      ['metadata with plain PKCE', metadata({ code_challenge_methods_supported: ['plain'] }), /PKCE/],
      [
        'a server that registers no clients',
        metadata({ registration_endpoint: undefined }),
        /registers no clients/,
      ],
      ['a resource of another server', resource({ resource: 'https://other.example/mcp' }), /does not match/],
      ['a redirect of another issuer', redirect({ iss: 'https://honest.example' }), FOREIGN],
      [
        'a redirect without the issuer that was announced',
        metadata({ authorization_response_iss_parameter_supported: true }),
        FOREIGN,
      ],
      ['a redirect without a code', redirect({ code: undefined }), /no code/],
      [
        'an error',
        redirect({ code: undefined, error: 'access_denied', error_description: 'not \u001b[31myou' }),
        /access_denied/,
      ],
      ['a code that the server does not take', redirect({ code: 'stolen' }), /failed/],
      [
        'a token endpoint that answers too much',
        onToken((response) => void response.end('x'.repeat(2_000_000))),
        /1 MiB/,
      ],
      [
        'a token endpoint that redirects elsewhere',
        onToken((response) => void response.writeHead(307, { location: 'https://10.0.0.1/steal' }).end()),
        /HTTP 307/,
      ],
    ];

    it.each(attacks)('%s', async (_, attack, message) => {
      attack(server);
      const error = await refusal(login());
      expect(error.message).toMatch(message);
      expect(error.message).not.toContain('\u001b');
      expect(await store.read('web', server.mcp.url)).toBeNull();
    });

    it('an authorization server other than the configured one', async () => {
      const error = await refusal(login({ authorizationServer: 'https://login.example.org' }));
      expect(error.message).toContain('and not https://login.example.org');
      expect(server.asked).not.toContain('POST /register');
    });

    it('a redirect with the state of another login, which is ignored until the right one arrives', async () => {
      const pages: { status: number; text: string }[] = [];
      await login({}, async (url) => {
        const to = new URL(url).searchParams.get('redirect_uri')!;
        for (const query of [
          '',
          '?code=stolen',
          '?code=stolen&state=<script>alert(1)</script>',
          '?state=a&state=b',
        ]) {
          const page = await fetch(`${to}${query}`);
          pages.push({ status: page.status, text: await page.text() });
        }
        for (const path of ['//', '/callback/', '/%'])
          pages.push(
            await fetch(new URL(to).origin + path).then(async (page) => ({
              status: page.status,
              text: await page.text(),
            })),
          );
        pages.push(await server.browse(url));
      });
      expect(pages.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400, 400, 200]);
      expect(JSON.stringify(pages)).not.toContain('script');
    });

    it('nobody who logs in', async () => {
      const error = await refusal(
        logIn({
          ...{ name: 'web', settings: settings(), store, port: 0, onUrl: () => undefined, waitMs: 10 },
          signal: new AbortController().signal,
        }),
      );
      expect(error.message).toContain('nobody has logged in');
    });

    it('a port that is taken', async () => {
      const port = server.mcp.port;
      const given = { name: 'web', settings: settings(), store, port, onUrl: () => undefined };
      const error = await refusal(logIn({ ...given, signal: new AbortController().signal }));
      expect(error).toMatchObject({ code: 'MCP_LOGIN_FAILED', hint: expect.stringContaining('--port') });
    });
  });

  it('a configured token is sent as it is, and no login beside it', async () => {
    await login();
    const headers = secrets({ Authorization: 'Bearer wrong-key' });
    toolbox = await openMcpTools(
      () => ({ web: { transport: 'http', url: server.mcp.url, headers } }),
      TIMES,
      store,
    );
    await toolbox.tools.settled();
    expect(toolbox.tools.status()[0]?.error).toContain('check its headers');
    expect(server.mcp.headers.at(-1)?.authorization).toBe('Bearer wrong-key');
  });
});
