import OpenAI from 'openai';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { beforeAll, describe, expect, it } from 'vitest';
import { entriesOf, ofType } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { call, FAILS } from '../support/route-rules.ts';

const BERN = { name: 'get_weather', arguments: { city: 'Bern' } };

const GIVES = { name: 'handoff', arguments: { to: 'dev', summary: 'Weather.' } };
const WHICH = { name: 'ask', arguments: { question: 'Which scale?' } };

/** `/v1/responses` and `/v1/conversations` with the official OpenAI client, on a daemon in its own process. */
describe('the Responses API', () => {
  let openai: OpenAI;
  const project = sharedProject({
    settings: { retry: { attempts: 1 } },
    agents: {
      lead: '---\nname: Lead\ntools: [ask, handoff]\n---\nYou lead.',
      dev: '---\nname: Dev\n---\nYou build.',
    },
    script: [
      { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
      FAILS,
      { when: { agent: 'lead', last: '/pass on/' }, reply: { tool_calls: [BERN, GIVES] } },
      { when: { agent: 'lead', last: '/unclear/' }, reply: { tool_calls: [BERN, WHICH, BERN] } },
      { when: { last: '/climates/' }, reply: { tool_calls: [BERN, BERN] } },
      { when: { last: '/weather/' }, reply: call('Let me see.', 'get_weather', { city: 'Bern' }) },
      { when: { tool: 'get_weather' }, reply: { text: 'It is {{last}}.' } },
      { when: { last: '/as json/' }, reply: { text: '{"city":"Bern","degrees":7}' } },
      { when: { last: '/slow/' }, reply: { text: `${'word '.repeat(60)}end`, delayMs: 100 } },
      { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
      { reply: { text: 'Noted: {{last}}' } },
    ],
    http: true,
  });
  beforeAll(async () => {
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  const create = (input: OpenAI.Responses.ResponseInput | string, more: object = {}) =>
    openai.responses.create({ model: 'parley', input, ...more }) as Promise<Response>;
  const conversationOf = ({ conversation }: Response) => String(conversation?.id);
  const log = async (conversation: string) => entriesOf(await project.connect(), conversation);
  const postsOf = async (conversation: string) =>
    ofType(await log(conversation), 'message').flatMap(({ role, content }) =>
      role === 'user' ? [content] : [],
    );

  it('a text is answered as a response that can be retrieved, also after the daemon was killed', async () => {
    const response = await create('Hello', { metadata: { ticket: '7' }, instructions: 'Be brief.' });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'parley',
      error: null,
      previous_response_id: null,
      instructions: 'Be brief.',
      metadata: { ticket: '7' },
      output: [{ type: 'message', role: 'assistant', status: 'completed' }],
    });
    expect(response.output_text).toMatch(/^Noted: Hello/);
    expect(response.usage?.total_tokens).toBe(
      Number(response.usage?.input_tokens) + Number(response.usage?.output_tokens),
    );
    await project.daemon.kill9();
    await project.up();
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
    const again = await openai.responses.retrieve(response.id);
    const { created_at: _, ...fields } = response;
    expect(again).toMatchObject(fields);
    const { data } = await openai.responses.inputItems.list(response.id);
    expect(data).toMatchObject([{ role: 'user', content: [{ type: 'input_text' }] }]);
  });

  it('a stream has the events of the protocol in their order, numbered, with the text once', async () => {
    const events: ResponseStreamEvent[] = [];
    const stream = await openai.responses.create({ model: 'dev', input: 'Build', stream: true });
    for await (const event of stream) events.push(event);
    const types = events.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1]);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    const deltas = events.flatMap((event) =>
      event.type === 'response.output_text.delta' ? [event.delta] : [],
    );
    expect(deltas.join('')).toBe('Done by dev.');
    const last = events.at(-1);
    expect(last?.type === 'response.completed' && last.response.output_text).toBe('Done by dev.');
    const whole = await openai.responses.stream({ model: 'dev', input: 'Build' }).finalResponse();
    expect(whole.output_text).toBe('Done by dev.');
  });

  it('`previous_response_id` continues the conversation, and from an older response a copy of it', async () => {
    const first = await create('one');
    const second = await create('two', { previous_response_id: first.id });
    expect(conversationOf(second)).toBe(conversationOf(first));
    expect(second.previous_response_id).toBe(first.id);
    const other = await create('two, otherwise', { previous_response_id: first.id });
    expect(conversationOf(other)).not.toBe(conversationOf(first));
    expect(await postsOf(conversationOf(first))).toEqual(['one', 'two']);
    expect(await postsOf(conversationOf(other))).toEqual(['one', 'two, otherwise']);
    const third = await create('three', { previous_response_id: second.id });
    expect(conversationOf(third)).toBe(conversationOf(first));
  });

  it.each<[string, object]>([
    ['its `idempotency-key`', { 'idempotency-key': 'once' }],
    ['the count of a retry', { 'x-stainless-retry-count': '1' }],
  ])('a request after an earlier response that is repeated with %s is posted once', async (_, headers) => {
    const repeated = async (input: string, previous_response_id: string) => {
      const { 'idempotency-key': key } = headers as Record<string, string>;
      const again = { ...headers, ...(key && { 'idempotency-key': `${key} ${input}` }) };
      const body = { model: 'parley', input, previous_response_id };
      const first = await openai.responses.create(body, key ? { headers: again } : {});
      const second = await openai.responses.create(body, { headers: again });
      expect(second.id).toBe(first.id);
      return conversationOf(first);
    };
    const first = await create('one');
    expect(await repeated('two', first.id)).toBe(conversationOf(first));
    expect(await postsOf(conversationOf(first))).toEqual(['one', 'two']);
    const copied = await repeated('two, otherwise', first.id);
    expect(copied).not.toBe(conversationOf(first));
    expect(await postsOf(copied)).toEqual(['one', 'two, otherwise']);
    expect(await postsOf(conversationOf(first))).toEqual(['one', 'two']);
  });

  it('requests that continue one response at the same time are in conversations of their own', async () => {
    const first = await create('one');
    const sent = ['left', 'right', 'middle'];
    const branches = await Promise.all(
      sent.map((input) => create(input, { previous_response_id: first.id })),
    );
    const posts = await Promise.all(branches.map((branch) => postsOf(conversationOf(branch))));
    expect(posts).toEqual(sent.map((input) => ['one', input]));
  });

  it('a question ends a response, and the next one answers it', async () => {
    const asked = await create('unsure');
    expect(asked.output_text).toBe('Which one?');
    const answered = await create('the left one', { previous_response_id: asked.id });
    expect(answered.output_text).toContain('the left one');
    expect(conversationOf(answered)).toBe(conversationOf(asked));
  });

  it('a conversation is named, read as items, and its history is not sent again', async () => {
    const named = await create('first', { conversation: 'by-responses' });
    expect(conversationOf(named)).toBe('by-responses');
    await create('second', { conversation: { id: 'by-responses' } });
    expect(await openai.conversations.retrieve('by-responses')).toMatchObject({ object: 'conversation' });
    const items: string[] = [];
    for await (const item of openai.conversations.items.list('by-responses', { order: 'asc', limit: 3 }))
      if (item.type === 'message') items.push(`${item.role} ${(item.content[0] as { text: string }).text}`);
    expect(items).toEqual(['user first', 'assistant Noted: first', 'user second', 'assistant Noted: second']);
    await expect(
      openai.responses.create({
        model: 'parley',
        conversation: 'by-responses',
        input: [
          { role: 'user', content: 'first' },
          { role: 'assistant', content: 'Noted: first' },
          { role: 'user', content: 'third' },
        ],
      }),
    ).rejects.toMatchObject({ status: 400, param: 'input' });
    expect(await postsOf('by-responses')).toEqual(['first', 'second']);
  });

  it('a client that keeps the history itself stays in one conversation, and several last messages are one post', async () => {
    const first = await create('Hello again');
    const input = [
      { role: 'user' as const, content: 'Hello again' },
      ...first.output.filter(({ type }) => type === 'message'),
      { role: 'user' as const, content: 'And more' },
      { role: 'user' as const, content: [{ type: 'input_text' as const, text: 'and that' }] },
    ];
    const second = await openai.responses.create({ model: 'parley', input } as never);
    expect(conversationOf(second as Response)).toBe(conversationOf(first));
    expect(await postsOf(conversationOf(first))).toEqual(['Hello again', 'And more\nand that']);
  });

  it('a response in the background is answered at once, retrieved, and cancelled', async () => {
    const begun = await create('slow', { background: true, model: 'lead' });
    expect(['queued', 'in_progress']).toContain(begun.status);
    await expect.poll(async () => (await openai.responses.retrieve(begun.id)).status).toBe('in_progress');
    await expect(create('more', { previous_response_id: begun.id })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('not complete'),
    });
    const cancelled = await openai.responses.cancel(begun.id);
    expect(cancelled.status).toBe('cancelled');
    expect([begun.background, cancelled.background]).toEqual([true, true]);
    const next = await create('again', { previous_response_id: begun.id, model: 'lead' });
    expect(next.output_text).toBe('Noted: again');
  });

  it('a failure of the model is an error, and is in the retrieved response', async () => {
    await expect(create('fail', { conversation: 'fails' })).rejects.toMatchObject({
      status: 400,
      code: 'AGENT_FAILED',
    });
    const failed = await openai.responses.retrieve('resp_0_fails');
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'AGENT_FAILED' } });
  });

  const WEATHER = {
    type: 'function' as const,
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: true,
  };

  it('a tool of the caller is called, its result continues the turn, also after the daemon was killed', async () => {
    const asked = await create('the weather, please', { tools: [WEATHER] });
    const [message, called] = asked.output;
    expect(asked.status).toBe('completed');
    expect(message).toMatchObject({ type: 'message', content: [{ text: 'Let me see.' }] });
    expect(called).toMatchObject({
      type: 'function_call',
      name: 'get_weather',
      arguments: '{"city":"Bern"}',
    });
    expect((await openai.responses.retrieve(asked.id)).output).toEqual(asked.output);
    await project.daemon.kill9();
    await project.up();
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
    const result = {
      type: 'function_call_output' as const,
      call_id: called?.type === 'function_call' ? called.call_id : '',
      output: '7 degrees',
    };
    const more = { model: 'parley', tools: [WEATHER], input: [result], previous_response_id: asked.id };
    const answered = (await openai.responses.create(more)) as Response;
    expect(answered.output_text).toBe('It is 7 degrees.');
    expect((await openai.responses.retrieve(answered.id)).output_text).toBe('It is 7 degrees.');
    expect(((await openai.responses.create(more)) as Response).output_text).toBe('It is 7 degrees.'); // a repetition
    const other = { ...more, input: [{ ...result, output: 'another' }] };
    await expect(openai.responses.create(other)).rejects.toMatchObject({ status: 400 });
    const next = await create('thanks', { previous_response_id: answered.id });
    expect(conversationOf(next)).toBe(conversationOf(asked));
  });

  it('results of several calls in one request continue the turn: none is called again, now or when the response is read', async () => {
    const asked = await create('two climates', { tools: [WEATHER] });
    const calls = asked.output.flatMap((one) => (one.type === 'function_call' ? [one.call_id] : []));
    expect(calls).toHaveLength(2);
    const input = calls.map((call_id) => ({ type: 'function_call_output' as const, call_id, output: '7' }));
    const answered = await create(input, { tools: [WEATHER], previous_response_id: asked.id });
    expect(answered.output.map(({ type }) => type)).toEqual(['message']);
    expect(answered.output_text).toBe('It is 7.');
    expect((await openai.responses.retrieve(answered.id)).output).toEqual(answered.output);
  });

  it('results of several calls beside the answer to a question continue the turn: none is called again', async () => {
    const asked = await create('unclear weather', { model: 'lead', tools: [WEATHER] });
    const calls = asked.output.flatMap((one) => (one.type === 'function_call' ? [one.call_id] : []));
    const results = calls.map((call_id) => ({ type: 'function_call_output' as const, call_id, output: '7' }));
    const input = [...results, { role: 'user' as const, content: 'Celsius' }];
    const more = { model: 'lead', tools: [WEATHER], previous_response_id: asked.id };
    const answered = await create(input, more);
    expect(answered.output.map(({ type }) => type)).toEqual(['message']);
    expect((await openai.responses.retrieve(answered.id)).output).toEqual(answered.output);
    const given = ofType(await log(conversationOf(answered)), 'message').filter(
      ({ role }) => role === 'tool',
    );
    expect(given.map(({ content }) => content).sort()).toEqual(['7', '7', 'Celsius']);
  });

  it('a response to the result of a call, read again, has what the agent said that got the turn', async () => {
    const asked = await create('@lead pass on the weather', { tools: [WEATHER] });
    const call_id =
      asked.output.flatMap((one) => (one.type === 'function_call' ? [one.call_id] : [])).at(0) ?? '';
    const input = [{ type: 'function_call_output' as const, call_id, output: '7' }];
    const answered = await create(input, { tools: [WEATHER], previous_response_id: asked.id });
    expect(answered).toMatchObject({ model: 'parley', output_text: 'Done by dev.' });
    expect(await openai.responses.retrieve(answered.id)).toMatchObject({
      model: 'parley',
      output: answered.output,
    });
  });

  it('a stream has the call of a tool of the caller as items and arguments, without a history of the server too', async () => {
    const events: ResponseStreamEvent[] = [];
    const input = [{ role: 'user' as const, content: 'weather in a stream' }];
    const stream = await openai.responses.create({ model: 'lead', input, tools: [WEATHER], stream: true });
    for await (const event of stream) events.push(event);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    const last = events.at(-1);
    const output = last?.type === 'response.completed' ? last.response.output : [];
    expect(output.map(({ type }) => type)).toEqual(['message', 'function_call']);
    const types = events.map(({ type }) => type);
    expect(types.slice(-5, -1)).toEqual([
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
    ]);
    const called = output.find((one) => one.type === 'function_call');
    const result = { type: 'function_call_output' as const, call_id: called?.call_id ?? '', output: 'warm' };
    const whole = await openai.responses.create({
      model: 'lead',
      tools: [WEATHER],
      input: [...input, ...output, result] as never,
    });
    expect((whole as Response).output_text).toBe('It is warm.');
    const [first, ...others] = output; // as the AI SDK sends what the server has stored
    const referred = {
      model: 'lead',
      input: [...input, { type: 'item_reference', id: first?.id }, ...others, result],
    };
    const again = await openai.responses.create(referred as never);
    expect((again as Response).output_text).toBe('It is warm.');
  });

  it('a reference to an answer continues its conversation, with the instructions before it', async () => {
    const asked = await create('weather by reference', { model: 'lead', instructions: 'Be brief.' });
    const [said] = asked.output;
    const follow = (...more: object[]) =>
      openai.responses.create({
        model: 'lead',
        input: [
          { role: 'developer', content: 'Be brief.' },
          { role: 'user', content: 'an older message' },
          { type: 'item_reference', id: said?.id },
          ...more,
          { role: 'user', content: 'and now' },
        ],
      } as never) as Promise<Response>;
    const next = await follow({ type: 'item_reference', id: 'rs_of-a-thought' });
    expect(conversationOf(next)).toBe(conversationOf(asked));
    const posts = ofType(await log(conversationOf(next)), 'message').filter(({ role }) => role === 'user');
    expect(posts.map(({ content }) => content)).toEqual([
      expect.stringContaining('Be brief.'),
      'and now', // the instructions are the same ones
    ]);
    const forked = await follow();
    expect(conversationOf(forked)).not.toBe(conversationOf(asked));
    await expect(follow({ type: 'item_reference', id: 'msg_of-another-service' })).rejects.toMatchObject({
      status: 404,
    });
    await expect(follow({ role: 'assistant', content: 'more' })).rejects.toMatchObject({ status: 400 });
  });

  it('a `text.format` gives JSON that matches it', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const typed = await create('as json', { text: { format: { type: 'json_schema', name: 'w', schema } } });
    expect(JSON.parse(typed.output_text)).toEqual({ city: 'Bern', degrees: 7 });
    await expect(
      create('as json', { text: { format: { type: 'json_schema', name: 'w', schema: { type: 'wrong' } } } }),
    ).rejects.toMatchObject({ status: 400 });
    await expect(create('as yaml', { text: { format: { type: 'yaml' } } })).rejects.toMatchObject({
      status: 400,
    });
  });

  it('a picture is part of the post', async () => {
    const png =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const response = (await openai.responses.create({
      model: 'parley',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is it?' },
            { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
          ],
        },
      ],
    })) as Response;
    const [post] = ofType(await log(conversationOf(response)), 'message');
    expect(post?.parts).toMatchObject([{ type: 'text' }, { type: 'file', mediaType: 'image/png', width: 1 }]);
    const { data } = await openai.responses.inputItems.list(response.id);
    const again = await openai.responses.create({ model: 'parley', input: data as never });
    const [repeated] = ofType(await log(conversationOf(again)), 'message');
    expect(repeated?.parts?.[1]).toMatchObject({ type: 'file', mediaType: 'image/png', width: 1 });
  });

  it('an item of a conversation is read alone, and a stored response is not streamed', async () => {
    const response = await create('one item', { conversation: 'by-item' });
    const [item] = (await openai.conversations.items.list('by-item')).data;
    const of = { conversation_id: 'by-item' };
    expect(await openai.conversations.items.retrieve(String(item?.id), of)).toEqual(item);
    for (const id of ['msg_1_by-item', 'msg_0_by-responses', 'x'])
      await expect(openai.conversations.items.retrieve(id, of)).rejects.toMatchObject({ status: 404 });
    const streamed = openai.responses.retrieve(response.id, { stream: true });
    await expect(streamed).rejects.toMatchObject({ status: 400, param: 'stream' });
  });

  it.each([
    [{ store: false }, 'store', /every response is stored/],
    [{ input: [] }, 'input', /the last item must be a message of the user/],
    [{ tools: [{ type: 'web_search' }] }, 'tools.0.type', /only tools of the type function/],
    [
      { input: [{ type: 'function_call_output', call_id: 'x', output: 'y' }] },
      'input.0.call_id',
      /^400 input\.0\.call_id: no call x was made/,
    ],
    [{ input: [{ type: 'function_call_output', output: 'y' }], instructions: 'i' }, 'input.0.call_id', /id/],
    [{ input: [{ type: 'function_call_output', call_id: 'x', output: 3 }] }, 'input.0.output', /a text/],
    [{ tools: [{ type: 'function', name: 'a b' }] }, 'tools.0.name', /1 to 64 letters/],
    [{ text: { format: { type: 'json_schema' } } }, 'text.format.schema', /expected an object/],
    [
      { text: { format: { type: 'json_schema', name: 'x', schema: { type: 'objekt' } } } },
      'text.format.schema',
      /^400 text\.format\.schema: the schema is invalid: .*, got "objekt"/,
    ],
    [
      { tools: [{ type: 'function', name: 'a', parameters: { type: 'objekt' } }] },
      'tools.0.parameters',
      /the schema is invalid/,
    ],
    [
      { tools: [{ type: 'function', name: 'a' }], tool_choice: { type: 'function', name: 'b' } },
      'tool_choice',
      /brings no tool b/,
    ],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input', /the last item must be a message/],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 'input.0', /item_reference is not taken/],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input.0.content.0',
      /file_id/,
    ],
    [
      {
        input: [
          { role: 'user', content: 'see' },
          { role: 'user', content: [{ type: 'input_image', image_url: 'data:,x' }] },
        ],
        instructions: 'i',
      },
      'input.1.content.0',
      /data URL/,
    ],
    [{ input: [{ role: 'wizard', content: 'x' }] }, 'input.0.role', /expected user, assistant/],
    [{ prompt: { id: 'p' } }, 'prompt', /no stored prompts/],
    [{ prompt: { id: 'p' }, input: undefined }, 'prompt', /no stored prompts/],
    [{ previous_response_id: 'resp_1_a', conversation: 'a' }, 'previous_response_id', /not both/],
  ])('%j is refused', async (more, param, why) => {
    const error = await openai.responses.create({ model: 'parley', input: 'x', ...more } as never).then(
      () => null,
      (refused: unknown) => refused as InstanceType<typeof OpenAI.APIError>,
    );
    expect(error).toMatchObject({ status: 400 });
    expect(error?.message).toMatch(why);
    expect(error?.param).toBe(param);
  });

  it('an id of no response is not found', async () => {
    for (const id of ['resp_1_nowhere', 'resp_abc', `resp_0_${'x'.repeat(200)}`]) {
      await expect(openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
      await expect(create('x', { previous_response_id: id })).rejects.toMatchObject({ status: 404 });
      await expect(openai.responses.cancel(id)).rejects.toMatchObject({ status: 404 });
    }
  });
});

describe('a response that a caller with another token continues', () => {
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: names of variables
  const people = [
    { role: 'post', token: '${SITE}', publisher: 'site' },
    { role: 'post', token: '${DESK}', publisher: 'desk' },
  ];
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: names of variables
  const project = sharedProject({
    settings: { http: { people } },
    env: { SITE: 'the-token-of-site', DESK: 'the-token-of-desk' },
    agents: { dev: '---\nname: Dev\n---\nYou build.' },
    script: [{ reply: { text: 'Done by dev.' } }],
    http: true,
  });

  it('is continued in place while its own caller has not posted since, else in a copy up to that answer', async () => {
    const by = (apiKey: string) => {
      const { responses } = new OpenAI({ baseURL: `${project.http}/v1`, apiKey, maxRetries: 0 });
      return async (input: string, previous_response_id?: string) => {
        const response = await responses.create({ model: 'dev', input, previous_response_id });
        return { id: response.id, conversation: response.conversation?.id ?? '' };
      };
    };
    const [site, desk] = [by('the-token-of-site'), by('the-token-of-desk')];
    const first = await site('one');
    expect((await desk('two', first.id)).conversation).toBe(first.conversation);
    expect((await site('three', first.id)).conversation).toBe(first.conversation);
    const copied = await desk('four', first.id);
    expect(copied.conversation).not.toBe(first.conversation);
    const posts = ofType(await entriesOf(await project.connect(), copied.conversation), 'message');
    expect(posts.flatMap(({ role, content }) => (role === 'user' ? [content] : []))).toEqual(['one', 'four']);
  });
});
