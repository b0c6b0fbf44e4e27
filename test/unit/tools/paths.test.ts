import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  openFileIn,
  openFolder,
  openFolderAt,
  openParent,
  openSandbox,
} from '../../../src/tools/builtin/files/sandbox.ts';
import { content, failed, openTools, SECRET, type TestTools } from './support.ts';

const OUTPUTS = '@state/logs/tool-results';
/** Every tool that takes a path, with the rest of its arguments. */
const TAKERS = [
  ['fs_read', {}],
  ['fs_list', {}],
  ['fs_search', { query: 'not' }],
  ['fs_write', { content: 'x' }],
  ['fs_edit', { find: 'not', replace: 'x' }],
] as const;

function toEach(toolbox: TestTools, path: string) {
  return Promise.all(TAKERS.map(([name, rest]) => toolbox.run(name, { ...rest, path })));
}

describe('a path argument', () => {
  it.each([
    '/etc/passwd',
    'src/main.ts',
    './project',
    '',
    '~/x',
    '@projectx/a',
    '@PROJECT/a',
    ' @project/a',
    '@other/a',
    'file:///etc/passwd',
    '@project/..',
    '@project/../secret',
    '@project/a/../../secret',
    '@project//etc/passwd',
    '@project/a//b',
    '@project//',
    '@project/a\0.txt',
    '@project\0',
    '@state',
    '@state/conversations/work/log.jsonl',
    `${OUTPUTS}/other/12.json`,
    `${OUTPUTS}/work/12`,
    `${OUTPUTS}/work/12.json/`,
    `${OUTPUTS}/work/../other/12.json`,
    `${OUTPUTS}/work/./12.json`,
    `${OUTPUTS}/work/a/12.json`,
    `${OUTPUTS}/work/12.json\n`,
    '@blob',
    '@blob/',
    '@blob/ababababab',
    '@blob/ABABABABABAB',
    '@blob/abababababab/a',
    '@blob/abababababab\n',
    '@blob/../project/a',
  ])('the path %j is refused by every tool', async (path) => {
    const toolbox = await openTools();
    await toolbox.file('outputs/other/12.json', SECRET);
    for (const outcome of await toEach(toolbox, path)) {
      expect(outcome).toMatchObject({
        kind: 'failed',
        code: expect.stringMatching(/^(PATH_REFUSED|INVALID_ARGUMENTS)$/),
      });
      expect(JSON.stringify(outcome)).not.toContain(SECRET);
    }
  });

  it.each([
    '@project/..x',
    '@project/...',
    '@project/a..b',
    '@project/ a ',
    '@project/a\\..\\b',
    '@project/ü',
  ])('the path %j is accepted as a plain name', async (path) => {
    const toolbox = await openTools();
    content(await toolbox.run('fs_write', { path, content: 'mine' }));
    expect(content(await toolbox.run('fs_read', { path }))).toBe('mine');
  });

  it('a path with "." parts is refused with the form to write, and only a folder may end with "/"', async () => {
    const { run } = await openTools({ files: { 'project/a/b': 'text' } });
    for (const path of ['@project/./a/./b', '@project/a//b', '@project/a/x/../b']) {
      expect(await run('fs_read', { path })).toEqual(failed('INVALID_ARGUMENTS', 'write "@project/a/b"'));
    }
    expect(content(await run('fs_list', { path: '@project/a/' }))).toBe('b  4 bytes');
    for (const name of ['fs_read', 'fs_write', 'fs_edit']) {
      const rest = { fs_read: {}, fs_write: { content: '' }, fs_edit: { find: 'x', replace: '' } }[name];
      expect(await run(name, { ...rest, path: '@project/a/b/' })).toEqual(failed('PATH_REFUSED', 'a folder'));
      expect(await run(name, { ...rest, path: '@project/' })).toEqual(failed('PATH_REFUSED', 'a folder'));
    }
  });

  it('a path with a name that is too long fails with an explanation', async () => {
    const { run } = await openTools();
    const path = `@project/${'x'.repeat(300)}`;
    expect(await run('fs_read', { path })).toEqual(failed('PATH_REFUSED', 'too long'));
    expect(await run('fs_write', { path, content: '' })).toEqual(failed('PATH_REFUSED', 'too long'));
  });
});

describe('a symbolic link in a path', () => {
  it('a link that leads out of the project is refused by every tool: to a file, to a folder, to nothing, on the way', async () => {
    const toolbox = await openTools();
    const { directory, project } = toolbox;
    await mkdir(join(directory, 'outside'));
    await symlink(join(directory, 'secret'), join(project, 'file'));
    await symlink('../outside', join(project, 'folder'));
    await symlink(join(directory, 'nowhere'), join(project, 'nothing'));
    await symlink('folder', join(project, 'twice'));
    for (const path of [
      'file',
      'folder',
      'folder/new',
      'folder/a/b/new',
      'nothing',
      'nothing/a',
      'twice/new',
    ]) {
      for (const outcome of await toEach(toolbox, `@project/${path}`)) {
        expect(outcome).toEqual(failed('PATH_REFUSED', 'is outside the folders that tools may use'));
      }
    }
  });

  it('a link within the project is followed, and stays a link when the file is written', async () => {
    const { project, run } = await openTools({ files: { 'project/real/a.txt': 'one' } });
    await symlink('real', join(project, 'folder'));
    await symlink('real/a.txt', join(project, 'file'));
    expect(content(await run('fs_read', { path: '@project/folder/a.txt' }))).toBe('one');
    content(await run('fs_write', { path: '@project/file', content: 'two' }));
    content(await run('fs_edit', { path: '@project/folder/a.txt', find: 'two', replace: 'three' }));
    expect(content(await run('fs_read', { path: '@project/real/a.txt' }))).toBe('three');
    expect(content(await run('fs_list', { path: '@project' }))).toBe(
      'file -> real/a.txt\nfolder -> real\nreal/',
    );
  });

  it('a circular link is refused', async () => {
    const { project, run } = await openTools();
    await symlink('b', join(project, 'a'));
    await symlink('a', join(project, 'b'));
    expect(await run('fs_read', { path: '@project/a' })).toEqual(failed('PATH_REFUSED', 'link'));
  });

  it('if the project itself is a link, the project is the folder that it leads to', async () => {
    const { directory, project, run } = await openTools({ files: { 'project/a': 'text' } });
    await rename(project, join(directory, 'moved'));
    await symlink('moved', project);
    expect(content(await run('fs_read', { path: '@project/a' }))).toBe('text');
  });
});

describe('a path that changes between the check and the use', () => {
  it.each([true, false])(
    'a folder that was replaced by a link gives no access (descriptors shown: %s)',
    async (shown) => {
      const { directory, project } = await openTools({ files: { 'project/a/secret': 'harmless' } });
      await mkdir(join(directory, 'outputs'));
      await symlink(directory, join(project, 'out'));
      const found = await openSandbox({ project });
      const sandbox = shown ? found : { ...found, descriptors: null };
      // As if `out` had been a folder when the path was resolved.
      await expect(openFolderAt(sandbox, join(project, 'out', 'outputs'), ['out'])).rejects.toMatchObject({
        code: 'PATH_REFUSED',
      });
      await expect(openFolderAt(sandbox, join(project, 'out'), ['out'])).rejects.toMatchObject({
        code: 'ENOTDIR', // The last step follows no link.
      });
      const folder = await openFolder(sandbox, ['a']);
      await rename(join(project, 'a'), join(project, 'b'));
      await symlink(directory, join(project, 'a'));
      const opened = openFileIn(sandbox, folder, 'secret', ['a', 'secret']);
      if (shown) {
        const handle = await opened;
        expect(await handle.readFile('utf8')).toBe('harmless');
        await handle.close();
      } else {
        await expect(opened).rejects.toMatchObject({ code: 'PATH_REFUSED' });
      }
      await folder.handle.close();
    },
  );

  it('a file that was replaced by a link is not followed', async () => {
    const { directory, project } = await openTools({ files: { 'project/a': 'harmless' } });
    const sandbox = await openSandbox({ project });
    const folder = await openFolder(sandbox, []);
    await rm(join(project, 'a'));
    await symlink(join(directory, 'secret'), join(project, 'a'));
    await expect(openFileIn(sandbox, folder, 'a', ['a'])).rejects.toMatchObject({ code: 'ELOOP' });
    await folder.handle.close();
  });

  it('a write goes to the folder that was checked, wherever it was moved', async () => {
    const { directory, project } = await openTools();
    await mkdir(join(project, 'a'));
    const sandbox = await openSandbox({ project });
    const { folder, name } = await openParent(sandbox, ['a', 'new'], { make: true });
    await rename(join(project, 'a'), join(project, 'b'));
    await symlink(directory, join(project, 'a'));
    await writeFile(folder.at(name), 'x');
    await folder.handle.close();
    const again = await openFolder(sandbox, ['b']);
    await (await openFileIn(sandbox, again, 'new', ['b', 'new'])).close();
    await again.handle.close();
  });
});

describe('files that tools may not open', () => {
  it('the folder of the daemon is not opened by name, by a link or in a search, even inside the project', async () => {
    const toolbox = await openTools();
    await toolbox.file('project/data/connection.json', SECRET);
    await toolbox.file('project/database/a', 'not secret');
    await symlink('data', join(toolbox.project, 'link'));
    for (const path of ['data', 'data/connection.json', 'data/new', 'link', 'link/connection.json']) {
      for (const outcome of await toEach(toolbox, `@project/${path}`)) {
        expect(outcome).toEqual(failed('PATH_REFUSED', 'outside the folders that tools may use'));
      }
    }
    expect(content(await toolbox.run('fs_search', { query: 'not' }))).toBe(
      '@project/database/a:1: not secret',
    );
  });

  it('pipes and sockets are refused without waiting', async () => {
    const toolbox = await openTools();
    execFileSync('mkfifo', [join(toolbox.project, 'pipe')]);
    const server = createServer().listen(join(toolbox.project, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    for (const path of ['@project/pipe', '@project/socket']) {
      for (const [name, rest] of TAKERS.filter(([taker]) => taker !== 'fs_list')) {
        expect(await toolbox.run(name, { ...rest, path })).toEqual(failed('NOT_A_FILE', ''));
      }
    }
    expect(content(await toolbox.run('fs_list', { path: '@project' }))).toContain('pipe  (no ordinary file)');
    await new Promise((resolve) => server.close(resolve));
  });

  it('a project that is missing is reported', async () => {
    const toolbox = await openTools();
    await rm(toolbox.project, { recursive: true });
    for (const outcome of await toEach(toolbox, '@project/a')) {
      expect(outcome).toEqual(failed('PROJECT_MISSING', 'missing'));
    }
    expect(await toolbox.run('shell', { command: 'true' })).toEqual(failed('PROJECT_MISSING', 'missing'));
  });
});
