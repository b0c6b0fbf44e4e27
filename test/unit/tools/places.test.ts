import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ResolvedPath } from '../../../src/agents/tool-port.ts';
import {
  HARMLESS,
  PROGRAMS,
  protectedBy,
  SECRETS,
  secretIn,
} from '../../../src/tools/builtin/files/protected.ts';
import { isOpenTo, openFile, openSandbox } from '../../../src/tools/builtin/files/sandbox.ts';
import { createBuiltInTools } from '../../../src/tools/index.ts';
import { content, failed, openTools, toolRun } from './support.ts';

describe('the target of a path', () => {
  it('the target of a path is resolved through links, also if it does not exist yet', async () => {
    const { project, tools } = await openTools({ files: { 'project/real/a': 'x' } });
    await symlink('real', join(project, 'way'));
    const placeOf = (path: string) => tools.locate?.('fs_write', { path, content: '' });
    const at = (path: string, isLinked: boolean) => ({
      kind: 'place',
      place: { path, protectedBy: [], isLinked },
    });
    expect(placeOf('@project/real/a')).toEqual(at('@project/real/a', false));
    expect(placeOf('@project/way/a')).toEqual(at('@project/real/a', true));
    expect(placeOf('@project/way/new/b')).toEqual(at('@project/real/new/b', true));
    expect(tools.locate?.('shell', { command: 'ls' })).toBeNull();
    expect(tools.locate?.('fs_search', { query: 'x' })).toEqual(at('@project', false));
  });

  it('the target of a path is refused where the run would be refused', async () => {
    const { project, directory, tools } = await openTools();
    await symlink(directory, join(project, 'out'));
    await mkdir(join(project, 'data'));
    for (const path of ['@project/out/secret', '@project/data/new', '/etc/passwd']) {
      expect(tools.locate?.('fs_read', { path })).toMatchObject({ kind: 'refused', code: 'PATH_REFUSED' });
    }
  });
});

describe('a link that is replaced after the policy decision', () => {
  const docsOnly = ({ path }: ResolvedPath) => path.startsWith('@project/docs/') || path === '@project/docs';

  it.each([
    ['fs_read', {}],
    ['fs_list', {}],
    ['fs_search', { query: 'x' }],
    ['fs_write', { content: 'y' }],
    ['fs_edit', { find: 'x', replace: 'y' }],
  ])(
    'a replaced link gives %s no access: the policy is asked about the file that was opened',
    async (name, rest) => {
      const { project, tools } = await openTools({
        files: { 'project/secret/a': 'x', 'project/docs/a': 'x' },
      });
      await symlink('docs', join(project, 'way'));
      const given = { ...rest, path: name === 'fs_list' ? '@project/way' : '@project/way/a' };
      const run = () =>
        tools.run({ ...toolRun(name, given), permits: docsOnly }, new AbortController().signal);
      content(await run());
      await rm(join(project, 'way'));
      await symlink('secret', join(project, 'way'));
      expect(await run()).toEqual(failed('FORBIDDEN', '@project/secret'));
      expect(await readFile(join(project, 'secret/a'), 'utf8')).toBe('x');
    },
  );

  it.skipIf(!existsSync('/proc/self/fd'))(
    'a replaced link gives no access if the file is removed after opening, which changes the name that Linux reports',
    async () => {
      const { project } = await openTools({ files: { 'project/secret': 'x' } });
      const descriptors = join(project, '..', 'descriptors');
      await mkdir(descriptors);
      for (let at = 0; at < 256; at += 1)
        await symlink(`${join(project, 'secret')} (deleted)`, join(descriptors, `${at}`));
      const permits = ({ path }: ResolvedPath) => path !== '@project/secret';
      const sandbox = { ...openSandbox({ project, permits }), descriptors };
      await expect(openFile(sandbox, ['secret'])).rejects.toMatchObject({ code: 'FORBIDDEN' });
    },
  );

  it('a replaced link creates no folder where writing is not allowed', async () => {
    const { project, tools } = await openTools();
    const call = toolRun('fs_write', { path: '@project/new/folder/a', content: '' });
    const outcome = await tools.run({ ...call, permits: docsOnly }, new AbortController().signal);
    expect(outcome).toEqual(failed('FORBIDDEN', '@project/new/folder/a'));
    await expect(readFile(join(project, 'new'))).rejects.toThrow('ENOENT');
  });
});

describe('a protected path', () => {
  const protection = { names: ['deploy.*'], folders: ['/p/config'] };
  it.each<[string, string[]]>([
    ['src/main.ts', []],
    ['gitignore', []],
    ['.gitignore', []],
    ['my.env', ['my.env']],
    ['.env.example', []],
    ['.any/unknown', ['.any']],
    ['\u200b.any', ['\u200b.any']],
    ['sub/HEAD', ['HEAD']],
    ['sub/head', ['head']],
    ['head/a.ts', []],
    ['keys/Id_RSA', ['Id_RSA']],
    ['.git', ['.git']],
    ['a/.git/hooks/b', ['.git']],
    ['.GIT/config', ['.GIT']],
    ['.g\u200bit/config', ['.g\u200bit']],
    ['.env.local', ['.env.local']],
    ['.github/.env', ['.github', '.env']],
    ['deploy.sh', ['deploy.sh']],
    ['config', ['config']],
    ['config/agents/a.md', ['config']],
    ['config/tools/stock.ts', ['config']],
    ['node_modules/zod/index.js', ['node_modules']],
    ['Config/agents/a.md', ['config']],
    ['configs/a', []],
  ])('the path %s is protected by %j', (path, names) => {
    expect(protectedBy('/p', `/p/${path}`, protection)).toEqual(names);
  });

  it('nothing above the project is protected, and no rule can name a configuration that is the project itself', () => {
    expect(protectedBy('/home/.config/p', '/home/.config/p/a', { names: [], folders: [] })).toEqual([]);
    expect(protectedBy('/p', '/p/a', { names: [], folders: ['/p'] })).toEqual(['/']);
  });

  it('every name of the table protects its path, those of secrets also from reading, and harmless ones nothing', () => {
    const none = { names: [], folders: [] };
    const at = (name: string) => `/p/a/${name.replace('*', 'x')}/b`;
    const namesOf = (rows: typeof SECRETS) => rows.flatMap(({ names }) => names);
    for (const name of [...namesOf(SECRETS), ...namesOf(PROGRAMS)])
      expect(protectedBy('/p', at(name), none), name).toHaveLength(1);
    for (const name of namesOf(SECRETS)) expect(secretIn('/p', at(name)), name).toHaveLength(1);
    for (const name of namesOf(PROGRAMS)) expect(secretIn('/p', at(name)), name).toEqual([]);
    for (const name of HARMLESS) {
      expect(protectedBy('/p', at(name), none), name).toEqual([]);
      expect(secretIn('/p', at(name)), name).toEqual([]);
    }
  });

  // Names that start programs later, or give access: each was written without a person while only some were listed.
  const PROGRAM_FILES = `
    .claude/settings.json .cursor/mcp.json .cargo/config.toml .mvn/jvm.config .git-credentials .gdbinit
    .lldbinit .vimrc .exrc .emacs.d/init.el .dir-locals.el .direnvrc .envrc .babelrc .eslintrc.cjs
    .mocharc.js .prettierrc .pylintrc .Rprofile .irbrc .pryrc .psqlrc .sqliterc .my.cnf .curlrc .wgetrc
    .tmux.conf .screenrc .Xmodmap .xprofile .bazelrc .bloop/x .sbtopts .jvmopts .yarn/plugins/a.cjs
    .pnp.cjs .ansible.cfg .local/bin/ls .gemini/settings.json .continue/config.json .windsurf/x
    .aider.conf.yml .zed/tasks.json lefthook.yml sub/HEAD lib/sitecustomize.py x.pth authorized_keys
    Jenkinsfile.release
  `
    .trim()
    .split(/\s+/);

  it.each(PROGRAM_FILES)('writing %s needs a person', (path) => {
    expect(protectedBy('/p', `/p/${path}`, { names: [], folders: [] })).not.toEqual([]);
  });

  it('a path is protected by its written form and by its target', async () => {
    const { project, tools } = await openTools({
      files: { 'project/.git/config': 'x', 'project/plain/config': 'x' },
    });
    await symlink('.git', join(project, 'way'));
    await symlink('plain', join(project, '.husky'));
    const placeOf = (name: string, path: string) => tools.locate?.(name, { path });
    const at = (path: string, by: string[]) => ({
      kind: 'place',
      place: { path, protectedBy: by, isLinked: true },
    });
    expect(placeOf('fs_write', '@project/way/config')).toEqual(at('@project/.git/config', ['.git']));
    expect(placeOf('fs_edit', '@project/.husky/config')).toEqual(at('@project/plain/config', ['.husky']));
    expect(placeOf('fs_read', '@project/way/config')).toEqual(at('@project/.git/config', ['.git']));
    expect(placeOf('fs_read', '@project/.husky/config')).toEqual(at('@project/plain/config', []));
  });
});

it('a closed folder is closed in every case and Unicode form, as some file systems treat them as one', () => {
  const sandbox = { root: '/p', closed: ['/p/data'], closedFiles: new Set<string>(), descriptors: null };
  expect(['/p/data/x', '/p/DATA/x', '/p/d\u00adata'].map((path) => isOpenTo(sandbox, path))).toEqual([
    false,
    false,
    false,
  ]);
  expect(isOpenTo(sandbox, '/p/database')).toBe(true);
});

describe('a closed file', () => {
  const CLOSED = 'OPENAI_API_KEY=never to be read';
  /** The file `.env` of the project is closed. */
  async function openClosed() {
    const toolbox = await openTools();
    const env = await toolbox.file('project/.env', CLOSED);
    await toolbox.file('project/way', 'x');
    const tools = createBuiltInTools({
      ...{ project: toolbox.project, closed: [env, join(toolbox.project, 'later.key')] },
    });
    const run: typeof toolbox.run = (name, given) =>
      tools.run(toolRun(name, given), new AbortController().signal);
    onTestFinished(async () => expect(await readFile(env, 'utf8')).toBe(CLOSED));
    return { project: toolbox.project, run };
  }

  it.each<[string, (project: string) => Promise<unknown>]>([
    ['by its name', async () => {}],
    ['by a link', (project) => symlink('.env', join(project, 'other'))],
    ['by a hard link', (project) => link(join(project, '.env'), join(project, 'other'))],
    [
      'by a link to a hard link',
      async (project) => {
        await link(join(project, '.env'), join(project, 'third'));
        await symlink('third', join(project, 'other'));
      },
    ],
  ])('a closed file is neither read, searched nor edited %s', async (_, prepare) => {
    const { project, run } = await openClosed();
    await prepare(project);
    const path = `@project/${existsSync(join(project, 'other')) ? 'other' : '.env'}`;
    const outcomes = [
      await run('fs_read', { path }),
      await run('fs_search', { path, query: 'never' }),
      await run('fs_edit', { path, find: 'never to', replace: 'never to' }),
      await run('fs_edit', { path, find: 'not in it', replace: 'x' }),
    ];
    for (const outcome of outcomes) expect(outcome).toEqual(failed('PATH_REFUSED', 'outside the folders'));
    const found = content(await run('fs_search', { query: 'never' }));
    expect(found).not.toContain('to be read');
  });

  it('a closed file is not written, also if it does not exist yet, in any case', async () => {
    const { project, run } = await openClosed();
    for (const name of ['.env', '.ENV', 'later.key', 'LATER.key', 'later.key/a'])
      expect(await run('fs_write', { path: `@project/${name}`, content: 'x' })).toEqual(
        failed('PATH_REFUSED', 'outside the folders'),
      );
    expect(existsSync(join(project, 'later.key'))).toBe(false);
  });
});
