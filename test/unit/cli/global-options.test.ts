import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { DaemonModule } from '../../../src/cli/io.ts';
import { createProgram } from '../../../src/cli/program.ts';
import { ParleyError } from '../../../src/client/index.ts';
import type { Config } from '../../../src/config/index.ts';
import { sharedFolder } from '../../support/lifetime.ts';
import { parley, type Ran } from './support.ts';

/** Each command as it can be typed. Add a line here for a new command. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  init: ['project'],
  up: [],
  chat: ['c'],
  say: ['c', 'hi'],
  run: ['ship', 'hi'],
  ls: [],
  show: ['c'],
  tail: ['c'],
  file: ['c', '0a1b2c', '--out', '-'],
  acp: [],
  explain: ['c', '--agent', 'pm'],
  fork: ['c', '--as', 'd'],
  hire: ['c', 'scout', '--persona-file', 'p.md'],
  dismiss: ['c', 'scout'],
  reload: [],
  join: ['dev', '--command', 'x', '--cwd', '/'],
  mcp: ['login', 'web'],
  'what-if': ['c', '--list'],
  phase: ['c', 'plan'],
  mode: ['c', 'agent'],
  stop: ['c'],
  resume: ['c'],
  approvals: [],
  approve: ['a'],
  deny: ['a'],
  resolve: ['a', '--rerun'],
  rm: ['c'],
  record: ['c'],
  search: ['word'],
  turns: [],
  feedback: ['c', '2', 'up'],
  status: [],
  agents: [],
  dead: ['show', '1'],
  token: [],
  completion: ['bash'],
  doctor: [],
  backup: ['copy'],
  fsck: [],
  export: ['c'],
  import: ['file', '--conversation', 'c'],
  migrate: ['--from', 'file', '--to', 'jetstream'],
  'nats-config': ['file'],
};

const program = createProgram(
  { stdout: process.stdout, stderr: process.stderr } as unknown as Parameters<typeof createProgram>[0],
  () => async () => {},
);
const OPTIONS = program.options
  .map((option) => option.long ?? '')
  .filter((flag) => !['--version', '--json', '--verbose'].includes(flag));

/** Other options that some options require. */
const WITH: Readonly<Record<string, readonly string[]>> = {
  '--nats-password': ['--nats-user', 'ann'],
  '--nats-password-file': ['--nats-user', 'ann'],
  '--nats-tls-cert': ['--nats-tls-key', '/key'],
  '--nats-tls-key': ['--nats-tls-cert', '/cert'],
};

const directory = sharedFolder();
beforeAll(async () => {
  await writeFile(join(directory, 'marked'), 'marked');
});

/** What a command passed on before the first thing that it needed failed. */
async function tried(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Ran & { seen: string }> {
  const seen: unknown[] = [];
  const stop = async (...given: unknown[]): Promise<never> => {
    seen.push(given);
    throw new ParleyError('STOPPED', 'this test goes no further');
  };
  const room = new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : stop) }) as DaemonModule;
  const configured = async () => ({ replicas: null }) as Config;
  const loadConfig = argv[0] === 'migrate' ? configured : stop;
  const dependencies = { connect: stop, loadConfig, daemon: async () => room };
  const ran = await parley([...argv], { dependencies, env });
  return { ...ran, seen: `${JSON.stringify(seen)}${ran.out}${ran.err}` };
}

describe('every command applies or refuses each global option', () => {
  it('each command has a test of its global options', () => {
    expect(program.commands.map((command) => command.name()).sort()).toEqual(Object.keys(COMMANDS).sort());
  });

  it.each(Object.entries(COMMANDS))('%s applies or refuses each global option', async (name, words) => {
    const ignored: string[] = [];
    for (const flag of OPTIONS) {
      const value =
        flag === '--nats' ? 'nats://marked:1' : flag === '--prefix' ? 'marked' : join(directory, 'marked');
      const server = flag.startsWith('--nats-') && name !== 'up' ? ['--nats', 'nats://x:1'] : [];
      const env = flag === '--data' && name !== 'migrate' ? { PARLEY_NATS_URL: '' } : {};
      const argv = [name, ...words, flag, value, ...(WITH[flag] ?? [])];
      const ran = await tried(argv, env);
      const isRefused = ran.code === 2 && ran.err.includes('has no effect here') && ran.err.includes('\n  ');
      if (isRefused) continue;
      const known = await tried([...argv, ...server], env);
      if (!known.seen.includes('marked')) ignored.push(`${flag}: ${known.seen}`);
    }
    expect(ignored).toEqual([]);
  });

  it.each(Object.entries(COMMANDS))(
    '%s applies both a server and a data directory, or refuses one',
    async (name, words) => {
      const server = 'nats://server-that-is-named:1';
      const data = ['--data', join(directory, 'marked')];
      const ways: [string[], Record<string, string>][] = [
        [[name, ...words, ...data, '--nats', server], {}],
        [[name, ...words, ...data], { PARLEY_NATS_URL: server }],
        [[name, ...words, ...data], { PARLEY_NATS: server }],
      ];
      for (const [argv, env] of ways) {
        const ran = await tried(argv, env);
        if (ran.code === 2 && /has no effect here|exclude each other/.test(ran.err)) continue;
        const isUsed = env.PARLEY_NATS_URL === undefined && env.PARLEY_NATS === undefined;
        expect(ran.seen, argv.join(' ')).toContain('marked');
        if (isUsed) expect(ran.seen, argv.join(' ')).toContain('server-that-is-named');
      }
    },
  );

  it.each([
    [['nats-config', 'file', '--data', 'd'], '--data has no effect here', 'leave it out'],
    [['up', '--prefix', 'team'], '--prefix has no effect here', 'subjectPrefix'],
    [['fsck', '--nats-user', 'ann'], '--nats-user has no effect here', '--data'],
    [['explain', 'c', '--agent', 'pm', '--config', 'f'], '--config has no effect here', 'add --data'],
    [
      ['explain', 'c', '--agent', 'pm', '--data', 'd', '--prefix', 'p'],
      '--prefix has no effect here',
      'leave',
    ],
    [
      ['ls', '--data', 'd', '--nats', 'nats://x:1'],
      '--data has no effect here',
      'leave it out: --nats names the server',
    ],
    [
      ['migrate', '--from', 'jetstream', '--to', 'file:a', '--nats', 'nats://x:1', '--config', 'c'],
      '--config has no effect here',
      'leave it out: files have no replicas',
    ],
    [
      ['migrate', '--from', 'file:a', '--to', 'jetstream', '--nats', 'nats://x:1', '--data', 'd'],
      '--data has no effect here',
      'file:a names the data directory',
    ],
  ])('%j is refused with what to do', async (argv, message, hint) => {
    const ran = await tried(argv, {});
    expect([ran.code, ran.out]).toEqual([2, '']);
    expect(ran.err).toContain(message);
    expect(ran.err).toContain(hint);
  });

  it.each(['PARLEY_NATS', 'PARLEY_NATS_URL'])(
    '--data is refused if %s names the server',
    async (variable) => {
      const ran = await tried(['show', 'c', '--data', 'd'], { [variable]: 'nats://x:1' });
      expect([ran.code, ran.out]).toEqual([2, '']);
      expect(ran.err).toContain('--data has no effect here');
      expect(ran.err).toContain(`unset ${variable}`);
    },
  );
});
