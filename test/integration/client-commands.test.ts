import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { realDependencies } from '../../src/cli/io.ts';
import { parley, type Ran, type Running, start } from '../unit/cli/support.ts';

/** The commands against a running daemon with a scripted model and its own nats-server. */

const PARLEY_YAML = `models:
  default: { provider: scripted, script: script.yaml }
`;
const SCRIPT = `rules:
  - when: { last: "break" }
    reply: { text: "Half an answer", error: { code: PROVIDER_ERROR, message: "it broke", afterText: true } }
  - reply: { text: "Noted: {{last}}, said slowly enough to be streamed", delayMs: 5 }
`;

let directory: string;
let daemon: Running;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-commands-'));
  await mkdir(join(directory, 'config', 'agents'), { recursive: true });
  await writeFile(join(directory, 'config', 'parley.yaml'), PARLEY_YAML);
  await writeFile(join(directory, 'config', 'script.yaml'), SCRIPT);
  await writeFile(
    join(directory, 'config', 'agents', 'pm.md'),
    '---\nname: Project Manager\n---\nYou plan.\n',
  );
  await writeFile(join(directory, 'config', 'agents', 'dev.md'), '---\nname: Developer\n---\nYou build.\n');
  daemon = start(['up', '--json', '--http', 'off'], options());
  await vi.waitFor(() => expect(daemon.output()).toContain('"event":"ready"'), { timeout: 30_000 });
});
afterAll(async () => {
  daemon.signal('SIGTERM');
  expect((await daemon.done).code).toBe(0);
  await rm(directory, { recursive: true, force: true });
});

const options = () => ({
  dependencies: realDependencies(),
  env: { PARLEY_NATS_URL: '', NATS_BIN: process.env.NATS_BIN ?? '', PATH: process.env.PATH },
  workingDirectory: directory,
});
const command = (...argv: string[]): Promise<Ran> => parley(argv, options());

describe('the commands on a running daemon', () => {
  it('the commands agree on what is in a conversation', async () => {
    expect((await command('say', 'demo', 'a plan', '--wait')).out).toBe(
      'Noted: a plan, said slowly enough to be streamed\n',
    );
    const both = await command('say', 'demo', '@pm @dev hello', '--wait');
    expect(both.code).toBe(0);
    expect(both.out.split('\n').filter((line) => /^\[(pm|dev)\] Noted: /.test(line))).toHaveLength(2);

    const shown = (await command('show', 'demo', '--json')).json() as { index: number }[];
    expect(shown.map(({ index }) => index)).toEqual(shown.map((_, place) => place));
    expect((await command('ls', '--json')).json()).toMatchObject([{ id: 'demo', length: shown.length }]);
    const agents = (await command('agents', '--json')).json() as { slug: string }[];
    expect(agents.map(({ slug }) => slug)).toEqual(['dev', 'pm']);
  });

  it('a post with the same id is appended once', async () => {
    const answers = [];
    for (let time = 0; time < 3; time++)
      answers.push(...(await command('say', 'once', 'hi', '--id', 'x', '--json')).json());
    expect(answers).toMatchObject([
      { index: 0, duplicate: false },
      { index: 0, duplicate: true },
      { index: 0, duplicate: true },
    ]);
  });

  it('explain prints the same with a daemon and without', async () => {
    await command('say', 'why', 'a question', '--wait');
    const online = await command('explain', 'why', '--agent', 'dev', '--json');
    const offline = await command('explain', 'why', '--agent', 'dev', '--data', 'data', '--json');
    expect(online.code).toBe(0);
    expect(online.json()).toMatchObject([{ messages: expect.any(Array), report: expect.any(Object) }]);
    expect(offline.json()).toEqual(online.json());
  });

  it('say --wait fails with the turn that failed', async () => {
    const ran = await command('say', 'bad', 'break', '--wait');
    expect(ran.code).toBe(1);
    expect(ran.out).toContain('✗ PROVIDER_ERROR');
  });

  it('commands switch phase and mode, stop, resume and delete', async () => {
    await command('say', 'switch', 'hi', '--wait');
    expect((await command('phase', 'switch', 'plan')).out).toContain('phase plan');
    expect((await command('mode', 'switch', 'agent', '--agent', 'dev')).out).toContain('dev has the floor');
    expect((await command('stop', 'switch')).code).toBe(0);
    expect((await command('say', 'switch', 'anyone?', '--wait')).err).toContain('dev is stopped');
    const answered = start(['tail', 'switch'], options());
    expect((await command('resume', 'switch')).code).toBe(0);
    await expect.poll(answered.output).toContain('Noted: anyone?');
    answered.signal('SIGINT');
    expect((await answered.done).code).toBe(0);
    expect((await command('rm', 'switch', '--json')).json()).toMatchObject([
      { deleted: true, existed: true },
    ]);
    const again = await command('rm', 'switch');
    expect([again.code, again.out]).toEqual([0, 'no conversation "switch"\n']);
    expect((await command('show', 'switch')).code).toBe(1);
  });

  it('commands report what the daemon refuses', async () => {
    const unknown = (await command('say', 'c', 'x', '--to', 'ghost', '--json')).json();
    expect(unknown).toMatchObject([{ error: { code: 'UNKNOWN_AGENT' } }]);
    expect((await command('phase', 'demo', 'nowhere')).err).toMatch(/^parley: .*\n {2}/);
  });

  it('chat works with piped input', async () => {
    const ran = await parley(['chat', 'piped'], { ...options(), stdin: 'one\ntwo\n' });
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(ran.out.match(/^\S.*: Noted: (one|two),/gm)).toHaveLength(2);
  });

  it('a second daemon on the same data is refused, and the first continues', async () => {
    const second = await command('up', '--json', '--http', 'off');
    expect(second.code).toBe(1);
    expect(second.json()).toMatchObject([{ error: { code: 'DATA_DIRECTORY_IN_USE' } }]);
    expect((await command('doctor', '--json')).json()).toContainEqual(
      expect.objectContaining({ name: 'daemon', status: 'ok' }),
    );
  });
});
