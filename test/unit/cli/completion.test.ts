import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { parley } from './support.ts';

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
