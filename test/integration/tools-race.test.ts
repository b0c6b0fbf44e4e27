import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openTools, SECRET } from '../unit/tools/support.ts';

describe('a project that changes during tool calls', () => {
  it('a tool never reads or writes outside while a folder and a link are exchanged', async () => {
    const toolbox = await openTools();
    await toolbox.file('project/kept/secret', 'harmless');
    await symlink(toolbox.directory, join(toolbox.project, 'link'));
    const fixture = join(import.meta.dirname, 'tool-fixtures', 'take-turns.ts');
    const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), fixture], {
      cwd: toolbox.project,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const path = '@project/turn/secret';
    const seen = new Set<string>();
    try {
      await once(child.stdout, 'data');
      for (let n = 0; n < 300 || (!seen.has('harmless') && n < 10_000); n += 1) {
        const read = await toolbox.run('fs_read', { path });
        seen.add(read.kind === 'completed' ? read.content : read.kind);
        await toolbox.run('fs_edit', { path, find: SECRET, replace: 'changed' });
        expect(seen).not.toContain(SECRET);
      }
    } finally {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    expect(seen).toContain('harmless');
    expect(await readFile(join(toolbox.directory, 'secret'), 'utf8')).toBe(SECRET);
    expect((await readdir(toolbox.directory)).sort()).toEqual(['project', 'secret']);
  });
});
