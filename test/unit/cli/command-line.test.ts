import { execFileSync } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withDocuments } from '../../../src/cli/context.ts';
import { commandLine, withFlags } from '../../../src/cli/options/options.ts';
import { ParleyError } from '../../../src/client/index.ts';
import { ROOT } from '../../support/pages.ts';
import { fakeDaemon, parley } from './support.ts';

const io = { invocation: 'parley' };

describe('a suggested command', () => {
  it('a suggested command has the flags that lead to the same daemon, quoted for a shell', () => {
    const options = { data: "/my data/it's", natsUser: 'bob', prefix: 'p', json: true, verbose: true };
    expect(commandLine(io, options, 'chat')).toBe(
      String.raw`parley chat --data '/my data/it'\''s' --nats-user bob --prefix p`,
    );
  });

  it('a suggested command contains no password, no token, and not the default `managed`', () => {
    const secret = {
      natsPassword: 'sesame',
      natsToken: 'sesame',
      nats: 'nats://u:sesame@h:1,nats://u:sesame@i:1',
    };
    expect(commandLine(io, secret, 'ls')).toBe('parley ls --nats nats://h:1,nats://i:1');
    const odd = { nats: 'nats://u:se,same@h:1, nats://u:sesa/me@i:1,tls://u:ses@me@j:1' };
    expect(commandLine(io, odd, 'ls')).toBe('parley ls --nats nats://h:1,nats://i:1,tls://j:1');
    expect(commandLine(io, { nats: 'managed' }, 'ls')).toBe('parley ls');
  });

  it('a suggested command has no flag that it would refuse', () => {
    const both = { data: 'd', nats: 'nats://h:1', prefix: 'p' };
    expect(commandLine(io, both, 'ls')).toBe('parley ls --nats nats://h:1 --prefix p');
    expect(commandLine(io, both, 'dead show 1')).toBe('parley dead show 1 --nats nats://h:1 --prefix p');
    expect(commandLine(io, both, 'up')).toBe('parley up --data d --nats nats://h:1');
    expect(commandLine(io, both, 'fsck')).toBe('parley fsck --data d');
    expect(commandLine(io, { ...both, nats: 'managed' }, 'ls')).toBe('parley ls --data d --prefix p');
  });

  it('a command in the text of a daemon is completed with the flags of this call', () => {
    const npm = { invocation: 'npm run --silent parley --' };
    expect(withFlags(npm, { data: 'd' }, 'see `parley ls`, or `parley show c`; parley is up')).toBe(
      'see `npm run --silent parley -- ls --data d`, or `npm run --silent parley -- show c --data d`; parley is up',
    );
  });
});

describe('commands with --data', () => {
  const env = { PARLEY_NATS_URL: '' };

  it.each([
    [['ls', '--data', '/a b'], "`parley up --data '/a b'`"],
    [['--data', '/a b', 'ls'], "`parley up --data '/a b'`"],
    [['chat', 'c', '--json', '--data', '/a b'], "`parley up --data '/a b'`"],
    [['resolve', 'x', '--data', '/a b'], "`parley resolve ID --rerun --data '/a b'`"],
    [['doctor', '--data', '/a b'], "`parley up --data '/a b'`"],
  ])('%j suggests the commands that work on a data directory', async (argv, wanted) => {
    const ran = await parley(argv, { env });
    const said = argv.includes('--json') ? JSON.stringify(ran.json()) : ran.err + ran.out;
    expect(said).toContain(wanted);
  });

  it('commands with --data complete the commands that a daemon suggests', async () => {
    const hint = 'post a message to begin one; `parley ls` lists the conversations';
    const daemon = fakeDaemon({ agents: new ParleyError('NOT_FOUND', 'there is none', { hint }) });
    const ran = await parley(['agents', '--nats', 'nats://h:1'], { daemon });
    expect(ran.err).toContain('`parley ls --nats nats://h:1` lists');
  });

  it('commands with --data complete the commands that answer an approval', async () => {
    const common = { conversation: 'demo', agent: 'dev', tool: 'shell', risk: 'risky', arguments: '{}' };
    const approvals = [
      { ...common, approvalId: 'a1', mayHaveRun: false },
      { ...common, approvalId: 'a2', mayHaveRun: true },
    ];
    const daemon = fakeDaemon({ approvals: { approvals } });
    const { out } = await parley(['approvals', '--nats', 'nats://h:1'], { daemon });
    expect(out).toContain(
      'parley approve a1 --nats nats://h:1   or   parley deny a1 --reason "…" --nats nats://h:1',
    );
    expect(out).toContain('--result JSON --nats nats://h:1');
  });
});

/** What bash offers after these words, with a `parley` that lists two conversations. */
async function offered(...words: readonly string[]): Promise<string[]> {
  const { out } = await parley(['completion', 'bash']);
  const fake = `timeout() { shift 2; printf 'ID  TITLE\\nphotos  x\\nplan  y\\n'; }`;
  const line = ['parley', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${fake}\n${out}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _parley; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
}

describe('the completion for bash', () => {
  it('offers commands, then the options of the command and the ids of conversations', async () => {
    expect(await offered('sta')).toEqual(['status']);
    expect(await offered('up', '--w')).toEqual(['--watch']);
    expect(await offered('show', 'p')).toEqual(['photos', 'plan']);
    expect(await offered('dead', 'l')).toEqual(['ls']);
    expect(await offered('ls', '--js')).toEqual(['--json']);
    expect(await offered('completion', 'f')).toEqual(['fish']);
  });
});

it.each(['bash', 'zsh', 'fish'])('the script for %s names each command', async (shell) => {
  const { code, out } = await parley(['completion', shell]);
  expect(code).toBe(0);
  for (const command of ['say|', 'dead retry|', 'dead ls|']) expect(out).toContain(command);
});

it('the help of a command lists only its own options, and names where the global ones are', async () => {
  const { out } = await parley(['up', '--help']);
  expect(out).toContain('--watch');
  expect(out).not.toContain('--nats-user');
  expect(out).toContain('Global options (--json, --data, --nats, …): parley --help');
});

describe('documents that messages name', () => {
  it('a message names the document in the package, relative to a folder above it', () => {
    const text = 'see docs/guides/troubleshooting.md.';
    const inside = withDocuments({ workingDirectory: join(ROOT, '..') }, text);
    expect(inside).toMatch(/^see [\w-]+\/docs\/guides\/troubleshooting\.md\.$/);
    const elsewhere = withDocuments({ workingDirectory: '/nowhere' }, text);
    expect(elsewhere).toBe(`see ${join(ROOT, 'docs/guides/troubleshooting.md')}.`);
  });

  it('a path that is complete already stays as it is', () => {
    for (const workingDirectory of [join(ROOT, '..'), '/nowhere']) {
      const once = withDocuments({ workingDirectory }, 'see docs/guides/troubleshooting.md');
      expect(withDocuments({ workingDirectory }, once)).toBe(once);
    }
  });

  it('a message keeps the path in a checkout, and the path of a document that does not exist', () => {
    expect(withDocuments({ workingDirectory: ROOT }, 'docs/spec/wire.md')).toBe('docs/spec/wire.md');
    expect(withDocuments({ workingDirectory: '/nowhere' }, 'docs/spec/no.md')).toBe('docs/spec/no.md');
  });

  it('every document and example that the source names is in the package', async () => {
    const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const sources = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((path) =>
      /\.tsx?$/.test(path),
    );
    const texts = await Promise.all(sources.map((path) => readFile(join(ROOT, 'src', path), 'utf8')));
    const pattern =
      /\b(?:docs|examples|config|deploy|scripts|bench|templates)\/[\w-]+\/?[\w./-]*\.(?:md|ya?ml|json|ts|mjs|py)\b/g;
    const named = [...new Set(texts.flatMap((text) => text.match(pattern) ?? []))].filter(
      (path) => !/^config\/agents/.test(path),
    );
    expect(named.length).toBeGreaterThan(10);
    for (const path of named) {
      expect(
        files.some((one: string) => path === one || path.startsWith(`${one}/`)),
        path,
      ).toBe(true);
      if (path.startsWith('docs/')) await stat(join(ROOT, path));
    }
  });
});
