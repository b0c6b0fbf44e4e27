import { chmod, mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openParent, openSandbox } from '../../../src/tools/builtin/files/sandbox.ts';
import { replaceFile } from '../../../src/tools/builtin/files/write.ts';
import { content, failed, openTools, toolRun } from './support.ts';

const path = '@project/a';

describe('fs_write', () => {
  it('fs_write creates a file and its missing folders, and replaces a whole file', async () => {
    const { project, run } = await openTools();
    const deep = '@project/x/y/z.txt';
    expect(content(await run('fs_write', { path: deep, content: 'ü\n' }))).toBe(
      'Created @project/x/y/z.txt (3 bytes).',
    );
    expect(content(await run('fs_write', { path: deep, content: '' }))).toBe(
      'Replaced @project/x/y/z.txt (0 bytes).',
    );
    expect(await readFile(join(project, 'x/y/z.txt'), 'utf8')).toBe('');
    expect(await readdir(join(project, 'x/y'))).toEqual(['z.txt']);
  });

  it('fs_write keeps the permissions of a file without the dangerous ones', async () => {
    const { project, run, file } = await openTools();
    await chmod(await file('project/a', 'old'), 0o4751);
    content(await run('fs_write', { path, content: 'new' }));
    expect((await stat(join(project, 'a'))).mode & 0o7777).toBe(0o751);
    content(await run('fs_edit', { path, find: 'new', replace: 'newer' }));
    expect((await stat(join(project, 'a'))).mode & 0o7777).toBe(0o751);
  });

  it('fs_write does not replace a file that may not be written', async () => {
    const { run, file } = await openTools();
    if (process.getuid?.() === 0) return; // That user may write every file.
    await chmod(await file('project/a', 'old'), 0o444);
    expect(await run('fs_write', { path, content: 'new' })).toEqual(failed('NOT_PERMITTED', ''));
  });

  it('fs_write refuses a folder, a path below a file, and content that is too large', async () => {
    const { project, run, file } = await openTools();
    await mkdir(join(project, 'folder'));
    await file('project/a', 'x');
    const write = (to: string, text = '') => run('fs_write', { path: to, content: text });
    expect(await write('@project/folder')).toEqual(failed('NOT_A_FILE', '@project/folder is a folder'));
    expect(await write('@project')).toEqual(failed('PATH_REFUSED', 'a folder'));
    expect(await write('@project/a/b')).toEqual(failed('NOT_A_FOLDER', ''));
    expect(await write('@project/a/b/c')).toEqual(failed('NOT_A_FOLDER', ''));
    expect(await write(path, 'ü'.repeat(524_289))).toEqual(failed('TOO_LARGE', '1048578 bytes'));
    expect(await readFile(join(project, 'a'), 'utf8')).toBe('x');
  });

  it('fs_write that is aborted before its end changes nothing and leaves no file', async () => {
    const { project } = await openTools({ files: { 'project/a': 'old' } });
    const sandbox = await openSandbox({ project });
    const { folder, name } = await openParent(sandbox, ['a'], { make: true });
    const controller = new AbortController();
    const written = replaceFile({
      folder,
      name,
      names: ['a'],
      content: Buffer.from('new'),
      signal: controller.signal,
    });
    controller.abort();
    await expect(written).rejects.toThrow('aborted');
    await folder.handle.close();
    expect(await readdir(project)).toEqual(['a']);
    expect(await readFile(join(project, 'a'), 'utf8')).toBe('old');
  });
});

describe('fs_edit', () => {
  const edit = (find: string, replace: string, all?: boolean) =>
    all === undefined ? { path, find, replace } : { path, find, replace, all };

  it('fs_edit replaces the only occurrence of a text literally', async () => {
    const { project, run } = await openTools({ files: { 'project/a': '\ufeffone\r\ntwo $1\r\nthree' } });
    expect(content(await run('fs_edit', edit('two $1\r\n', "$& $' $$\r\n")))).toBe(
      'Changed @project/a in 1 place (23 bytes now).',
    );
    expect(await readFile(join(project, 'a'), 'utf8')).toBe("\ufeffone\r\n$& $' $$\r\nthree");
  });

  it('fs_edit refuses an ambiguous text unless all occurrences are meant', async () => {
    const { project, run } = await openTools({ files: { 'project/a': 'x1 x2 x3' } });
    expect(await run('fs_edit', edit('x', 'y'))).toEqual(failed('FIND_AMBIGUOUS', 'occurs 3 times'));
    expect(await run('fs_edit', edit('x', 'y', false))).toEqual(failed('FIND_AMBIGUOUS', 'set all'));
    expect(await run('fs_edit', edit('z', 'y', true))).toEqual(failed('FIND_MISSING', 'to the letter'));
    expect(await readFile(join(project, 'a'), 'utf8')).toBe('x1 x2 x3');
    expect(content(await run('fs_edit', edit('x', '', true)))).toContain('3 places');
    expect(await readFile(join(project, 'a'), 'utf8')).toBe('1 2 3');
    expect(await run('fs_edit', edit('', 'y'))).toEqual(failed('INVALID_ARGUMENTS', 'find'));
  });

  it('fs_edit refuses a binary file, a file that is too large, and a text that is missing', async () => {
    const { project, run, file } = await openTools();
    const whole = async (bytes: Buffer) => {
      await file('project/a', bytes);
      const outcome = await run('fs_edit', edit('x', 'y'));
      expect(bytes.equals(await readFile(join(project, 'a')))).toBe(true);
      return outcome;
    };
    expect(await whole(Buffer.from('x\0'))).toEqual(failed('BINARY_FILE', 'not text'));
    expect(await whole(Buffer.from('x\xe9', 'latin1'))).toEqual(failed('BINARY_FILE', 'not UTF-8'));
    expect(await whole(Buffer.alloc(4 * 1024 * 1024 + 1, 'x'))).toEqual(failed('TOO_LARGE', '4194305'));
    await file('project/a', 'x'.repeat(3_000));
    expect(await run('fs_edit', edit('x', 'y'.repeat(2_000), true))).toEqual(failed('TOO_LARGE', '6000000'));
    expect(await run('fs_edit', { ...edit('x', 'y'), path: '@project/b' })).toEqual(failed('NOT_FOUND', ''));
  });

  it('fs_edit overwrites no concurrent change: each of several edits is applied or fails', async () => {
    const { project, run, file } = await openTools();
    const places = Array.from({ length: 12 }, (_, n) => `<${n}>`);
    await file('project/a', places.join(''));
    const outcomes = await Promise.all(places.map((place) => run('fs_edit', edit(place, `${place}!`))));
    const after = await readFile(join(project, 'a'), 'utf8');
    const done = outcomes.filter(({ kind }) => kind === 'completed').length;
    expect(done).toBeGreaterThan(0);
    expect(after.split('!').length - 1).toBe(done);
    for (const outcome of outcomes) {
      if (outcome.kind === 'failed') expect(outcome).toEqual(failed('CHANGED_MEANWHILE', 'read it again'));
    }
    expect(await readdir(project)).toEqual(['a']);
  });
});

describe('what a write would change', () => {
  const open = async () => {
    const toolbox = await openTools({ protection: { names: [], folders: [] } });
    const change = (name: string, given: Record<string, unknown>) =>
      toolbox.tools.change?.(toolRun(name, given), new AbortController().signal);
    return { ...toolbox, change };
  };
  const LINES = Array.from({ length: 20 }, (_, n) => `line ${n + 1}`);
  const changed = (...lines: string[]) => `${LINES.with(11, lines.join('\n')).join('\n')}\n`;
  const HUNK = [
    ...['--- @project/a', '+++ @project/a', '@@ -9,7 +9,7 @@', ' line 9', ' line 10', ' line 11'],
    ...['-line 12', '+twelve', ' line 13', ' line 14', ' line 15'],
  ].join('\n');

  it('a write and an edit show the difference against the file as it is now, and change nothing', async () => {
    const { change, file, project } = await open();
    await file('project/a', changed('line 12'));
    expect(await change('fs_write', { path, content: changed('twelve') })).toEqual({
      kind: 'completed',
      content: HUNK,
    });
    expect(await change('fs_edit', { path, find: 'line 12', replace: 'twelve' })).toEqual({
      kind: 'completed',
      content: HUNK,
    });
    expect(await readFile(join(project, 'a'), 'utf8')).toBe(changed('line 12'));
  });

  it.each([
    ['of a new file', 'fs_write', { path: '@project/new', content: 'x' }, 'The file is new.'],
    ['of the same content', 'fs_write', { path, content: 'old\n' }, 'The file stays as it is.'],
    [
      'of the last line end',
      'fs_write',
      { path, content: 'old' },
      'Only the line end of the last line changes.',
    ],
  ])('a change %s is said in words', async (_, name, given, words) => {
    const { change, file } = await open();
    await file('project/a', 'old\n');
    expect(await change(name, given)).toEqual({ kind: 'completed', content: words });
  });

  it.each([
    [
      'an edit that does not fit',
      'fs_edit',
      { path, find: 'none', replace: 'x' },
      'FIND_MISSING',
      'is not in @project/a; as it is, the call would fail',
    ],
    ['a folder', 'fs_write', { path: '@project/data2', content: 'x' }, 'NOT_A_FILE', 'folder'],
    ['a closed path', 'fs_write', { path: '@project/data/x', content: 'x' }, 'PATH_REFUSED', ''],
    ['a file with secrets', 'fs_write', { path: '@project/.env', content: 'x' }, 'FORBIDDEN', ''],
    ['a file that is not text', 'fs_write', { path: '@project/bin', content: 'x' }, 'BINARY_FILE', ''],
    ['too many changes', 'fs_write', { path: '@project/big', content: 'y\n' }, 'TOO_LARGE', '200000'],
  ])('the change of %s says why there is none to show', async (_, name, given, code, message) => {
    const { change, file, project } = await open();
    await file('project/a', 'old\n');
    await file('project/.env', 'KEY=secret\n');
    await file('project/bin', Buffer.from([0, 1, 2]));
    await file('project/big', 'x'.repeat(200_001));
    await mkdir(join(project, 'data2'));
    expect(await change(name, given)).toEqual(failed(code, message));
  });

  it('other tools, and arguments that do not fit, have no change', async () => {
    const { change } = await open();
    expect(await change('shell', { command: 'ls' })).toBeNull();
    expect(await change('fs_write', { path })).toBeNull();
  });
});
