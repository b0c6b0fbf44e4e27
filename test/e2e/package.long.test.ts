import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli, strangersEnvironment } from '../support/cli.ts';
import { linkPackage, withDaemon } from '../support/installed.ts';
import { sharedFolder } from '../support/lifetime.ts';
import { ROOT } from '../support/pages.ts';

/** The package as `npm pack` makes it, in an empty folder. Only its declared dependencies are linked, not installed. */

const NOT_SOURCE = ['node_modules', '.git', 'dist', 'data', 'coverage'];

const root = sharedFolder();
let packed: string;
let program: string;

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env: strangersEnvironment() });
  return stdout;
}

/** Packs a folder and unpacks the result as `node_modules/<name>`. */
async function install(folder: string, name: string): Promise<string> {
  const target = join(root, 'node_modules', name);
  await mkdir(target, { recursive: true });
  await run('npm', ['pack', '--silent', '--pack-destination', root], folder);
  const tarball = (await readdir(root)).find((file) => file.startsWith(`${name}-`)) ?? '';
  await run('tar', ['-xzf', join(root, tarball), '--strip-components=1', '-C', target], root);
  return target;
}

beforeAll(async () => {
  // `prepack` builds, and must not replace the build that other tests use.
  const source = join(root, 'source');
  await cp(ROOT, source, {
    recursive: true,
    filter: (path) => !NOT_SOURCE.includes(relative(ROOT, path)),
  });
  await symlink(join(ROOT, 'node_modules'), join(source, 'node_modules'));
  packed = await install(source, 'parleyd');
  await install(join(source, 'packages/create-parleyd'), 'create-parleyd');
  const { dependencies } = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(packed, 'node_modules', name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(packed, 'node_modules', name));
  }
  program = join(packed, 'bin/parley.js');
}, 300_000);

describe('the packed package', () => {
  it('the package contains every file that its package.json and its commands name', async () => {
    const { exports, bin } = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
    const named = JSON.stringify([exports, bin]).match(/(?:bin|dist|config)\/[\w./-]+/g) ?? [];
    expect(named.length).toBeGreaterThan(5);
    const files = await readdir(packed, { recursive: true });
    expect(files).toEqual(expect.arrayContaining(named));
    expect(files).toEqual(
      expect.arrayContaining(['dist/console/index.html', 'examples/team/script.yaml', 'docs/README.md']),
    );
    expect(files.filter((file) => /^(src|test|dist\/run|bench\/(?!RESULTS))/.test(file))).toEqual([]);
  });

  it('a start loads neither MCP nor ACP, which few commands and teams need', async () => {
    const dist = join(packed, 'dist');
    const daemon = (await readdir(dist)).find((file) => /^daemon-.*\.cjs$/.test(file)) ?? '';
    const loaded = new Map<string, string>();
    const load = async (file: string): Promise<void> => {
      if (loaded.has(file)) return;
      const text = await readFile(join(dist, file), 'utf8');
      loaded.set(file, text);
      for (const [, path = ''] of text.matchAll(/^const require_\S+ = require\("(\.[^"]+)"\)/gm))
        await load(join(dirname(file), path));
    };
    await load('cli/main.cjs');
    await load(daemon);
    expect(loaded.size).toBeGreaterThan(10);
    const foreign = /node_modules\/(@modelcontextprotocol|@agentclientprotocol)/;
    expect([...loaded].filter(([, text]) => foreign.test(text)).map(([file]) => file)).toEqual([]);
  });

  it('the package contains the licences of the packages that it bundles', async () => {
    const notices = await readFile(join(packed, 'dist/NOTICES.txt'), 'utf8');
    expect(notices).toMatch(/^---- openai \d[\d.]* \(Apache-2.0\) ----\n\n[\s\S]*Apache License/m);
    expect(notices).toMatch(/^---- commander \d[\d.]* \(MIT\) ----\n\n[\s\S]*TJ Holowaychuk/m);
    expect(await readFile(join(packed, 'dist/console/NOTICES.txt'), 'utf8')).toContain('---- preact ');
  });

  it('the types of the package are complete for a user, with the zod of the user', async () => {
    const home = await mkdtemp(join(root, 'types-'));
    for (const name of ['zod', '@types'])
      await symlink(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
    await writeFile(
      join(home, 'program.mts'),
      `import { createDaemon, type Config, tool } from 'parleyd';
       import { connect, type ParleyClient } from 'parleyd/client';
       import { testTeam } from 'parleyd/testing';
       import { z } from 'zod';
       const stock = tool({
         name: 'stock',
         description: 'counts',
         input: z.object({ item: z.string() }),
         run: ({ item }) => item.toUpperCase(),
       });
       // @ts-expect-error: a number
       const wrong: ParleyClient = 1;
       export const all: readonly unknown[] = [createDaemon, connect, testTeam, stock, wrong];
       export type { Config };`,
    );
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      'false',
      '--module',
      'nodenext',
      '--target',
      'es2023',
    ];
    const args = [compiler, ...options, '--types', 'node', 'program.mts'];
    await expect(run(process.execPath, args, home)).resolves.toBe('');
  });

  it('parley init, up, say and a stop work from the package', async () => {
    const home = await mkdtemp(join(root, 'home-'));
    const written = await runCli(['init', 'mine'], { program, workingDirectory: home });
    expect(written.code, written.stderr).toBe(0);
    expect(await readFile(join(home, 'mine', '.gitignore'), 'utf8')).toContain('.env');
    const env = await linkPackage(join(home, 'mine'), packed);
    const daemon = await withDaemon(join(home, 'mine'), { env, program }, async (parley) => {
      const said = await parley('say', 'c', 'Please write about our opening hours', '--wait');
      expect(said.stdout).toContain('Saturday from 10 to 14');
    });
    expect(daemon.code).toBe(0);
  });

  it('npm create parleyd writes the same files as parley init', async () => {
    const home = await mkdtemp(join(root, 'home-'));
    const create = join(root, 'node_modules/create-parleyd/create-parleyd.js');
    await run(process.execPath, [create, 'one', '--template', 'single'], home);
    await runCli(['init', 'two', '--template', 'single'], { program, workingDirectory: home });
    const files = async (name: string) => (await readdir(join(home, name), { recursive: true })).sort();
    expect(await files('one')).toEqual(await files('two'));
    const versions = ['parleyd', 'create-parleyd'].map(async (name) =>
      JSON.parse(await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8')),
    );
    const [own, other] = await Promise.all(versions);
    expect(other).toMatchObject({ version: own.version, dependencies: { parleyd: `^${own.version}` } });
  });

  it('the package runs its own team in a folder without a configuration', async () => {
    const home = await mkdtemp(join(root, 'home-'));
    const env = { PARLEY_HTTP: '127.0.0.1:0' };
    const daemon = await withDaemon(home, { env, program }, async (parley) => {
      expect((await parley('say', 'c', 'Hello!', '--wait')).stdout).toContain('I am the Project Manager');
    });
    expect(daemon.stderr).toContain('parley init');
  });
});
