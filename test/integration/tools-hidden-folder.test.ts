import { spawnSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { runInGroup } from '../../src/tools/builtin/shell.ts';
import { enclosing, hideFolder } from '../../src/tools/processes.ts';
import { folderPerTest } from '../support/lifetime.ts';

/** The programs run for real. Tests that need namespaces are skipped visibly on a system without them. */

const SECRET = 'never to be seen';
const NOBODY = 65_534;
const { fault } = await hideFolder(tmpdir());
const isRoot = process.getuid?.() === 0;
const nobodys = ['--reuid=65534', '--regid=65534', '--clear-groups'];
const ofNobody = spawnSync('setpriv', [...nobodys, 'unshare', '--user', '--map-root-user', 'true']);

const folder = folderPerTest();
let closed: string;
beforeEach(async () => {
  closed = join(folder, 'data');
  await mkdir(closed);
  await writeFile(join(closed, 'mark'), SECRET);
});

/** Every way by which a script can access the hidden folder. */
const SEARCH = `
cat "$0/mark"; ls -A "$0"; echo x > "$0/mark"
umount "$0"; umount -l "$0"; cat "$0/mark"
mount -t tmpfs tmpfs "$0"
unshare --user --map-root-user --mount sh -c 'umount "$0"; cat "$0/mark"' "$0"
nsenter --target ${process.pid} --mount cat "$0/mark"
for process in ${process.pid} 1 "$PPID"; do cat "/proc/$process/root$0/mark"; cat "/proc/$process/environ" | tr '\\0' '\\n'; done
echo searched`;

describe.skipIf(fault !== null)('a program that is started with a folder hidden', () => {
  it('a program finds nothing in the hidden folder, and cannot remove the cover or go around it', async () => {
    const { enclose } = await hideFolder(closed);
    const { command, args } = enclose({ command: 'sh', args: ['-c', SEARCH, closed] });
    const environment = { PATH: String(process.env.PATH) };
    const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', env: environment });
    expect(stdout).toBe('searched\n');
    expect(stderr).toContain('Read-only file system');
    expect(stdout + stderr).not.toContain(SECRET);
  });

  it('a program with a hidden folder has its own process id, exit code, arguments and environment, and ends with its group', async () => {
    const { enclose } = await hideFolder(closed);
    const run = async (command: string, timeoutMs = 10_000) => {
      const given = { command, directory: folder, environment: { OWN: 'own', PATH: '/usr/bin:/bin' } };
      const { output, ...end } = await runInGroup(
        { ...given, timeoutMs, enclose },
        new AbortController().signal,
      );
      return { ...end, said: output.text() };
    };
    expect(await run('echo "$OWN" "a  b"; pwd; [ $(cut -d" " -f5 /proc/$$/stat) = $$ ] && exit 7')).toEqual({
      ...{ code: 7, signal: null, endedBy: null, leftBehind: false },
      said: `own a  b\n${folder}\n`,
    });
    expect(await run('kill -KILL $$')).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(await run('sleep 60 & echo begun')).toMatchObject({ code: 0, leftBehind: true });
    const late = await run('sleep 60 & sleep 60', 300);
    expect(late).toMatchObject({ endedBy: 'timeout', signal: 'SIGTERM' });
  });

  it.runIf(isRoot && ofNobody.status === 0)(
    'a program finds nothing in the hidden folder as another user than root',
    async () => {
      for (const path of [folder, closed]) spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, path]);
      const { command, args } = enclosing(
        closed,
        NOBODY,
        NOBODY,
      )({
        command: 'sh',
        args: ['-c', `id -u; ${SEARCH}; exit 7`, closed],
      });
      const options = { encoding: 'utf8', cwd: folder, env: { PATH: '/usr/bin:/bin' } } as const;
      const { stdout, stderr, status } = spawnSync('setpriv', [...nobodys, command, ...args], options);
      expect([status, stdout]).toEqual([7, `${NOBODY}\nsearched\n`]);
      expect(stdout + stderr).not.toContain(SECRET);
    },
  );

  it('a program is not started after its parent folder was moved, and finds nothing there before', async () => {
    const { enclose } = await hideFolder(closed);
    const moved = `${folder}-moved`;
    const run = (script: string) => {
      const { command, args } = enclose({ command: 'sh', args: ['-c', script, folder, closed, moved] });
      return spawnSync(command, args, { encoding: 'utf8', cwd: '/' });
    };
    onTestFinished(() => rm(moved, { recursive: true, force: true }));
    expect(run('mv "$1" "$1.old" || mv "$0" "$2" && mkdir -p "$1" && cat "$2/data/mark"').stdout).toBe('');
    const { status, stdout } = run('cat "$2/data/mark"');
    expect([status, stdout]).toEqual([125, "the daemon's data could not be hidden from this program\n"]);
  });

  it('a program is not started if the folder cannot be hidden', async () => {
    const { command, args } = enclosing(
      join(closed, 'none'),
      process.getuid?.() ?? 0,
      process.getgid?.() ?? 0,
    )({
      command: 'echo',
      args: ['started'],
    });
    const { stdout, status } = spawnSync(command, args, { encoding: 'utf8' });
    expect([status, stdout]).toEqual([125, "the daemon's data could not be hidden from this program\n"]);
  });
});

it.runIf(isRoot)(
  'a system that does not allow it is reported, and no program is started there unless the operator accepts it',
  () => {
    const module = new URL('../../src/tools/processes.ts', import.meta.url).href;
    const script = `import(${JSON.stringify(module)}).then(async ({ hideFolder }) => {
    const program = { command: 'true', args: [] };
    const { fault, enclose } = await hideFolder('.');
    const started = (await hideFolder('.', true)).enclose(program);
    try { enclose(program); } catch ({ code }) { console.log(JSON.stringify({ fault, code, started })); }
  })`;
    const node = [process.execPath, '--import', 'tsx', '-e', script];
    const { stdout } = spawnSync('setpriv', ['--bounding-set', '-sys_admin', ...node], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual({
      fault: expect.stringMatching(/unshare.*not permitted/i),
      code: 'DATA_NOT_HIDDEN',
      started: { command: 'true', args: [] },
    });
  },
);
