import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { commandsIn, plainCommand } from '../../../src/conversation/tools/shell-command.ts';
import { sharedFolder } from '../../support/lifetime.ts';

describe('the normal form of a plain command', () => {
  it.each([
    ['npm test', 'npm test'],
    ['  npm \t test ', 'npm test'],
    [`npm "test"`, 'npm test'],
    [`n'p'm te"s"t`, 'npm test'],
    ['git log --format=%h -n1 a/b_c@d:e,f+g', 'git log --format=%h -n1 a/b_c@d:e,f+g'],
    [`git commit -m "a; b"`, `git commit -m 'a; b'`],
    [`git commit -m "it's"`, `git commit -m 'it'\\''s'`],
    [`echo ''`, `echo ''`],
    [`echo 'ü $HOME *'`, `echo 'ü $HOME *'`],
    ['/bin/ls', '/bin/ls'],
  ])('the normal form of the command %j is %j', (text, form) => {
    expect(plainCommand(text)).toBe(form);
  });

  it.each([
    '',
    ' ',
    "''",
    'a; b',
    'a && b',
    'a || b',
    'a | b',
    'a & b',
    'a &',
    'a;',
    '(a)',
    '{ a; }',
    'a\nb',
    'a\rb',
    'a > f',
    'a < f',
    'a 2>&1',
    'a <<x',
    'a $(b)',
    'a `b`',
    'a $b',
    'a "$b"',
    'a "`b`"',
    'a *',
    'a ?',
    'a [b]',
    'a ~',
    'a {b,c}',
    'a # b',
    '#',
    'a \\; b',
    'a\\\nb',
    'X=1 a',
    'X=1',
    '"X"=1 a',
    '! a',
    'if a',
    'eval a',
    '. a',
    "a 'b",
    'a "b',
    "a 'b\nc'",
    'a "b\\c"',
    'a\u00a0b',
    'ü',
    'a\u2028b',
    "a '\u202eb'",
    "a '\u0000'",
    'a ^b',
    'a !b',
  ])('the command %j is not plain', (text) => {
    expect(plainCommand(text)).toBeNull();
  });
});

describe('the commands of a text', () => {
  it.each<[string, string[], boolean]>([
    ['rm x', ['rm x'], true],
    ['a; rm x && b | c & d', ['a', 'rm x', 'b', 'c', 'd'], true],
    ['r""m x', ['rm x'], true],
    ['/bin/rm x', ['/bin/rm x', 'rm x'], true],
    ['X=1 Y=2 rm x', ['rm x'], true],
    ['a\nrm x', ['a', 'rm x'], false],
    ['a $(rm x)', ['rm x'], false],
    ['a > rm', ['a'], false],
    ['if a; then rm x; fi', ['if a'], false],
    ['eval "rm x"', [`eval 'rm x'`], false],
    ['rm ${', [], false],
  ])('the commands of %j are %j (complete: %j)', (text, commands, isAll) => {
    expect(commandsIn(text)).toMatchObject({ isAll });
    expect(commandsIn(text).commands).toEqual(expect.arrayContaining(commands));
  });
});

describe('a command that runs another one', () => {
  const WRAPPED = [
    'env rm x',
    'env -i A=1 rm x',
    '/usr/bin/env rm x',
    'nice rm x',
    'nice -n 5 rm x',
    'ionice rm x',
    'timeout 5 rm x',
    'nohup rm x',
    'xargs rm',
    'echo x | xargs rm',
    "sh -c 'rm x'",
    "/bin/bash -lc 'rm x'",
    'dash x.sh',
    'sudo rm x',
    'find . -exec rm {} +',
    "find . -name 'a' -execdir rm x ';'",
    'find . -ok rm x',
    'busybox rm x',
    'toybox rm x',
    'command rm x',
    'exec rm x',
    'builtin rm x',
    'setsid rm x',
    'stdbuf -oL rm x',
    'time rm x',
    '/usr/bin/time rm x',
    'doas rm x',
    "su -c 'rm x'",
    'flock f rm x',
    'chroot / rm x',
    'unshare rm x',
    'watch rm x',
    'strace rm x',
    "python3 -c 'import os'",
    "perl -e 'unlink 1'",
    "awk 'BEGIN{system(1)}'",
    'ENV rm x',
    'ls && env rm x',
  ];

  it.each(WRAPPED)('the command %j counts as one that cannot be read', (text) => {
    expect(commandsIn(text).isAll).toBe(false);
  });

  it.each([
    'any-wrapper rm x',
    'choom -n 1 -- /bin/rm x',
    "git -c alias.x='!rm x' x",
    "sed '1e rm x' f",
    `tool --run='system("rm x")'`,
    "tmux new -d 'cd a;rm x'",
  ])('the command %j may run rm, whatever its program is', (text) => {
    expect(commandsIn(text).possible.some((command) => /^rm x/.test(command))).toBe(true);
  });

  it.each([
    ['words', 'a '.repeat(600)],
    ['characters', `a ${'b'.repeat(4_000)} `.repeat(20)],
  ])('a command of more %s than are compared cannot be read, and costs no time', (_, text) => {
    expect(commandsIn(`tool ${text}`)).toMatchObject({ isAll: false, possible: [] });
  });

  it.each(['ls', 'find . -name x', 'npm test', 'python3 x.py', 'git status', 'timeouts', 'grep -e rm x'])(
    'the command %j can be read',
    (text) => {
      expect(commandsIn(text).isAll).toBe(true);
    },
  );
});

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number;
}

/** Random texts in a real shell, in an empty folder, where each program on the PATH leaves a trace. */
describe('a plain command in a real shell', () => {
  const folder = sharedFolder();
  let programs: string;
  beforeAll(async () => {
    programs = join(folder, 'programs');
    for (const name of ['programs', 'work', 'ran']) await mkdir(join(folder, name));
    for (const name of ['a', 'b', 'touch', 'id', 'rm']) {
      await writeFile(join(programs, name), `#!/bin/sh\n: > "${folder}/work/ran-${name}"\n`);
      await chmod(join(programs, name), 0o755);
    }
  });

  /** Each command has a shell of its own. One shell starts them all: it forks faster than Node does. */
  function runEach(commands: readonly string[]): Ran[] {
    const ran = join(folder, 'ran');
    const loop =
      'n=0; for c; do /bin/sh -c "$c" >"$RAN/$n.out" 2>"$RAN/$n.err"; echo $? >"$RAN/$n.status"; n=$((n+1)); done';
    const { status, error } = spawnSync('/bin/sh', ['-c', loop, 'sh', ...commands], {
      cwd: join(folder, 'work'),
      env: { PATH: programs, RAN: ran },
    });
    expect([status, error]).toEqual([0, undefined]);
    const read = (at: number, kind: string) => readFileSync(join(ran, `${at}.${kind}`), 'utf8');
    return commands.map((_, at) => ({
      stdout: read(at, 'out'),
      stderr: read(at, 'err'),
      status: Number(read(at, 'status')),
    }));
  }

  const PARTS = [
    'echo',
    'touch',
    'id',
    'a',
    'b',
    'z',
    ' ',
    '  ',
    '\t',
    '\n',
    ';',
    '&',
    '|',
    '&&',
    '||',
    '>',
    '<',
  ];
  const MARKS = [
    '$',
    '$(',
    ')',
    '`',
    '(',
    '{',
    '}',
    ',',
    '*',
    '?',
    '[',
    ']',
    '~',
    '#',
    '!',
    '^',
    '=',
    'X=1 ',
    '%',
    '-',
  ];
  const QUOTES = [
    "'",
    '"',
    "''",
    '""',
    "'a'",
    '"b"',
    '\\',
    '\\\n',
    '$HOME',
    '$(id)',
    '\u00a0',
    'ü',
    '..',
    '/',
  ];
  const part = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(' ', 'a', 'b', ' z', "'a'", '"b"') },
    { weight: 1, arbitrary: fc.constantFrom(...PARTS, ...MARKS, ...QUOTES) },
  );
  const text = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''));

  it('a command that a rule for echo releases runs echo with these words, and nothing else', async () => {
    const rule = /^echo( [a-z]+)*$/u;
    const commands = fc
      .sample(fc.tuple(fc.constantFrom('echo ', 'echo', ' "echo" '), text), 600)
      .map((parts) => parts.join(''));
    const released = commands.filter((command) => rule.test(plainCommand(command) ?? ''));
    expect(released.length).toBeGreaterThan(50);
    const expected = released.map((command) => {
      const stdout = `${plainCommand(command)?.slice('echo '.length)}\n`;
      return { command, stdout, stderr: '', status: 0 };
    });
    const ran = runEach(released).map((one, at) => ({ command: released[at], ...one }));
    expect(ran).toEqual(expected);
    expect(await readdir(join(folder, 'work'))).toEqual([]);
  });

  it('a command passes on the same words as its normal form', async () => {
    const show = `show() { for word; do printf '<%s>' "$word"; done; }; show`;
    const commands = fc.sample(text, 400).map((rest) => `show ${rest}`);
    const plain = commands.filter((command) => plainCommand(command) !== null);
    expect(plain.length).toBeGreaterThan(50);
    const wordsOf = (texts: readonly string[]) =>
      runEach(texts.map((one) => `${show}${one.slice('show'.length)}`)).map(({ stdout, stderr }, at) => ({
        command: plain[at],
        stdout,
        stderr,
      }));
    const formed = wordsOf(plain.map((command) => plainCommand(command) ?? ''));
    expect(wordsOf(plain)).toEqual(formed.map((one) => ({ ...one, stderr: '' })));
    expect(await readdir(join(folder, 'work'))).toEqual([]);
  });
});
