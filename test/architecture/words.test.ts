import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './cruise.ts';
import { ENVIRONMENT, IMPURE, readSources, usesOf, withoutComments } from './forbidden-words.ts';

describe('the core', () => {
  it('uses no clock, no randomness, no timer and no environment', async () => {
    const sources = await readSources(join(ROOT, 'src/conversation'));
    expect(sources.map(({ path }) => path)).toContain('log/entry.ts'); // something was read
    expect(usesOf(IMPURE, sources)).toEqual([]);
  });

  it.each([
    'const now = Date.now();',
    'const now = new Date();',
    'const now = new Date( ).toISOString();',
    'const number = Math.random();',
    'const folder = process.cwd();',
    'setTimeout(next, 5);',
    "import { readFile } from 'node:fs/promises';",
    'const id = crypto.randomUUID();',
    "const other = await import('./other.ts');",
  ])('may not contain: %s', (code) => {
    expect(usesOf(IMPURE, [{ path: 'a.ts', code: withoutComments(code) }])).not.toEqual([]);
  });

  it.each([
    'const at = new Date(now).toISOString();',
    '// never Date.now() here',
    '/* process.env is for src/config */',
    "const note = 'what is in process';",
    "const url = 'http://x'; const processed = 1;",
  ])('may contain: %s', (code) => {
    expect(usesOf(IMPURE, [{ path: 'a.ts', code: withoutComments(code) }])).toEqual([]);
  });
});

describe('a class', () => {
  const PRIVATE = [/^ +private (?!constructor)/m];

  it('has members with #, not with the keyword private', async () => {
    expect(usesOf(PRIVATE, await readSources(join(ROOT, 'src')))).toEqual([]);
  });

  it('may have a private constructor', () => {
    expect(usesOf(PRIVATE, [{ path: 'a.ts', code: 'class A {\n  private constructor() {}\n}' }])).toEqual([]);
    expect(usesOf(PRIVATE, [{ path: 'a.ts', code: 'class A {\n  private readonly b = 1;\n}' }])).toHaveLength(
      1,
    );
  });
});

/** The text of a program that runs as a process of its own, which is given its environment. */
const OTHER_PROGRAM = 'acp/agents/bridge.ts';

describe('the environment', () => {
  it('is read once, by the command line', async () => {
    const sources = await readSources(join(ROOT, 'src'));
    expect(sources.length).toBeGreaterThan(30);
    const uses = usesOf(
      ENVIRONMENT,
      sources.filter(({ path }) => path !== OTHER_PROGRAM),
    );
    expect(uses.filter((use) => !use.startsWith('cli/'))).toEqual([]);
    expect(uses.length).toBeLessThanOrEqual(1);
  });

  it.each([
    'const key = process.env.OPENAI_API_KEY;',
    "const key = process['env'].KEY;",
    'const { env } = process;',
    "import { env } from 'node:process';",
  ])('is found in: %s', (code) => {
    expect(usesOf(ENVIRONMENT, [{ path: 'a.ts', code }])).not.toEqual([]);
  });
});
