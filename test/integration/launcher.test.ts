import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const made: string[] = [];

afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A package of the launcher and these files. */
async function packageOf(files: Readonly<Record<string, string>>, what?: 'a package'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-launcher-'));
  made.push(folder);
  const all = { 'package.json': '{"type":"module","version":"1.2.3"}', 'src/search/thread.ts': '', ...files };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  for (const path of ['bin/parley.js', 'bin/load.js', 'scripts/checkout.mjs', 'scripts/bundle.mjs']) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await copyFile(join(ROOT, path), join(folder, path));
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  if (what === 'a package') await rm(join(folder, 'src'), { recursive: true });
  return folder;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function launch(folder: string, node: readonly string[] = [], args = ['ls', '--json']): Promise<Ended> {
  return new Promise((resolve) => {
    const command = [...node, join(folder, 'bin/parley.js'), ...args];
    execFile(process.execPath, command, { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

/** The bundles of a checkout. */
async function bundlesOf(folder: string): Promise<string[]> {
  return (await readdir(join(folder, 'dist/run'))).filter((name) => name !== 'current.json');
}

/** A file that is too new can change without a change of its times. */
const untilNotNew = () => pause(1_100);

/** Options of Node for a clock that is a minute slow: every file counts as new, however long a start takes. */
const SLOW_CLOCK = [
  '--import',
  'data:text/javascript,const now = Date.now; Date.now = () => now() - 60_000;',
];

const SAY = 'console.log(JSON.stringify(process.argv.slice(2)));';

describe('the launcher', { timeout: 30_000 }, () => {
  it('the launcher runs the TypeScript source in a checkout', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': `import { word } from './word.ts';\nconst said: string = word;\n${SAY}\nprocess.exitCode = said.length;`,
      'src/cli/word.ts': "export const word: string = 'abc';",
      'dist/cli/main.cjs': 'throw new Error("not this one")',
    });
    expect(await launch(folder)).toEqual({ code: 3, stdout: '["ls","--json"]\n', stderr: '' });
  });

  it('the program is strict code, as the modules that it is made of', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': 'console.log((function (this: unknown) { return typeof this; })());',
    });
    expect((await launch(folder)).stdout).toBe('undefined\n');
  });

  itLong('compiled code imports modules of Node later, too', async () => {
    const folder = await packageOf({
      'src/cli/main.ts':
        "import('node:http').then(({ Agent }) => console.log(typeof Agent), ({ message }) => console.log(message));",
    });
    await untilNotNew();
    for (const start of ['the first', 'with compiled code'])
      expect([start, (await launch(folder)).stdout]).toEqual([start, 'function\n']);
  });

  it('the launcher ignores the tsconfig.json of the working directory', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': `import { ulid } from 'ulid';\nconsole.log(typeof ulid);`,
      'astray.ts': "export const ulid = 'another package';",
      'tsconfig.json': '{"compilerOptions":{"baseUrl":".","paths":{"ulid":["./astray.ts"]}}}',
    });
    expect((await launch(folder)).stdout).toBe('function\n');
  });

  it('a checkout is bundled once, and again after each change, also one that keeps size and time', async () => {
    const word = 'src/cli/word.ts';
    const folder = await packageOf({
      'src/cli/main.ts': `import { word } from './word.ts';\nconsole.log(word);`,
      [word]: "export const word: string = 'abc';",
    });
    await untilNotNew();
    expect((await launch(folder)).stdout).toBe('abc\n');
    expect((await launch(folder)).stdout).toBe('abc\n');
    expect(await bundlesOf(folder)).toHaveLength(1);

    const { atime, mtime } = await stat(join(folder, word));
    await writeFile(join(folder, word), "export const word: string = 'xyz';");
    await utimes(join(folder, word), atime, mtime);
    expect((await launch(folder)).stdout).toBe('xyz\n');
    expect(await bundlesOf(folder)).toHaveLength(2);
  });

  it('the program of a checkout does not contain the bundler, also right after it was bundled', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': `const { sharedObjects } = process.report.getReport() as unknown as { sharedObjects: string[] };
console.log(sharedObjects.length > 0, sharedObjects.filter((path) => path.includes('rolldown')).length);`,
    });
    expect(await launch(folder)).toEqual({ code: 0, stdout: 'true 0\n', stderr: '' });
    expect(await bundlesOf(folder)).toHaveLength(1);
  });

  it('a bundle of files that changed a moment ago is not used again', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': SAY });
    await launch(folder, SLOW_CLOCK);
    await launch(folder, SLOW_CLOCK);
    expect(await bundlesOf(folder)).toHaveLength(2);
  });

  it.each(['a folder', ...(hasLongTests ? ['{}', '{"name":"1"}', 'null'] : [])])(
    'a bundle that is gone is made again (current.json: %s)',
    async (current) => {
      const folder = await packageOf({ 'src/cli/main.ts': SAY });
      await untilNotNew();
      await launch(folder);
      const run = join(folder, 'dist/run');
      if (current === 'a folder')
        for (const name of await bundlesOf(folder)) await rm(join(run, name), { recursive: true });
      else await writeFile(join(run, 'current.json'), current);
      expect(await launch(folder)).toMatchObject({ code: 0, stdout: '["ls","--json"]\n' });
    },
  );

  it('a checkout keeps its last ten bundles, and those of the last hour', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': SAY });
    const old = Array.from({ length: 12 }, (_, number) => `10${number + 10}-1`);
    for (const name of old) await mkdir(join(folder, 'dist/run', name), { recursive: true });
    await launch(folder, SLOW_CLOCK); // so that each start makes a bundle
    const kept = await bundlesOf(folder);
    expect(kept.slice(0, 9)).toEqual(old.slice(3));
    const recent = Array.from({ length: 12 }, (_, number) => `${Date.now()}-${number}`);
    for (const name of recent) await mkdir(join(folder, 'dist/run', name));
    await launch(folder, SLOW_CLOCK);
    expect(await bundlesOf(folder)).toEqual(expect.arrayContaining([...kept.slice(9), ...recent]));
    expect((await bundlesOf(folder)).filter((name) => old.includes(name))).toEqual([]);
  });

  it('the launcher reports an error in the source, with file and line', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': 'const = 1;' });
    const { code, stderr } = await launch(folder);
    expect(code).toBe(1);
    expect(stderr).toContain('src/cli/main.ts:1:7');
    expect(stderr).toContain('Correct the source');
  });

  it('the launcher reports that a checkout has no development dependencies', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': SAY });
    await rm(join(folder, 'node_modules'));
    const { code, stderr } = await launch(folder);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Run `npm ci`')]);
  });

  it('the launcher reports a package that is not installed yet, and runs nothing', async () => {
    const source =
      "console.log('started');\nimport { width } from 'a-package-of-tomorrow';\nconsole.log(width);";
    const { code, stdout, stderr } = await launch(await packageOf({ 'src/cli/main.ts': source }));
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('a-package-of-tomorrow');
    expect(stderr).toContain('Run `npm ci`');
  });

  it('the launcher reports that it cannot write the bundle', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': SAY, 'dist/run': 'a file' });
    const { code, stderr } = await launch(folder);
    expect([code, stderr]).toEqual([1, expect.stringContaining('writes its bundle to dist/run')]);
  });

  it('a stack trace of --verbose names the lines of the source', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': "\n\nconst no: string = 'fails here';\nthrow new Error(no);",
    });
    const { stderr } = await launch(folder, [], ['ls', '--verbose']);
    expect(stderr).toContain(join(folder, 'src/cli/main.ts:4'));
  });

  it('--version is answered without the program', async () => {
    const folder = await packageOf({ 'src/cli/main.ts': 'throw new Error("must not be loaded")' });
    expect(await launch(folder, [], ['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
  });

  it('the launcher runs the build if there is no source', async () => {
    expect(await launch(await built(SAY))).toEqual({ code: 0, stdout: '["ls","--json"]\n', stderr: '' });
  });

  const built = (text: string) => packageOf({ 'dist/cli/main.cjs': text }, 'a package');
  const compiledIn = (folder: string) => join(folder, 'dist/cli/compiled');
  const compiledOf = async (folder: string) => {
    const [name = '', ...others] = await readdir(compiledIn(folder));
    expect(others).toEqual([]);
    return join(compiledIn(folder), name);
  };
  const texts = { one: 'console.log("one");', two: 'console.log("two");' };

  it('the next start runs the compiled code of the last one', async () => {
    const [folder, other] = await Promise.all([built(texts.one), built(texts.two)]);
    expect([(await launch(folder)).stdout, (await launch(other)).stdout]).toEqual(['one\n', 'two\n']);
    await copyFile(await compiledOf(other), await compiledOf(folder)); // V8 compares the length of the source only
    expect((await launch(folder)).stdout).toBe('two\n');
  });

  it('COMPILED-1: another source does not run compiled code, also one of the same length', async () => {
    const folder = await built(texts.one);
    await launch(folder);
    await writeFile(join(folder, 'dist/cli/main.cjs'), texts.two);
    expect((await launch(folder)).stdout).toBe('two\n');
  });

  it.each(hasLongTests ? ['', 'not compiled', 'half', 'changed'] : ['changed'])(
    'COMPILED-1: damaged compiled code is made again (%s)',
    async (how) => {
      const folder = await built(texts.one);
      await launch(folder);
      const file = await compiledOf(folder);
      const whole = await readFile(file);
      const damaged = Buffer.from(whole);
      damaged.writeUInt8(damaged.readUInt8(whole.length - 9) ^ 1, whole.length - 9);
      const half = whole.subarray(0, whole.length / 2);
      await writeFile(file, how === 'half' ? half : how === 'changed' ? damaged : how);
      expect(await launch(folder)).toEqual({ code: 0, stdout: 'one\n', stderr: '' });
      const again = await readFile(file);
      expect(again.toString('hex', 0, 20)).toBe(hash('sha1', again.subarray(20)));
      expect(again.length).toBe(whole.length);
    },
  );

  it('COMPILED-2: the program runs where compiled code cannot be written', async () => {
    const folder = await packageOf(
      { 'dist/cli/main.cjs': texts.one, 'dist/cli/compiled': 'a file' },
      'a package',
    );
    expect(await launch(folder)).toEqual({ code: 0, stdout: 'one\n', stderr: '' });
  });

  it('COMPILED-1: starts with different options of V8 do not replace the compiled code of each other', async () => {
    const folder = await built(texts.one);
    for (const options of [[], ['--stack-size=900'], []])
      expect((await launch(folder, options)).stdout).toBe('one\n');
    expect(await readdir(compiledIn(folder))).toHaveLength(2);
  });

  it('COMPILED-2: compiled code that cannot be written leaves no parts of it', async () => {
    const folder = await built(texts.one);
    await launch(folder);
    const file = await compiledOf(folder);
    await rm(file);
    await mkdir(file);
    expect(await launch(folder)).toEqual({ code: 0, stdout: 'one\n', stderr: '' });
    expect(await compiledOf(folder)).toBe(file);
  });

  it.runIf(process.getuid?.() === 0)(
    'COMPILED-3: a start by root leaves no files in the package of another user',
    async () => {
      const folder = await built(texts.one);
      await chown(join(folder, 'dist/cli'), 65_534, 65_534);
      expect((await launch(folder)).stdout).toBe('one\n');
      expect(await readdir(join(folder, 'dist/cli'))).toEqual(['main.cjs']);
    },
  );

  it('the launcher reports that there is neither source nor build', async () => {
    const { code, stderr } = await launch(await packageOf({}));
    expect(code).toBe(1);
    expect(stderr).toContain('neither src/cli nor dist/cli is there');
  });

  it.each(['18.20.4', '20.18.1'])(
    'the launcher explains on Node %s what to do before anything is loaded',
    async (version) => {
      const folder = await packageOf({
        'old.cjs': `Object.defineProperty(process.versions, 'node', { value: '${version}' });`,
        'src/cli/main.ts': 'throw new Error("must not be loaded")',
      });
      const { code, stderr } = await launch(folder, ['--require', join(folder, 'old.cjs')]);
      expect(code).toBe(1);
      expect(stderr).toContain(`parley needs Node 20.19 or later; this is ${version}.`);
    },
  );

  itLong('a command of this checkout that uses a server loads all parts of its bundle', async () => {
    const data = await mkdtemp(join(tmpdir(), 'parley-launcher-'));
    made.push(data);
    const [command, more] = [join(ROOT, 'bin/parley.js'), ['ls', '--nats', 'nats://127.0.0.1:9']];
    const outcome = await new Promise((resolve) => {
      execFile(process.execPath, [command, ...more], { cwd: data }, (error, stdout, stderr) =>
        resolve({ code: error?.code, stdout, stderr }),
      );
    });
    expect(outcome).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('127.0.0.1:9') });
  });
});
