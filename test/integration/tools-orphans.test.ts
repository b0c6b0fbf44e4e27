import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { groupLives } from '../../src/tools/builtin/shell.ts';
import { OrphanWatch } from '../../src/tools/processes.ts';
import { openTools } from '../unit/tools/support.ts';

/** L12 records what happened. No process may continue once its daemon is gone. */
describe('the processes that tools started', () => {
  it('all processes of tools end when the daemon is killed, even if they ignore SIGTERM', async () => {
    const toolbox = await openTools();
    const fixture = join(import.meta.dirname, 'tool-fixtures', 'start-and-wait.ts');
    const daemon = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), fixture], {
      cwd: toolbox.project,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const gone = once(daemon, 'exit');
    const groups: number[] = [];
    try {
      await once(daemon.stdout, 'data');
      for (const name of ['command', 'program']) {
        const read = () => readFile(join(toolbox.project, name), 'utf8').catch(() => '');
        await expect.poll(read).toMatch(/^\d+\n/);
        groups.push(await groupOf(Number(await read())));
      }
      expect(await Promise.all(groups.map(groupLives))).toEqual([true, true]);
      expect(new Set(groups).size).toBe(2);
    } finally {
      daemon.kill('SIGKILL');
      await gone;
    }
    await expect.poll(() => Promise.all(groups.map(groupLives))).toEqual([false, false]);
  }, 60_000);

  it('the watcher does not signal a process id that ended before', async () => {
    const child = spawn('/bin/sh', ['-c', 'exec sleep 1000'], { detached: true, stdio: 'ignore' });
    const exited = once(child, 'exit');
    const watch = new OrphanWatch();
    watch.guard(child.pid ?? 0);
    watch.over();
    await new Promise((resolve) => setTimeout(resolve, 100)); // what it would do, it does at once
    expect(child.signalCode).toBeNull();
    expect(child.kill('SIGKILL')).toBe(true);
    expect(await exited).toEqual([null, 'SIGKILL']);
  });
});

async function groupOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2]);
}
