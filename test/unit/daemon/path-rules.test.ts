import { describe, expect, it } from 'vitest';
import type { ResolvedPath, Ruling, Subject, Toolbox, ToolRun } from '../../../src/agents/index.ts';
import type { Config } from '../../../src/config/index.ts';
import { rulingOn } from '../../../src/daemon/tools/tool-policy.ts';
import { toolRules, underPolicy } from '../../../src/daemon/tools/tool-rules.ts';

const READS: Subject = { kind: 'path', argument: 'path', writes: false };
const WRITES: Subject = { kind: 'path', argument: 'path', writes: true };

describe('a rule about a path', () => {
  it.each<[string, Ruling, string, string, string, Ruling]>([
    [
      'forbids what is written',
      'forbidden',
      '^@project/secret/',
      '@project/secret/a',
      '@project/other',
      'forbidden',
    ],
    [
      'forbids where it leads',
      'forbidden',
      '^@project/secret/',
      '@project/way/a',
      '@project/secret/a',
      'forbidden',
    ],
    [
      'forbids the folder itself',
      'forbidden',
      '^@project/secret/',
      '@project/way',
      '@project/secret',
      'forbidden',
    ],
    [
      'forbids other capitals',
      'forbidden',
      '^@project/secret/',
      '@project/Secret/a',
      '@project/SECRET/a',
      'forbidden',
    ],
    [
      'forbids full case folding',
      'forbidden',
      '^@project/strasse$',
      '@project/straße',
      '@project/straße',
      'forbidden',
    ],
    [
      'forbids the decomposed form',
      'forbidden',
      '^@project/é$',
      '@project/e\u0301',
      '@project/e\u0301',
      'forbidden',
    ],
    [
      'forbids ignorable characters',
      'forbidden',
      '^@project/secret$',
      '@project/s\u00adecret',
      '@project/s\u00adecret',
      'forbidden',
    ],
    [
      'forbids nothing else',
      'forbidden',
      '^@project/secret/',
      '@project/secrets/a',
      '@project/secrets/a',
      'asks',
    ],
    [
      'allows what fits both ways',
      'runs',
      '^@project/docs/.*$',
      '@project/docs/a',
      '@project/docs/b',
      'runs',
    ],
    ['allows no link out', 'runs', '^@project/docs/.*$', '@project/docs/a', '@project/secret/a', 'asks'],
    ['allows no link in', 'runs', '^@project/docs/.*$', '@project/way/a', '@project/docs/a', 'asks'],
    [
      'allows names with capitals',
      'runs',
      '^@project/README\\.md$',
      '@project/README.md',
      '@project/README.md',
      'runs',
    ],
    [
      'leaves out what differs in case',
      'runs',
      '^@project/[^s].*$',
      '@project/SECRET/a',
      '@project/SECRET/a',
      'asks',
    ],
    ['allows no other capitals', 'runs', '^@project/docs/.*$', '@project/DOCS/a', '@project/DOCS/a', 'asks'],
  ])('%s', (_, ruling, path, written, led, expected) => {
    const standing = { rules: [{ match: { path }, ruling }], otherwise: 'asks' as const, subject: READS };
    expect(rulingOn(standing, { path: written }, { path: led, protectedBy: [] })).toBe(expected);
  });

  it('a rule compares the default path when a call names none', () => {
    const rules = [{ match: { path: '^@project$' }, ruling: 'forbidden' as const }];
    const standing = { rules, otherwise: 'runs' as const, subject: READS };
    expect(rulingOn(standing, { query: 'x' }, { path: '@project', protectedBy: [] })).toBe('forbidden');
  });

  it.each<[string, string | null, Subject, Ruling]>([
    ['asks though the tool is safe', null, WRITES, 'asks'],
    ['asks though a rule allows everything', '^@project/.*$', WRITES, 'asks'],
    ['asks though a rule names a part of the name', '^@project/x?\\.git.*$', WRITES, 'asks'],
    ['runs where the rule names it', '^@project/\\.git/.*$', WRITES, 'runs'],
    ['runs where the rule ends with it', '^@project/\\.git$', WRITES, 'runs'],
    ['asks to read what may hold secrets', null, READS, 'asks'],
    ['runs where the rule names what is read', '^@project/\\.git/.*$', READS, 'runs'],
  ])('a rule on a protected path %s', (_, pattern, subject, expected) => {
    const rules = pattern === null ? [] : [{ match: { path: pattern }, ruling: 'runs' as const }];
    const path = pattern?.endsWith('git$') ? '@project/.git' : '@project/.git/config';
    expect(rulingOn({ rules, otherwise: 'runs', subject }, { path }, { path, protectedBy: ['.git'] })).toBe(
      expected,
    );
  });
});

/** The policy of the tests below, for one tool that writes. */
const POLICY = [
  { tool: 'write', match: { path: '^@project/secret/' }, allow: false },
  { tool: 'write', match: { path: '^@project/docs/.*$' }, allow: true },
];
const CONFIG = { tools: { risk: {}, policy: POLICY } } as unknown as Config;

function toolboxOf(more: Partial<Toolbox>): Toolbox {
  const definition = {
    name: 'write',
    description: '',
    parameters: {},
    risk: 'risky',
    subject: WRITES,
  } as const;
  return {
    definitions: () => new Map([['write', definition]]),
    check: () => null,
    run: async () => ({ kind: 'aborted' }),
    close: async () => undefined,
    ...more,
  };
}

const REQUEST = {
  agent: 'dev',
  name: 'write',
  available: ['write'],
  arguments: '{"path":"@project/docs/a"}',
};

it.each<[string, Partial<ResolvedPath>, object]>([
  ['is run', { path: '@project/docs/b' }, { kind: 'run' }],
  ['is forbidden', { path: '@project/secret/b' }, { kind: 'refuse', code: 'FORBIDDEN' }],
  [
    'has to name where the link leads',
    { path: '@project/other/\u202e', isLinked: true },
    { kind: 'refuse', code: 'PATH_REFUSED', message: expect.stringContaining('@project/other/\\u202e,') },
  ],
  ['is asked for', { path: '@project/other/b' }, { kind: 'ask', why: expect.stringContaining('outside') }],
  [
    'is asked for with its path',
    { path: '@project/docs/.env', protectedBy: ['.env'] },
    { kind: 'ask', why: 'write would change @project/docs/.env, a protected path' },
  ],
])('a call on a path %s', (_, place, expected) => {
  const toolbox = toolboxOf({
    locate: () => ({ kind: 'place', place: { path: '', protectedBy: [], ...place } }),
  });
  expect(toolRules(CONFIG, toolbox).judge(REQUEST)).toMatchObject(expected);
});

it('a call whose path leads to a closed folder is refused before an approval is requested', () => {
  const refused = { code: 'PATH_REFUSED', message: 'that path is outside the folders that tools may use' };
  const toolbox = toolboxOf({ locate: () => ({ kind: 'refused', ...refused }) });
  expect(toolRules(CONFIG, toolbox).judge(REQUEST)).toEqual({ kind: 'refuse', ...refused });
});

describe('a path that is resolved when the call runs', () => {
  /** Whether the run of a call on `@project/docs/a` may touch this place. */
  async function permits(place: ResolvedPath, isApproved?: true): Promise<boolean | undefined> {
    let answer: boolean | undefined;
    const toolbox = toolboxOf({
      run: async (call) => {
        answer = call.permits?.(place);
        return { kind: 'aborted' };
      },
    });
    const call = {
      name: 'write',
      agent: 'dev',
      arguments: { path: '@project/docs/a' },
    } as unknown as ToolRun;
    await underPolicy(CONFIG, toolbox).run(
      isApproved ? { ...call, isApproved } : call,
      new AbortController().signal,
    );
    return answer;
  }

  it.each<[string, string, Partial<ResolvedPath>, true | undefined, boolean]>([
    ['the place that was judged', '@project/docs/a', {}, undefined, true],
    ['a place that a link leads to by now', '@project/other/a', {}, undefined, false],
    ['a place that was approved', '@project/other/a', {}, true, true],
    [
      'a place that a link leads to by now, after approval',
      '@project/other/a',
      { isLinked: true },
      true,
      false,
    ],
    ['a forbidden place', '@project/secret/a', {}, undefined, false],
    ['a forbidden place, after approval', '@project/secret/a', {}, true, false],
    ['a protected place', '@project/docs/.env', { protectedBy: ['.env'] }, undefined, false],
    ['a file that a search found', '@project/other/a', { isBelow: true }, undefined, true],
    [
      'a secret that a search found',
      '@project/docs/.aws',
      { isBelow: true, protectedBy: ['.aws'] },
      true,
      false,
    ],
    [
      'a secret that an approved search names',
      '@project/docs/a',
      { isBelow: true, protectedBy: ['docs'] },
      true,
      true,
    ],
    [
      'a secret that a search names',
      '@project/other/a',
      { isBelow: true, protectedBy: ['docs'] },
      undefined,
      false,
    ],
    ['a forbidden file that a search found', '@project/secret/a', { isBelow: true }, undefined, false],
  ])('is permitted or refused: %s', async (_, path, more, isApproved, expected) => {
    expect(await permits({ path, protectedBy: [], ...more }, isApproved)).toBe(expected);
  });
});
