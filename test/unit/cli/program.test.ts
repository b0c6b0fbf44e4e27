import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParleyError, writeConnectionFile } from '../../../src/client/index.ts';
import { fakeDaemon, parley } from './support.ts';

describe('wrong usage', () => {
  it.each([
    [['bogus'], 'unknown command'],
    [['ls', '--bogus'], 'unknown option'],
    [['say', 'c'], 'missing required argument'],
    [['show', 'a.b'], 'conversation id is 1 to 128'],
    [['show', 'c', '--from', '-1'], 'whole number'],
    [['say', 'c', 'x', '--delivery', 'soon'], 'steer, queue, interrupt'],
    [['mode', 'c', 'party'], 'chat, agent, run'],
    [['explain', 'c'], '--agent'],
    [['say', 'c', 'x', '--to', 'pm,,dev'], 'slugs'],
  ])('%j exits with 2, says why and shows the usage', async (argv, text) => {
    const { code, out, err } = await parley(argv);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/^parley: /);
    expect(err).toContain(text);
    expect(err).toContain('usage: parley');
  });

  it.each([
    [['dead', 'show', '1.5'], 'usage: parley dead show [options] <number>', 'parley dead show --help'],
    [['tail', 'say', '--nonsense'], 'usage: parley tail ', 'parley tail --help'],
  ])('shows the usage of the command that was meant, within others too: %j', async (argv, usage, more) => {
    const { code, err } = await parley(argv);
    expect(code).toBe(2);
    expect(err).toContain(usage);
    expect(err).toContain(more);
  });

  it('is one line of JSON on stdout with --json, and on stderr as always', async () => {
    const ran = await parley(['ls', '--bogus', '--json']);
    expect(ran.code).toBe(2);
    expect(ran.json()).toMatchObject([{ error: { code: 'USAGE', hint: expect.stringContaining('usage:') } }]);
    expect(ran.err).toContain("unknown option '--bogus'");
  });

  it('without a command shows the help and exits with 2', async () => {
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
  it('are results', async () => {
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

describe('errors', () => {
  const daemon = () =>
    fakeDaemon({ phase: new ParleyError('UNKNOWN_PHASE', 'no phase x', { hint: 'try plan' }) });

  it('go to stderr as what and what to do, and exit with 1', async () => {
    const { code, out, err } = await parley(['phase', 'c', 'x'], { daemon: daemon() });
    expect([code, out, err]).toEqual([1, '', 'parley: no phase x\n  try plan\n']);
  });

  it('go to stdout as one value with --json, and to stderr as always', async () => {
    const ran = await parley(['phase', 'c', 'x', '--json'], { daemon: daemon() });
    expect(ran.json()).toEqual([
      { error: { code: 'UNKNOWN_PHASE', message: 'no phase x', hint: 'try plan' } },
    ]);
    expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('no phase x')]);
  });

  it('leave no connection open', async () => {
    const played = daemon();
    await parley(['phase', 'c', 'x'], { daemon: played });
    expect(played.closed).toBe(1);
  });

  it('that nobody expected show their stack only when asked', async () => {
    const broken = () => fakeDaemon({ agents: new TypeError('boom') });
    expect((await parley(['agents'], { daemon: broken() })).err).not.toContain('\n    at ');
    expect((await parley(['agents', '--verbose'], { daemon: broken() })).err).toContain(
      'TypeError: boom\n    at ',
    );
  });
});

describe('finding the daemon', () => {
  const CONNECTION = { url: 'nats://left:1', user: 'u', password: 'p', prefix: 'left', pid: 1 };

  it('takes --nats before the variable, with the usual credentials', async () => {
    const daemon = fakeDaemon();
    await parley(
      [
        'agents',
        '--nats',
        'nats://flag:1',
        '--nats-user',
        'me',
        '--nats-creds',
        '/x.creds',
        '--nats-ca',
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

  it('takes PARLEY_NATS_URL before the data directory', async () => {
    const daemon = fakeDaemon();
    await parley(['agents'], {
      daemon,
      env: { PARLEY_NATS_URL: 'nats://env:1', PARLEY_SUBJECT_PREFIX: 'mine' },
    });
    expect(daemon.connections).toMatchObject([{ url: 'nats://env:1', prefix: 'mine' }]);
  });

  it('else takes what `up` left in the data directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'parley-cli-'));
    try {
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
      // The daemon's own credentials are not used under the name of another user.
      expect(daemon.connections[2]).toMatchObject({ url: address.url, user: 'bob', password: 'own' });
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('says what to type when there is none', async () => {
    const { code, err } = await parley(['ls'], { env: { PARLEY_NATS_URL: '' } });
    expect(code).toBe(1);
    expect(err).toContain('/nowhere/data');
    expect(err).toContain('`parley up`');
  });

  it('calls a server that is gone a daemon that does not run', async () => {
    const connect = async () => {
      throw new ParleyError('NATS_UNREACHABLE', 'cannot connect to NATS at nats://x');
    };
    const ran = await parley(['ls', '--json'], { rooms: { connect } });
    expect(ran.json()).toMatchObject([{ error: { code: 'DAEMON_NOT_RUNNING' } }]);
  });

  it('refuses a URL that is none, as wrong configuration', async () => {
    expect((await parley(['ls', '--nats', 'not a url'])).code).toBe(2);
  });
});
