import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ParleyError, writeConnectionFile } from '../../../src/client/index.ts';
import { folderPerTest, newFolder } from '../../support/lifetime.ts';
import { fakeDaemon, parley } from './support.ts';

describe('wrong usage', () => {
  it.each([
    [['bogus'], 'unknown command'],
    [['ls', '--bogus'], 'unknown option'],
    [['show'], 'missing required argument'],
    [['show', 'a.b'], 'conversation id is 1 to 128'],
    [['show', 'c', '--from', '-1'], 'whole number'],
    [['say', 'c', 'x', '--delivery', 'soon'], 'steer, queue, interrupt'],
    [['mode', 'c', 'party'], 'chat, agent, run'],
    [['fork', 'c'], '--as'],
    [['say', 'c', 'x', '--to', 'pm,,dev'], 'slugs'],
  ])('%j exits with 2, prints the reason and the usage', async (argv, text) => {
    const { code, out, err } = await parley(argv);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/^parley: /);
    expect(err).toContain(text);
    expect(err).toContain('usage: parley');
  });

  it.each([
    [['dead', 'show', '1.5'], 'usage: parley dead show [options] <number>', 'parley dead show --help'],
    [['tail', 'say', '--nonsense'], 'usage: parley tail ', 'parley tail --help'],
  ])(
    'a usage error shows the usage of the intended command, also of a nested one: %j',
    async (argv, usage, more) => {
      const { code, err } = await parley(argv);
      expect(code).toBe(2);
      expect(err).toContain(usage);
      expect(err).toContain(more);
    },
  );

  it('a usage error is one line of JSON on stdout with --json, and unchanged on stderr', async () => {
    const ran = await parley(['ls', '--bogus', '--json']);
    expect(ran.code).toBe(2);
    expect(ran.json()).toMatchObject([{ error: { code: 'USAGE', hint: expect.stringContaining('usage:') } }]);
    expect(ran.err).toContain("unknown option '--bogus'");
  });

  it('parley without a command prints the help and exits with 2', async () => {
    const { code, out, err } = await parley([]);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('Usage: parley');
  });

  it('an empty message is refused before anything is sent', async () => {
    const daemon = fakeDaemon();
    expect((await parley(['say', 'c', '  '], { daemon })).code).toBe(2);
    expect(daemon.posts).toEqual([]);
  });
});

describe('help and version', () => {
  it('help and version are printed as results', async () => {
    const help = await parley(['--help']);
    expect([help.code, help.err]).toEqual([0, '']);
    for (const name of [
      'up',
      'chat',
      'say',
      'ls',
      'show',
      'tail',
      'explain',
      'phase',
      'mode',
      'rm',
      'agents',
      'doctor',
      'stop',
      'resume',
    ]) {
      expect(help.out).toMatch(new RegExp(`^  ${name} `, 'm'));
    }
    expect((await parley(['say', '--help'])).out).toContain('--wait');
    const version = await parley(['--version']);
    expect(version.code).toBe(0);
    expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe('errors of the CLI', () => {
  const daemon = () =>
    fakeDaemon({ phase: new ParleyError('UNKNOWN_PHASE', 'no phase x', { hint: 'try plan' }) });

  it('an error goes to stderr with cause and remedy, and the exit code is 1', async () => {
    const { code, out, err } = await parley(['phase', 'c', 'x'], { daemon: daemon() });
    expect([code, out, err]).toEqual([1, '', 'parley: no phase x\n  try plan\n']);
  });

  it('an error goes to stdout as one value with --json, and unchanged to stderr', async () => {
    const ran = await parley(['phase', 'c', 'x', '--json'], { daemon: daemon() });
    expect(ran.json()).toEqual([
      { error: { code: 'UNKNOWN_PHASE', message: 'no phase x', hint: 'try plan' } },
    ]);
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('no phase x')]);
  });

  it('an error leaves no connection open', async () => {
    const played = daemon();
    await parley(['phase', 'c', 'x'], { daemon: played });
    expect(played.closed).toBe(1);
  });

  it('an unexpected error shows its stack only on request', async () => {
    const broken = () => fakeDaemon({ agents: new TypeError('boom') });
    expect((await parley(['agents'], { daemon: broken() })).err).not.toContain('\n    at ');
    expect((await parley(['agents', '--verbose'], { daemon: broken() })).err).toContain(
      'TypeError: boom\n    at ',
    );
  });
});

describe('locating the daemon', () => {
  const CONNECTION = { url: 'nats://left:1', user: 'u', password: 'p', prefix: 'left', pid: 1 };

  it('--nats overrides the environment, with the usual credentials', async () => {
    const daemon = fakeDaemon();
    await parley(
      [
        'agents',
        '--nats',
        'nats://flag:1',
        '--nats-user',
        'me',
        '--nats-credentials',
        '/x.creds',
        '--nats-tls-ca',
        '/ca.pem',
      ],
      {
        daemon,
        env: { PARLEY_NATS_PASSWORD: 'secret' },
      },
    );
    expect(daemon.connections).toMatchObject([
      {
        url: 'nats://flag:1',
        user: 'me',
        password: 'secret',
        credentials: '/x.creds',
        tls: { ca: '/ca.pem' },
      },
    ]);
  });

  it('PARLEY_NATS_URL overrides the data directory', async () => {
    const daemon = fakeDaemon();
    await parley(['agents'], {
      daemon,
      env: { PARLEY_NATS_URL: 'nats://env:1', PARLEY_SUBJECT_PREFIX: 'mine' },
    });
    expect(daemon.connections).toMatchObject([{ url: 'nats://env:1', prefix: 'mine' }]);
  });

  it('the address that `up` left in the data directory is the default', async () => {
    const directory = await newFolder();
    await writeConnectionFile(join(directory, 'data'), CONNECTION);
    const daemon = fakeDaemon();
    await parley(['agents'], { daemon, env: { PARLEY_NATS_URL: '' }, workingDirectory: directory });
    await parley(['agents', '--data', join(directory, 'data')], { daemon, env: { PARLEY_NATS_URL: '' } });
    const { pid: _, ...address } = CONNECTION;
    expect(daemon.connections).toMatchObject([address, address]);
    await parley(['agents', '--nats-user', 'bob'], {
      daemon,
      env: { PARLEY_NATS_URL: '', PARLEY_NATS_PASSWORD: 'own' },
      workingDirectory: directory,
    });
    // The credentials of the daemon are not used under the name of another user, nor that of the environment.
    expect(daemon.connections[2]).toMatchObject({ url: address.url, user: 'bob', password: undefined });
  });

  describe('in a folder of another author, whose files name a server', () => {
    const OWN = {
      PARLEY_NATS_URL: '',
      PARLEY_NATS_USER: 'me',
      PARLEY_NATS_PASSWORD: 'mine',
      PARLEY_NATS_TOKEN: 'my-token',
    };
    const directory = folderPerTest();
    beforeEach(() => mkdir(join(directory, 'config')));

    async function sent(env: Record<string, string>, argv: string[] = []) {
      const daemon = fakeDaemon();
      await parley(['ls', ...argv], { daemon, env: { ...OWN, ...env }, workingDirectory: directory });
      return daemon.connections[0];
    }
    const NOTHING = /"me"|mine|my-token/;

    it('credentials of the environment are not sent to the server of its connection.json', async () => {
      await writeConnectionFile(join(directory, 'data'), { url: 'nats://evil:1', prefix: 'parley', pid: 1 });
      const found = await sent({});
      expect(found).toMatchObject({ url: 'nats://evil:1' });
      expect(JSON.stringify({ ...found, name: '' })).not.toMatch(NOTHING);
    });

    it('credentials of the environment are sent to the daemon of a data directory that the environment or a flag names', async () => {
      const data = join(directory, 'data');
      await writeConnectionFile(data, { url: 'nats://known:1', prefix: 'parley', pid: 1 });
      const known = { url: 'nats://known:1', user: 'me' };
      expect(await sent({ PARLEY_DATA: data })).toMatchObject(known);
      expect(await sent({}, ['--data', data])).toMatchObject(known);
    });

    it('credentials of the environment are not sent to the server of its .env', async () => {
      await writeFile(join(directory, '.env'), 'PARLEY_NATS=nats://evil:1\nPARLEY_NATS_PASSWORD=theirs\n');
      const found = await sent({});
      expect(found).toMatchObject({ url: 'nats://evil:1', password: 'theirs' });
      expect(JSON.stringify(found)).not.toMatch(NOTHING);
      expect(await sent({ PARLEY_NATS_URL: 'nats://known:1' })).toMatchObject({
        url: 'nats://known:1',
        user: 'me',
      });
    });
  });

  it('without any address the CLI suggests the command to type', async () => {
    const { code, err } = await parley(['ls'], { env: { PARLEY_NATS_URL: '' } });
    expect(code).toBe(1);
    expect(err).toContain('/nowhere/data');
    expect(err).toContain('`parley up`');
  });

  it('a server that is not reachable is reported as a daemon that does not run', async () => {
    const connect = async () => {
      throw new ParleyError('NATS_UNREACHABLE', 'cannot connect to NATS at nats://x');
    };
    const ran = await parley(['ls', '--json'], { dependencies: { connect } });
    expect(ran.json()).toMatchObject([{ error: { code: 'DAEMON_NOT_RUNNING' } }]);
  });

  it('an invalid URL is refused as wrong configuration', async () => {
    expect((await parley(['ls', '--nats', 'not a url'])).code).toBe(2);
  });
});
