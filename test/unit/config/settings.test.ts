import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ConfigFlags, resolveDaemonAddress, revealed } from '../../../src/config/index.ts';
import { loadNatsUsers } from '../../../src/config/resolve/nats-users.ts';
import { newFolder } from '../../support/lifetime.ts';
import { load, loadYaml, refusalOf } from './folder.ts';

describe('the settings of the daemon', () => {
  it('every setting has a default', async () => {
    const { daemon, directory } = await load({});
    expect(daemon).toEqual({
      data: `${directory}/data`,
      nats: { kind: 'managed' },
      natsBinary: null,
      store: 'file',
      http: {
        host: '127.0.0.1',
        port: 7420,
        token: null,
        tokens: [],
        isGuarded: true,
        operator: null,
        hosts: [],
        origins: [],
        fetch: { hosts: [] },
        stopOnDisconnect: false,
        publicUrl: null,
        requestsPerSecond: 100,
        readers: 1_000,
        readersPerCaller: 200,
      },
    });
  });

  it('a flag overrides its variable', async () => {
    const env = { PARLEY_DATA: '/from/env', PARLEY_STORE: 'jetstream', PARLEY_HTTP: 'off' };
    expect((await load({}, { env })).daemon).toMatchObject({
      data: '/from/env',
      store: 'jetstream',
      http: null,
    });
    const flags = { data: '/from/flag', store: 'file', http: 'localhost:0' };
    expect((await load({}, { env, flags })).daemon).toMatchObject({
      data: '/from/flag',
      store: 'file',
      http: { host: 'localhost', port: 0 },
    });
  });

  it('credentials for a NATS server are read and never shown', async () => {
    const flags = { nats: 'nats://al:p%40ss@host:4222', natsTlsCa: 'ca.pem', natsToken: 'tok' };
    const { daemon, directory } = await load({}, { flags });
    expect(daemon.nats).toMatchObject({
      kind: 'url',
      url: 'nats://host:4222',
      user: 'al',
      tls: { ca: `${directory}/ca.pem` },
    });
    if (daemon.nats.kind !== 'url') throw new Error('not a url');
    expect([daemon.nats.password?.reveal(), daemon.nats.token?.reveal()]).toEqual(['p@ss', 'tok']);
    expect(JSON.stringify(daemon)).not.toMatch(/p@ss|p%40ss|"tok"/);
  });

  it('several NATS servers can be given with commas or as a list, with one login or one for each', async () => {
    const urls = 'nats://a:4222,nats://b:1,nats://c';
    for (const { daemon } of [
      await load({}, { flags: { nats: 'nats://al:p%40ss@a:4222, b:1,nats://c' } }),
      await load({}, { env: { PARLEY_NATS: 'nats://al:p%40ss@a:4222,nats://al:p%40ss@b:1,c' } }),
      await load({}, { env: { PARLEY_NATS_SERVER: 'nats://al:p%40ss@a:4222,nats://b:1,nats://c' } }),
      await load({ 'parley.yaml': 'nats: { server: ["nats://al:p%40ss@a:4222", "b:1", "nats://c"] }' }),
    ]) {
      expect(daemon.nats).toMatchObject({ kind: 'url', url: urls, user: 'al' });
      if (daemon.nats.kind !== 'url') throw new Error('not a url');
      expect(revealed(daemon.nats)).toMatchObject({ url: urls, password: 'p@ss' });
    }
    const odd = { nats: 'nats://al:x$$y$&z@a,nats://bo:two@b' };
    const { nats } = (await load({}, { flags: odd })).daemon;
    expect(nats.kind === 'url' && revealed(nats).url).toBe(odd.nats);
    const each = { nats: 'nats://al:one@a,nats://bo:two@b,nats://c' };
    const { daemon } = await load({}, { flags: each });
    if (daemon.nats.kind !== 'url') throw new Error('not a url');
    expect(daemon.nats).toMatchObject({ url: 'nats://a,nats://b,nats://c' });
    expect(JSON.stringify(daemon)).not.toMatch(/one|two/);
    expect(revealed(daemon.nats).url).toBe('nats://al:one@a,nats://bo:two@b,nats://al:one@c');
    const env = { PARLEY_NATS_URL: 'nats://a:1,nats://b:2' };
    expect(resolveDaemonAddress({ env }).nats?.url).toBe('nats://a:1,nats://b:2');
  });

  it.each([
    ['managed,nats://b', /"managed,nats:\/\/b"[\s\S]*or several with commas/],
    ['nats://a,http://b', /"nats:\/\/a,http:\/\/b"/],
    [',', /","/],
    ['nats://al:geheim@a,http://b', /may hold a password/],
  ])('the list of NATS servers %j is refused, and no password is shown', async (nats, said) => {
    const message = await refusalOf(load({}, { flags: { nats } }));
    expect(message).toMatch(said);
    expect(message).not.toContain('geheim');
  });

  it('the file or a variable sets the number of replicas, from 1 to 5', async () => {
    expect((await load({})).replicas).toBeNull();
    expect((await load({ 'parley.yaml': 'jetstream: { replicas: 3 }' })).replicas).toBe(3);
    expect((await load({}, { env: { PARLEY_JETSTREAM_REPLICAS: '5' } })).replicas).toBe(5);
    const error = await refusalOf(load({ 'parley.yaml': 'jetstream: { replicas: 6 }' }));
    expect(error).toContain('jetstream.replicas');
  });

  it('the file sets the server and the credentials, unless a flag or variable does', async () => {
    const yaml =
      'nats:\n  server: tls://host:4222\n  user: al\n  password: geheim\n  passwordFile: pw\n  tokenFile: tk\n' +
      '  credentials: c\n  nkey: n\n  inboxPrefix: _INBOX_al\n  tls: { ca: ca.pem, cert: c.pem, key: k.pem }\n';
    const { daemon, directory } = await load({ 'parley.yaml': yaml });
    expect(daemon.nats).toMatchObject({
      kind: 'url',
      url: 'tls://host:4222',
      user: 'al',
      passwordFile: `${directory}/pw`,
      tokenFile: `${directory}/tk`,
      credentials: `${directory}/c`,
      nkey: `${directory}/n`,
      inboxPrefix: '_INBOX_al',
      tls: { ca: `${directory}/ca.pem`, cert: `${directory}/c.pem`, key: `${directory}/k.pem` },
    });
    expect(JSON.stringify(daemon)).not.toContain('geheim');
    const env = { PARLEY_NATS_USER: 'bo', PARLEY_NATS_TLS_CA: '/b.pem', PARLEY_NATS: 'nats://b:1' };
    const flags = { natsUser: 'cy' };
    expect((await load({ 'parley.yaml': yaml }, { env, flags })).daemon.nats).toMatchObject({
      url: 'nats://b:1',
      user: 'cy',
      tls: { ca: '/b.pem' },
    });
  });

  it('a wrong value names its key in the file, and no secret is shown', async () => {
    const file = { 'parley.yaml': 'nats: { server: nats://a, inboxPrefix: "a b", password: [geheim] }' };
    const text = await refusalOf(load(file));
    expect(text).toContain('parley.yaml: nats.inboxPrefix\n    seen:     "a b"');
    expect(text).not.toContain('geheim');
    const foreign = await refusalOf(
      load({}, { env: { PARLEY_NATS: 'nats://b:1' }, flags: { natsInboxPrefix: 'answers.al' } }),
    );
    expect(foreign).toContain('a subject below _INBOX');
    const fromVariable = load({}, { env: { PARLEY_NATS_SERVER: 'htp://u:geheim@x' } });
    await expect(fromVariable).rejects.toThrow('nats.server');
    await expect(fromVariable).rejects.not.toThrow('geheim');
  });

  it.each([
    ['/opt/nats-server', '/opt/nats-server'],
    ['bin/nats-server', '<folder>/bin/nats-server'],
    ['nats-server', 'nats-server'],
    ['', null],
  ])('the nats-server to run comes from NATS_BIN: %j', async (NATS_BIN, expected) => {
    const { daemon, directory } = await load({}, { env: { NATS_BIN } });
    expect(daemon.natsBinary?.replace(directory, '<folder>') ?? null).toBe(expected);
  });

  it.each(['127.0.0.1:4222', 'tls://a.example:4222', 'wss://a.example/', 'nats://[::1]:4222'])(
    'the NATS server %s is accepted',
    async (nats) => {
      expect((await load({}, { flags: { nats } })).daemon.nats.kind).toBe('url');
    },
  );

  it('HTTP needs no token only with `none`, on loopback, and without another token', async () => {
    const env = { PARLEY_HTTP_TOKEN: 'none' };
    expect((await load({}, { env })).daemon.http).toMatchObject({
      isGuarded: false,
      tokens: [],
      token: null,
    });
    const { http } = (
      await load({ 'parley.yaml': 'http: { tokens: { read: a-token-to-read-with } }' }, { env })
    ).daemon;
    expect(http).toMatchObject({ isGuarded: true, tokens: [{ role: 'read' }] });
    expect(await refusalOf(load({}, { env, flags: { http: '0.0.0.0:80' } }))).toContain('PARLEY_HTTP_TOKEN');
  });

  it('other machines are served only with a token', async () => {
    const flags = { http: '0.0.0.0:80' };
    expect(await refusalOf(load({}, { flags }))).toContain('PARLEY_HTTP_TOKEN');
    const { daemon } = await load({}, { flags, env: { PARLEY_HTTP_TOKEN: 'a-token-to-operate-with' } });
    expect(daemon.http?.token?.reveal()).toBe('a-token-to-operate-with');
  });

  const WRONG: readonly (readonly [ConfigFlags, string])[] = [
    [{ store: 'disk' }, 'flag --store\n    seen:     "disk"\n    expected: one of file, jetstream'],
    [{ http: '7420' }, 'flag --http\n    seen:     "7420"\n    expected: HOST:PORT'],
    [{ http: 'localhost:70000' }, 'flag --http\n    seen:     "localhost:70000"'],
    [{ httpToken: 'short' }, 'flag --http-token\n    seen:     5 characters'],
    [{ nats: 'http://x' }, 'flag --nats\n    seen:     "http://x"\n    expected: managed, or a URL'],
    [{ nats: 'htp://user:pass@x' }, 'flag --nats\n    seen:     [hidden'],
  ];
  it.each(WRONG)('a wrong flag is refused by its name: %j', async (flags, expected) => {
    const text = await refusalOf(load({}, { flags }));
    expect(text).toContain(expected);
    expect(text).not.toContain('pass@');
  });

  it('a wrong variable is refused by its name', async () => {
    const text = await refusalOf(load({}, { env: { PARLEY_STORE: 'disk', PARLEY_TELEMETRY: 'loud' } }));
    expect(text).toContain('environment PARLEY_STORE\n    seen:     "disk"');
    expect(text).toContain(
      'environment PARLEY_TELEMETRY\n    seen:     "loud"\n    expected: one of console, off',
    );
  });

  it('a variable turns telemetry on', async () => {
    expect((await load({}, { env: { PARLEY_TELEMETRY: 'console' } })).telemetry).toBe('console');
  });
});

describe('the address of a running daemon', () => {
  const find = (env: Record<string, string>, flags: ConfigFlags = {}) =>
    resolveDaemonAddress({ env, flags, workingDirectory: '/w' });

  it('the flag comes first, then PARLEY_NATS_URL, then PARLEY_NATS, then the address in the data directory', () => {
    const env = { PARLEY_NATS: 'nats://c:3', PARLEY_NATS_URL: 'nats://b:2' };
    expect(find(env, { nats: 'nats://a:1' }).nats?.url).toBe('nats://a:1');
    expect(find(env).nats?.url).toBe('nats://b:2');
    expect(find({ PARLEY_NATS: 'nats://c:3' }).nats?.url).toBe('nats://c:3');
    expect(find({ PARLEY_NATS: 'managed' })).toEqual({
      nats: null,
      data: '/w/data',
      subjectPrefix: null,
      user: null,
    });
    expect(find({ PARLEY_DATA: 'd', PARLEY_SUBJECT_PREFIX: 'team' })).toEqual({
      nats: null,
      data: '/w/d',
      subjectPrefix: 'team',
      user: null,
    });
  });

  it('a wrong address is reported', () => {
    expect(() => find({ PARLEY_NATS_URL: 'ftp://x' })).toThrow('environment PARLEY_NATS_URL');
  });
});

it('an error in the users of a nats-server names the document that explains their keys', async () => {
  const folder = await newFolder({ 'users.yaml': 'tenants: {}\nserve: 1\n' });
  for (const file of ['users.yaml', 'missing.yaml'])
    await expect(loadNatsUsers(join(folder, file))).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      hint: 'correct what is listed and try again; every key is explained in docs/guides/security.md',
    });
});

it('an error in the configuration of the daemon names its own document', async () => {
  await expect(load({ 'parley.yaml': 'limit: 1\n' })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    hint: 'correct what is listed and try again; every key is explained in docs/reference/configuration.md',
  });
});

const SHIPPED = { postsPerMinute: 1_200, maxBytes: 1_048_576, openConversations: 1_000, sessions: true };

describe('the limits of publishers', () => {
  it('limits apply by default', async () => {
    expect((await loadYaml('')).publishers).toEqual({ others: SHIPPED, named: {} });
  });

  it('a limit that a row omits is taken from default, and null means no limit', async () => {
    const { publishers } = await loadYaml(
      'publishers:\n  default: { postsPerMinute: 5 }\n  importer: { maxBytes: null }\n',
    );
    const others = { ...SHIPPED, postsPerMinute: 5 };
    expect(publishers).toEqual({ others, named: { importer: { ...others, maxBytes: null } } });
  });

  it('PERSON-7: each publisher of a managed server may name sessions, and on another one those whose row allows it', async () => {
    const rows = 'publishers:\n  alice: { sessions: true }\n  bob: { sessions: false }\n  carol: {}\n';
    const rights = async (yaml: string) => {
      const { named, others } = (await loadYaml(yaml)).publishers;
      return [...['alice', 'bob', 'carol'].map((name) => named[name]?.sessions), others.sessions];
    };
    expect(await rights(rows)).toEqual([true, false, true, true]);
    expect(await rights(`nats: { server: "nats://h:4222" }\n${rows}`)).toEqual([true, false, false, false]);
  });

  it.each([
    ['publishers: { alice: { sessions: 1 } }', 'publishers.alice.sessions'],
    ['publishers: { alice: { postsPerHour: 5 } }', 'postsPerHour'],
    ['publishers: { alice: { postsPerMinute: 0 } }', 'publishers.alice.postsPerMinute'],
    ['publishers: { alice: { maxBytes: many } }', 'publishers.alice.maxBytes'],
    ['publishers: { "a.b": { maxBytes: 5 } }', 'a.b'],
  ])('a wrong limit is refused by name in %s', async (yaml, named) => {
    expect(await refusalOf(loadYaml(yaml))).toContain(named);
  });
});
