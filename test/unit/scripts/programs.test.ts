import { describe, expect, it } from 'vitest';
import { ensurePrograms } from '../../../scripts/programs.ts';
import type { Host } from '../../../src/bus/nats/managed/host.ts';

/** A machine that has these files. */
function machine(files: readonly string[], userId = 0) {
  const commands: string[] = [];
  const said: string[] = [];
  const host: Host = {
    platform: 'linux',
    userId,
    freeBytes: async () => 0,
    isExecutable: async (path) => ['/usr/bin/apt-get', ...files].includes(path),
    run: async (command, args) => {
      commands.push([command, ...args].join(' '));
      return { kind: 'exited', code: userId === 0 ? 0 : 1, output: '' };
    },
  };
  const ensure = () => ensurePrograms({ PATH: '/bin:/opt/bin' }, (line) => said.push(line), host);
  return { commands, said, ensure };
}

describe('the programs that tests start', () => {
  it('nothing is installed where all are on the PATH', async () => {
    const { ensure, commands } = machine(['/bin/git', '/bin/openssl', '/opt/bin/python3']);
    expect(await ensure()).toEqual([]);
    expect(commands).toEqual([]);
  });

  it('a missing program is installed after a notice', async () => {
    const { ensure, commands, said } = machine(['/bin/openssl', '/opt/bin/python3']);
    expect(await ensure()).toEqual([]);
    expect(commands.at(-1)).toMatch(/install -y --no-install-recommends git$/);
    expect(said[0]).toMatch(/no git found: installing it with apt-get/);
  });

  it('a missing program is named with its command where a password is needed', async () => {
    const { ensure } = machine(['/bin/git', '/bin/openssl'], 1_000);
    expect(await ensure()).toMatchObject([
      { name: 'python3', instruction: expect.stringMatching(/^run: sudo apt-get .* python3$/) },
    ]);
  });
});
