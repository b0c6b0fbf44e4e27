import { describe, expect, it } from 'vitest';
import type { AgentSetup, RequestSources, ToolDefinition } from '../../../src/agents/index.ts';
import { assembleOnce } from '../../../src/agents/requests/requests.ts';
import { EMPTY_STATE, evolve } from '../../../src/conversation/index.ts';
import { cardOf, Log, sourcesOf } from './support.ts';

type Tools = ReturnType<RequestSources['tools']>;

const toolOf = (name: string) =>
  ({ name, description: 'A tool.', parameters: { type: 'object' } }) as unknown as ToolDefinition;
const toolsNamed = (...names: string[]): Tools => new Map(names.map((name) => [name, toolOf(name)]));

function requestOf(sources: RequestSources, setup: AgentSetup, log: Log) {
  const state = log.entries.reduce(evolve, EMPTY_STATE);
  const { request } = assembleOnce(sources, setup, log.entries, state, 'demo').draft;
  return {
    system: request.messages[0]?.content,
    tools: request.tools.map((tool) => tool.function.name),
    request,
  };
}

describe('the opening of a request', () => {
  const plain = sourcesOf('pm', 'dev');
  const setup = { ...(plain.agents.get('pm') as AgentSetup), card: cardOf('pm', { tools: ['one', 'two'] }) };
  const log = new Log();
  log.start('pm', log.person('Hello.'));

  it('requests of several conversations share the opening of their agent', () => {
    const tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    const [first, second] = [requestOf(sources, setup, log), requestOf(sources, setup, log)];
    expect(first.tools).toEqual(['one']);
    expect(second.request.tools).toBe(first.request.tools);
  });

  it('tools that the toolbox offers later are in the next request', () => {
    let tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    expect(requestOf(sources, setup, log).tools).toEqual(['one']);
    tools = toolsNamed('one', 'two');
    expect(requestOf(sources, setup, log).tools).toEqual(['one', 'two']);
  });

  it('other prompts for the same agent, and another mode, give another prefix', () => {
    const tools = toolsNamed('one');
    const sources = { ...plain, tools: () => tools };
    const changed = { ...sources, prompts: { ...sources.prompts, baseChat: 'Other rules.' } };
    const inChat = new Log();
    inChat.enterMode('chat');
    inChat.start('pm', inChat.person('Hello.'));
    expect(requestOf(sources, setup, log).system).toMatch(/^Base rules\..*Persona of Pm/s);
    expect(requestOf(sources, setup, inChat).system).not.toContain('Persona');
    expect(requestOf(changed, setup, log).system).toMatch(/^Other rules\./);
  });
});
