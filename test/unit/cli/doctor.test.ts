import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findNatsServer } from '../../../src/bus/nats/managed/index.ts';
import type { Context } from '../../../src/cli/context.ts';
import { dataCheck, nodeCheck } from '../../../src/cli/doctor/check.ts';
import { modelChecks } from '../../../src/cli/doctor/models.ts';
import { natsServerCheck } from '../../../src/cli/doctor/servers.ts';
import type { DaemonModule } from '../../../src/cli/io.ts';
import { ParleyError } from '../../../src/client/index.ts';
import { type Config, Secret } from '../../../src/config/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { OPENAI } from './doctor-support.ts';
import { fakeDaemon, parley } from './support.ts';

const directory = folderPerTest();

/** An executable that prints this version of nats-server. */
async function fakeServer(version: string): Promise<string> {
  const path = join(directory, 'nats-server');
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
  return path;
}

const machine = (env: Record<string, string>, find: DaemonModule['findNatsServer'] = findNatsServer) => ({
  io: { env },
  dependencies: { daemon: async () => ({ findNatsServer: find }) as DaemonModule },
});

const config = (models: Record<string, unknown>, mcpServers: Record<string, unknown> = {}) =>
  ({
    directory: '/conf',
    notices: [],
    environmentFiles: [],
    variables: [],
    agents: [{ slug: 'pm', runtime: 'local' }],
    models,
    daemon: { nats: { kind: 'managed' } },
    tools: { project: directory, mcpServers },
  }) as unknown as Config;

describe('the checks of doctor', () => {
  it.each([
    ['20.19.0', 'ok'],
    ['22.1.0', 'ok'],
    ['20.18.9', 'fail'],
    ['18.20.0', 'fail'],
  ])('doctor rates Node %s: %s', (version, status) => {
    expect(nodeCheck(version).status).toBe(status);
  });

  it.each([
    ['2.9.10', 'warn'],
    ['2.10.27', 'ok'],
    ['2.15.1', 'ok'],
    ['2.9.9', 'fail'],
  ])('doctor rates nats-server %s: %s', async (version, status) => {
    const found = await natsServerCheck(machine({ NATS_BIN: await fakeServer(version) }), 'managed');
    expect(found).toMatchObject({ status, message: expect.stringContaining(version) });
  });

  it('a missing nats-server fails with the command to install it, unless the daemon joins another server', async () => {
    const empty = machine({ PATH: directory }, async ({ log }) => {
      log('warn', 'skipped: /bin/nats-server is no program');
      return null;
    });
    expect(await natsServerCheck(empty, 'managed')).toMatchObject({
      status: 'fail',
      message: 'not found; skipped: /bin/nats-server is no program',
      fix: expect.stringContaining('apt-get'),
    });
    const wrong = machine({ NATS_BIN: join(directory, 'nothing') });
    expect(await natsServerCheck(wrong, 'managed')).toMatchObject({
      status: 'fail',
      message: expect.stringContaining(join(directory, 'nothing')),
      fix: expect.stringContaining('unset NATS_BIN'),
    });
    expect(await natsServerCheck(wrong, 'url')).toMatchObject({ status: 'ok' });
  });

  it('a server in a folder of the PATH is found, as `up` finds it', async () => {
    await fakeServer('2.11.3');
    expect(await natsServerCheck(machine({ PATH: directory }), 'managed')).toMatchObject({
      status: 'ok',
      message: '2.11.3',
    });
  });

  it('a model is shown without its key and not called, and a script is named as such', () => {
    const found = modelChecks(
      config({
        a: OPENAI,
        b: { ...OPENAI, apiKeys: [], baseURL: 'http://127.0.0.1:8080/v1' },
        c: { provider: 'scripted', script: null },
      }),
    );
    expect(found.map(({ status }) => status)).toEqual(['ok', 'ok', 'warn']);
    expect(JSON.stringify(found)).not.toContain('sk');
    expect(JSON.stringify(found)).not.toContain('profile');
  });

  it('a profile is reported with its source, if one was chosen', () => {
    const found = modelChecks(
      config({
        a: { ...OPENAI, profile: { preset: 'mistral', chosenBy: 'file' } },
        b: { ...OPENAI, profile: { preset: 'openai', chosenBy: 'host' } },
        c: { ...OPENAI, apiKeys: [], profile: { preset: 'openai', chosenBy: 'host' } },
      }),
    );
    const calls = '; `parley doctor --probe` calls it';
    expect(found.map(({ message }) => message)).toEqual([
      `m at https://api.example.org/v1, with a key; profile mistral${calls}`,
      `m at https://api.example.org/v1, with a key; profile openai, by its host${calls}`,
      `m at https://api.example.org/v1, without a key; profile openai, by its host${calls}`,
    ]);
  });
});

describe('the doctor command', () => {
  const doctor = async (argv: string[] = [], options: Parameters<typeof parley>[1] = {}) =>
    parley(['doctor', ...argv], {
      workingDirectory: directory,
      ...options,
      env: { NATS_BIN: await fakeServer('2.10.27'), ...options.env },
      dependencies: {
        loadConfig: async () => config({ default: OPENAI }),
        ...options.dependencies,
      },
    });

  it('doctor exits with 0 if everything passes, and prints one value per line with --json', async () => {
    const ran = await doctor(['--json']);
    expect(ran.code).toBe(0);
    expect(ran.json()).toMatchObject(
      ['node', 'configuration', 'model default', 'nats-server', 'data directory', 'daemon'].map((name) => ({
        name,
        status: 'ok',
      })),
    );
  });

  it('doctor counts a single agent in the singular', async () => {
    expect((await doctor()).out).toMatch(/^ok {4}configuration: 1 agent in /m);
  });

  it('doctor reports a daemon that does not run as information, not as a failure', async () => {
    const ran = await doctor([], { env: { PARLEY_NATS_URL: '' } });
    expect(ran.code).toBe(0);
    expect(ran.out).toMatch(/^warn {2}daemon: no running daemon.*\n {6}→ start a daemon with `parley up`/m);
  });

  it.each([
    [false, 1, 'fail  programs of tools: they are not started'],
    [true, 0, 'warn  programs of tools: they can read the data directory'],
  ])(
    'doctor says what happens to programs of tools without hiding, with cause and remedy (accepted: %s)',
    async (unhidden, code, found) => {
      const given = config({ default: OPENAI });
      const loadConfig = async () => ({
        ...given,
        tools: { ...given.tools, unhidden },
        agents: [{ ...given.agents[0], tools: ['shell'] }] as never,
      });
      const ran = await doctor([], {
        dependencies: { loadConfig },
        daemonModule: { enclosureFault: async () => 'unshare failed' },
      });
      expect(ran.code).toBe(code);
      expect(ran.out).toContain(found);
      expect(ran.out).toMatch(/: unshare failed\n {6}→ .*docs\/guides\/security\.md/);
    },
  );

  it('doctor fails on a wrong configuration and still runs the other checks', async () => {
    const loadConfig = async () => {
      throw new ParleyError('CONFIG_INVALID', 'the configuration has 1 problem\n- x', { hint: 'correct it' });
    };
    const ran = await doctor([], { dependencies: { loadConfig } });
    expect(ran.code).toBe(1);
    expect(ran.out).toContain(
      'fail  configuration: the configuration has 1 problem\n      - x\n      → correct it',
    );
    expect(ran.out).toContain('data directory');
  });

  it('doctor fails on a data directory that is a file', async () => {
    await writeFile(join(directory, 'data'), '');
    const ran = await doctor(['--json']);
    expect(ran.json()).toContainEqual(expect.objectContaining({ name: 'data directory', status: 'fail' }));
  });

  it.each([
    [99_999_999, 'warn', '99 MB are free'],
    [1_000_000, 'fail', '1 MB are free'],
    [100_000_000, 'ok', ''],
  ])('doctor with %i free bytes on the disk of the data directory: %s', async (free, status, text) => {
    const io = { env: {}, workingDirectory: directory };
    const context = { io, options: { data: directory } } as unknown as Context;
    const check = await dataCheck(context, async () => free);
    expect(check).toMatchObject({ status, message: expect.stringContaining(text) });
    if (status !== 'ok') expect(check.fix).toContain('free space');
  });

  it.skipIf(process.getuid?.() === 0)('doctor fails on a data directory that is not writable', async () => {
    await mkdir(join(directory, 'data'), { mode: 0o500 });
    expect((await doctor()).out).toMatch(/^fail {2}data directory: .* is not writable/m);
  });

  it('doctor fails if the daemon answers with an error', async () => {
    const daemon = fakeDaemon({ agents: new ParleyError('INTERNAL', 'it broke') });
    expect((await doctor([], { daemon })).out).toContain('fail  daemon: it broke');
  });

  describe('doctor with the address file of a daemon', () => {
    const left = async (connection: object, options: Parameters<typeof doctor>[1] = {}) => {
      await mkdir(join(directory, 'data'));
      const file = { prefix: 'parley', pid: 1, ...connection };
      await writeFile(join(directory, 'data', 'connection.json'), JSON.stringify(file));
      const ran = await doctor(['--json'], { ...options, env: { PARLEY_NATS_URL: '' } });
      expect(ran.out).not.toContain('geheim');
      const found = ran.json() as { name: string; status: string }[];
      return found.filter(({ name }) => name.startsWith('server ') || name === 'nats-server');
    };
    const NOT_NEEDED = { name: 'nats-server', status: 'ok', message: expect.stringMatching(/^not needed/) };

    it('doctor checks each server that the daemon joined, with its credentials, and no local nats-server', async () => {
      const daemon = fakeDaemon();
      const urls = ['nats://al:geheim@10.0.0.1:4222', 'nats://bo:geheim@10.0.0.2:4222'];
      const checks = await left({ url: urls[0], urls, inboxPrefix: '_INBOX.al' }, { daemon });
      expect(checks).toMatchObject([
        NOT_NEEDED,
        { name: 'server nats://10.0.0.1:4222', status: 'ok' },
        { name: 'server nats://10.0.0.2:4222', status: 'ok' },
      ]);
      const doctors = daemon.connections.filter(({ name }) => name === 'parley-doctor');
      expect(doctors).toMatchObject(urls.map((url) => ({ url, inboxPrefix: '_INBOX.al' })));
    });

    it('doctor checks the single server that the daemon joined', async () => {
      const checks = await left({ url: 'nats://10.0.0.1:4222', user: 'al', password: 'geheim' });
      expect(checks).toMatchObject([NOT_NEEDED, { name: 'server nats://10.0.0.1:4222' }]);
    });

    it('doctor checks the local nats-server if the daemon manages its own', async () => {
      const checks = await left({ url: 'nats://127.0.0.1:4222', password: 'geheim', managed: true });
      expect(checks).toMatchObject([{ name: 'nats-server', message: '2.10.27' }]);
    });
  });

  it('doctor does not send credentials of the environment to a server that a file of the folder names', async () => {
    const password = { PARLEY_NATS_PASSWORD: 'mine' };
    const seen: unknown[] = [];
    const loadConfig = async ({ env }: { env: Record<string, string | undefined> }) => {
      seen.push(env.PARLEY_NATS_PASSWORD);
      const nats = { kind: 'url', url: 'nats://evil:1' };
      return { ...config({ default: OPENAI }), daemon: { nats } } as unknown as Config;
    };
    const { out } = await doctor([], { env: password, dependencies: { loadConfig } });
    expect(out).toContain('PARLEY_NATS_PASSWORD of the environment was not sent to nats://evil:1');
    await doctor([], { env: { ...password, PARLEY_NATS: 'nats://evil:1' }, dependencies: { loadConfig } });
    expect(seen).toEqual([undefined, 'mine']);
  });

  it('doctor fails on an invalid address', async () => {
    expect((await doctor(['--nats', 'not a url'])).code).toBe(1);
  });
});

describe('doctor on MCP servers', () => {
  const program = (command: string, env = {}) => ({ transport: 'command', command, args: ['sk-arg'], env });
  const web = {
    transport: 'http',
    url: 'https://user:sk-url@tools.example.org/mcp?key=sk-query',
    headers: { Authorization: new Secret('sk-header') },
  };
  const servers = {
    files: program('sh'),
    web,
    own: program('./server.sh'),
    none: program('no-such-program'),
  };

  async function checked(
    options: Parameters<typeof parley>[1],
    configured: Record<string, unknown> = servers,
  ) {
    const ran = await parley(['doctor', '--json'], {
      workingDirectory: directory,
      ...options,
      env: { NATS_BIN: await fakeServer('2.10.27'), PATH: process.env.PATH, ...options?.env },
      dependencies: { loadConfig: async () => config({ default: OPENAI }, configured) },
    });
    expect(ran.out).not.toContain('sk-');
    const found = ran.json() as { name: string; status: string; message: string; fix?: string }[];
    return { code: ran.code, servers: found.filter(({ name }) => name.startsWith('MCP server')) };
  }

  it('without a daemon, doctor checks only that the MCP servers could be started', async () => {
    await writeFile(join(directory, 'server.sh'), '', { mode: 0o755 });
    const ran = await checked({ env: { PARLEY_NATS_URL: '' } });
    expect(ran.code).toBe(1);
    expect(ran.servers).toMatchObject([
      {
        name: 'MCP server files (program)',
        status: 'ok',
        message: expect.stringContaining('/sh, not started'),
      },
      { status: 'ok', message: 'https://tools.example.org/mcp, not checked: no daemon is running' },
      { status: 'ok', message: expect.stringContaining(join(directory, 'server.sh')) },
      {
        status: 'fail',
        message: 'program no-such-program was not found',
        fix: 'install it, or correct tools.mcpServers.none.command',
      },
    ]);
  });

  it('doctor finds the program of an MCP server in the PATH of its own settings', async () => {
    await writeFile(join(directory, 'apart'), '', { mode: 0o755 });
    const configured = { files: program('apart', { PATH: new Secret(directory) }) };
    expect((await checked({ env: { PARLEY_NATS_URL: '' } }, configured)).servers).toMatchObject([
      { status: 'ok' },
    ]);
  });

  it('doctor reports what a running daemon knows about its MCP servers, and the remedy', async () => {
    const seen = [
      { server: 'files', state: 'ready', tools: ['mcp__files__a', 'mcp__files__b'] },
      { server: 'web', state: 'failed', tools: [], error: 'HTTP 401' },
      { server: 'own', state: 'connecting', tools: [] },
    ];
    const daemon = fakeDaemon({ tools: { tools: [], servers: seen } });
    const ran = await checked({ daemon });
    expect(ran.code).toBe(1);
    expect(ran.servers).toMatchObject([
      { status: 'ok', message: 'connected with 2 tools: mcp__files__a, mcp__files__b' },
      {
        status: 'fail',
        message: 'https://tools.example.org/mcp failed: HTTP 401',
        fix: expect.stringContaining('tools.mcpServers.web.url'),
      },
      { status: 'warn', message: './server.sh is being started' },
      { status: 'warn', fix: expect.stringContaining('restart the daemon') },
    ]);
  });

  it('doctor names the tools of an MCP server, and those that cannot be offered', async () => {
    const leftOut = ['bad: its schema is invalid'];
    const servers = [{ server: 'files', state: 'ready', tools: ['mcp__files__a'], leftOut }];
    const ran = await checked(
      { daemon: fakeDaemon({ tools: { tools: [], servers } }) },
      { files: program('sh') },
    );
    expect(ran).toMatchObject({
      code: 0,
      servers: [
        {
          status: 'warn',
          message: 'connected with 1 tool: mcp__files__a; left out: bad: its schema is invalid',
          fix: expect.stringContaining('agents do without them'),
        },
      ],
    });
  });

  it('doctor warns of an MCP server without tools', async () => {
    const daemon = fakeDaemon({
      tools: { tools: [], servers: [{ server: 'files', state: 'ready', tools: [] }] },
    });
    const ran = await checked({ daemon }, { files: program('sh') });
    expect(ran).toMatchObject({ code: 0, servers: [{ status: 'warn' }] });
  });
});
