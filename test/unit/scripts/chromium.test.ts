import { describe, expect, it } from 'vitest';
import { ensureChromium, findChromium } from '../../../scripts/chromium.ts';
import type { CommandResult, Host } from '../../../src/bus/nats/managed/host.ts';

interface Played {
  programs?: string[];
  userId?: number;
  brings?: string;
  apt?: CommandResult;
  platform?: NodeJS.Platform;
}

/** A machine that is only played. */
function play(options: Played = {}) {
  const programs = new Set(options.programs ?? []);
  const commands: string[] = [];
  const said: string[] = [];
  const host: Host = {
    platform: options.platform ?? 'linux',
    userId: options.userId ?? 0,
    freeBytes: async () => 0,
    isExecutable: async (path) => programs.has(path),
    run: async (command, args) => {
      commands.push([command, ...args].join(' '));
      if (options.brings) programs.add(options.brings);
      return options.apt ?? { kind: 'exited', code: 0, output: '' };
    },
  };
  return { host, commands, said, ensure: () => ensureChromium({}, (line) => said.push(line), host) };
}
const APT = '/usr/bin/apt-get';

describe('the browser of the tests', () => {
  it('the browser tests use the named Chromium, else the first one found', async () => {
    const { host } = play({ programs: ['/usr/bin/google-chrome', '/opt/x/chromium'] });
    expect(await findChromium({ CHROMIUM_BIN: '/my/own' }, host)).toBe('/my/own');
    expect(await findChromium({ PATH: '/opt/x' }, host)).toBe('/opt/x/chromium');
    expect(await findChromium({}, host)).toBe('/usr/bin/google-chrome');
    const both = play({ programs: ['/usr/bin/chromium', '/usr/bin/chromium-headless-shell'] });
    expect(await findChromium({}, both.host)).toBe('/usr/bin/chromium-headless-shell');
  });

  it('Chromium is installed without a password where that is possible, after a notice', async () => {
    const machine = play({ programs: [APT], brings: '/usr/bin/chromium-headless-shell' });
    expect(await machine.ensure()).toEqual({ path: '/usr/bin/chromium-headless-shell' });
    expect(machine.said[0]).toMatch(/installing it with apt-get/);
    expect(
      machine.commands.some((line) =>
        line.includes('install -y --no-install-recommends chromium-headless-shell'),
      ),
    ).toBe(true);
  });

  it.each([
    [
      'a password is needed',
      play({ programs: [APT], userId: 1_000, apt: { kind: 'exited', code: 1, output: '' } }),
      /apt-get install/,
    ],
    ['there is no package manager', play(), /CHROMIUM_BIN/],
    ['the package brings none', play({ programs: [APT] }), /CHROMIUM_BIN/],
    ['brew may have one', play({ platform: 'darwin' }), /brew install chromium$/],
  ])('the message names what to do where %s', async (_, machine, instruction) => {
    expect(await machine.ensure()).toEqual({
      path: null,
      why: expect.stringMatching(/chromium/),
      instruction: expect.stringMatching(instruction),
    });
  });
});
