import { mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../../support/lifetime.ts';
import { parley } from './support.ts';

const CHECKOUT = resolve('.');

const init = (workingDirectory: string, ...args: string[]) => parley(['init', ...args], { workingDirectory });

describe('init', () => {
  it('init writes the files that it lists and no others', async () => {
    const directory = await newFolder();
    const [written] = (await init(directory, 'a-team', '--json')).json() as [{ files: string[] }];
    const entries = await readdir(join(directory, 'a-team'), { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    expect(files.sort()).toEqual(written.files.map((file) => join(directory, 'a-team', file)).sort());
    expect(written.files).toEqual(
      expect.arrayContaining([
        '.dockerignore',
        '.env.example',
        '.gitignore',
        'Dockerfile',
        'README.md',
        'compose.yaml',
        'config/parley.yaml',
        'package.json',
      ]),
    );
  });

  it('init names the package after the folder, as npm accepts it', async () => {
    const directory = await newFolder();
    await init(directory, 'My Team!');
    const text = await readFile(join(directory, 'My Team!', 'package.json'), 'utf8');
    expect(JSON.parse(text).name).toBe('my-team-');
  });

  it('INIT-1: init refuses a folder with other files, lists them and writes nothing', async () => {
    const directory = await newFolder({ 'notes.txt': 'mine', 'README.md': 'mine' });
    const ran = await init(directory);
    expect(ran.code).toBe(2);
    expect(ran.err).toContain('is not empty: README.md, notes.txt');
    expect(ran.err).toContain('parley init NEW_FOLDER');
    expect((await readdir(directory)).sort()).toEqual(['README.md', 'notes.txt']);
  });

  it('init of a checkout names the build, which programs and tests of the project need, before the installation', async () => {
    const directory = await newFolder();
    const { out } = await init(directory, 'a-team');
    const steps = out.split('\n').filter((line) => line.startsWith('  '));
    const build = `  npm --prefix ${CHECKOUT} run build`;
    expect(steps.slice(0, 3)).toEqual([build, '  cd a-team', '  npm install']);
    const { dependencies } = JSON.parse(await readFile(join(directory, 'a-team', 'package.json'), 'utf8'));
    expect(dependencies).toEqual({ parleyd: `file:${CHECKOUT}` });
  });

  it('INIT-1: init keeps what npm wrote into package.json, and adds the scripts and the dependency that it lacks', async () => {
    const mine = { name: 'mine', scripts: { test: 'mine' } };
    const directory = await newFolder({ 'package.json': JSON.stringify(mine), 'parleyd-0.1.0.tgz': '' });
    await mkdir(join(directory, 'node_modules'));
    const ran = await init(directory);
    expect(ran.code).toBe(0);
    expect(ran.out).toContain('  npm install\n  npm start\n');
    expect(JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'))).toEqual({
      name: 'mine',
      scripts: { start: 'exec parley up', parley: 'exec parley', test: 'mine' },
      dependencies: { parleyd: `file:${CHECKOUT}` },
      allowScripts: { esbuild: true },
    });
    expect((await init(directory)).code).toBe(2);
  });

  it('init refuses a file in the place of the folder', async () => {
    const directory = await newFolder({ there: 'a file' });
    const ran = await init(directory, 'there');
    expect(ran.code).toBe(2);
    expect(ran.err).toContain('is not a folder that can be read');
  });

  it('init says which folder cannot be written', async () => {
    const directory = await newFolder();
    await symlink('/none/at/all', join(directory, 'link'));
    const ran = await init(directory, 'link');
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('link cannot be written: E')]);
  });

  it('init that cannot write everything leaves nothing, so that it can run again', async () => {
    const directory = await newFolder();
    await symlink('/none/package.json', join(directory, 'package.json'));
    const ran = await init(directory);
    expect(ran.code).toBe(2);
    expect(ran.err).toContain(`${directory} cannot be written`);
    expect(await readdir(directory)).toEqual(['package.json']);
  });

  it('init refuses a template that does not exist and names those that do', async () => {
    const ran = await init(await newFolder(), '--template', 'swarm');
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(/team, single, workflow, support/);
  });
});

describe('up without a configuration', () => {
  const terminal = (answer: string) => {
    const stderr = new PassThrough();
    let text = '';
    stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const io = {
      stdin: Object.assign(Readable.from(answer === '' ? [] : [answer]), { isTTY: true }),
      stderr: Object.assign(stderr, { isTTY: true }),
    };
    return { io, shown: () => text };
  };
  // The test ends where the configuration is loaded.
  const up = async (workingDirectory: string, answer: string, ...args: string[]) => {
    const { io, shown } = terminal(answer);
    const { code } = await parley(['up', ...args], { workingDirectory, io });
    return { code, shown: shown(), files: await readdir(workingDirectory) };
  };

  it('up on a terminal in an empty folder asks, and writes a team after yes', async () => {
    const { shown, files } = await up(await newFolder(), '\n');
    expect(shown).toContain('is empty. Write a team of your own there? [Y/n]');
    expect(files).toContain('config');
    expect(shown).toContain(`npm --prefix ${CHECKOUT} run build`);
  });

  it.each(['n\n', 'no\n'])('up on a terminal writes nothing after the answer %j', async (answer) => {
    const { shown, files } = await up(await newFolder(), answer);
    expect(shown).toContain('[Y/n]');
    expect(files).toEqual([]);
  });

  it('up ends with 2 when the question is not answered', async () => {
    const { code, shown, files } = await up(await newFolder(), '');
    expect(code).toBe(2);
    expect(shown).toContain('the question was not answered');
    expect(files).toEqual([]);
  });

  it('up does not ask in a folder with files, or when a configuration is named', async () => {
    const used = await up(await newFolder({ 'mine.txt': '' }), '\n');
    expect(used).toMatchObject({ shown: expect.not.stringContaining('[Y/n]'), files: ['mine.txt'] });
    const named = await up(await newFolder(), '\n', '--config', 'conf');
    expect(named).toMatchObject({ shown: expect.not.stringContaining('[Y/n]'), files: [] });
  });

  it('up does not ask without a terminal', async () => {
    const directory = await newFolder();
    const ran = await parley(['up'], { workingDirectory: directory });
    expect(ran.err).not.toContain('[Y/n]');
    expect(await readdir(directory)).toEqual([]);
  });
});
