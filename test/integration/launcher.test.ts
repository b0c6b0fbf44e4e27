import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const made: string[] = [];

afterEach(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A package of the launcher and these files. */
async function packageOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-launcher-'));
  made.push(folder);
  const all = { 'package.json': '{"type":"module"}', ...files };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  await mkdir(join(folder, 'bin'));
  await copyFile(join(ROOT, 'bin/parley.js'), join(folder, 'bin/parley.js'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function launch(folder: string, node: readonly string[] = []): Promise<Ended> {
  return new Promise((resolve) => {
    const command = [...node, join(folder, 'bin/parley.js'), 'ls', '--json'];
    execFile(process.execPath, command, { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

const SAY = 'console.log(JSON.stringify(process.argv.slice(2)));';

describe('the launcher', { timeout: 30_000 }, () => {
  it('the launcher runs the TypeScript source in a checkout', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': `import { word } from './word.ts';\nconst said: string = word;\n${SAY}\nprocess.exitCode = said.length;`,
      'src/cli/word.ts': "export const word: string = 'abc';",
      'dist/cli/main.js': 'throw new Error("not this one")',
    });
    expect(await launch(folder)).toEqual({ code: 3, stdout: '["ls","--json"]\n', stderr: '' });
  });

  it('the launcher ignores the tsconfig.json of the working directory', async () => {
    const folder = await packageOf({
      'src/cli/main.ts': `import { ulid } from 'ulid';\nconsole.log(typeof ulid);`,
      'astray.ts': "export const ulid = 'another package';",
      'tsconfig.json': '{"compilerOptions":{"baseUrl":".","paths":{"ulid":["./astray.ts"]}}}',
    });
    expect((await launch(folder)).stdout).toBe('function\n');
  });

  it('the launcher runs the build if there is no source', async () => {
    const folder = await packageOf({ 'dist/cli/main.js': SAY });
    expect(await launch(folder)).toEqual({ code: 0, stdout: '["ls","--json"]\n', stderr: '' });
  });

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
});
