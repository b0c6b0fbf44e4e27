import { describe, expect, it } from 'vitest';
import { failureOf } from '../../../src/tools/builtin/toolbox.ts';
import { content, failed, openTools, toolRun } from './support.ts';

describe('the built-in tools', () => {
  it('each built-in tool declares its risk and a strict JSON Schema of its arguments', async () => {
    const { tools } = await openTools();
    const definitions = [...tools.definitions()];
    expect(definitions.map(([name, { risk, parameters }]) => [name, risk, parameters.required])).toEqual([
      ['recall', 'safe', undefined],
      ['fs_read', 'safe', ['path']],
      ['attach', 'safe', ['path']],
      ['fs_list', 'safe', ['path']],
      ['fs_search', 'safe', ['query']],
      ['fs_write', 'risky', ['path', 'content']],
      ['fs_edit', 'risky', ['path', 'find', 'replace']],
      ['shell', 'risky', ['command']],
      ['permit_edit', 'risky', ['path', 'title']],
      ['permit_execute', 'risky', ['command', 'title']],
      ['permit_other', 'risky', ['kind', 'title']],
    ]);
    for (const [name, { name: own, description, parameters }] of definitions) {
      expect(name).toBe(own);
      expect(description.length).toBeGreaterThan(80);
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false });
      expect(parameters).not.toHaveProperty('$schema');
    }
  });

  it('a built-in tool refuses invalid arguments, both when it is checked and when it runs', async () => {
    const { tools, run } = await openTools();
    expect(tools.check('fs_read', { path: '@project/a', from: 2 })).toBeNull();
    for (const [name, given, wrong] of [
      ['fs_read', {}, 'fs_read: path: '],
      ['fs_read', { path: 1 }, 'fs_read: path: '],
      ['fs_read', { path: 'a', from: 0 }, 'fs_read: from: '],
      ['fs_read', { path: 'a', lines: 1.5 }, 'fs_read: lines: '],
      ['fs_read', { path: 'a', all: true }, 'fs_read: Unrecognized key'],
      ['shell', { command: 'echo \0' }, 'no null byte'],
      ['fs_rm', {}, 'there is no tool fs_rm'],
    ] as const) {
      expect(tools.check(name, given)).toContain(wrong);
      const code = name === 'fs_rm' ? 'TOOL_NOT_AVAILABLE' : 'INVALID_ARGUMENTS';
      expect(await run(name, given)).toEqual(failed(code, wrong));
    }
    expect(tools.check('fs_read', 'path')).toContain('fs_read: ');
    expect(tools.check('fs_read', null)).toContain('fs_read: ');
  });

  it('a built-in tool is aborted by its signal and by closing the toolbox', async () => {
    const { tools, run } = await openTools({ files: { 'project/a': '\n'.repeat(100_000) } });
    const read = { path: '@project/a', from: 90_000 };
    expect(await run('fs_read', read, AbortSignal.abort())).toEqual({ kind: 'aborted' });
    const controller = new AbortController();
    const outcome = run('fs_read', read, controller.signal);
    controller.abort();
    expect(await outcome).toEqual({ kind: 'aborted' });
    const other = run('fs_search', { query: 'x' });
    await tools.close();
    expect(await other).toEqual({ kind: 'aborted' });
    expect(await tools.run(toolRun('fs_list', { path: '@project' }), controller.signal)).toEqual({
      kind: 'aborted',
    });
  });

  it('an unexpected failure of a tool is logged, and the result shows the model no path of this machine', async () => {
    const { run, logged } = await openTools({
      outputs: () => {
        throw new Error('no outputs at /var/somewhere');
      },
    });
    const path = '@state/logs/tool-results/work/1.json';
    expect(await run('fs_read', { path })).toEqual({
      kind: 'failed',
      code: 'TOOL_FAILED',
      message: 'fs_read failed: it has a bug, which was logged',
    });
    expect(logged).toEqual(['the tool fs_read failed: no outputs at /var/somewhere']);
  });

  it('a stored output that cannot be read is logged, and the result shows the model no path of this machine', async () => {
    const { run, logged } = await openTools({
      outputs: () => Promise.reject(new Error('/var/somewhere cannot be read: it is a link')),
    });
    const path = '@state/logs/tool-results/work/1.json';
    expect(await run('fs_read', { path })).toEqual({
      kind: 'failed',
      code: 'OUTPUT_UNREADABLE',
      message: `"${path}" cannot be read; the log of the daemon has the reason`,
    });
    expect(logged).toEqual(['/var/somewhere cannot be read: it is a link']);
  });

  it.each([
    ['ENOSPC', 'DISK_FULL'],
    ['EDQUOT', 'DISK_FULL'],
    ['EACCES', 'NOT_PERMITTED'],
    ['EROFS', 'NOT_PERMITTED'],
    ['EMFILE', 'TOO_MANY_FILES'],
    ['EIO', 'TOOL_FAILED'],
  ])('a tool result contains the system error: %s', (errno, code) => {
    const error = Object.assign(new Error(`${errno}: open '/var/somewhere'`), { code: errno });
    const outcome = failureOf('fs_write', error, { warn: () => {}, error: () => {} });
    expect(outcome).toEqual(failed(code, ''));
    expect(JSON.stringify(outcome)).not.toContain('/var/somewhere');
  });

  it('the built-in tools run with nothing but a project', async () => {
    const { run } = await openTools();
    expect(content(await run('fs_list', { path: '@project' }))).toBe('[@project is empty]');
  });
});
