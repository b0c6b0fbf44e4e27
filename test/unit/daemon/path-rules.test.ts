import { describe, expect, it } from 'vitest';
import type { ResolvedPath, Ruling, Subject, Toolbox, ToolRun } from '../../../src/agents/index.ts';
import type { Config } from '../../../src/config/index.ts';
import { rulingOn, toolRules, underPolicy } from '../../../src/daemon/tools/tool-policy.ts';
import { toolboxOf, toolNamed } from '../../support/toolbox.ts';

const READS: Subject = { kind: 'path', argument: 'path', writes: false };
const WRITES: Subject = { kind: 'path', argument: 'path', writes: true };

describe('the policy of paths', () => {
  const forbids = (path: string) => ({ match: { path }, ruling: 'forbidden' }) as const;
  const allows = (path: string) => ({ match: { path }, ruling: 'runs' }) as const;

  it.each<[string, ReturnType<typeof forbids | typeof allows>, string, string, Ruling]>([
    ['forbids what is written', forbids('^@project/secret/'), 'secret/a', 'other', 'forbidden'],
    ['forbids where it leads', forbids('^@project/secret/'), 'way/a', 'secret/a', 'forbidden'],
    ['forbids the folder itself', forbids('^@project/secret/'), 'way', 'secret', 'forbidden'],
    ['forbids other capitals', forbids('^@project/secret/'), 'Secret/a', 'SECRET/a', 'forbidden'],
    ['forbids full case folding', forbids('^@project/strasse$'), 'straße', 'straße', 'forbidden'],
    ['forbids the decomposed form', forbids('^@project/é$'), 'e\u0301', 'e\u0301', 'forbidden'],
    [
      'forbids ignorable characters',
      forbids('^@project/secret$'),
      's\u00adecret',
      's\u00adecret',
      'forbidden',
    ],
    ['forbids nothing else', forbids('^@project/secret/'), 'secrets/a', 'secrets/a', 'asks'],
    ['allows what fits both ways', allows('^@project/docs/.*$'), 'docs/a', 'docs/b', 'runs'],
    ['allows no link out', allows('^@project/docs/.*$'), 'docs/a', 'secret/a', 'asks'],
    ['allows no link in', allows('^@project/docs/.*$'), 'way/a', 'docs/a', 'asks'],
    ['allows names with capitals', allows('^@project/README\\.md$'), 'README.md', 'README.md', 'runs'],
    ['leaves out what differs in case', allows('^@project/[^s].*$'), 'SECRET/a', 'SECRET/a', 'asks'],
    ['allows no other capitals', allows('^@project/docs/.*$'), 'DOCS/a', 'DOCS/a', 'asks'],
  ])('a rule about a path %s', (_, rule, written, led, expected) => {
    const standing = { rules: [rule], otherwise: 'asks' as const, subject: READS };
    const place = { path: `@project/${led}`, protectedBy: [] };
    expect(rulingOn(standing, { path: `@project/${written}` }, place)).toBe(expected);
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

const WRITE = toolNamed('write', { subject: WRITES });
const toolboxWith = (more: Partial<Toolbox>) =>
  toolboxOf({ definitions: () => new Map([['write', WRITE]]), ...more });

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
  const toolbox = toolboxWith({
    locate: () => ({ kind: 'place', place: { path: '', protectedBy: [], ...place } }),
  });
  expect(toolRules(CONFIG, toolbox).judge(REQUEST)).toMatchObject(expected);
});

it('a call whose path leads to a closed folder is refused before an approval is requested', () => {
  const refused = { code: 'PATH_REFUSED', message: 'that path is outside the folders that tools may use' };
  const toolbox = toolboxWith({ locate: () => ({ kind: 'refused', ...refused }) });
  expect(toolRules(CONFIG, toolbox).judge(REQUEST)).toEqual({ kind: 'refuse', ...refused });
});

describe('a path that is resolved when the call runs', () => {
  /** Whether the run of a call on `@project/docs/a` may touch this place. */
  async function permits(place: ResolvedPath, isApproved?: true): Promise<boolean | undefined> {
    let answer: boolean | undefined;
    const toolbox = toolboxWith({
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
    const { signal } = new AbortController();
    await underPolicy(CONFIG, toolbox).run(isApproved ? { ...call, isApproved } : call, signal);
    return answer;
  }

  it.each<[string, string, Partial<ResolvedPath>, true | undefined, boolean]>([
    ['the place that was judged', 'docs/a', {}, undefined, true],
    ['a place that a link leads to by now', 'other/a', {}, undefined, false],
    ['a place that was approved', 'other/a', {}, true, true],
    ['a place that a link leads to by now, after approval', 'other/a', { isLinked: true }, true, false],
    ['a forbidden place', 'secret/a', {}, undefined, false],
    ['a forbidden place, after approval', 'secret/a', {}, true, false],
    ['a protected place', 'docs/.env', { protectedBy: ['.env'] }, undefined, false],
    ['a file that a search found', 'other/a', { isBelow: true }, undefined, true],
    ['a secret that a search found', 'docs/.aws', { isBelow: true, protectedBy: ['.aws'] }, true, false],
    [
      'a secret that an approved search names',
      'docs/a',
      { isBelow: true, protectedBy: ['docs'] },
      true,
      true,
    ],
    ['a secret that a search names', 'other/a', { isBelow: true, protectedBy: ['docs'] }, undefined, false],
    ['a forbidden file that a search found', 'secret/a', { isBelow: true }, undefined, false],
  ])('is permitted or refused: %s', async (_, path, more, isApproved, expected) => {
    expect(await permits({ path: `@project/${path}`, protectedBy: [], ...more }, isApproved)).toBe(expected);
  });
});
