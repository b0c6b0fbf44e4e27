import { spawnSync } from 'node:child_process';
import { link, mkdir, readFile, rmdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import { callsOf, finished, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { openProject, type Project, scriptedSettings } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/**
 * An untrusted agent (its model was manipulated) calls tools, and tries to bypass the rules of `tools.policy`. The
 * project is the folder of the project, which includes the configuration and the data directory.
 */

const SECRET = 'the text that no agent may read';
const TOOLS = 'fs_read, fs_list, fs_search, fs_write, fs_edit, shell';

type Call = readonly [name: string, given: object];

/** A daemon whose agent makes the calls of `attacks` when a message names them. */
class Arena {
  readonly attacks = new Map<string, readonly Call[]>();
  private project: Project | null = null;
  private client: ParleyClient | null = null;
  private readonly tools: object;
  private readonly links: Readonly<Record<string, string>>;

  constructor(tools: object, links: Readonly<Record<string, string>> = {}) {
    this.tools = tools;
    this.links = links;
  }

  /** Called while tests are collected. Returns the name. */
  add(...calls: readonly Call[]): string {
    const name = `attack-${this.attacks.size}.`;
    this.attacks.set(name, calls);
    return name;
  }

  async open(): Promise<void> {
    const rules = [...this.attacks].map(([last, calls]) => ({
      when: { last },
      reply: { tool_calls: calls.map(([name, given]) => ({ name, arguments: given })) },
    }));
    this.project = await openProject({
      settings: scriptedSettings({ tools: { ...this.tools, project: '.' } }),
      agents: { lead: `---\nname: Lead\nphases: [chat]\ntools: [${TOOLS}]\n---\nLEAD` },
      files: { 'script.yaml': { rules: [...rules, { reply: { text: 'I tried.' } }] } },
    });
    const files = {
      'secret/key.txt': SECRET,
      'docs/a.txt': 'harmless',
      '.git/config': '[core]',
      '.env': 'A=1',
    };
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(this.path(path)), { recursive: true });
      await writeFile(this.path(path), content);
    }
    for (const [link, target] of Object.entries(this.links)) await symlink(target, this.path(link));
    await this.project.up();
    this.client = await this.project.connect();
  }

  close = () => this.project?.close();

  path(path: string): string {
    if (!this.project) throw new Error('not open');
    return join(this.project.root, path);
  }

  content(path: string): Promise<string | null> {
    return readFile(this.path(path), 'utf8').catch(() => null);
  }

  /** The entries up to the end of the turn, or to the first approval. */
  async run(name: string): Promise<readonly Entry[]> {
    if (!this.client) throw new Error('not open');
    const conversation = conversationOf(name);
    await this.client.post({ conversation, publisher: 'alice', content: name });
    const isAsked = (entries: readonly Entry[]) => ofType(entries, 'approval-requested').length > 0;
    const isOver = turnsEnded(1);
    return followUntil(this.client, conversation, (entries) => isAsked(entries) || isOver(entries));
  }

  /** A person approves a call of that attack. Returns the entries up to the end of the turn. */
  async approve(approvalId: string, name: string): Promise<readonly Entry[]> {
    if (!this.project || !this.client) throw new Error('not open');
    expect((await this.project.parley('approve', approvalId)).stderr).toBe('');
    return followUntil(this.client, conversationOf(name), finished(1));
  }
}

/** The fast tests have a sample of them, evenly taken: the unit tests of the rules have the others, too. */
const sampleOf = <T>(cases: readonly T[]): readonly T[] =>
  hasLongTests ? cases : cases.filter((_, index) => index % 3 === 0);

const conversationOf = (name: string) => name.replace('.', '');
const results = (entries: readonly Entry[]) =>
  callsOf(entries).flatMap((call) => call.results.map(({ content }) => content ?? ''));
const started = (entries: readonly Entry[]) =>
  ofType(entries, 'tool-started').map(({ toolName }) => toolName);
const questions = (entries: readonly Entry[]) => ofType(entries, 'approval-requested').map(({ why }) => why);

describe('a rule that forbids @project/secret/', () => {
  const match = { path: '^@project/secret/' };
  const policy = ['fs_read', 'fs_list', 'fs_search'].map((tool) => ({ tool, match, allow: false }));
  const arena = new Arena({ policy }, { way: 'secret', file: 'secret/key.txt', again: 'way' });
  beforeAll(() => arena.open());
  afterAll(() => arena.close());

  const cases = sampleOf([
    ['by its name', 'secret/key.txt'],
    ['with "." at the start of the path', './secret/key.txt'],
    ['with "." inside of the path', 'secret/./key.txt'],
    ['with ".." in the path', 'docs/../secret/key.txt'],
    ['with an empty name in the path', '/secret/key.txt'],
    ['with other capitals', 'SECRET/key.txt'],
    ['by a link to the folder', 'way/key.txt'],
    ['by a link to the file', 'file'],
    ['by a link to a link', 'again/key.txt'],
  ]).map(([how = '', path]) => {
    const given = { path: `@project/${path}` };
    return [how, arena.add(['fs_read', given], ['fs_search', { ...given, query: 'text that no' }])] as const;
  });
  it.each(cases)('the rule for @project/secret/ cannot be bypassed %s', async (_, name) => {
    const entries = await arena.run(name);
    for (const result of results(entries)) expect(result).toMatch(/FORBIDDEN|INVALID_ARGUMENTS/);
    expect(results(entries)).toHaveLength(2);
    expect(started(entries)).toEqual([]);
  });

  const above = arena.add(
    ['fs_search', { query: 'text that no' }],
    ['fs_search', { query: 'harmless', path: '@project' }],
    ['fs_list', { path: '@project/secret' }],
    ['fs_list', { path: '@project/way' }],
  );
  it('the rule for @project/secret/ cannot be bypassed by a search in the parent folder, or by a list of the folder', async () => {
    const [hidden, found, ...listed] = results(await arena.run(above));
    expect(hidden).not.toContain('@project/secret/key.txt:');
    expect(found).toContain('@project/docs/a.txt:1: harmless');
    expect(listed).toEqual([expect.stringContaining('FORBIDDEN'), expect.stringContaining('FORBIDDEN')]);
  });
});

describe('a rule that allows writing to @project/docs/', () => {
  const policy = [{ tool: 'fs_write', match: { path: '^@project/docs/.*$' }, allow: true }];
  const arena = new Arena({ policy }, { 'docs/out': '../secret', 'docs/git': '../.git' });
  beforeAll(() => arena.open());
  afterAll(() => arena.close());
  const write = (path: string) => arena.add(['fs_write', { path: `@project/${path}`, content: 'x' }]);

  const there = write('docs/a.txt');
  it('the rule for @project/docs/ releases a file there', async () => {
    expect(questions(await arena.run(there))).toEqual([]);
    expect(await arena.content('docs/a.txt')).toBe('x');
  });

  const out = write('docs/out/key.txt');
  it('the rule for @project/docs/ does not release a link out of it, so the call has to name the target', async () => {
    const entries = await arena.run(out);
    expect(started(entries)).toEqual([]);
    expect(results(entries)).toEqual([
      expect.stringContaining('leads from there to @project/secret/key.txt'),
    ]);
    expect(await arena.content('secret/key.txt')).toBe(SECRET);
  });

  const swapped = write('other/key.txt');
  it('the rule for @project/docs/ cannot be bypassed by a link that replaces a folder while an approval is open', async () => {
    await mkdir(arena.path('other'));
    const [question] = ofType(await arena.run(swapped), 'approval-requested');
    await rmdir(arena.path('other'));
    await symlink('secret', arena.path('other'));
    expect(results(await arena.approve(question?.approvalId ?? '', swapped)).join()).toMatch(
      /PATH_REFUSED|FORBIDDEN/,
    );
    expect(await arena.content('secret/key.txt')).toBe(SECRET);
  });

  const dots = write('docs/../secret/key.txt');
  const linked = write('docs/git/config');
  it('the rule for @project/docs/ releases neither ".." nor a link to a protected path', async () => {
    expect(results(await arena.run(dots))).toEqual([expect.stringContaining('INVALID_ARGUMENTS')]);
    expect(results(await arena.run(linked))).toEqual([expect.stringContaining('PATH_REFUSED')]);
    expect(await arena.content('secret/key.txt')).toBe(SECRET);
    expect(await arena.content('.git/config')).toBe('[core]');
  });
});

describe('a protected path', () => {
  const policy = [
    { tool: 'fs_write', match: { path: '^@project/\\.github/.*$' }, allow: true },
    { tool: 'fs_write', match: { path: '^@project/.*$' }, allow: true },
  ];
  const arena = new Arena({ risk: { fs_write: 'safe', fs_edit: 'safe' }, policy });
  beforeAll(() => arena.open());
  afterAll(() => arena.close());
  const write = (path: string) => arena.add(['fs_write', { path: `@project/${path}`, content: 'x' }]);

  const cases = sampleOf([
    ...['config/agents/lead.md', 'config/agents/new.md', 'config/parley.yaml', 'CONFIG/parley.yaml'],
    '.git/config',
    '.git/hooks/pre-commit',
    '.GIT/hooks/post-commit',
    'docs/.env',
    'docs/.env.local',
    '.claude/settings.json',
    '.cargo/config.toml',
    'bare/HEAD',
    '.npmrc',
    ...['.gitlab-ci.yml', '.bashrc', '.ssh/authorized_keys'],
  ]).map((path) => [path, write(path)] as const);
  it.each(cases)(
    'writing to the protected path %s needs an approval, though fs_write is safe and allowed',
    async (path, name) => {
      const entries = await arena.run(name);
      expect(started(entries)).toEqual([]);
      expect(questions(entries)).toEqual([expect.stringContaining(`@project/${path}, a protected path`)]);
      expect(await arena.content(path)).not.toBe('x');
    },
  );

  const edit = arena.add(['fs_edit', { path: '@project/.git/config', find: 'core', replace: 'x' }]);
  it('a protected path needs an approval before it is edited', async () => {
    expect(started(await arena.run(edit))).toEqual([]);
    expect(await arena.content('.git/config')).toBe('[core]');
  });

  const named = write('.github/ci.yml');
  it('a protected path is released by a rule whose pattern names it', async () => {
    expect(questions(await arena.run(named))).toEqual([]);
    expect(await arena.content('.github/ci.yml')).toBe('x');
  });

  const data = arena.add(
    ['fs_write', { path: '@project/data/connection.json', content: 'x' }],
    ['fs_read', { path: '@project/data/connection.json' }],
    ['fs_read', { path: '@project/DATA/connection.json' }],
  );
  it('the data directory is refused in any spelling', async () => {
    const entries = await arena.run(data);
    for (const result of results(entries)) expect(result).toMatch(/PATH_REFUSED|NOT_FOUND/);
    expect(results(entries)).toHaveLength(3);
    expect(await arena.content('data/connection.json')).not.toBe('x');
  });
});

describe('secrets in the project', () => {
  const policy = [{ tool: 'fs_*', allow: true }].flatMap((rule) =>
    ['fs_read', 'fs_list', 'fs_search', 'fs_write', 'fs_edit'].map((tool) => ({ ...rule, tool })),
  );
  const arena = new Arena({ policy }, { 'env-link': '.env', 'npm-link': '.npmrc' });
  beforeAll(async () => {
    await arena.open();
    await writeFile(arena.path('.npmrc'), SECRET);
    await mkdir(arena.path('.aws'));
    await writeFile(arena.path('.aws/credentials'), SECRET);
    await writeFile(arena.path('.env'), `A=1 # ${SECRET}`);
    await link(arena.path('.env'), arena.path('hard'));
    await link(arena.path('data/connection.json'), arena.path('hard-token'));
  });
  afterAll(() => arena.close());

  const closed = arena.add(
    ...['.env', '.ENV', 'env-link', 'hard', 'hard-token', 'config/.env'].flatMap((path): Call[] => [
      ['fs_read', { path: `@project/${path}` }],
      ['fs_search', { path: `@project/${path}`, query: 'e' }],
      ['fs_edit', { path: `@project/${path}`, find: 'e', replace: '' }],
      ['fs_edit', { path: `@project/${path}`, find: 'A=1', replace: 'A=1' }],
    ]),
    ['fs_write', { path: '@project/.env', content: 'PARLEY_NATS=nats://elsewhere' }],
    ['fs_write', { path: '@project/config/.env', content: 'PARLEY_NATS=nats://elsewhere' }],
  );
  it('the .env files and the token of the daemon are read and written by no name, though every file tool is allowed', async () => {
    const found = results(await arena.run(closed));
    expect(found).toHaveLength(26);
    for (const result of found) expect(result).toMatch(/PATH_REFUSED|NOT_FOUND/);
    expect(await arena.content('.env')).toBe(`A=1 # ${SECRET}`);
    expect(await arena.content('config/.env')).toBeNull();
  });

  const searched = arena.add(['fs_search', { query: 'that no agent' }]);
  it('a search leaves out the files with secrets', async () => {
    const [found] = results(await arena.run(searched));
    expect(found).toContain('@project/secret/key.txt:1');
    expect(found).not.toMatch(/\.npmrc:|\.aws|\.env:|hard:/);
  });

  const asked = sampleOf(['.npmrc', '.NPMRC', '.aws/credentials', 'docs/id_rsa', 'docs/.env.local']).map(
    (path) => [path, arena.add(['fs_read', { path: `@project/${path}` }])] as const,
  );
  it.each(asked)('reading %s waits for a person, though fs_read is allowed', async (path, name) => {
    const entries = await arena.run(name);
    expect(started(entries)).toEqual([]);
    expect(questions(entries)).toEqual([`fs_read would read @project/${path}, which may hold secrets`]);
  });

  const linked = arena.add(['fs_read', { path: '@project/npm-link' }]);
  it('a link to a file with secrets has to be named by its target', async () => {
    expect(results(await arena.run(linked))).toEqual([expect.stringContaining('PATH_REFUSED')]);
  });
});

describe('files that together are a bare git repository', () => {
  const policy = [
    { tool: 'shell', match: { command: '^git( -C bare)? status$' }, allow: true },
    { tool: 'fs_write', allow: true },
  ];
  const arena = new Arena({ policy });
  beforeAll(async () => {
    await arena.open();
    await mkdir(arena.path('bare/objects'), { recursive: true });
    await mkdir(arena.path('bare/refs'));
    const monitor = arena.path('hacked');
    await writeFile(
      arena.path('bare/config'),
      `[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "touch ${monitor}; false"\n`,
    );
  });
  afterAll(() => arena.close());

  const head = arena.add(['fs_write', { path: '@project/bare/HEAD', content: 'ref: refs/heads/main\n' }]);
  const status = arena.add(['shell', { command: 'git -C bare status' }]);
  it('a bare git repository is not written without a person, and the allowed `git status` runs no program of one', async () => {
    expect(questions(await arena.run(head))).toEqual([
      expect.stringContaining('bare/HEAD, a protected path'),
    ]);
    await writeFile(arena.path('bare/HEAD'), 'ref: refs/heads/main\n');
    const [result] = results(await arena.run(status));
    expect(result).toMatch(/exit code 128.*\n.*bareRepository/);
    expect(await arena.content('hacked')).toBeNull();
    // The attack is real: without that setting the program runs.
    spawnSync('git', ['-C', arena.path('bare'), 'status']);
    expect(await arena.content('hacked')).toBe('');
  });
});

describe('a rule that allows a command', () => {
  const policy = [{ tool: 'shell', match: { command: '^echo [^]*$' }, allow: true }];
  const arena = new Arena({ policy });
  beforeAll(() => arena.open());
  afterAll(() => arena.close());
  const shell = (command: string) => arena.add(['shell', { command }]);

  const plain = shell('echo  "hello" world');
  it('the rule for a command releases it with any quoting', async () => {
    expect(results(await arena.run(plain))).toEqual([expect.stringContaining('hello world')]);
  });

  const loose = [{ tool: 'shell', match: { command: '^git status' }, allow: true }];
  it('the rule `^git status` is refused, as it would allow `git status; id`', async () => {
    const other = new Arena({ policy: loose });
    other.add(['shell', { command: 'git status; touch hacked' }]);
    await expect(other.open()).rejects.toThrow('such as ^git status$');
    await other.close();
  });

  const cases = sampleOf([
    ...['echo a; touch hacked', 'echo a\ntouch hacked', 'echo a && touch hacked', 'echo a | touch hacked'],
    'echo a & touch hacked',
    'echo $(touch hacked)',
    'echo `touch hacked`',
    'echo a >hacked',
    'echo "$(id)"',
    ...['echo a # b', 'echo *', 'echo $HOME', 'echo a\\\nb', 'echo ~', 'echo {a,b}', "echo 'a\nb'"],
  ]).map((command) => [command, shell(command)] as const);
  it.each(cases)('the rule for a command does not release %j', async (_, name) => {
    const entries = await arena.run(name);
    expect(started(entries)).toEqual([]);
    expect(questions(entries)).toHaveLength(1);
    expect(await arena.content('hacked')).toBeNull();
  });
});

describe('a rule that forbids a command', () => {
  const policy = [{ tool: 'shell', match: { command: '^touch ' }, allow: false }];
  const arena = new Arena({ risk: { shell: 'safe' }, policy });
  beforeAll(() => arena.open());
  afterAll(() => arena.close());

  const cases = sampleOf([
    'touch h',
    'true; touch h',
    'true && to"uc"h h',
    'X=1 /usr/bin/touch h',
    'true | touch h',
  ]).map((command) => [command, arena.add(['shell', { command }])] as const);
  it.each(cases)('the rule against a command cannot be bypassed by %j', async (_, name) => {
    expect(results(await arena.run(name))).toEqual([expect.stringContaining('FORBIDDEN')]);
    expect(await arena.content('h')).toBeNull();
  });

  const unseen = sampleOf([
    ...['$(echo touch) h', 't\\ouch h', 'eval "touch h"', '{ touch h; }', 'true\n! touch h', 'env touch h'],
    'timeout 5 touch h',
    'nohup nice touch h',
    'echo h | xargs touch',
    "sh -c 'touch h'",
    'command touch h',
    ...["find . -maxdepth 0 -exec touch h ';'", "python3 -c 'open(1)'"],
    // Programs that no list names.
    'setarch -R touch h',
    'prlimit /usr/bin/touch h',
    'choom -n 1 -- touch h',
    "git -c alias.x='!touch h' x",
  ]).map((command) => [command, arena.add(['shell', { command }])] as const);
  it.each(unseen)('the command %j cannot be parsed, so it needs an approval', async (_, name) => {
    const entries = await arena.run(name);
    expect(started(entries)).toEqual([]);
    expect(results(entries).join()).toMatch(/^$|FORBIDDEN/);
    expect(await arena.content('h')).toBeNull();
  });
});
