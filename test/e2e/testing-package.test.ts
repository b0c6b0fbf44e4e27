import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect } from 'vitest';
import { connect, readConnectionFile } from '../../src/client/index.ts';
import { launcher } from '../support/cli.ts';
import { sharedFolder } from '../support/lifetime.ts';
import { ask } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { blocksOf, ROOT, readPage } from '../support/pages.ts';

/** The guides for tests and embedding, as a reader follows them in a folder with the bundled package. */

const PAGES = ['docs/guides/test-your-team.md', 'docs/guides/embed.md'];

const folder = sharedFolder();
beforeAll(async () => {
  await mkdir(join(folder, 'node_modules'));
  await writeFile(join(folder, 'package.json'), '{"private": true}'); // a scope of its own
  await installPackage();
  for (const name of ['zod', 'vitest']) await link(name);
  for (const block of (await Promise.all(PAGES.map(readPage))).flatMap(blocksOf)) {
    const [, file] = /title=(\S+)/.exec(block.title) ?? [];
    if (!file) continue;
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), block.text);
  }
}, 180_000);

/** The package of this test run, without the types. */
async function installPackage(): Promise<void> {
  const home = join(folder, 'node_modules/parleyd');
  const built = dirname(dirname(launcher));
  for (const name of ['config', 'package.json', 'dist'])
    await cp(join(built, name), join(home, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(home, 'node_modules'));
}

const link = (name: string) =>
  symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name), 'dir');

async function run(args: readonly string[]) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, args, { cwd: folder, env: { PATH, HOME } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const [code] = await once(child, 'close');
  return { code, output };
}

describe('the package parleyd/testing', () => {
  itLong('runs the tests of the guide in node:test, which imports no other test runner', async () => {
    const hidden = join(folder, 'node_modules/vitest');
    await rm(hidden);
    const { code, output } = await run([
      '--test',
      '--test-reporter=tap',
      'team.test.mjs',
      'approvals.test.mjs',
      'cases.test.mjs',
    ]);
    await link('vitest');
    expect(output).toContain('# pass 5');
    expect([code, /# fail (\d+)/.exec(output)?.[1]]).toEqual([0, '0']);
  });

  itLong('runs a snapshot test of the guide in Vitest', async () => {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const args = [vitest, 'run', '--root', folder, '--no-color', 'view.vitest.mjs'];
    await writeFile(
      join(folder, 'vitest.config.mjs'),
      "export default { test: { include: ['*.vitest.mjs'] } };",
    );
    const first = await run(args);
    expect(first.output).toContain('1 written');
    const again = await run([...args, '--update=none']);
    expect([again.code, again.output.includes('1 passed')]).toEqual([0, true]);
  });
});

describe('the program that embeds the daemon', () => {
  itLong('serves its agents and ends at SIGTERM', async () => {
    const data = join(folder, 'data');
    const { PATH = '', HOME = '', NATS_BIN = '' } = process.env;
    const env = {
      PATH,
      HOME,
      ...(NATS_BIN && { NATS_BIN }),
      PARLEY_DATA: data,
      PARLEY_HTTP: 'off',
      OPENAI_API_KEY: 'none',
    };
    const child = spawn(process.execPath, ['program.mjs'], { cwd: folder, env });
    const ended = once(child, 'exit');
    try {
      await expect.poll(() => readConnectionFile(data).catch(() => null)).not.toBeNull();
      const address = await readConnectionFile(data);
      const client = await connect({ ...address, url: address?.url ?? '' });
      const { tools } = await client.request('tools', {});
      expect(tools.map(({ name, risk }) => [name, risk])).toEqual(
        expect.arrayContaining([
          ['stock', 'safe'],
          ['order', 'risky'],
        ]),
      );
      await ask(client, 'demo', 'hello', { to: ['buyer'] });
      await client.close();
    } finally {
      child.kill('SIGTERM');
    }
    expect(await ended).toEqual([0, null]);
  });
});
