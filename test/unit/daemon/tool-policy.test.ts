import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Ruling, Toolbox } from '../../../src/agents/index.ts';
import { assembleOnce, toolsOf } from '../../../src/agents/requests/requests.ts';
import type { Config } from '../../../src/config/index.ts';
import {
  availableTools,
  createRoster,
  EMPTY_STATE,
  type Entry,
  evolve,
  settingAt,
} from '../../../src/conversation/index.ts';
import { requestSources } from '../../../src/daemon/team/team.ts';
import { availabilityOf, riskOf, rulingOn, toolRules } from '../../../src/daemon/tools/tool-policy.ts';
import { createBuiltInTools, createToolbox } from '../../../src/tools/index.ts';
import { runs } from '../../support/runs.ts';
import { toolboxOf, toolNamed } from '../../support/toolbox.ts';
import { cardOf, Log } from '../agents/support.ts';

/** The tools that an agent sees are those that it may call. */

const RISKS = { reads: 'safe', looks: 'safe', writes: 'risky', shell: 'risky' } as const;
type Name = keyof typeof RISKS;
const NAMES = Object.keys(RISKS) as Name[];
const GIVEN = [{}, { command: 'npm test' }, { command: 'rm' }, { command: 'npm test', path: 'a' }];

const toolbox = toolboxOf({
  definitions: () => new Map(NAMES.map((name) => [name, toolNamed(name, { risk: RISKS[name] })])),
});

/** An agent with these tools, and a workflow whose one node may narrow them. */
function listing(listed: readonly string[], tools: object = {}, nodeTools?: readonly string[]): Config {
  const card = cardOf('dev', { tools: listed });
  const node = { agent: 'dev', brief: 'Build.', outcomes: { done: 'end' } };
  const nodes = { build: { ...node, ...(nodeTools && { tools: nodeTools }) } };
  return {
    agents: [{ ...card, model: 'default', persona: 'You build.', context: {} }],
    roster: createRoster([card], 'dev'),
    models: {},
    prompts: { baseChat: 'Base.', baseRun: 'Run.', toolPolicy: 'How to use tools.' },
    workflows: [{ id: 'ship', start: 'build', nodes }],
    tools: { risk: {}, policy: [], ...tools },
  } as unknown as Config;
}

const IN_NODE = ['reads', 'shell'];
const configured = (tools: Partial<Config['tools']>) =>
  listing([...NAMES, 'handoff', 'mcp__away__tool'], tools, IN_NODE);

/** What the agent's request says, and what would become of each call. */
function told(config: Config, inRun = false) {
  const sources = requestSources(config, toolbox);
  const setup = sources.agents.get('dev');
  if (!setup) throw new Error('no agent');
  const log = new Log();
  if (inRun) {
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const entry = { id: 'r', createdAt: '2026-01-01T00:00:00.000Z', author };
    const run = { runId: 'run', workflowId: 'ship' };
    const made = [
      { type: 'mode-entered', from: 'agent', to: 'run', by: 'Ann', ...entry },
      { type: 'run-started', ...run, ...entry },
      { type: 'node-entered', ...run, node: 'build', to: ['dev'], hops: 0, ...entry },
    ];
    log.entries.push(...made.map((one, index) => ({ index, ...one }) as unknown as Entry));
  }
  log.start('dev', log.person('go', ['dev']));
  const state = log.entries.reduce(evolve, EMPTY_STATE);
  const { draft, tools } = assembleOnce(sources, setup, log.entries, state, 'demo');
  const setting = settingAt(state, state.length, 'dev');
  const available = availableTools(setup.card, setting, sources.workflows);
  const rules = toolRules(config, toolbox);
  const judged = (name: string, given: object) => {
    const judgement = rules.judge({ agent: 'dev', name, arguments: JSON.stringify(given), available });
    return judgement.kind === 'refuse' ? judgement.code : judgement.kind;
  };
  return {
    prompt: draft.request.messages[0]?.content ?? '',
    offered: draft.request.tools.map((tool) => tool.function.name),
    tools,
    judged,
  };
}

/** The names on the prompt's line that begins so. */
const lineOf = (prompt: string, begin: string) =>
  [...(prompt.split('\n').find((line) => line.startsWith(`- ${begin}`)) ?? '').matchAll(/`([^`]+)`/g)].map(
    ([, name]) => name,
  );

const rule = fc.record(
  {
    agent: fc.constantFrom('dev', 'pm'),
    tool: fc.constantFrom<string>(...NAMES),
    match: fc.constantFrom({ command: '^npm test$' }, { command: '^rm' }, { command: 'npm', path: 'a' }, {}),
    allow: fc.boolean(),
  },
  { requiredKeys: ['tool', 'allow'] },
);
const settings = fc.record({
  policy: fc.array(rule as fc.Arbitrary<Config['tools']['policy'][number]>, { maxLength: 6 }),
  risk: fc.dictionary(fc.constantFrom<string>(...NAMES), fc.constantFrom('safe' as const, 'risky' as const)),
});

describe('the description of its tools that an agent gets', () => {
  it.each([false, true])(
    'the description of tools in the prompt matches what the policy permits (in a run: %s)',
    (inRun) => {
      fc.assert(
        fc.property(settings, (tools) => {
          const { prompt, offered, judged } = told(configured(tools), inRun);
          for (const name of NAMES) {
            const outcomes = GIVEN.map((given) => judged(name, given));
            expect(offered.includes(name)).toBe(!outcomes.includes('TOOL_NOT_AVAILABLE'));
            const only = [...new Set(outcomes)];
            if (lineOf(prompt, 'at once').includes(name)) expect(only).toEqual(['run']);
            else if (lineOf(prompt, 'after').includes(name)) expect(only).toEqual(['ask']);
            else if (prompt.includes(`- by its arguments: \`${name}\` where`)) {
              expect(only).not.toContain('TOOL_NOT_AVAILABLE');
            } else {
              expect(only).toEqual(['TOOL_NOT_AVAILABLE']);
              const outside = inRun && !IN_NODE.includes(name);
              expect(lineOf(prompt, 'never').includes(name)).toBe(!outside);
            }
          }
        }),
        { numRuns: runs(100) },
      );
    },
  );

  it('the description of tools covers each case', () => {
    const { prompt, offered, tools } = told(
      configured({
        policy: [
          { agent: 'dev', tool: 'shell', match: { command: '^npm test$' }, allow: true },
          { tool: 'looks', allow: false },
        ],
      }),
    );
    expect(prompt).toContain(
      [
        'How to use tools.',
        '',
        'Your tools now, and when a call of them is run:',
        '- at once: `handoff`, `reads`',
        "- after a person's approval: `writes`",
        '- never: forbidden to you: `looks`',
        "- by its arguments: `shell` where command matches `^npm test$`, at once; else after a person's approval",
        '',
        'You build.',
      ].join('\n'),
    );
    expect(offered).toEqual(['handoff', 'reads', 'shell', 'writes']);
    expect(tools).toMatchObject({ forbidden: ['looks'], missing: ['mcp__away__tool'] });
  });

  it('the prompt does not mention tools when all of them are forbidden', () => {
    const config = configured({ policy: NAMES.map((tool) => ({ tool, allow: false })) });
    Object.assign(config.agents[0] ?? {}, { tools: NAMES });
    const { prompt, offered } = told(config);
    expect(offered).toEqual([]);
    expect(prompt).not.toMatch(/tools/i);
  });

  it('a call of a forbidden or omitted tool is refused, and the refusal names the available tools', () => {
    const config = configured({ policy: [{ tool: 'shell', allow: false }] });
    const rules = toolRules(config, toolbox);
    const available = ['reads', 'shell', 'handoff', 'mcp__away__tool'];
    for (const name of ['shell', 'writes', 'mcp__away__tool']) {
      expect(rules.judge({ agent: 'dev', name, arguments: '{}', available })).toEqual({
        kind: 'refuse',
        code: 'TOOL_NOT_AVAILABLE',
        message: `you have no tool ${name}; you have reads, handoff`,
      });
    }
  });
});

/** `mcp__<server>__*` wherever a tool is named. */

const OFFERED = ['mcp__web__get', 'mcp__web__post', 'mcp__files__read', 'mcp__webhooks__send', 'shell'];
const boxOf = (names: readonly string[] = OFFERED) =>
  toolboxOf({ definitions: () => new Map(names.map((name) => [name, toolNamed(name)])) });

function ownedBy(config: Config, box = boxOf(), isInRun = false) {
  const sources = requestSources(config, box);
  const setup = sources.agents.get('dev');
  if (!setup) throw new Error('no agent');
  const run = { runId: 'r', workflowId: 'ship', node: 'build', agent: 'dev', before: null };
  const setting = { phase: 'chat', mode: isInRun ? 'run' : 'agent', run: isInRun ? run : null };
  return toolsOf(sources, setup, setting as never);
}

describe('a pattern for the tools of an MCP server', () => {
  it('gives an agent every tool that the server offers now, and no tool of another server', () => {
    expect(ownedBy(listing(['mcp__web__*', 'shell'])).offered).toEqual([
      'mcp__web__get',
      'mcp__web__post',
      'shell',
    ]);
    const more = boxOf([...OFFERED, 'mcp__web__put']);
    expect(ownedBy(listing(['mcp__web__*']), more).offered).toContain('mcp__web__put');
    expect(ownedBy(listing(['mcp__web__p*', 'mcp__web__post'])).offered).toEqual(['mcp__web__post']);
  });

  it('is reported as missing while the server offers nothing', () => {
    expect(ownedBy(listing(['mcp__web__*']), boxOf(['shell']))).toMatchObject({
      offered: [],
      missing: ['mcp__web__*'],
    });
  });

  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [['mcp__web__*', 'shell'], ['mcp__web__get'], ['complete_node', 'mcp__web__get']],
    [['mcp__web__get', 'shell'], ['mcp__web__*'], ['complete_node', 'mcp__web__get']],
    [['mcp__web__*'], ['mcp__web__p*'], ['complete_node', 'mcp__web__post']],
    [['mcp__web__*'], ['mcp__files__*'], ['complete_node']],
  ])('in the file (%j) and in the node (%j) gives what both name', (listed, nodeTools, wanted) => {
    expect(ownedBy(listing(listed, {}, nodeTools), boxOf(), true).offered).toEqual(wanted);
  });

  it('lets the agent call what it is offered, and names only tools when it calls another', () => {
    const rules = toolRules(listing(['mcp__web__*']), boxOf());
    const judge = (name: string) =>
      rules.judge({ agent: 'dev', name, arguments: '{}', available: ['mcp__web__*', 'ask'] });
    expect(judge('mcp__web__get')).toMatchObject({ kind: 'ask' });
    expect(judge('mcp__files__read')).toEqual({
      kind: 'refuse',
      code: 'TOOL_NOT_AVAILABLE',
      message: 'you have no tool mcp__files__read; you have mcp__web__get, mcp__web__post, ask',
    });
    expect(judge('mcp__web__*')).toMatchObject({ kind: 'refuse' });
  });

  it('in a policy rule covers each tool of the server; the first rule that matches still decides', () => {
    const policy = [
      { tool: 'mcp__web__get', allow: true },
      { tool: 'mcp__web__*', allow: false },
    ];
    const config = listing(['mcp__web__*'], { policy });
    expect(availabilityOf(config, 'dev', toolNamed('mcp__web__get')).otherwise).toBe('runs');
    expect(availabilityOf(config, 'dev', toolNamed('mcp__web__post')).otherwise).toBe('forbidden');
    expect(availabilityOf(config, 'dev', toolNamed('mcp__webhooks__send')).otherwise).toBe('asks');
    expect(ownedBy(config)).toMatchObject({ offered: ['mcp__web__get'], forbidden: ['mcp__web__post'] });
  });

  it('in tools.risk is overridden by a longer pattern and by the name, in the policy and in the toolbox', () => {
    const risk = { 'mcp__web__*': 'safe', 'mcp__web__p*': 'risky', mcp__files__read: 'safe' } as const;
    const config = listing([], { risk });
    const risks = OFFERED.map((name) => riskOf(config, toolNamed(name)));
    expect(risks).toEqual(['safe', 'risky', 'safe', 'risky', 'risky']);
    const named = { ...risk, mcp__web__post: 'safe' } as const;
    expect(riskOf(listing([], { risk: named }), toolNamed('mcp__web__post'))).toBe('safe');
    const box = createToolbox([boxOf()], { risk, timeoutMs: 1_000 });
    expect([...box.definitions().values()].map((tool) => tool.risk)).toEqual(risks);
  });
});

const tool = (name: string, risk: 'safe' | 'risky') => [name, toolNamed(name, { risk })] as const;
const THREE_TOOLS = toolboxOf({
  definitions: () => new Map([tool('fs_read', 'safe'), tool('shell', 'risky'), tool('constructor', 'safe')]),
  check: (_, given) => (Object.hasOwn(given as object, 'wrong') ? 'wrong is unknown' : null),
});
const POLICY = [
  { agent: 'dev', tool: 'shell', match: { command: '^rm ' }, allow: false },
  { agent: 'dev', tool: 'shell', match: { command: '^(ls|rm)' }, allow: true },
];

it.each<[string, string, string, object, object]>([
  ['pm', 'fs_read', '{}', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'fs_read', '', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'constructor', '{}', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'fs_read', '{}', { fs_read: 'risky' }, { kind: 'ask' }],
  ['pm', 'shell', '{}', { shell: 'safe' }, { kind: 'run', risk: 'safe' }],
  ['pm', 'shell', '{"command":"ls"}', {}, { kind: 'ask' }],
  ['dev', 'shell', '{"command":"ls"}', {}, { kind: 'run', risk: 'risky' }],
  ['dev', 'shell', '{"command":"rm x"}', {}, { kind: 'refuse', code: 'FORBIDDEN' }],
  ['dev', 'shell', '{"command":["ls"]}', {}, { kind: 'ask' }],
  ['pm', 'fs_read', '{"wrong":1}', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  ['pm', 'fs_read', '{', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  ['pm', 'fs_read', '[]', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  ['pm', 'fs_read', '{"arguments_too_large":"[]"}', {}, { kind: 'refuse', code: 'ARGUMENTS_TOO_LARGE' }],
  ['pm', 'dance', '{}', {}, { kind: 'refuse', code: 'TOOL_NOT_AVAILABLE' }],
])('%s calling %s with %s, risks %j: %j', (agent, name, text, risk, expected) => {
  const config = { tools: { risk, policy: POLICY } } as unknown as Config;
  const available = ['fs_read', 'shell', 'constructor', 'dance'];
  const rules = toolRules(config, THREE_TOOLS);
  expect(rules.judge({ agent, name, arguments: text, available })).toMatchObject(expected);
  expect(rules.judge({ agent, name, arguments: text, available: [] })).toMatchObject({
    kind: 'refuse',
    code: 'TOOL_NOT_AVAILABLE',
  });
});

it.each<[string, string, object]>([
  ['fs_read', '{}', { kind: 'ask', accepts: 'd1' }],
  ['shell', '{"command":"ls"}', { kind: 'ask', accepts: 'd1' }],
  ['shell', '{"command":"rm x"}', { kind: 'refuse', code: 'FORBIDDEN' }],
])(
  'a changed tool needs an approval even if a rule allows it, and stays forbidden if a rule forbids it: %s %s',
  (name, text, expected) => {
    const config = {
      tools: { risk: { fs_read: 'safe', shell: 'safe' }, policy: POLICY },
    } as unknown as Config;
    const unaccepted = { digest: 'd1', is: 'changed' } as const;
    const changed = new Map(
      [...THREE_TOOLS.definitions()].map(([key, one]) => [key, { ...one, unaccepted }]),
    );
    const rules = toolRules(config, { ...THREE_TOOLS, definitions: () => changed });
    const request = { agent: 'dev', name, arguments: text, available: ['fs_read', 'shell'] };
    expect(rules.judge(request)).toMatchObject(expected);
  },
);

describe('a rule whose pattern would backtrack', () => {
  const rule = (ruling: Ruling, text: string) => ({ match: { text }, ruling });

  it('decides on each of a thousand hostile calls at once', () => {
    // one that backtracks never ends
    const rules = [rule('forbidden', '(x+x+)+y'), rule('runs', '^(a+)+$')];
    for (let call = 0; call < 1_000; call += 1) {
      const standing = { rules, otherwise: 'asks' as const };
      expect(rulingOn(standing, { text: `${'a'.repeat(60)}!` })).toBe('asks');
      expect(rulingOn(standing, { text: 'x'.repeat(60) })).toBe('asks');
      expect(rulingOn(standing, { text: 'xxy' })).toBe('forbidden');
      expect(rulingOn(standing, { text: 'aaa' })).toBe('runs');
    }
  });

  it('a missing argument, or one that is not a text, matches no rule that allows', () => {
    const standing = { rules: [rule('runs', '^(a+)+$')], otherwise: 'asks' as const };
    expect(rulingOn(standing, { text: 7 })).toBe('asks');
    expect(rulingOn(standing, {})).toBe('asks');
  });
});

describe('a file of a message (POLICY-5)', () => {
  const path = `@blob/${'ab'.repeat(6)}`;
  const rules = [{ match: { path: '^@project/docs/' }, ruling: 'runs' as const }];
  const subject = (writes: boolean) => ({ kind: 'path' as const, argument: 'path', writes });

  it.each(['forbidden', 'asks'] as const)('may be read where other paths are %s', (otherwise) => {
    const reads = { rules, otherwise, subject: subject(false) };
    expect(rulingOn(reads, { path })).toBe('runs');
    for (const other of ['@project/a', '@blob/abab', `${path}/a`, `@project/${path}`, `${path}\n`])
      expect(rulingOn(reads, { path: other })).toBe(otherwise);
  });

  it('has no exception for a tool that writes, or whose argument is no path', () => {
    const forbidden = { rules, otherwise: 'forbidden' as const };
    expect(rulingOn({ ...forbidden, subject: subject(true) }, { path })).toBe('forbidden');
    expect(rulingOn(forbidden, { path })).toBe('forbidden');
    const command = { kind: 'command' as const, argument: 'path' };
    expect(rulingOn({ ...forbidden, subject: command }, { path })).toBe('forbidden');
  });
});

describe('a rule that forbids', () => {
  const ruled = (pattern: string, id: unknown) =>
    rulingOn({ rules: [{ match: { id: pattern }, ruling: 'forbidden' }], otherwise: 'runs' }, { id });

  it.each([
    ['^5$', 5],
    ['^5$', [4, 5]],
    ['^/secret/', ['/docs/a', '/secret/key']],
    ['^/secret/', { from: { path: '/secret/key' } }],
    ['^true$', true],
    ['^null$', null],
    ['"force":true', { force: true }],
  ])('a forbid rule with %j matches %j, which is not a text', (pattern, id) => {
    expect(ruled(pattern, id)).toBe('forbidden');
  });

  it('a forbid rule matches no other value that is not a text, and no missing argument', () => {
    expect(ruled('^5$', [55, '15', { a: 6 }])).toBe('runs');
    expect(ruled('undefined', undefined)).toBe('runs');
  });

  it('a forbid rule matches a value that is nested too deeply to be read', () => {
    const depth = 100_000;
    expect(ruled('^5$', JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`))).toBe('forbidden');
  });
});

describe('GRANTS-1: what an approval covers beyond its call', () => {
  const tools = ['permit_edit', 'permit_execute', 'permit_other', 'fs_write', 'shell', 'mcp__x__y'];
  const builtIn = createBuiltInTools({ project: '/tmp' }).definitions();
  const own = new Map([...builtIn].filter(([name]) => tools.includes(name)));
  const offered = (more: object = {}): Toolbox =>
    toolboxOf({ definitions: () => new Map([...own, ['mcp__x__y', toolNamed('mcp__x__y', more)]]) });
  const judge = (name: string, given: object, box = offered()) =>
    toolRules(configured({}), box).judge({
      ...{ agent: 'dev', name, arguments: JSON.stringify(given), available: tools },
    });

  it.each([
    ['permit_edit', { path: '/p/a.ts', title: 'Edit' }, 'calls of permit_edit with path "/p/a.ts"'],
    [
      'permit_edit',
      { path: '/p/a.ts', kind: 'delete', title: 'Delete' },
      'calls of permit_edit with path "/p/a.ts" and kind "delete"',
    ],
    ['permit_execute', { command: 'npm t', title: 't' }, 'calls of permit_execute with command "npm t"'],
    ['fs_write', { path: 'a', content: 'x' }, 'calls of fs_write with path "a"'],
    ['shell', { command: 'ls' }, 'calls of shell with command "ls"'],
    ['mcp__x__y', { a: 1 }, 'all calls of mcp__x__y'],
    ['permit_other', { kind: 'fetch', title: 't' }, undefined],
  ])('an approval of a call of %s with %j may cover more: %s', (name, given, covers) => {
    const judgement = judge(name, given);
    expect(judgement).toMatchObject({ kind: 'ask' });
    expect(judgement.kind === 'ask' && judgement.covers).toBe(covers);
  });

  it('a tool that its server changed is asked about each time', () => {
    const judgement = judge('mcp__x__y', {}, offered({ unaccepted: { is: 'new', digest: 'd' } }));
    expect(judgement).toMatchObject({ kind: 'ask', accepts: 'd' });
    expect(judgement).not.toHaveProperty('covers');
  });
});

it('LARGE-3: a caller is not asked for a call whose arguments became a file, whatever its schema', () => {
  const { argumentsFault } = toolRules(listing([]), toolbox);
  const given = { arguments_too_large: '{"text":"aaa' };
  expect(argumentsFault?.('mine', {}, given, 'caller')).toContain('the arguments of mine were too large');
  expect(argumentsFault?.('mine', {}, { text: 'a' }, 'caller')).toBeNull();
});

it('a caller whose schema takes long takes no time from the checks of servers and workflows (JSON-SCHEMA-1)', () => {
  let [now, step] = [0, 2_000];
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += step;
    return now;
  });
  vi.spyOn(process, 'cpuUsage').mockReturnValue({ user: 1e9, system: 0 });
  const { argumentsFault } = toolRules(listing([]), toolbox);
  const schema = () => ({ type: 'object', required: ['score'] }); // each is compiled
  argumentsFault?.('mine', schema(), {}, 'caller'); // longer than there is time
  step = 0;
  expect(argumentsFault?.('mine', schema(), {}, 'caller')).toBeNull();
  for (const by of ['server', 'workflow'] as const)
    expect(argumentsFault?.('value', schema(), {}, by)).toContain('score');
  vi.restoreAllMocks();
});
