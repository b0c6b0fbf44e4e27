import { execFile } from 'node:child_process';
import { access, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { passedOn } from '../../src/config/index.ts';
import { runInGroup } from '../../src/tools/builtin/shell.ts';
import { itLong } from '../support/long.ts';
import { content, failed, openTools, SECRET, type TestTools } from '../unit/tools/support.ts';

/** Command lines of running processes that contain the text. Each test has its own folder. */
async function processesOf(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map(async (pid) => {
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return cwd.startsWith(text) || line.includes(text) ? `${pid} ${line.replaceAll('\0', ' ')}` : '';
    }),
  );
  return lines.filter((line) => line !== '');
}

/** Waits for a file by which a command reports its progress. */
async function appears(path: string): Promise<void> {
  while (
    !(await access(path).then(
      () => true,
      () => false,
    ))
  )
    await new Promise((resolve) => setTimeout(resolve, 10));
}

const shell = async ({ run }: TestTools, command: string) => content(await run('shell', { command }));

describe('the shell tool', () => {
  it('shell runs in the folder of the project and returns exit code and both outputs, in order', async () => {
    const toolbox = await openTools();
    expect(await shell(toolbox, 'pwd; echo two >&2; echo three; exit 3')).toBe(
      `[exit code 3]\n${toolbox.project}\ntwo\nthree\n`,
    );
    expect(await shell(toolbox, 'true')).toBe('[exit code 0, no output]');
    expect(await shell(toolbox, 'echo partial; kill -KILL $$')).toBe('[ended by SIGKILL]\npartial\n');
    expect(await shell(toolbox, 'no-such-command')).toMatch(/^\[exit code 127\]\n.*not found/);
    expect(await shell(toolbox, 'if')).toMatch(/^\[exit code 2\]\n/);
    expect(await shell(toolbox, `printf '%s' "$0 $#"`)).toBe('[exit code 0]\n/bin/sh 0');
  });

  it('shell passes no secret of the environment and no input', async () => {
    const toolbox = await openTools({
      environment: passedOn({
        PATH: process.env.PATH,
        HOME: '/home/x',
        LANG: 'C.UTF-8',
        TERM: 'xterm',
        OPENAI_API_KEY: SECRET,
        PARLEY_NATS_URL: SECRET,
        http_proxy: SECRET,
        LD_PRELOAD: SECRET,
        NODE_OPTIONS: SECRET,
      }),
    });
    const seen = await shell(toolbox, 'env | sort; cat; echo end of input');
    expect(seen).not.toContain(SECRET);
    expect(seen).toContain('HOME=/home/x\n');
    expect(seen).toContain('LANG=C.UTF-8\n');
    expect(seen).toContain('TERM=dumb\n');
    expect(seen).toContain('end of input\n');
  });

  it('shell works without any environment', async () => {
    const toolbox = await openTools({ environment: {} });
    expect(await shell(toolbox, 'ls -d .')).toBe('[exit code 0]\n.\n');
  });

  it('shell makes binary output, broken UTF-8 and escape sequences harmless', async () => {
    const toolbox = await openTools();
    expect(await shell(toolbox, `printf 'a\\000b\\377c\\033[31mred\\033[0m\\033]0;title\\007\\303'`)).toBe(
      '[exit code 0]\na\ufffdb\ufffdcred\ufffd',
    );
    expect(await shell(toolbox, 'head -c 300000 /dev/urandom')).not.toMatch(/(?![\t\n])\p{Cc}/u);
  });

  it('shell keeps the beginning and the end of a huge output', async () => {
    const toolbox = await openTools();
    const output = await shell(
      toolbox,
      'echo begin; head -c 20000000 /dev/zero | tr "\\0" x; echo; echo end',
    );
    expect(output.startsWith('[exit code 0]\nbegin\nxxx')).toBe(true);
    expect(output.endsWith('xxx\nend\n')).toBe(true);
    expect(output).toContain(`[… ${20_000_011 - 1024 * 1024} bytes left out here …]`);
    expect(output.length).toBeLessThan(1_100_000);
  });

  it('shell ends a command that writes without end', async () => {
    const { run, directory } = await openTools();
    const outcome = await run('shell', { command: 'yes' });
    expect(outcome).toEqual(failed('TOO_MUCH_OUTPUT', 'its last output:\n'));
    expect(JSON.stringify(outcome).length).toBeLessThan(20_000);
    expect(await processesOf(directory)).toEqual([]);
  });

  it('shell ends a command at its deadline and returns its output so far', async () => {
    const { run, directory } = await openTools({ shellTimeoutMs: 500 });
    const slow = await run('shell', { command: 'echo said; sleep 1000' });
    expect(slow).toEqual(failed('TIMEOUT', 'within 0.5 seconds and was ended; its last output:\nsaid\n'));
    const silent = await run('shell', { command: 'sleep 1000' });
    expect(silent).toEqual(failed('TIMEOUT', 'it wrote nothing'));
    expect(await processesOf(directory)).toEqual([]);
  });

  it('shell ends children and grandchildren on abort, also those that ignore SIGTERM', async () => {
    const toolbox = await openTools();
    const { directory, project, run } = toolbox;
    const controller = new AbortController();
    const deaf = `(trap '' TERM HUP INT; : > deaf; while :; do sleep 1; done) &`;
    const command = `${deaf} (sleep 1000 & (sleep 1000 | cat) & : > deep; wait) & wait`;
    const outcome = run('shell', { command }, controller.signal);
    await appears(join(project, 'deaf'));
    await appears(join(project, 'deep'));
    expect((await processesOf(directory)).length).toBeGreaterThanOrEqual(5);
    controller.abort();
    expect(await outcome).toEqual({ kind: 'aborted' });
    expect(await processesOf(directory)).toEqual([]);
  });

  it('shell gives a command that gets SIGTERM the time to clean up', async () => {
    const { project, run } = await openTools();
    const controller = new AbortController();
    const command = `trap 'echo tidy > tidied; exit' TERM; : > ready; while :; do sleep 0.05; done`;
    const outcome = run('shell', { command }, controller.signal);
    await appears(join(project, 'ready'));
    controller.abort();
    expect(await outcome).toEqual({ kind: 'aborted' });
    expect(await readFile(join(project, 'tidied'), 'utf8')).toBe('tidy\n');
  });

  it('shell leaves no process running, and does not wait for one', async () => {
    const toolbox = await openTools();
    expect(await shell(toolbox, 'sleep 1000 & echo started')).toBe(
      '[exit code 0, what it left running was ended]\nstarted\n',
    );
    expect(await processesOf(toolbox.directory)).toEqual([]);
  });

  it('shell neither waits for a process that left its group nor keeps a pipe to it', async () => {
    const toolbox = await openTools();
    const command = `setsid sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do sleep 0.01; done; echo end`;
    const descriptors = async () => (await readdir('/proc/self/fd')).length;
    const before = await descriptors();
    const outcome = await toolbox.run('shell', { command });
    try {
      await expect.poll(descriptors).toBe(before);
    } finally {
      process.kill(Number(await readFile(join(toolbox.project, 'pid'), 'utf8')), 'SIGKILL');
    }
    expect(content(outcome)).toBe('[exit code 0]\nend\n');
  });

  it('shell ends when the tools are closed', async () => {
    const { directory, project, run, tools } = await openTools();
    const outcome = run('shell', { command: ': > ready; sleep 1000' });
    await appears(join(project, 'ready'));
    await tools.close();
    expect(await outcome).toEqual({ kind: 'aborted' });
    expect(await processesOf(directory)).toEqual([]);
  });

  it('a shell that cannot be started is an error, and leaves no pipe', async () => {
    const { directory } = await openTools();
    const given = {
      command: 'true',
      directory: join(directory, 'none'),
      environment: {},
      timeoutMs: 1_000,
    };
    const { signal } = new AbortController();
    const pipes = async () => (await readdir('/proc/self/fd')).length;
    const before = await pipes();
    for (let n = 0; n < 20; n += 1) await expect(runInGroup(given, signal)).rejects.toThrow('ENOENT');
    const long = { ...given, directory, command: 'x'.repeat(200_000) };
    await expect(runInGroup(long, signal)).rejects.toThrow('E2BIG');
    await expect.poll(pipes).toBeLessThan(before + 10);
  });

  itLong('shell leaves no pipe and no listener after many commands', async () => {
    const toolbox = await openTools();
    const count = async () => (await readdir('/proc/self/fd')).length;
    await shell(toolbox, 'true');
    const before = await count();
    for (let n = 0; n < 20; n += 1) await shell(toolbox, `echo ${n}`);
    expect(await count()).toBeLessThanOrEqual(before + 2);
  });
});

describe('writing on a full disk', () => {
  itLong(
    'a full disk is explained, the old file is kept, no other file is left, and small files can be written later',
    async () => {
      const { project } = await openTools();
      // The limit on a file's size acts like a full disk: a part is written, then the system refuses.
      const script = `ulimit -f 64; exec "$0" --import tsx "$@"`;
      const fixture = join(import.meta.dirname, 'tool-fixtures', 'fill-disk.ts');
      const given = ['-c', script, process.execPath, fixture, project];
      const { stdout } = await promisify(execFile)('bash', given);
      const full = failed('DISK_FULL', 'nothing was changed');
      expect(JSON.parse(stdout)).toEqual({
        outcomes: [
          { kind: 'completed', content: 'Created @project/a (3 bytes).' },
          full,
          full,
          full,
          { kind: 'completed', content: 'Replaced @project/a (5 bytes).' },
        ],
        kept: 'old',
        names: ['a'],
      });
    },
  );
});
