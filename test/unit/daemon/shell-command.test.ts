import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commandsIn, plainCommand } from '../../../src/daemon/tools/shell-command.ts';

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
  ])('%j is %j', (text, form) => {
    expect(plainCommand(text)).toBe(form);
  });

  it.each([
    ...[
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
    ],
    ...[
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
    ],
    ...[
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
    ],
    ...[
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
    ],
  ])('%j is not plain', (text) => {
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
  ])('%j are %j (all of them: %j)', (text, commands, isAll) => {
    expect(commandsIn(text)).toMatchObject({ isAll });
    expect(commandsIn(text).commands).toEqual(expect.arrayContaining(commands));
  });
});

/** Random texts in a real shell, in an empty folder, where each program on the PATH leaves a trace. */
describe('a plain command in a real shell', () => {
  let folder: string;
  let programs: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-shell-'));
    programs = join(folder, 'programs');
    await mkdir(programs);
    await mkdir(join(folder, 'work'));
    for (const name of ['a', 'b', 'touch', 'id', 'rm']) {
      await writeFile(join(programs, name), `#!/bin/sh\n: > "${folder}/work/ran-${name}"\n`);
      await chmod(join(programs, name), 0o755);
    }
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const run = (command: string) =>
    spawnSync('/bin/sh', ['-c', command], {
      cwd: join(folder, 'work'),
      env: { PATH: programs },
      encoding: 'utf8',
    });

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

  it('that matches ^echo( [a-z]+)*$ runs echo with these words, and nothing else', async () => {
    const rule = /^echo( [a-z]+)*$/u;
    let released = 0;
    fc.assert(
      fc.property(fc.constantFrom('echo ', 'echo', ' "echo" '), text, (start, rest) => {
        const command = `${start}${rest}`;
        const plain = plainCommand(command);
        if (plain === null || !rule.test(plain)) return;
        released += 1;
        const { stdout, stderr, status } = run(command);
        expect([stdout, stderr, status]).toEqual([`${plain.slice('echo '.length)}\n`, '', 0]);
      }),
      { numRuns: 600 },
    );
    expect(released).toBeGreaterThan(50);
    expect(await readdir(join(folder, 'work'))).toEqual([]);
  });

  it('gets the same words as in its normal form', async () => {
    let plains = 0;
    const show = `show() { for word; do printf '<%s>' "$word"; done; }; show`;
    fc.assert(
      fc.property(text, (rest) => {
        const plain = plainCommand(`show ${rest}`);
        if (plain === null) return;
        plains += 1;
        const [given, formed] = [run(`${show} ${rest}`), run(`${show.slice(0, -4)}${plain}`)];
        expect([given.stdout, given.stderr]).toEqual([formed.stdout, '']);
      }),
      { numRuns: 400 },
    );
    expect(plains).toBeGreaterThan(50);
    expect(await readdir(join(folder, 'work'))).toEqual([]);
  });
});
