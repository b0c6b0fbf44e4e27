import { ClientFactory } from '@a2a-js/sdk/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/a2a-client.ts';
import { errorWith } from '../support/error-with.ts';
import { posting } from '../support/http.ts';
import { NOTING, sharedProject } from '../support/project.ts';

const PATIENCE_MS = 8_000;

const project = sharedProject({ ...NOTING, http: true });

/** On every route, a message without visible characters is refused in its protocol, and leaves nothing. */
describe('a message of invisible characters only', () => {
  const post = async (path: string, body: object) => {
    const answer = await fetch(
      `${project.http}${path}`,
      posting(body, { accept: 'application/json, text/event-stream' }),
    );
    return { status: answer.status, text: await answer.text() };
  };
  const toApi = async (content: string) => {
    const { status, text } = await post('/api/conversations/api/messages', { content });
    expect([status, JSON.parse(text)]).toEqual([400, expect.objectContaining({ code: 'EMPTY_CONTENT' })]);
  };
  const toOpenAi = async (content: string) => {
    const said = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello.' },
    ];
    for (const history of [[], said]) {
      for (const stream of [false, true]) {
        const messages = [...history, { role: 'user', content }];
        const { status, text } = await post('/v1/chat/completions', { model: 'lead', stream, messages });
        const error = { code: 'EMPTY_CONTENT', message: expect.any(String), type: 'invalid_request_error' };
        expect([status, JSON.parse(text)]).toEqual([400, { error: expect.objectContaining(error) }]);
      }
    }
  };
  const toA2a = async (content: string) => {
    const card = `${project.http}/a2a/lead/.well-known/agent-card.json`;
    const client = await new ClientFactory().createFromUrl(card, '');
    await expect(send(client, content, { contextId: 'a2a' })).rejects.toThrow(/EMPTY_CONTENT/);
  };
  const toAgUi = async (content: string) => {
    const messages = [{ id: 'u1', role: 'user', content }];
    const run = { threadId: 'ag-ui', runId: 'r', messages, tools: [], context: [], state: {} };
    const { status, text } = await post('/ag-ui/lead', { ...run, forwardedProps: {} });
    expect([status, JSON.parse(text)]).toEqual([400, expect.objectContaining({ code: 'EMPTY_CONTENT' })]);
  };
  const toMcp = async (content: string) => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${project.http}/mcp`)) as never);
    const told = await client.callTool({ name: 'post', arguments: { conversation: 'mcp', content } });
    await client.close();
    expect(told).toMatchObject({ isError: true, structuredContent: { code: 'EMPTY_CONTENT' } });
  };

  it.each<[string, (content: string) => Promise<void>]>([
    ['/api', toApi],
    ['/v1', toOpenAi],
    ['A2A', toA2a],
    ['AG-UI', toAgUi],
    ['MCP', toMcp],
  ])('a message of invisible characters is refused by %s, and nothing is posted', async (_, refuses) => {
    const characters = ['\u200b', '\u2060', '\u00ad', '\u202e', '\u2800', '\u3164'];
    for (const content of [...characters, characters.join('')]) await refuses(content);
    const client = await project.connect();
    expect(await client.request('conversations', {})).toMatchObject({ conversations: [] });
  });

  it('invisible messages and unpaired surrogates are refused by /v1 before its history is kept', async () => {
    const messages = ['user', 'assistant', 'user'].map((role) => ({ role, content: 'half \ud83d' }));
    const { status, text } = await post('/v1/chat/completions', { model: 'lead', messages });
    const error = expect.objectContaining(errorWith('INVALID_FIELD', /surrogate/));
    expect([status, JSON.parse(text)]).toEqual([400, { error }]);
    const client = await project.connect();
    expect(await client.request('conversations', {})).toMatchObject({ conversations: [] });
  });
});

describe('a message to stopped agents', () => {
  beforeAll(async () => {
    for (const conversation of ['v1', 'v1-stream', 'ag-ui', 'a2a', 'a2a-stream', 'mcp']) {
      await project.parley('say', conversation, 'Hello', '--wait');
      await project.parley('stop', conversation);
    }
  });

  const post = (path: string, body: object, headers: object = {}) =>
    fetch(`${project.http}${path}`, {
      method: 'POST',
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const noticeIn = (conversation: string) =>
    `lead is stopped: it answers after \`parley resume ${conversation}\``;

  it('a message to a stopped agent is refused at once at /v1, and answered when sent again after the resume', async () => {
    const ask = (conversation: string, stream = false) =>
      post(
        '/v1/chat/completions',
        { model: 'parley', stream, messages: [{ role: 'user', content: 'Still there?' }] },
        { 'x-parley-conversation': conversation, 'idempotency-key': 'once' },
      );
    const answer = await ask('v1');
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([400, 'false']);
    expect(await answer.json()).toMatchObject({
      error: { code: 'AGENT_STOPPED', message: expect.stringContaining(noticeIn('v1')) },
    });
    expect(await (await ask('v1-stream', true)).text()).toContain(noticeIn('v1-stream'));
    await project.parley('resume', 'v1');
    expect(await (await ask('v1')).json()).toMatchObject({ choices: [{ message: { content: 'noted' } }] });
  });

  it('an AG-UI run to a stopped agent ends with an error that names the command', async () => {
    const message = { id: 'u1', role: 'user', content: 'Still there?' };
    const run = { threadId: 'ag-ui', runId: 'r', messages: [message], tools: [], context: [] };
    const text = await (await post('/ag-ui/parley', run)).text();
    expect(text).toContain('"type":"RUN_ERROR"');
    expect(text).toContain(noticeIn('ag-ui'));
  });

  it('an A2A task to a stopped agent stays submitted, with a status that names the command', async () => {
    const send = (method: string, contextId: string) => {
      const message = { messageId: 'm1', contextId, role: 'ROLE_USER', parts: [{ text: 'Still there?' }] };
      const rpc = { jsonrpc: '2.0', id: 1, method, params: { message } };
      return post('/a2a/parley', rpc, { 'a2a-version': '1.0' });
    };
    expect(await (await send('SendMessage', 'a2a')).json()).toMatchObject({
      result: {
        task: {
          status: { state: 'TASK_STATE_SUBMITTED', message: { parts: [{ text: noticeIn('a2a') }] } },
        },
      },
    });
    expect(await (await send('SendStreamingMessage', 'a2a-stream')).text()).toContain(noticeIn('a2a-stream'));
  });

  it('the MCP tool `post` reports that a message to a stopped agent waits for a person', async () => {
    const client = new Client({ name: 'test', version: '1' });
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's own types disagree about optional fields
    await client.connect(new StreamableHTTPClientTransport(new URL(`${project.http}/mcp`)) as any);
    const given = { conversation: 'mcp', content: 'Still there?', waitSeconds: 5 };
    const result = await client.callTool({ name: 'post', arguments: given });
    expect(result).toMatchObject({
      content: [{ text: expect.stringContaining(noticeIn('mcp')) }],
      structuredContent: { status: 'waits-for-a-person' },
    });
    await client.close();
  });
});
