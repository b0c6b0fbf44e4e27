import { describe, expect, test } from 'vitest';
import type { CommandResult, Host } from '../../../src/bus/nats/managed/host.ts';
import { locateNatsServer } from '../../../src/bus/nats/managed/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { errorWith } from '../../support/error-with.ts';

/** A simulated machine: `binaries` maps a path to the output of its `--version`. */
interface Machine {
  readonly platform?: NodeJS.Platform;
  readonly userId?: number | null;
  readonly binaries?: Record<string, string>;
  readonly programs?: string[];
  /** Answers every other command, and may change `binaries` as an installer does. */
  readonly command?: (line: string, binaries: Record<string, string>) => CommandResult;
}

function play(machine: Machine) {
  const binaries = { ...machine.binaries };
  const commands: string[] = [];
  const said: string[] = [];
  const logged: string[] = [];
  const host: Host = {
    platform: machine.platform ?? 'linux',
    userId: machine.userId === undefined ? 1000 : machine.userId,
    isExecutable: async (path) => path in binaries || (machine.programs ?? []).includes(path),
    freeBytes: async () => 0,
    run: async (command, args) => {
      const version = binaries[command];
      if (version !== undefined && args[0] === '--version') return exited(0, version);
      const line = [command, ...args].join(' ');
      commands.push(line);
      return machine.command?.(line, binaries) ?? { kind: 'failed', reason: `spawn ${command} ENOENT` };
    },
  };
  const locate = (env: Record<string, string> = {}) =>
    locateNatsServer({
      env,
      host,
      log: (level, message) => logged.push(`${level}: ${message}`),
      announce: (line) => said.push(line),
      mayInstall: true,
    });
  return { locate, commands, said, logged };
}

const exited = (code: number, output = ''): CommandResult => ({ kind: 'exited', code, output });
const APT = '/usr/bin/apt-get';
const SBIN = '/usr/sbin/nats-server';
const withServers = (versions: Record<string, string>) => {
  const entries = Object.entries(versions).map(([path, version]) => [path, `nats-server: v${version}`]);
  return play({ binaries: Object.fromEntries(entries) });
};

async function failure(promise: Promise<unknown>): Promise<ParleyError> {
  const error = await promise.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ParleyError);
  return error as ParleyError;
}

describe('finding a nats-server', () => {
  test('NATS_BIN overrides everything else', async () => {
    const machine = withServers({ '/opt/nats': '2.11.4', [SBIN]: '2.9.10' });
    expect(await machine.locate({ NATS_BIN: '/opt/nats' })).toEqual({ path: '/opt/nats', version: '2.11.4' });
  });

  test('a name in NATS_BIN is looked for on the PATH, as a shell does', async () => {
    const machine = withServers({ '/b/nats-new': '2.11.4', [SBIN]: '2.9.10' });
    const found = { path: '/b/nats-new', version: '2.11.4' };
    expect(await machine.locate({ NATS_BIN: 'nats-new', PATH: '/a:/b' })).toEqual(found);
    const error = await failure(machine.locate({ NATS_BIN: 'nats-old', PATH: '/a:/b' }));
    expect(error).toMatchObject(errorWith('NATS_SERVER_UNUSABLE', 'nats-old cannot be run', 'NATS_BIN'));
  });

  test('a NATS_BIN that cannot be run is an error, and is never replaced by another server', async () => {
    const error = await failure(withServers({ [SBIN]: '2.9.10' }).locate({ NATS_BIN: '/opt/none' }));
    expect(error).toMatchObject(errorWith('NATS_SERVER_UNUSABLE', '/opt/none cannot be run', 'NATS_BIN'));
  });

  test('a NATS_BIN that is another program is refused with its output', async () => {
    const machine = play({ binaries: { '/bin/cat': 'cat (GNU coreutils) 9.1' } });
    const error = await failure(machine.locate({ NATS_BIN: '/bin/cat' }));
    expect(error).toMatchObject(errorWith('NATS_SERVER_UNUSABLE', 'GNU coreutils'));
  });

  test('a NATS_BIN that is too old is refused with the required version', async () => {
    const machine = withServers({ '/opt/old': '2.9.9' });
    expect((await failure(machine.locate({ NATS_BIN: '/opt/old' }))).message).toContain('2.9.10 or newer');
  });

  test('PATH is searched in its order before the usual folders', async () => {
    const onPath = { '/b/nats-server': '2.10.2', '/c/nats-server': '2.10.3' };
    const machine = withServers({ ...onPath, [SBIN]: '2.9.10' });
    expect((await machine.locate({ PATH: '/a:/b:/c' })).path).toBe('/b/nats-server');
  });

  test.each(['/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin', '/home/linuxbrew/.linuxbrew/bin'])(
    'nats-server is found in %s even if PATH lacks that folder',
    async (folder) => {
      const path = `${folder}/nats-server`;
      const machine = withServers({ [path]: '2.10.27' });
      expect(await machine.locate({ PATH: '/bin' })).toEqual({ path, version: '2.10.27' });
    },
  );

  test('a relative folder on PATH is not searched', async () => {
    const machine = withServers({ 'tools/nats-server': '2.10.1', [SBIN]: '2.9.10' });
    expect((await machine.locate({ PATH: 'tools' })).path).toBe(SBIN);
  });

  test('a nats-server that is too old is skipped, which is reported', async () => {
    const machine = withServers({ '/a/nats-server': '2.1.0', [SBIN]: '2.9.10' });
    expect((await machine.locate({ PATH: '/a' })).path).toBe(SBIN);
    const skipped = /^warn: skipped: \/a\/nats-server is version 2\.1\.0/;
    expect(machine.logged).toEqual([expect.stringMatching(skipped)]);
  });

  test('a missing NATS_BIN is reported on the real machine, too', async () => {
    const env = { NATS_BIN: '/nowhere/nats-server' };
    const error = await failure(locateNatsServer({ env, log: () => undefined }));
    expect(error).toMatchObject(errorWith('NATS_SERVER_UNUSABLE', '/nowhere/nats-server'));
  });
});

describe('installing nats-server if it is missing', () => {
  const installs: Machine['command'] = (line, binaries) => {
    if (line.includes(' install ')) binaries[SBIN] = 'nats-server: v2.9.10';
    return exited(0);
  };
  const debian = (command: Machine['command']) => play({ userId: 0, programs: [APT], command });

  test('root on Debian updates the lists and installs the package, and both are announced', async () => {
    const machine = debian(installs);
    expect(await machine.locate()).toEqual({ path: '/usr/sbin/nats-server', version: '2.9.10' });
    expect(machine.commands).toHaveLength(2);
    expect(machine.commands[0]).toMatch(/^env DEBIAN_FRONTEND=noninteractive \/usr\/bin\/apt-get .*update$/);
    expect(machine.commands[1]).toMatch(/apt-get .*install -y --no-install-recommends nats-server$/);
    expect(machine.said[0]).toContain('installing it with apt-get');
    expect(machine.logged[0]).toContain('installing it with apt-get');
  });

  test('a user with passwordless sudo installs the package through sudo -n', async () => {
    const machine = play({ programs: [APT], command: installs });
    await machine.locate();
    expect(machine.commands[0]).toBe('sudo -n true');
    expect(machine.commands[1]).toMatch(/^sudo -n env .*update$/);
    expect(machine.commands[2]).toMatch(/^sudo -n env .*install -y/);
  });

  test('a user whose sudo needs a password gets one command, and nothing is run', async () => {
    const machine = play({ programs: [APT], command: () => exited(1, 'sudo: a password is required') });
    const { code, hint } = await failure(machine.locate());
    const command = 'sudo apt-get update && sudo apt-get install -y --no-install-recommends nats-server';
    expect([code, hint]).toEqual(['NATS_SERVER_MISSING', `run: ${command}`]);
    expect(machine.commands).toEqual(['sudo -n true']);
    expect(machine.said).toEqual([]);
  });

  test('a user of a machine without sudo gets one command', async () => {
    const machine = play({ programs: [APT] });
    expect((await failure(machine.locate())).hint).toContain('sudo apt-get install');
  });

  test('a failed update does not prevent the installation', async () => {
    const machine = debian((line, binaries) =>
      line.endsWith('update') ? exited(100, 'E: one source is broken') : installs(line, binaries),
    );
    expect((await machine.locate()).version).toBe('2.9.10');
    expect(machine.said.join('\n')).toContain('E: one source is broken');
  });

  test('the update asks apt to fail when a list cannot be downloaded, and a later failure names both reasons', async () => {
    const machine = debian((line) =>
      exited(100, line.endsWith('update') ? 'E: Failed to fetch the list' : 'E: Unable to locate package'),
    );
    const { message } = await failure(machine.locate());
    expect(machine.commands[0]).toContain('APT::Update::Error-Mode=any');
    expect(message).toMatch(/Unable to locate package.*apt-get update failed: E: Failed to fetch the list/);
  });

  test('a failed installation reports the reason and the command for root', async () => {
    const reason = 'E: Unable to locate package nats-server';
    const machine = debian(() => exited(100, `Reading package lists...\n${reason}`));
    const error = await failure(machine.locate());
    const hint = 'run: apt-get update && apt-get install -y --no-install-recommends nats-server';
    expect(error).toMatchObject({ code: 'NATS_SERVER_MISSING', hint });
    expect(error.message).toContain('Unable to locate package nats-server');
  });

  test('an installation that hangs is stopped and reported', async () => {
    const machine = debian(() => ({ kind: 'failed', reason: 'no end within 420000 ms' }));
    expect((await failure(machine.locate())).message).toContain('no end within');
  });

  test('a package with a server that is too old ends in an error, not in a loop', async () => {
    const machine = debian((_line, binaries) => {
      binaries[SBIN] = 'nats-server: v2.7.2';
      return exited(0);
    });
    const error = await failure(machine.locate());
    expect(error.code).toBe('NATS_SERVER_MISSING');
    expect(machine.logged.join('\n')).toContain('2.7.2, which is too old');
  });

  test('macOS gets one brew command', async () => {
    const error = await failure(play({ platform: 'darwin' }).locate());
    expect(error).toMatchObject({ code: 'NATS_SERVER_MISSING', hint: 'run: brew install nats-server' });
  });

  test('a Linux without apt gets the address of the official release', async () => {
    const error = await failure(play({ userId: 0 }).locate());
    expect(error.code).toBe('NATS_SERVER_MISSING');
    expect(error.hint).toContain('https://github.com/nats-io/nats-server/releases');
  });

  test('a system without user ids gets the address of the official release', async () => {
    const error = await failure(play({ platform: 'win32', userId: null }).locate());
    expect(error.hint).toContain('official release');
  });
});
