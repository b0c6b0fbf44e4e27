import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Toolbox } from '../../../src/agents/index.ts';
import { assembleOnce } from '../../../src/agents/requests/requests.ts';
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
import { toolRules } from '../../../src/daemon/tools/tool-rules.ts';
import { runs } from '../../support/runs.ts';
import { cardOf, Log } from '../agents/support.ts';

/** The tools that an agent sees are those that it may call. */

const RISKS = { reads: 'safe', looks: 'safe', writes: 'risky', shell: 'risky' } as const;
type Name = keyof typeof RISKS;
const NAMES = Object.keys(RISKS) as Name[];
const GIVEN = [{}, { command: 'npm test' }, { command: 'rm' }, { command: 'npm test', path: 'a' }];

const toolbox: Toolbox = {
  definitions: () =>
    new Map(NAMES.map((name) => [name, { name, risk: RISKS[name], description: name, parameters: {} }])),
  check: () => null,
  run: async () => ({ kind: 'aborted' }),
  close: async () => undefined,
};

const WORKFLOW = {
  id: 'ship',
  start: 'build',
  nodes: { build: { agent: 'dev', brief: 'Build.', tools: ['reads', 'shell'], outcomes: { done: 'end' } } },
};

function configured(tools: Partial<Config['tools']>): Config {
  const card = cardOf('dev', { tools: [...NAMES, 'handoff', 'mcp__away__tool'] });
  return {
    agents: [{ ...card, model: 'default', persona: 'You build.', context: {} }],
    roster: createRoster([card], 'dev'),
    models: {},
    prompts: { baseChat: 'Base.', baseRun: 'Run.', toolPolicy: 'How to use tools.' },
    workflows: [WORKFLOW],
    tools: { risk: {}, policy: [], ...tools },
  } as unknown as Config;
}

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
  const { assembled, tools } = assembleOnce(sources, setup, log.entries, state, 'demo');
  const setting = settingAt(state, state.length);
  const available = availableTools(setup.card, setting, sources.workflows);
  const rules = toolRules(config, toolbox);
  const judged = (name: string, given: object) => {
    const judgement = rules.judge({ agent: 'dev', name, arguments: JSON.stringify(given), available });
    return judgement.kind === 'refuse' ? judgement.code : judgement.kind;
  };
  return {
    prompt: assembled.request.messages[0]?.content ?? '',
    offered: assembled.request.tools.map((tool) => tool.function.name),
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
              const outside = inRun && !WORKFLOW.nodes.build.tools.includes(name);
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
