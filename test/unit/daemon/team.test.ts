import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ModelRequest, PLAIN_FORM } from '../../../src/agents/index.ts';
import { type Config, loadConfig, Secret } from '../../../src/config/index.ts';
import { DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import { composeModels } from '../../../src/daemon/compose/compose.ts';
import {
  conversationRules,
  type RunningAgent,
  requestSources,
  type Team,
} from '../../../src/daemon/team/team.ts';
import { until } from '../../support/steps.ts';
import { toolboxOf } from '../../support/toolbox.ts';
import { load } from '../config/folder.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

describe('a team that is replaced', () => {
  let daemon: TestDaemon;

  beforeEach(() => {
    daemon = createDaemon();
  });
  afterEach(() => daemon.end());

  /** Every agent of the team, changed. */
  function changed(change: (agent: RunningAgent) => Partial<RunningAgent>): Partial<Team> {
    const { team } = daemon.runtime;
    const agents = new Map([...team.agents].map(([slug, agent]) => [slug, { ...agent, ...change(agent) }]));
    return { agents, sources: { ...team.sources, agents } };
  }

  const callsOf = async (count: number) => {
    await until(() => daemon.calls.length === count);
    const call = daemon.calls[count - 1];
    if (!call) throw new Error('no call');
    return call;
  };

  const personaOf = async (count: number) => String((await callsOf(count)).request.messages[0]?.content);

  it('gives a running turn the persona, the model and the view policy of its definition until it ends (TEAM-2)', async () => {
    await daemon.deliver({ content: 'one' });
    await callsOf(1);
    const names: string[] = [];
    const other = { call: async () => Promise.reject(new Error('the model of another team')) };
    daemon.replaceTeam(
      changed(({ profile }) => ({
        persona: 'Another persona.',
        model: other,
        profile: { ...profile, name: 'other' },
        viewPolicy: { ...DEFAULT_VIEW_POLICY, includeCollapsed: true },
      })),
    );
    names.push(await personaOf(1));
    daemon.calls[0]?.answer(null, [{ id: 'c1', name: 'recall', arguments: '{"query":"one"}' }]);
    names.push(await personaOf(2));
    expect(names).toEqual([expect.stringContaining('Persona of'), expect.stringContaining('Persona of')]);
    daemon.calls[1]?.answer('done');
    await until(async () => (await daemon.entries()).some(({ type }) => type === 'turn-ended'));
    await daemon.deliver({ content: 'two' });
    await until(async () =>
      (await daemon.entries()).some(
        (entry) => 'content' in entry && `${entry.content}`.includes('another team'),
      ),
    );
    const starts = (await daemon.entries()).flatMap((entry) =>
      entry.type === 'turn-started' ? entry.definition : [],
    );
    expect(new Set(starts).size).toBe(2);
  });

  it('lets the same definition use the newest client of its model, so that a new key applies at once', async () => {
    await daemon.deliver({ content: 'one' });
    const first = await callsOf(1);
    const called: string[] = [];
    const { team } = daemon.runtime;
    const model = team.agents.get('pm')?.model;
    if (!model) throw new Error('no model');
    const renewed: typeof model = {
      call: (request, options) => {
        called.push(request.agent);
        return model.call(request, options);
      },
    };
    daemon.replaceTeam(changed(() => ({ model: renewed })));
    daemon.runtime.definitions.current('pm', daemon.runtime.team);
    first.answer(null, [{ id: 'c1', name: 'nothing', arguments: '{}' }]);
    await callsOf(2);
    expect(called).toEqual(['pm']);
  });
});

async function setupOf(model: string, frontMatter = '') {
  const files = {
    'parley.yaml': `models: { default: { baseURL: "http://h/v1", model: m, maxOutputTokens: 9, ${model} } }`,
    'agents/dev.md': `---\nname: Dev\n${frontMatter}---\nWork.\n`,
  };
  const setup = requestSources(await load(files), { definitions: () => new Map() }).agents.get('dev');
  if (!setup) throw new Error('no agent dev');
  return setup;
}
const fieldsOf = async (model: string) => (await setupOf(model)).profile.fields;

describe('a request of a configured model', () => {
  it('has the fields of its profile', async () => {
    const usage = { stream_options: { include_usage: true } };
    expect(await fieldsOf('')).toEqual({ model: 'm', stream: true, ...usage, max_tokens: 9 });
    expect(await fieldsOf('profile: openai')).toEqual({
      model: 'm',
      stream: true,
      ...usage,
      max_completion_tokens: 9,
    });
    expect(await fieldsOf('profile: mistral')).toEqual({ model: 'm', stream: true, max_tokens: 9 });
    expect(await fieldsOf('stream: false')).toEqual({ model: 'm', stream: false, max_tokens: 9 });
  });

  it('has the form and the view of its profile', async () => {
    const { profile, viewPolicy } = await setupOf('profile: kimi, callIds: nine, strictTools: true');
    expect(profile.form).toEqual({
      ...PLAIN_FORM,
      sendReasoning: 'with-calls',
      emptyAnswers: 'left-out',
      callIds: 'nine',
      boundTo: 'chat h m',
    });
    expect(profile).toMatchObject({ strictTools: true, toolFields: {} });
    expect(viewPolicy).toMatchObject({ otherAgentsAs: 'system', includeReasoning: true });
    const plain = await setupOf('parallelToolCalls: false');
    expect(plain.profile).toMatchObject({ form: PLAIN_FORM, toolFields: { parallel_tool_calls: false } });
    expect(plain.viewPolicy.includeReasoning).toBe(false);
  });

  it('has an away block of a tenth of its window, or of 2,000 tokens', async () => {
    const awayTokens = async (window: number) =>
      (await setupOf(`contextTokens: ${window}`)).viewPolicy.awayTokens;
    expect(await Promise.all([4_096, 19_999, 128_000].map(awayTokens))).toEqual([409, 1_999, 2_000]);
  });

  it('is the plain view for an agent in another process, except for the role of others', async () => {
    const keys = 'profile: mistral, sendReasoning: always, strictTools: true';
    const { profile, viewPolicy } = await setupOf(keys, 'runtime: bus\n');
    expect(profile).toMatchObject({ form: PLAIN_FORM, strictTools: false });
    expect(viewPolicy).toMatchObject({ otherAgentsAs: 'user', includeReasoning: false });
  });
});

const config = await loadConfig({ env: {} }); // its one model is `default`
const request: ModelRequest = {
  ...{
    conversation: 'demo',
    agent: 'pm',
    turnId: 't1',
    tools: [],
    body: [],
    hash: 'h',
    headers: {},
  },
  messages: [{ role: 'user', content: '[Alice]: Hello' }],
};
const options = { signal: new AbortController().signal, onDelta: () => undefined };

it('HIRING-5: a model without a price, or with a fallback without one, is known as such; a scripted one is free', async () => {
  const files = {
    'parley.yaml': `models:
  default: { baseURL: "http://h/v1", model: m, price: { inputPerMillion: 0, outputPerMillion: 0 } }
  over: { baseURL: "http://h/v1", model: m, price: { inputPerMillion: 1, outputPerMillion: 1 }, fallback: [bare] }
  bare: { baseURL: "http://h/v1", model: m }
  told: { provider: scripted }`,
    'agents/dev.md': '---\nname: Dev\n---\nWork.\n',
  };
  const hiring = conversationRules(
    await load(files),
    requestSources(config, { definitions: () => new Map() }),
    toolboxOf({}),
    () => 'id',
  ).hiring;
  expect([...(hiring?.unpriced ?? [])]).toEqual(['over', 'bare']);
});

describe('models that a program gives', () => {
  it('a function answers instead of the configured model', async () => {
    const models = await composeModels(config, { models: { default: ({ last }) => `You wrote: ${last}` } });
    expect(await models.get('default')?.call(request, options)).toMatchObject({
      kind: 'answered',
      answer: { content: 'You wrote: Hello', toolCalls: [] },
    });
  });

  it('an object with the method `call` is used as it is', async () => {
    const model = {
      call: async () => ({ kind: 'aborted', partial: { content: '', reasoning: '' } }) as const,
    };
    expect((await composeModels(config, { models: { default: model } })).get('default')).toBe(model);
  });

  it('a name that the configuration does not have is refused', async () => {
    await expect(composeModels(config, { models: { defualt: () => '' } })).rejects.toMatchObject({
      code: 'MODEL_UNKNOWN',
      hint: 'did you mean "default"?',
    });
  });
});

it('a provider that quotes the URL of a request does not reveal the variable in it to those who read the failure (HTTP-MODEL-4)', async () => {
  const server = createServer(({ url }, response) => {
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `Cannot POST ${url}` } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const limits = { firstTokenMs: null, idleMs: 5_000, apiKeys: [] };
  const model = {
    provider: 'openai',
    dialect: 'chat',
    baseURL: `http://127.0.0.1:${port}/v1?key=k-very-secret`,
    ...limits,
  };
  const variables = [new Secret('k-very-secret')];
  const given = { ...config, variables, models: { default: model } } as unknown as Config;
  const outcome = await (await composeModels(given, {})).get('default')?.call(request, options);
  server.close();
  expect(outcome).toMatchObject({ kind: 'failed', message: expect.stringContaining('?key=[secret]') });
  expect(JSON.stringify(outcome)).not.toContain('very-secret');
});

const ROWS = [
  ['an operator', false, { publisher: null }, 'Bob'],
  ['credentials of a server of its own', false, { publisher: 'alice' }, 'alice as Bob'],
  ['the local person of a managed server', true, { publisher: 'alice' }, 'Bob'],
  ['a token without a name', true, { publisher: 'alice', name: null }, 'alice as Bob'],
  ['a token with this name', false, { publisher: 'alice', name: 'Bob' }, 'Bob'],
] as const;

it.each(ROWS)(
  'PERSON-4: a name that comes from %s is kept as its binding says',
  async (_, isManagedServer, caller, name) => {
    const daemon = await createDaemon({ isManagedServer });
    const body = { publisher: 'alice', author: { name: 'Bob' } };
    const post = { ...body, conversation: 'demo', content: 'hello' };
    expect(await daemon.api.handle({ endpoint: 'post', body: post, ...caller })).toMatchObject({ ok: true });
    const mode = { ...body, conversation: 'demo', mode: 'chat' };
    expect(await daemon.api.handle({ endpoint: 'mode', body: mode, ...caller })).toMatchObject({ ok: true });
    const entries = await daemon.entries();
    const author = { kind: 'person', id: 'alice/Bob', name };
    for (const type of ['message', 'mode-entered'])
      expect(entries.find((entry) => entry.type === type && entry.author.kind === 'person')).toMatchObject({
        author,
      });
    await daemon.end();
  },
);

it('PERSON-4: the name of the publisher itself is always bound, and an agent is no person under any name', async () => {
  const daemon = await createDaemon({ isManagedServer: false });
  await daemon.deliver({ content: 'one', author: { name: 'alice' } });
  await daemon.deliver({ content: 'two', author: { name: 'PM' } });
  await daemon.deliver({ content: 'three', author: { name: 'Bob' } });
  const said = (await daemon.entries()).flatMap((entry) =>
    entry.type === 'message' && entry.role === 'user' ? [[entry.content, entry.author.name]] : [],
  );
  expect(said).toEqual([
    ['one', 'alice'],
    ['three', 'alice as Bob'],
  ]);
  await daemon.end();
});
