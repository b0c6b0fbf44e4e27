import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { launcher, runCli, strangersEnvironment } from '../support/cli.ts';
import { linkPackage } from '../support/installed.ts';
import { folderPerTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { type Block, blocksOf, readPage } from '../support/pages.ts';
import { hasLongTests } from '../support/runs.ts';

/**
 * The README, an example and the tutorial, as a reader follows them: files are created, commands are run in order,
 * and their output is compared with the page. `…` in the page matches any text.
 */

const PATIENCE_MS = 30_000;
const hasPython = spawnSync('python3', ['--version']).status === 0;
const readme = blocksOf(await readPage('README.md')).filter(({ language }) => /^(sh|text)$/.test(language));
const team = blocksOf(await readPage('examples/team/README.md'));
const tutorialPages = ['your-first-team', 'programs-and-a-python-agent', 'look-inside'];
const tutorial = (
  await Promise.all(tutorialPages.map((name) => readPage(`docs/tutorial/${name}.md`)))
).flatMap(blocksOf);

const home = folderPerTest();
/** The first commands of each terminal. */
let setUp: string;
/** Programs that run in their own terminals, by the terminal's name. */
const terminals = new Map<string, ChildProcess>();
/** The newest id of an approval that a command printed. */
let approval = '';

afterEach(async () => {
  for (const name of terminals.keys()) await leave(name);
});

function shell(script: string): ChildProcess {
  // Without npm's variables, which change how `parley` suggests commands.
  const entries = Object.entries(strangersEnvironment()).filter(([name]) => !name.startsWith('npm_'));
  const env = { ...Object.fromEntries(entries), HOME: home, PARLEY_HTTP: '127.0.0.1:0' };
  const options = { cwd: dirname(dirname(launcher)), env, detached: true };
  return spawn('bash', ['-c', `set -e\n${setUp}\n${script}`], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Collects the output of a program, errors included, as a terminal shows it. */
function output(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  return () => text;
}

async function run(script: string): Promise<string> {
  const child = shell(script);
  const text = output(child);
  const [code] = await once(child, 'close');
  expect(code, `${script}\n${text()}`).toBe(0);
  return text();
}

async function start(name: string, script: string): Promise<void> {
  await leave(name);
  const child = shell(script);
  terminals.set(name, child);
  const text = output(child);
  await expect.poll(text, { timeout: PATIENCE_MS }).toMatch(/Parley is up|^ready$/m);
}

/** Ctrl-C: the whole group of the terminal gets the signal. */
async function leave(name: string): Promise<void> {
  const child = terminals.get(name);
  terminals.delete(name);
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  process.kill(-child.pid, 'SIGINT');
  await closed;
}

/** The text as a pattern with `…` for anything, and with any space at the ends of lines. */
function pattern(shown: string): RegExp {
  const lines = shown.trimEnd().split('\n');
  const escaped = lines.map((line) =>
    line
      .trimEnd()
      .split('…')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
      .join('[\\s\\S]*?'),
  );
  return new RegExp(`^${escaped.join('\\s*\\n')}\\s*$`);
}

async function follow(block: Block, shown: string | undefined): Promise<void> {
  const terminal = /^terminal=(\w+)$/.exec(block.title)?.[1];
  if (terminal) return start(terminal, block.text);
  const command = block.text.replaceAll('APPROVAL_ID', approval);
  // A command that only reads may run before the agents are done; until then the file may not be there.
  const isReading = shown !== undefined && /^(cat|parley show) /.test(command);
  const tried = isReading ? `${command.trimEnd()} || true` : command;
  let printed = await run(tried);
  if (isReading)
    for (const end = Date.now() + PATIENCE_MS; !pattern(shown).test(printed) && Date.now() < end; )
      printed = await run(tried);
  approval = /^(\S+) {2}\S+ {2}.*wants to call/m.exec(printed)?.[1] ?? approval;
  if (shown !== undefined) expect(printed).toMatch(pattern(shown));
}

/** In the folder of the package, as in a checkout. */
const IN_CHECKOUT = `export PARLEY_DATA="$HOME/data"\nparley() { node "$PWD/bin/parley.js" "$@"; }`;

/** Creates the files and runs the commands of a page, in its order. */
async function followAll(blocks: readonly Block[], folder: string): Promise<void> {
  for (const [at, block] of blocks.entries()) {
    const file = /^title=(\S+)$/.exec(block.title)?.[1];
    const next = blocks[at + 1];
    if (file) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), block.text);
    } else if (block.language === 'sh')
      await follow(block, next?.language === 'text' && next.title === '' ? next.text : undefined);
  }
}

async function emptyFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  return path;
}

describe('a reader who follows a page', { timeout: 300_000 }, () => {
  it('the README shows the first conversation of a project of parley init as it is', async () => {
    const project = join(home, 'my-team');
    expect(await runCli(['init'], { workingDirectory: await emptyFolder(project) })).toMatchObject({
      code: 0,
    });
    await linkPackage(project, dirname(dirname(launcher)));
    setUp = 'cd ~/my-team\nPATH="$PWD/node_modules/.bin:$PATH"'; // npm takes half a second for each command
    const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
    await start('daemon', scripts.start);
    expect(readme.filter(({ language }) => language === 'sh')).toHaveLength(2);
    await followAll(readme, home);
  });

  itLong('the example page shows its team as it works', async () => {
    setUp = IN_CHECKOUT;
    const data = join(home, 'data');
    const blocks = team.map(({ text, ...block }) => ({
      ...block,
      // Two agents answer concurrently, in any order.
      text: text.replaceAll('/tmp/parley-team', data).replace(/^\[dev\] One.*\n\[qa\] First.*$/m, '…'),
    }));
    expect(blocks.filter(({ language }) => language === 'sh')).toHaveLength(4);
    await followAll(blocks, home);
  });

  it.runIf(hasPython && hasLongTests)(
    'the tutorial builds its team from the first command to the last',
    async () => {
      const [first, second, ...rest] = tutorial;
      expect(first?.text).toContain('npm install parleyd');
      setUp = second?.text ?? ''; // The page says that each terminal needs these lines.
      expect(setUp).toContain('parley() {');
      const folder = await emptyFolder(join(home, 'first-team'));
      await linkPackage(folder, dirname(dirname(launcher)));
      await followAll(rest, folder);
      expect(tutorial.filter(({ language }) => language === 'sh').length).toBeGreaterThan(10);
      expect(approval).not.toBe('');
      expect(await readFile(join(folder, 'notes.md'), 'utf8')).toContain('sorted by the date');
    },
  );
});
