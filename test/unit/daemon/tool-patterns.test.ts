import { describe, expect, it } from 'vitest';
import type { Toolbox } from '../../../src/agents/index.ts';
import { toolsOf } from '../../../src/agents/requests/requests.ts';
import type { Config } from '../../../src/config/index.ts';
import { createRoster } from '../../../src/conversation/index.ts';
import { requestSources } from '../../../src/daemon/team/team.ts';
import { availabilityOf, riskOf } from '../../../src/daemon/tools/tool-policy.ts';
import { toolRules } from '../../../src/daemon/tools/tool-rules.ts';
import { createToolbox } from '../../../src/tools/index.ts';
import { cardOf } from '../agents/support.ts';

/** `mcp__<server>__*` wherever a tool is named. */

const OFFERED = ['mcp__web__get', 'mcp__web__post', 'mcp__files__read', 'mcp__webhooks__send', 'shell'];
const definition = (name: string) => ({ name, risk: 'risky' as const, description: name, parameters: {} });

function boxOf(names: readonly string[] = OFFERED): Toolbox {
  return {
    definitions: () => new Map(names.map((name) => [name, definition(name)])),
    check: () => null,
    run: async () => ({ kind: 'aborted' }),
    close: async () => undefined,
  };
}

function configured(listed: readonly string[], tools: object = {}, nodeTools?: readonly string[]): Config {
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
    expect(ownedBy(configured(['mcp__web__*', 'shell'])).offered).toEqual([
      'mcp__web__get',
      'mcp__web__post',
      'shell',
    ]);
    const more = boxOf([...OFFERED, 'mcp__web__put']);
    expect(ownedBy(configured(['mcp__web__*']), more).offered).toContain('mcp__web__put');
    expect(ownedBy(configured(['mcp__web__p*', 'mcp__web__post'])).offered).toEqual(['mcp__web__post']);
  });

  it('is reported as missing while the server offers nothing', () => {
    expect(ownedBy(configured(['mcp__web__*']), boxOf(['shell']))).toMatchObject({
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
    expect(ownedBy(configured(listed, {}, nodeTools), boxOf(), true).offered).toEqual(wanted);
  });

  it('lets the agent call what it is offered, and names only tools when it calls another', () => {
    const rules = toolRules(configured(['mcp__web__*']), boxOf());
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
    const config = configured(['mcp__web__*'], { policy });
    expect(availabilityOf(config, 'dev', definition('mcp__web__get')).otherwise).toBe('runs');
    expect(availabilityOf(config, 'dev', definition('mcp__web__post')).otherwise).toBe('forbidden');
    expect(availabilityOf(config, 'dev', definition('mcp__webhooks__send')).otherwise).toBe('asks');
    expect(ownedBy(config)).toMatchObject({ offered: ['mcp__web__get'], forbidden: ['mcp__web__post'] });
  });

  it('in tools.risk is overridden by a longer pattern and by the name, in the policy and in the toolbox', () => {
    const risk = { 'mcp__web__*': 'safe', 'mcp__web__p*': 'risky', mcp__files__read: 'safe' } as const;
    const config = configured([], { risk });
    const risks = OFFERED.map((name) => riskOf(config, definition(name)));
    expect(risks).toEqual(['safe', 'risky', 'safe', 'risky', 'risky']);
    const named = { ...risk, mcp__web__post: 'safe' } as const;
    expect(riskOf(configured([], { risk: named }), definition('mcp__web__post'))).toBe('safe');
    const box = createToolbox([boxOf()], { risk, timeoutMs: 1_000 });
    expect([...box.definitions().values()].map((tool) => tool.risk)).toEqual(risks);
  });
});
