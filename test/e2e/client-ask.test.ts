import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { CallOfTool } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { errorWith } from '../support/error-with.ts';
import { type FakeCall, repliesInOrder } from '../support/fake-provider.ts';
import { gate } from '../support/gate.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { sharedProject } from '../support/project.ts';
import { until } from '../support/steps.ts';

/** `parley.ask`: a message with the tools of a program and a typed answer. */
describe('a program asks an agent', () => {
  const model = repliesInOrder();
  const project = sharedProject({
    settings: { retry: { attempts: 1 } },
    model: model.handler,
    agents: { pm: '---\nname: Pam\ndescription: plans\ntools: [ask]\n---\nPERSONA OF PAM' },
  });
  const { client } = project;
  beforeEach(() => {
    model.next = [];
  });

  const city = z.object({ city: z.string().min(2), unit: z.enum(['C', 'F']).default('C') });
  const WEATHER: FakeCall = { name: 'weather', arguments: '{"city":"Oslo"}' };
  const told = () => JSON.stringify(project.provider.requests.at(-1)?.json.messages);
  const to = (conversation: string) => ({ conversation, publisher: 'shop', content: 'How is it in Oslo?' });

  it('a program’s tools run with typed input, and the answer has the value of its zod schema', async () => {
    const inputs: unknown[] = [];
    const two = [WEATHER, { name: 'clock', arguments: '{}' }];
    model.next = [{ toolCalls: two }, { text: '{"degrees":4,"at":"2026-01-01"}' }];
    const answer = await client.ask({
      ...to('typed'),
      tools: {
        weather: {
          description: 'the weather of a city',
          parameters: city,
          run: (input) => {
            expectTypeOf(input).toEqualTypeOf<{ city: string; unit: 'C' | 'F' }>();
            inputs.push(input);
            return { degrees: 4, unit: input.unit };
          },
        },
        clock: { run: async () => 'noon' },
      },
      schema: z.object({ degrees: z.number(), at: z.string().transform((text) => new Date(text)) }),
    });
    expectTypeOf(answer.value).toEqualTypeOf<{ degrees: number; at: Date }>();
    expect(answer.value).toEqual({ degrees: 4, at: new Date('2026-01-01') });
    expect(answer).toMatchObject({
      conversation: 'typed',
      index: 0,
      agents: ['pm'],
      entry: { role: 'assistant' },
    });
    expect(inputs).toEqual([{ city: 'Oslo', unit: 'C' }]);
    expect(told()).toContain('noon');
    expect(told()).toContain(String.raw`{\"degrees\":4,\"unit\":\"C\"}`);
    expect(checkLaws(await entriesOf(client, 'typed'))).toEqual([]);
  });

  it('without tools and a schema the answer is its text, and followers see the live text', async () => {
    for (const id of ['first', 'second']) {
      let live = '';
      const indexes: number[] = [];
      model.next = [{ text: 'Cold.' }];
      const onEvent = (event: { kind: string; chunk?: { delta: string }; entry?: { index: number } }) => {
        live += event.chunk?.delta ?? '';
        if (event.entry) indexes.push(event.entry.index);
      };
      const { content, value, index } = await client.ask({ ...to('plain'), id }, { onEvent });
      expect({ content, value, live }).toEqual({ content: 'Cold.', value: undefined, live: 'Cold.' });
      expect(indexes[0]).toBe(index);
    }
    const again = await client.ask({ ...to('plain'), id: 'first' });
    expect(again).toMatchObject({ duplicate: true, content: 'Cold.' });
  });

  it('a JSON Schema is as good as zod, and a tool may return files', async () => {
    model.next = [{ toolCalls: [WEATHER] }, { text: '[1]' }];
    const { value } = await client.ask({
      ...to('json'),
      tools: {
        weather: {
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
          run: async () => ({
            content: 'a map',
            files: [await client.upload(Buffer.from('map'), { publisher: 'shop', name: 'map.txt' })],
          }),
        },
      },
      schema: { type: 'array', items: { type: 'integer' } },
    });
    expect(value).toEqual([1]);
    expect(told()).toContain('map.txt');
  });

  it('an error of a tool and an input that zod refuses go to the model', async () => {
    const run = () => {
      throw new Error('the sensor is broken');
    };
    const even = z.object({ city: z.string().refine((name) => name === 'Bergen', 'only Bergen') });
    model.next = [{ toolCalls: [WEATHER, { name: 'sensor', arguments: '{}' }] }, { text: 'Sorry.' }];
    const { content } = await client.ask({
      ...to('faults'),
      tools: { weather: { parameters: even, run: () => 'out of reach' }, sensor: { run } },
    });
    expect(content).toBe('Sorry.');
    expect(told()).toContain('weather: city: only Bergen');
    expect(told()).toContain('the sensor is broken');
    expect(told()).not.toContain('out of reach');
  });

  it('a result that is refused, because it is too large or names no file, goes to the model', async () => {
    model.next = [{ toolCalls: [WEATHER, { name: 'clock', arguments: '{}' }] }, { text: 'Sorry.' }];
    const lost = { type: 'file', sha256: '0'.repeat(64), mediaType: 'text/plain', size: 1 };
    const { content } = await client.ask({
      ...to('large'),
      tools: {
        weather: { parameters: city, run: () => 'x'.repeat(2_000_000) },
        clock: { run: () => ({ files: [lost] }) },
      },
    });
    expect(content).toBe('Sorry.');
    expect(told()).toContain('the server takes at most');
    expect(told()).toContain('0'.repeat(12));
  });

  itLong(
    'a call is answered once though the daemon is killed while it runs, and a program that asks again runs what is open',
    async () => {
      const runs: string[] = [];
      model.next = [
        { toolCalls: [WEATHER, { name: 'clock', arguments: '{}' }] },
        { text: 'Noon, 4 degrees.' },
      ];
      const { open: release, passed: held } = gate();
      const question = {
        ...to('killed'),
        id: 'q1',
        tools: {
          clock: { run: () => runs.push('clock') && 'noon' },
          weather: {
            parameters: city,
            run: async () => {
              runs.push('weather');
              await held;
              return '4';
            },
          },
        },
      };
      const gone = new AbortController();
      const first = client.ask(question, { signal: gone.signal });
      await until(() => runs.length === 2);
      await until(async () => JSON.stringify(await entriesOf(client, 'killed')).includes('"noon"'));
      gone.abort(new Error('the program ended'));
      await expect(first).rejects.toThrow('the program ended');
      const second = client.ask(question);
      await until(() => runs.length === 3);
      await project.daemon.kill9();
      release();
      await project.up();
      expect((await second).content).toBe('Noon, 4 degrees.');
      expect(runs).toEqual(['weather', 'clock', 'weather']);
      expect(checkLaws(await entriesOf(client, 'killed'))).toEqual([]);
    },
  );

  it('a stop aborts the call that runs, and rejects', async () => {
    model.next = [{ toolCalls: [WEATHER] }];
    let call: CallOfTool | undefined;
    const run = (_: unknown, given: CallOfTool) => {
      call = given;
      return new Promise(() => {});
    };
    const asked = client.ask({ ...to('stopped'), tools: { weather: { parameters: city, run } } });
    const refused = expect(asked).rejects.toMatchObject(errorWith('AGENT_STOPPED', 'pm', 'log'));
    await until(() => call !== undefined);
    expect(call).toMatchObject({ id: 'c2_0', agent: 'pm' });
    await client.request('stop', { conversation: 'stopped', publisher: 'shop' });
    await refused;
    expect(call?.signal.aborted).toBe(true);
    const again = client.ask({ ...to('stopped'), content: 'Still there?' });
    await expect(again).rejects.toMatchObject(
      errorWith('AGENT_STOPPED', 'parley resume stopped', 'in the log'),
    );
  });

  itLong('the example program orders what its own tool says is missing', async () => {
    const lamp = { name: 'stock', arguments: '{"article":"lamp"}' };
    model.next = [{ toolCalls: [lamp] }, { text: '{"order":["lamp"],"because":"none is left"}' }];
    const example = fileURLToPath(new URL('../../examples/post/ask.ts', import.meta.url));
    const env = { ...process.env, PARLEY_DATA: project.data };
    const program = await promisify(execFile)(process.execPath, ['--import', 'tsx', example], { env });
    expect(program.stdout).toBe('order lamp: none is left\n');
    expect(told()).toContain(String.raw`{\"pieces\":0}`);
  });

  it.each([
    [
      'a turn that fails',
      [{ status: 400, body: { error: { message: 'too hot' } } }],
      'AGENT_FAILED',
      'too hot',
    ],
    ['an answer that never matches', [{ text: 'no' }, { text: 'no' }], 'AGENT_FAILED', 'JSON'],
    [
      'a question to a person',
      [{ toolCalls: [{ name: 'ask', arguments: '{"question":"Which Oslo?"}' }] }],
      'AGENT_ASKS',
      'Which Oslo?',
    ],
  ])('%s rejects with its reason', async (name, given, code, message) => {
    model.next = given;
    const asked = client.ask({ ...to(name.replaceAll(' ', '-')), schema: z.object({}) });
    await expect(asked).rejects.toMatchObject(errorWith(code, message, ''));
  });

  it.each([
    ['a schema without JSON Schema', { schema: z.date() }, 'SCHEMA_INVALID', 'schema of the answer'],
    ['a tool without a function', { tools: { weather: {} as never } }, 'TOOL_INVALID', 'weather'],
    ['the name of a tool of the team', { tools: { ask: { run: () => '' } } }, 'TOOL_NAME_TAKEN', 'ask'],
    ['an agent that does not exist', { to: ['bob'] }, 'UNKNOWN_AGENT', 'bob'],
  ])('%s is refused, and nothing is posted', async (name, more, code, message) => {
    const conversation = `refused-${name.replaceAll(' ', '-').toLowerCase()}`;
    const asked = client.ask({ ...to(conversation), ...(more as object) });
    await expect(asked).rejects.toMatchObject(errorWith(code, message, ''));
    await expect(client.request('conversation', { conversation })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});
