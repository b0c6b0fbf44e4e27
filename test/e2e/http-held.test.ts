import { type Client as A2aClient, ClientFactory } from '@a2a-js/sdk/client';
import { type BaseEvent, HttpAgent } from '@ag-ui/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it } from 'vitest';
import { message, send, stateOf, wordsOf } from '../support/a2a-client.ts';
import { sharedProject } from '../support/project.ts';
import { call } from '../support/route-rules.ts';
import { until } from '../support/steps.ts';

/**
 * A message to an agent whose turn waits for approval. It is read after the approval, and no client waits that
 * long.
 */
describe('a message to an agent that waits for an approval', () => {
  const project = sharedProject({
    settings: { retry: { attempts: 1 } },
    agents: { lead: '---\nname: Lead\ntools: [fs_write]\n---\nYou lead.' },
    script: [
      { when: { last: '/write/' }, reply: call('', 'fs_write', { path: '@project/x', content: 'x' }) },
      { reply: { text: 'Done.' } },
    ],
    http: true,
  });
  const { client } = project;

  /** A conversation with an open approval. Returns its id. */
  async function held(conversation: string): Promise<string> {
    await client.post({ conversation, content: 'write', publisher: 'alice' });
    let id = '';
    await until(async () => {
      const { agents } = await client.request('conversation', { conversation });
      const { approvals } = await client.request('approvals', { conversation });
      id = approvals[0]?.approvalId ?? '';
      return id !== '' && agents.lead?.status !== 'running';
    });
    return id;
  }

  it('an A2A task to a waiting agent ends with the open approval, and is completed after it', async () => {
    const conversation = 'held-a2a';
    const id = await held(conversation);
    const a2a: A2aClient = await new ClientFactory().createFromUrl(
      `${project.http}/a2a/lead/.well-known/agent-card.json`,
      '',
    );
    const task = await send(a2a, 'and?', { contextId: conversation });
    expect(stateOf(task)).toBe('TASK_STATE_INPUT_REQUIRED');
    expect(JSON.stringify(task.status)).toContain(id);
    const read = await a2a.getTask({ id: task.id, tenant: '' });
    expect(stateOf(read)).toBe('TASK_STATE_INPUT_REQUIRED');
    const states: string[] = [];
    const again = message('more?', { contextId: conversation });
    for await (const { payload } of a2a.sendMessageStream(again)) states.push(payload?.$case ?? '');
    expect(states.length).toBeGreaterThan(0);
    const over = await send(a2a, 'approve', { contextId: conversation, taskId: task.id });
    expect(stateOf(over)).toBe('TASK_STATE_COMPLETED');
    expect(over.artifacts.map(({ parts }) => wordsOf(parts))).toContain('Done.');
  });

  it('an AG-UI run to a waiting agent ends with the interrupt, and the next run resumes it', async () => {
    const conversation = 'held-ag-ui';
    const id = await held(conversation);
    const agent = new HttpAgent({ url: `${project.http}/ag-ui/lead`, threadId: conversation });
    const run = async (parameters: object) => {
      const events: BaseEvent[] = [];
      await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event) });
      return events.at(-1) as BaseEvent & { outcome?: { type: string; interrupts?: { id: string }[] } };
    };
    agent.addMessage({ id: 'u1', role: 'user', content: 'and?' });
    const { outcome } = await run({});
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ metadata: { approvalId: id } }] });
    const interruptId = String(outcome?.interrupts?.[0]?.id);
    const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }];
    expect((await run({ resume })).outcome).toEqual({ type: 'success' });
  });

  it('the MCP tools `post` and `read` return the open approval of a waiting agent', async () => {
    const conversation = 'held-mcp';
    const approvalId = await held(conversation);
    const mcp = new Client({ name: 'test', version: '1' });
    await mcp.connect(new StreamableHTTPClientTransport(new URL(`${project.http}/mcp`)) as never);
    const tool = async (name: string, given: object) =>
      (await mcp.callTool({ name, arguments: { conversation, waitSeconds: 8, ...given } })).structuredContent;
    const waits = { status: 'waits-for-a-person', approvals: [{ approvalId }] };
    expect(await tool('post', { content: 'and?' })).toMatchObject(waits);
    expect(await tool('read', {})).toMatchObject(waits);
    await mcp.close();
  });

  it('`parley say --wait` and a line of a piped `parley chat` end with the open approval of a waiting agent', async () => {
    const conversation = 'held-cli';
    await held(conversation);
    expect(await project.parley('say', conversation, 'and?', '--wait')).toMatchObject({ code: 0 });
    const chat = await project.parleyWithInput('one\ntwo\n', 'chat', conversation);
    expect(chat).toMatchObject({ code: 0 });
    const { entries } = await client.request('entries', { conversation, from: 0 });
    const said = entries.flatMap((entry) =>
      entry.type === 'message' && entry.author.kind === 'person' ? [entry.content] : [],
    );
    expect(said).toEqual(['write', 'and?', 'one', 'two']);
  });
});
