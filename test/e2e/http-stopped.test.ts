import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { sharedProject } from '../support/project.ts';

const PATIENCE_MS = 8_000;

describe('a message to stopped agents', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'Noted.' } }],
    http: true,
  });
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
    expect(await (await ask('v1')).json()).toMatchObject({ choices: [{ message: { content: 'Noted.' } }] });
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
