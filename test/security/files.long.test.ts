import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { untilTestEnds } from '../support/lifetime.ts';
import { openProject, type Project } from '../support/project.ts';
import { on } from '../support/route-rules.ts';

/** Another user of this machine reads files of Parley, locks them, or changes the configuration. */

const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0;

let project: Project;
let umask: number;
beforeEach(async () => {
  umask = process.umask(0o000); // the most permissive umask
  project = untilTestEnds(
    await openProject({
      agents: { lead: '---\nname: Lead\ndescription: leads\ntools: [fs_list]\n---\nYou lead.' },
      script: [
        on('/list the files/', { tool_calls: [{ name: 'fs_list', arguments: { path: '@project' } }] }),
        { reply: { text: 'Done.' } },
      ],
    }),
  );
  await chmod(project.root, 0o755);
  await chmod(project.config, 0o755);
});
afterEach(() => void process.umask(umask));

/** Every path below `folder` with its mode, including the folder. */
async function modesOf(folder: string): Promise<Map<string, number>> {
  const found = new Map([['', (await lstat(folder)).mode & 0o777]]);
  for (const name of await readdir(folder, { recursive: true }))
    found.set(name, (await lstat(join(folder, name))).mode & 0o777);
  return found;
}

const open = (modes: ReadonlyMap<string, number>) =>
  [...modes].filter(([, mode]) => (mode & 0o077) !== 0).map(([name, mode]) => `${name} ${mode.toString(8)}`);

async function converse(): Promise<void> {
  expect((await project.parley('say', 'demo', 'list the files', '--wait')).code).toBe(0);
}

/** Holds a shared lock on the file until it is ended. Returns which accesses succeeded. */
async function lockShared(path: string, user?: number): Promise<{ said: string; holder: ChildProcess }> {
  const program = [
    'import fcntl, struct, sys, time',
    'try:',
    '    file = open(sys.argv[1])',
    '    fcntl.fcntl(file, 37, struct.pack("hhlli", fcntl.F_RDLCK, 0, 0, 0, 0))',
    '    print("locked", flush=True)',
    '    time.sleep(600)',
    'except OSError as error:',
    '    print(error.strerror, flush=True)',
  ];
  const who = user === undefined ? {} : { uid: user, gid: user };
  const holder = spawn('python3', ['-c', program.join('\n'), path], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...who,
  });
  project.defer(() => holder.kill('SIGKILL'));
  const [said] = await once(createInterface({ input: holder.stdout as NodeJS.ReadableStream }), 'line');
  return { said, holder };
}

describe('the files of a daemon', () => {
  it('files are closed to other users with any umask, including logs, audit and the server', async () => {
    const daemon = await project.up();
    await converse();
    const modes = await modesOf(project.data);
    expect([...modes.keys()]).toEqual(
      expect.arrayContaining([
        ...['', 'LOCK', 'connection.json', 'nats/user.nk', 'nats/nats-server.log'],
        ...['conversations/demo/log.jsonl', 'conversations/demo/audit.jsonl'],
      ]),
    );
    expect(open(modes)).toEqual([]);
    await daemon.stop();
    const left = await modesOf(project.data);
    expect([...left.keys()]).toEqual(expect.arrayContaining(['conversations/index.json', 'ingress.json']));
    expect(open(left)).toEqual([]);
  });

  it('files of an older version are closed at the next start', async () => {
    await (await project.up()).stop();
    await mkdir(join(project.data, 'conversations', 'old', 'outputs'), { recursive: true });
    await writeFile(join(project.data, 'conversations', 'old', 'audit.jsonl'), '');
    await writeFile(join(project.data, 'conversations', 'old', 'outputs', 'x.json'), '{}');
    for (const [name] of await modesOf(project.data)) {
      const path = join(project.data, name);
      await chmod(path, (await lstat(path)).isDirectory() ? 0o755 : 0o644);
    }
    await project.up();
    expect(open(await modesOf(project.data))).toEqual([]);
  });

  it('files are closed and checked under every name in docs/spec/storage.md, with the folder that contains them', async () => {
    await (await project.up()).stop();
    const table = await readFile(new URL('../../docs/spec/storage.md', import.meta.url), 'utf8');
    const files = table
      .split(/^## /m)
      .filter((section) => /^(?:Files|Other files of the daemon)\n/.test(section))
      .join('');
    const names = [...files.matchAll(/^\| `([\w.-]+)`(?:, | \|)/gm)].map(([, name = '']) => name);
    expect(names).toEqual(expect.arrayContaining(['http-token', 'accepted-tools.json']));
    for (const name of names) {
      await writeFile(join(project.data, name), 'null', { flag: 'a' });
      await chmod(join(project.data, name), 0o644);
    }
    await chmod(project.data, 0o755);
    const doctor = await project.parley('doctor', '--config', project.config);
    expect(doctor.stdout).toContain(`chmod -R go= ${project.data}\n`);
    await rm(join(project.data, 'connection.json'));
    await rm(join(project.data, 'migration.json'));
    await project.up();
    expect(open(await modesOf(project.data))).toEqual([]);
  });

  it('files are closed in a folder that a person uses for other things too, and the folder is unchanged', async () => {
    await mkdir(project.data, { mode: 0o777 });
    await writeFile(join(project.data, 'notes.txt'), 'mine');
    const daemon = await project.up();
    await converse();
    expect(open(await modesOf(project.data))).toEqual([' 777', 'notes.txt 666']);
    expect(daemon.stderr()).toContain(`chmod go-w ${project.data}`);
    const doctor = await project.parley('doctor', '--config', project.config);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain(`chmod go-w ${project.data}`);
  });

  it('files that are open to others are reported by doctor with the command that closes them', async () => {
    await project.up();
    await converse();
    const doctor = () => project.parley('doctor', '--config', project.config, '--json');
    const dataCheck = async () => (await doctor()).json().find(({ name }) => name === 'data directory');
    expect(await dataCheck()).toMatchObject({ status: 'ok' });
    for (const name of [
      'conversations/demo/log.jsonl',
      'conversations/demo/audit.jsonl',
      'connection.json',
    ]) {
      const path = join(project.data, name);
      await chmod(path, 0o644);
      const found = await dataCheck();
      expect(found).toMatchObject({ status: 'fail', message: expect.stringContaining(path) });
      spawnSync('sh', ['-c', found.fix.replace(/^run: /, '')]);
      expect((await lstat(path)).mode & 0o777).toBe(0o600);
    }
    expect(await dataCheck()).toMatchObject({ status: 'ok' });
  });
});

describe('a shared lock on LOCK', () => {
  it.runIf(IS_ROOT && HAS_PYTHON)('another user cannot take a shared lock on LOCK', async () => {
    await (await project.up()).stop();
    const { said } = await lockShared(join(project.data, 'LOCK'), NOBODY);
    expect(said).toBe('Permission denied');
    await project.up();
  });
});

describe('a configuration that every user may change', () => {
  it.each(['', 'parley.yaml', 'agents', 'agents/lead.md'])(
    'up and doctor report a configuration that every user may change, with the command (%j)',
    async (name) => {
      for (const [one] of await modesOf(project.config)) await chmod(join(project.config, one), 0o755);
      const doctor = () => project.parley('doctor', '--config', project.config, '--json');
      const check = async () => (await doctor()).json().find((one) => one.name === 'configuration');
      expect(await check()).toMatchObject({ status: 'ok' });
      const path = join(project.config, name);
      await chmod(path, 0o757);
      const daemon = await project.up();
      expect(daemon.stderr()).toContain(`chmod o-w ${path}`);
      expect(await check()).toMatchObject({
        status: 'fail',
        fix: expect.stringContaining(`chmod o-w ${path}`),
      });
      expect(await readFile(join(project.config, 'parley.yaml'), 'utf8')).not.toBe('');
    },
  );
});
