import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { signalGroup } from '../../src/tools/processes.ts';
import { launcher, runCli, strangersEnvironment } from '../support/cli.ts';
import { linkPackage, withDaemon } from '../support/installed.ts';
import { sharedFolder } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { isAlive } from '../support/mcp-tools.ts';
import { blocksOf } from '../support/pages.ts';
import { hasLongTests } from '../support/runs.ts';
import { hasPython } from '../support/terminal.ts';

/** Each template as a user gets it: written by `parley init`, with the package linked where `npm install` puts it. */

const ANSWERS = {
  team: ['hours', 'Please write about our opening hours', 'Saturday from 10 to 14'],
  single: ['hours', 'What are your opening hours?', 'Saturday from 10 to 14'],
  workflow: ['news', 'Hello', 'Start the workflow article'],
  support: ['ann', 'Where is order 1002?', 'two cups for 18 euros'],
} as const;

const root = sharedFolder();

const templates = Object.entries(ANSWERS).filter(([name]) => hasLongTests || name === 'team');

describe.each(templates)('the template %s', (template, [conversation, question, answer]) => {
  const project = join(root, template);
  let env: Record<string, string>;
  beforeAll(async () => {
    const written = await runCli(['init', template, '--template', template], { workingDirectory: root });
    expect(written.code, written.stderr).toBe(0);
    env = await linkPackage(project, dirname(dirname(launcher)));
  });

  itLong(`the template ${template} starts offline and answers`, async () => {
    const variables = join(project, '.env');
    await writeFile(variables, 'PARLEY_LIMITS_TURN_SECONDS=600\nUNUSED=x\n');
    const daemon = await withDaemon(project, { env }, async (parley) => {
      const said = await parley('say', conversation, question, '--wait');
      expect(said.stdout).toContain(answer);
      const checks = (await parley('doctor', '--json')).json();
      expect(checks.find(({ name }) => name === 'variables').message).toMatch(
        /\/\.env sets PARLEY_LIMITS_TURN_SECONDS$/,
      );
      const { status, message } = checks.find(({ name }) => name === 'configuration');
      const [, ...notices] = message.split('\n');
      expect({ status, notices }).toEqual({
        status: 'ok',
        notices: [expect.stringContaining('OPENAI_API_KEY')],
      });
    });
    expect(daemon.code).toBe(0);
  });

  it.runIf(template === 'team')(
    'says of a request from files alone that functions are not loaded',
    async () => {
      await withDaemon(project, { env }, async (parley) => {
        await parley('say', 'files', 'Hello', '--wait');
        const explained = await parley('explain', 'files', '--agent', 'lead', '--data', 'data', '--json');
        expect(JSON.parse(explained.stdout).report).toMatchObject({
          tools_missing: ['notes'],
          note: expect.stringContaining('functions'),
        });
      });
    },
  );

  it.runIf(template === 'team')('SIGTERM for `npm start` stops the daemon', async () => {
    const scriptsOf = async (folder: string) =>
      JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).scripts;
    // As npm does: it starts a shell, and passes signals on to that process alone.
    const daemon = spawn('/bin/sh', ['-c', (await scriptsOf(project)).start], {
      cwd: project,
      env: { ...strangersEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const closed = once(daemon, 'close');
    let output = '';
    daemon.stdout.on('data', (chunk) => {
      output += chunk;
    });
    try {
      await expect.poll(() => output).toContain('Parley is up');
      const pid = Number(/process (\d+)/.exec(output)?.[1]);
      daemon.kill('SIGTERM');
      await expect.poll(() => isAlive(pid)).toBe(false);
    } finally {
      if (daemon.pid !== undefined) signalGroup(daemon.pid, 'SIGTERM');
      await closed;
    }
    const ofCheckout = await scriptsOf(dirname(dirname(launcher)));
    for (const script of [ofCheckout.start, ofCheckout.parley]) expect(script).toMatch(/^exec /);
  });

  itLong(`the test of the template ${template} passes`, async () => {
    const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
    const options = { cwd: project, env: { ...strangersEnvironment(), ...env }, timeout: 90_000 };
    const ran = await promisify(execFile)('bash', ['-c', scripts.test], options).catch((error) => error);
    expect(ran.stdout).toMatch(/^# pass [1-9]/m);
    expect(ran.stdout).toMatch(/^# fail 0$/m);
  });

  it(`the README of the template ${template} has at most 40 lines, and the named schema and documents exist`, async () => {
    const readme = await readFile(join(project, 'README.md'), 'utf8');
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
    expect(blocksOf({ path: 'README.md', text: readme }).length).toBeGreaterThan(1);
    const yaml = await readFile(join(project, 'config', 'parley.yaml'), 'utf8');
    const schema = /\$schema=(\S+)/.exec(yaml)?.[1] ?? '';
    const schemaText = await readFile(join(project, 'config', schema), 'utf8');
    expect(JSON.parse(schemaText).properties).toHaveProperty('models');
    const named = [...readme.matchAll(/`((?:config|tools|notes|programs)\/[\w./-]*)`/g)].map(
      ([, file]) => file,
    );
    expect(named.length).toBeGreaterThan(3);
    for (const file of named) await stat(join(project, file ?? ''));
  });

  const programs = [
    ['JavaScript', process.execPath, 'programs/counter.mjs', true],
    ['Python', 'python3', 'programs/counter.py', hasPython],
  ] as const;
  it.each(programs.filter(([, , , isThere]) => isThere && template === 'team' && hasLongTests))(
    'the agent of the template team in %s answers a turn',
    async (_, command, file) => {
      await withDaemon(project, { env }, async (parley) => {
        const program = spawn(command, [file], {
          cwd: project,
          env: { ...strangersEnvironment(), PYTHONDONTWRITEBYTECODE: '1' },
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const exited = once(program, 'exit');
        try {
          expect(String(await once(program.stdout, 'data'))).toContain('ready');
          const said = await parley('say', 'words', '@counter One two. Three four five!', '--wait');
          expect(said.stdout).toContain('5 words in 2 sentences.');
          expect((await parley('agents')).stdout).toMatch(/counter .* idle/);
        } finally {
          program.kill('SIGTERM');
          await exited;
        }
      });
    },
  );
});
