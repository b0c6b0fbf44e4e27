import { TaskState } from '@a2a-js/sdk';
import { type Client, ClientFactory } from '@a2a-js/sdk/client';
import { describe, expect, it } from 'vitest';
import { data, get, message, send, stateOf, text } from '../support/a2a-client.ts';
import { entriesOf, ofType } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { call } from '../support/route-rules.ts';

/** Task lists and other messages than text, with the official A2A client on a daemon in its own process. */
describe('a client of `@a2a-js/sdk`', () => {
  const RULES = [
    { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
    { when: { last: '/write/' }, reply: call('', 'fs_write', { path: '@project/x', content: 'x' }) },
    { reply: { text: 'Noted.' } },
  ];
  const project = sharedProject({
    agents: {
      lead: '---\nname: Lead\ntools: [fs_write, ask]\n---\nYou lead.',
      dev: '---\nname: Dev\n---\nYou build.',
    },
    script: RULES,
    http: true,
  });

  const open = (agent = 'lead'): Promise<Client> =>
    new ClientFactory().createFromUrl(`${project.http}/a2a/${agent}/.well-known/agent-card.json`, '');

  it('the A2A client lists its tasks page by page, with their states', async () => {
    const client = await open();
    await send(client, 'Hello', { contextId: 'case 1' });
    const asks = await send(client, 'unsure', { contextId: 'two' });
    await send(client, 'The first.', { taskId: asks.id });
    await send(client, 'write it', { contextId: 'case 1' });
    await send(await open('dev'), 'Hello', { contextId: 'two' });
    const wanted = {
      ...{ tenant: '', contextId: '', status: 0, pageToken: '', includeArtifacts: true },
      statusTimestampAfter: undefined,
    };
    const first = await client.listTasks({ ...wanted, pageSize: 2 });
    const rest = await client.listTasks({ ...wanted, pageSize: 2, pageToken: first.nextPageToken });
    const listed = [...first.tasks, ...rest.tasks];
    expect(listed.map((task) => [task.contextId, stateOf(task)])).toEqual([
      ['case 1', 'TASK_STATE_INPUT_REQUIRED'],
      ['two', 'TASK_STATE_COMPLETED'],
      ['case 1', 'TASK_STATE_COMPLETED'],
    ]);
    expect([rest.nextPageToken, rest.totalSize]).toEqual(['', 3]);
    for (const task of listed) expect(task).toEqual(await get(client, task.id));
    const open_ = await client.listTasks({ ...wanted, status: TaskState.TASK_STATE_INPUT_REQUIRED });
    expect(open_.tasks.map(({ contextId }) => contextId)).toEqual(['case 1']);
  });

  it('the A2A client sends data with text, and answers a question with both', async () => {
    const client = await open();
    const parts = [text('unsure'), data({ options: ['a', 'b'] })];
    const task = await send(client, '', { contextId: 'data', parts });
    await send(client, '', { taskId: task.id, parts: [text('The first.'), data({ choice: 'a' })] });
    const messages = ofType(await entriesOf(await project.connect(), 'data'), 'message');
    expect(messages[0]?.content).toBe('unsure\n```json\n{\n  "options": [\n    "a",\n    "b"\n  ]\n}\n```');
    expect(messages.map(({ content }) => content)).toContain(
      'The first.\n```json\n{\n  "choice": "a"\n}\n```',
    );
  });

  it('the A2A client is refused push notifications, which are not supported', async () => {
    const client = await open();
    const push = {
      url: 'http://127.0.0.1:9/hook',
      id: '',
      token: '',
      tenant: '',
      taskId: '',
      authentication: undefined,
    };
    const request = message('Hello', { contextId: 'push' });
    const configuration = {
      ...{ acceptedOutputModes: [], returnImmediately: false, historyLength: undefined },
      taskPushNotificationConfig: push,
    };
    await expect(client.sendMessage({ ...request, configuration })).rejects.toMatchObject({
      name: 'PushNotificationNotSupportedError',
    });
    await expect(entriesOf(await project.connect(), 'push')).rejects.toThrow(/no conversation|NOT_FOUND/);
  });
});
