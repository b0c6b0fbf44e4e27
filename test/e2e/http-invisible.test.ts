import { ClientFactory } from '@a2a-js/sdk/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it } from 'vitest';
import { send } from '../support/a2a-client.ts';
import { errorWith } from '../support/error-with.ts';
import { posting } from '../support/http.ts';
import { sharedProject } from '../support/project.ts';

/** On every route, a message without visible characters is refused in its protocol, and leaves nothing. */
describe('a message of invisible characters only', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'Noted.' } }],
    http: true,
  });

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
