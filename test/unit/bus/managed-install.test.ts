import { spawnSync } from 'node:child_process';
import { access, chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Host } from '../../../src/bus/nats/managed/host.ts';
import { locateNatsServer } from '../../../src/bus/nats/managed/index.ts';
import { withoutService } from '../../../src/bus/nats/managed/install.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const APT = '/usr/bin/apt-get';

/** A bare Debian as root. `answer`: the answer of the person at the terminal, or null if there is no terminal. */
async function locate(answer: boolean | null, mayInstall?: boolean) {
  let isInstalled = false;
  const commands: string[] = [];
  const questions: string[] = [];
  const said: string[] = [];
  const host: Host = {
    platform: 'linux',
    userId: 0,
    isExecutable: async (path) => path === APT || (isInstalled && path === '/usr/sbin/nats-server'),
    freeBytes: async () => 0,
    confirm: async (question) => {
      questions.push(question);
      return answer;
    },
    run: async (command, args) => {
      const output = args[0] === '--version' ? 'nats-server: v2.9.10' : '';
      if (output === '') commands.push([command, ...args].join(' '));
      isInstalled ||= args.includes('install');
      return { kind: 'exited', code: 0, output };
    },
  };
  const announce = (line: string) => void said.push(line);
  const located = await locateNatsServer({ env: {}, host, log: () => undefined, announce, mayInstall }).catch(
    ({ code, message, hint }) => ({ code, message, hint }),
  );
  return { located, commands, questions, said };
}

describe('installing a missing nats-server', () => {
  test('nats-server is installed on a terminal after the person agrees', async () => {
    const { located, questions, commands } = await locate(true);
    expect(questions).toEqual(['Install nats-server with apt-get? [Y/n] ']);
    expect(located).toMatchObject({ version: '2.9.10' });
    expect(commands).toHaveLength(2);
  });

  test.each([
    ['on a terminal if the person declines', false, 'declined'],
    ['without a terminal if the administrator did not ask for it', null, 'there is no terminal to ask on'],
  ])('nats-server is not installed %s, and the command is printed', async (_, answer, why) => {
    const { located, commands, said } = await locate(answer);
    expect([commands, said]).toEqual([[], []]);
    const hint = 'run: apt-get update && apt-get install -y --no-install-recommends nats-server';
    expect(located).toMatchObject({ ...errorWith('NATS_SERVER_MISSING', why), hint });
  });

  test('with --install, nats-server is installed without a terminal, which is announced first', async () => {
    const { located, said } = await locate(null, true);
    expect(said[0]).toContain('installing it with apt-get');
    expect(said[0]).toContain('there is no terminal to ask on');
    expect(located).toMatchObject({ version: '2.9.10' });
  });

  test.each([true, null])('nats-server is never installed with --no-install (answer %s)', async (answer) => {
    const { located, questions, commands } = await locate(answer, false);
    expect([questions, commands]).toEqual([[], []]);
    expect(located).toMatchObject(errorWith('NATS_SERVER_MISSING', '--no-install', 'apt-get install'));
  });

  test('nats-server is installed without a start of the service of the package', async () => {
    const { commands, said } = await locate(null, true);
    expect(commands[0]).not.toContain('policy-rc.d');
    expect(commands[1]).toContain('/usr/sbin/policy-rc.d nats-server /usr/bin/apt-get');
    expect(said.at(-1)).toContain('the service of the package is not started');
  });
});

describe('an installation without the service', () => {
  const root = folderPerTest();
  let policy: string;
  beforeEach(async () => {
    policy = join(root, 'policy-rc.d');
    await program('dpkg-query', 'exit 1');
    await program('systemctl', `echo "systemctl $*" >> ${root}/said`);
    // As `deb-systemd-invoke` and `invoke-rc.d` query it.
    const asks = [
      'nats-server.service start',
      '--quiet nats-server start',
      'ssh.service start',
      'nats-servers start',
    ];
    const ask = asks.map((words) => `"$policy" ${words}; echo "${words}: $?" >> ${root}/said`);
    await program('apt-get', [`policy=${policy}`, ...ask, `exit \${1:-0}`].join('\n'));
  });

  async function program(name: string, text: string): Promise<void> {
    await writeFile(join(root, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(root, name), 0o755);
  }

  function install(code = 0): number | null {
    const [command = '', ...args] = [...withoutService('nats-server', policy), 'apt-get', String(code)];
    return spawnSync(command, args, { env: { PATH: `${root}:/usr/bin:/bin` }, stdio: 'inherit' }).status;
  }
  const said = async () => (await readFile(join(root, 'said'), 'utf8')).trim().split('\n');

  test('the policy refuses the start of that service and no other, and disables it for the next boot', async () => {
    expect(install()).toBe(0);
    expect(await said()).toEqual([
      'nats-server.service start: 101',
      '--quiet nats-server start: 101',
      'ssh.service start: 0',
      'nats-servers start: 0',
      'systemctl disable --now nats-server',
    ]);
    await expect(access(policy)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('a failed installation returns the code of apt and leaves no policy', async () => {
    expect(install(100)).toBe(100);
    expect((await said()).join()).not.toContain('systemctl');
    await expect(access(policy)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('an existing policy of the administrator is unchanged', async () => {
    const theirs = '#!/bin/sh\nexit 104\n';
    await writeFile(policy, theirs, { mode: 0o755 });
    expect(install()).toBe(0);
    expect(await said()).toContain('nats-server.service start: 104');
    expect(await readFile(policy, 'utf8')).toBe(theirs);
  });

  test('the service of a package that is already installed is unchanged', async () => {
    await program('dpkg-query', 'exit 0');
    expect(install()).toBe(0);
    expect((await said()).join()).not.toMatch(/101|systemctl/);
  });
});
