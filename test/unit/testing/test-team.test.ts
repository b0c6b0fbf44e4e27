import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { expectHandoff, expectToolCall, expectTurn, type ModelFunction } from '../../../src/testing/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { agentFile, BACK, FRONT, start } from './support.ts';

const echo: ModelFunction = ({ agent, last }) => `${agent}: ${last}`;
const never: ModelFunction = () => new Promise(() => undefined);

describe('a team under test', () => {
  it('answers a post from a function, with the text of the last message', async () => {
    const team = await start({ config: await newFolder(FRONT), models: echo });
    const said = await team.say('Hello');
    expect(said.text).toBe('front: Hello');
    expect(said.answers).toEqual([{ agent: 'front', text: 'front: Hello' }]);
    expect(said.entries[0]).toMatchObject({ type: 'message', content: 'Hello', author: { id: 'tester' } });
    expect(said.entries).toEqual(team.entries());
    expectTurn(team, { agent: 'front', text: /Hello$/ });
  });

  it('ends `say` after a handoff, and each agent has its own function', async () => {
    const team = await start({
      config: await newFolder({ ...FRONT, ...BACK, 'parley.yaml': 'defaultAgent: front\n' }),
      models: {
        front: () => [{ name: 'handoff', arguments: { to: 'back', summary: 'Do it.' } }],
        default: () => 'Done.',
      },
    });
    expect((await team.say('please')).text).toBe('Done.');
    expect(expectHandoff(team, { from: 'front', to: 'back', summary: 'Do' }).summary).toBe('Do it.');
    expectToolCall(team, { agent: 'front', tool: 'handoff', arguments: { to: 'back' } });
    expectTurn(team, { agent: 'back', text: 'Done.' });
  });

  it('ends `say` after the answer of a delegation', async () => {
    const team = await start({
      config: await newFolder({ ...FRONT, ...BACK, 'parley.yaml': 'defaultAgent: front\n' }),
      models: {
        front: ({ tool, last }) =>
          tool === 'delegate'
            ? `Back says: ${last}`
            : [{ name: 'delegate', arguments: { to: 'back', request: 'Count.' } }],
        back: () => 'Three.',
      },
    });
    expect((await team.say('how many?')).text).toMatch(/^Back says: .*Three\./s);
  });

  it('sends no traces to the collector of the configuration', async () => {
    let received = 0;
    const collector = createServer((_request, response) => {
      received += 1;
      response.end();
    }).listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const { port } = collector.address() as AddressInfo;
    const yaml = `telemetry: { otlp: { endpoint: "http://127.0.0.1:${port}" } }\n`;
    onTestFinished(() => void collector.close());
    const team = await start({ config: await newFolder({ ...FRONT, 'parley.yaml': yaml }), models: echo });
    await team.say('Hello');
    await team.stop(); // sends what is outstanding
    expect(received).toBe(0);
  });

  it('keeps conversations and publishers apart', async () => {
    const team = await start({ config: await newFolder(FRONT), models: echo });
    await team.say('one', { conversation: 'first', as: 'alice', name: 'Alice' });
    await team.say('two', { conversation: 'second' });
    expect(team.entries('first')[0]).toMatchObject({ author: { id: 'alice/Alice', name: 'Alice' } });
    expect(expectTurn(team, { agent: 'front', conversation: 'second' }).text).toBe('front: two');
    expect(team.entries()).toEqual([]);
  });

  it('answers from a script, and from the script that the configuration names', async () => {
    const script = 'rules:\n  - reply: { text: "Scripted {{n}}." }\n';
    const yaml = 'models:\n  default: { provider: scripted, script: script.yaml }\n';
    const folder = await newFolder({ ...FRONT, 'parley.yaml': yaml, 'script.yaml': script });
    const configured = await start({ config: folder });
    expect((await configured.say('a')).text).toBe('Scripted 0.');
    const given = await start({ config: folder, models: { front: join(folder, 'script.yaml') } });
    expect((await given.say('a')).text).toBe('Scripted 0.');
  });

  it('takes a loaded configuration, and the agents of the bus get a function too', async () => {
    const folder = await newFolder({ 'agents/critic.md': agentFile('Critic', [], 'runtime: bus\n') });
    const config = await loadConfig({ configDirectory: folder, env: { OPENAI_API_KEY: 'x' } });
    const team = await start({ config, models: { critic: () => 'Too long.' } });
    expect((await team.say('review')).text).toBe('Too long.');
  });

  it('needs no variable that the configuration names', async () => {
    const yaml = `models:\n  default: { apiKey: "\${SOME_KEY}", headers: { x-team: "\${TEAM}" } }\n`;
    const team = await start({ config: await newFolder({ ...FRONT, 'parley.yaml': yaml }), models: echo });
    expect((await team.say('Hello')).text).toBe('front: Hello');
  });

  it('a question ends `say`, and `answer` continues the turn', async () => {
    const team = await start({
      config: await newFolder(FRONT),
      models: ({ tool, last }) =>
        tool === 'ask' ? `You said: ${last}` : [{ name: 'ask', arguments: { question: 'Which?' } }],
    });
    await expect(team.answer('early')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await team.say('choose');
    expectTurn(team, { agent: 'front', outcome: 'waiting' });
    expect((await team.answer('the red one')).text).toContain('the red one');
    expectTurn(team, { agent: 'front', text: 'You said' });
  });

  it('a refused post rejects with its code', async () => {
    const team = await start({ config: await newFolder(FRONT), models: echo });
    await expect(team.say('x', { to: ['nobody'] })).rejects.toMatchObject({ code: 'UNKNOWN_AGENT' });
  });

  it.each([undefined, null, 5])(
    'a model function that returns %s fails the turn with what it may return',
    async (value) => {
      const models = () => value as unknown as string;
      const team = await start({ config: await newFolder(FRONT), models });
      expect((await team.say('Hello')).text).toContain(`the function of a model returned ${value}`);
      expectTurn(team, { agent: 'front', outcome: 'failed' });
    },
  );

  it('names an agent or model that does not exist, and a missing model', async () => {
    const config = await newFolder(FRONT);
    await expect(start({ config, models: { frnt: echo } })).rejects.toMatchObject({
      code: 'MODEL_UNKNOWN',
      hint: 'did you mean "front"?',
    });
    const team = await start({ config });
    await team.say('Hello');
    expectTurn(team, { agent: 'front', outcome: 'failed', text: 'testTeam has no model for front' });
  });

  it('an error that the function throws is a failed turn with its message', async () => {
    const team = await start({
      config: await newFolder(FRONT),
      models: () => {
        throw new Error('no such case');
      },
    });
    await team.say('Hello');
    expectTurn(team, { agent: 'front', outcome: 'failed', text: 'no such case' });
    expect(team.requests('front')).toHaveLength(1);
  });
});

describe('simulated time', () => {
  it('waits between attempts pass at once, and the clock shows them', async () => {
    let calls = 0;
    const team = await start({
      config: await newFolder({
        ...FRONT,
        'parley.yaml': 'retry: { attempts: 3, baseMs: 60000, maxMs: 60000 }\n',
      }),
      models: () => (++calls < 3 ? Object.assign(new Error('busy'), { status: 429 }) : 'At last.'),
    });
    expect((await team.say('Hello')).text).toBe('At last.');
    expect(calls).toBe(3);
    const [first, last] = [team.entries().at(0), team.entries().at(-1)];
    expect(first?.createdAt).toBe('2026-01-01T00:00:00.000Z');
    expect(last?.createdAt.localeCompare(first?.createdAt ?? '')).toBe(1);
  });

  it('`advance` ends a turn at its time limit', async () => {
    const team = await start({
      config: await newFolder({ ...FRONT, 'parley.yaml': 'limits: { turnSeconds: 60 }\n' }),
      models: never,
      now: '2030-05-01T12:00:00Z',
    });
    const saying = team.say('Hello');
    await team.advance(59_999);
    expectTurn(team, { agent: 'front', outcome: 'running' });
    await team.advance(1);
    await saying;
    expectTurn(team, { agent: 'front', outcome: 'limited' });
    expect(team.entries().at(-1)?.createdAt).toBe('2030-05-01T12:01:00.000Z');
  });

  it('`stop` ends a call that never answers', async () => {
    const team = await start({ config: await newFolder(FRONT), models: never });
    void team.say('Hello');
    await team.advance(0);
    await team.stop();
    expect(expectTurn(team, { agent: 'front', outcome: 'running' }).text).toBe('');
  });
});

describe('the view of an agent', () => {
  it('is the same text in each run, so that a snapshot holds', async () => {
    const config = await newFolder(FRONT);
    const views = await Promise.all(
      [1, 2].map(async () => {
        const team = await start({ config, models: echo });
        await team.say('one');
        await team.say('two');
        return team.viewOf('front');
      }),
    );
    expect(views[0]).toBe(views[1]);
    expect(views[0]).toContain('You are Front.');
    expect(views[0]).toMatch(
      /── user ──\none\n\n── assistant ──\nfront: one\n\n── user ──\ntwo\n\n── tools ──\n/,
    );
  });

  it('of an agent that was not asked is an error', async () => {
    const team = await start({ config: await newFolder(FRONT), models: echo });
    expect(() => team.viewOf('front')).toThrow('no model was asked for front');
  });
});

describe('an assertion that fails', () => {
  it('is an AssertionError that lists what there is', async () => {
    const team = await start({ config: await newFolder(FRONT), models: echo });
    expect(() => expectTurn(team, { agent: 'front' })).toThrow(
      'expected a turn of front that is completed. There is none.',
    );
    await team.say('Hello');
    expect(() => expectTurn(team, { agent: 'front', text: 'Bye' })).toThrow(
      'expected a turn of front that is completed and says "Bye". There is:\n  front completed: "front: Hello"',
    );
    expect(() => expectHandoff(team, { from: 'front', to: 'back' })).toThrow('There is none.');
    expect(() => expectToolCall(team, { tool: 'mail', agent: 'front', arguments: { to: 'x' } })).toThrow(
      'expected a call of mail by front with {"to":"x"}. There is none.',
    );
    let thrown: unknown;
    try {
      expectTurn(team, { agent: 'front', text: 'Bye' });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: 'AssertionError', code: 'ERR_ASSERTION' });
  });
});
