import { Role, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { describe, expect, it } from 'vitest';
import { data, get, message, send, stateOf, text, wordsOf } from '../support/a2a-client.ts';
import { EVERYBODY } from '../support/batch.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { sharedProject } from '../support/project.ts';
import { call, FAILS, GIVES, LOOKS, on, SLOW } from '../support/route-rules.ts';

/** The A2A route with the official client, on a daemon in its own process. */
describe('the client of `@a2a-js/sdk`', () => {
  const RULES = [
    LOOKS,
    GIVES,
    { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
    on('/write/', call('', 'fs_write', { path: '@project/x', content: 'x' })),
    FAILS,
    on('/endless/', { text: 'and on '.repeat(500), delayMs: 100 }),
    SLOW,
    { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
    { reply: { text: 'Noted by the lead.' } },
  ];
  const project = sharedProject({
    settings: { retry: { attempts: 1 }, approvals: EVERYBODY },
    agents: {
      lead: '---\nname: Lead\ndescription: leads\ntools: [fs_list, fs_write, ask, handoff]\n---\nYou lead.',
      dev: '---\nname: Dev\n---\nYou build.',
    },
    script: RULES,
    http: true,
  });
  const { daemon } = project;

  const url = (agent: string) => `${project.http}/a2a/${agent}/.well-known/agent-card.json`;
  const open = (agent = 'lead'): Promise<Client> => new ClientFactory().createFromUrl(url(agent), '');
  const artifacts = (task: Task) => task.artifacts.map(({ name, parts }) => [name, wordsOf(parts)]);
  const asked = (task: Task) => wordsOf(task.status?.message?.parts);
  async function all(stream: AsyncIterable<StreamResponse>) {
    const payloads = [];
    for await (const { payload } of stream) payloads.push(payload);
    return payloads;
  }

  it('the A2A client finds the card of each agent, and a message is answered as a task', async () => {
    const answer = await fetch(`${project.http}/a2a`);
    const list = (await answer.json()) as { agents: { slug: string }[] };
    expect(list.agents.map(({ slug }) => slug)).toEqual(['parley', 'dev', 'lead']);
    expect(list.agents[2]).toMatchObject({ description: 'leads', card: url('lead') });
    const client = await open();
    expect(await client.getAgentCard()).toMatchObject({ name: 'Lead', capabilities: { streaming: true } });
    const task = await send(client, 'Hello', { contextId: 'talk', messageId: 'first' });
    expect(task).toMatchObject({ id: 'talk.0', contextId: 'talk' });
    expect([stateOf(task), artifacts(task)]).toEqual([
      'TASK_STATE_COMPLETED',
      [['lead', 'Noted by the lead.']],
    ]);
    expect(await get(client, 'talk.0')).toEqual(task);
    await expect(get(await open('dev'), 'talk.0')).rejects.toMatchObject({ name: 'TaskNotFoundError' });
    expect(await send(client, 'Hello', { contextId: 'talk', messageId: 'first' })).toEqual(task);
    const people = ofType(await entriesOf(await project.connect(), 'talk'), 'message').filter(
      ({ role }) => role === 'user',
    );
    expect(people.map(({ id, content, to }) => [id, content, to])).toEqual([['first', 'Hello', ['lead']]]);
  });

  it('the A2A client gets a new context if it names none, and continues in it', async () => {
    const client = await open();
    const { contextId } = await send(client, 'Hello');
    expect(contextId).not.toBe('');
    const next = await send(client, 'More', { contextId });
    expect(next.contextId).toBe(contextId);
    expect(next.history.map(({ parts }) => wordsOf(parts))).toEqual(['More']);
  });

  it('the A2A client streams artifacts as they are generated, including tool calls', async () => {
    const client = await open();
    const payloads = await all(client.sendMessageStream(message('look around', { contextId: 'tools' })));
    expect(payloads[0]?.$case).toBe('task');
    const texts = new Map<string, string>();
    for (const payload of payloads) {
      if (payload?.$case !== 'artifactUpdate') continue;
      const { artifact, append } = payload.value;
      const id = `${artifact?.artifactId}`;
      texts.set(id, (append ? (texts.get(id) ?? '') : '') + wordsOf(artifact?.parts));
    }
    expect([...texts.values()]).toEqual(['Let me look.', 'Noted by the lead.']);
    expect(payloads.at(-1)).toMatchObject({
      $case: 'statusUpdate',
      value: { status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
    const task = await get(client, 'tools.0');
    expect(task.artifacts.map(({ artifactId, parts }) => [artifactId, wordsOf(parts)])).toEqual([...texts]);
  });

  it('an A2A task needs input for an approval, and continues when it is given', async () => {
    const client = await open();
    const task = await send(client, 'write it');
    expect([stateOf(task), asked(task)]).toEqual([
      'TASK_STATE_INPUT_REQUIRED',
      'lead wants to call fs_write {"path":"@project/x","content":"x"}',
    ]);
    await expect(send(client, 'what is that?', { taskId: task.id })).rejects.toThrow(/waits for approval/);
    const done = await send(client, 'approve', { taskId: task.id, contextId: task.contextId });
    expect([done.id, stateOf(done)]).toEqual([task.id, 'TASK_STATE_COMPLETED']);
    const denied = await send(client, 'write it', { contextId: task.contextId });
    const said = await send(client, data({ approved: false, reason: 'not now' }), { taskId: denied.id });
    expect(artifacts(said)).toEqual([['lead', 'Noted by the lead.']]);
    const answers = ofType(await entriesOf(await project.connect(), task.contextId), 'approval-answered');
    expect(answers.map(({ answer, reason }) => [answer, reason])).toEqual([
      ['approve', undefined],
      ['deny', 'not now'],
    ]);
  });

  itLong('an A2A task needs input for a question, also after a restart of the daemon', async () => {
    const task = await send(await open(), 'unsure', { contextId: 'asks' });
    expect([stateOf(task), asked(task)]).toEqual(['TASK_STATE_INPUT_REQUIRED', 'Which one?']);
    await daemon.stop();
    await project.up();
    const client = await open();
    expect(await get(client, task.id)).toEqual(task);
    const payloads = await all(client.sendMessageStream(message('The first.', { taskId: task.id })));
    expect(payloads.at(-1)).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_COMPLETED } } });
    const done = await get(client, task.id);
    expect(done.history.map(({ role, parts }) => [role, wordsOf(parts)])).toEqual([
      [Role.ROLE_USER, 'unsure'],
      [Role.ROLE_AGENT, 'Which one?'],
      [Role.ROLE_USER, 'The first.'],
    ]);
    await expect(send(client, 'More', { taskId: task.id })).rejects.toThrow(/asks for nothing/);
  });

  it('an A2A task continues when the client has disconnected, which may subscribe again and cancel', async () => {
    const client = await open();
    let id = '';
    for await (const { payload } of client.sendMessageStream(message('endless', { contextId: 'slow' }))) {
      if (payload?.$case === 'task') id = payload.value.id;
      if (payload?.$case === 'artifactUpdate') break; // and hangs up
    }
    expect(stateOf(await get(client, id))).toBe('TASK_STATE_WORKING');
    const again = all(client.resubscribeTask({ id, tenant: '' }));
    const canceled = await client.cancelTask({ id, tenant: '', metadata: undefined });
    expect(stateOf(canceled)).toBe('TASK_STATE_CANCELED');
    expect((await again).at(-1)).toMatchObject({
      value: { status: { state: TaskState.TASK_STATE_CANCELED } },
    });
    await expect(all(client.resubscribeTask({ id, tenant: '' }))).rejects.toThrow(/over/);
    expect(stateOf(await client.cancelTask({ id, tenant: '', metadata: undefined }))).toBe(
      'TASK_STATE_CANCELED',
    );
    const next = await send(client, 'Hello', { contextId: 'slow' });
    expect(stateOf(next)).toBe('TASK_STATE_COMPLETED');
    await expect(client.cancelTask({ id: next.id, tenant: '', metadata: undefined })).rejects.toThrow(/over/);
  });

  it('a non-blocking A2A message is answered at once, and the turn continues', async () => {
    const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      clientConfig: { polling: true },
    });
    const client = await new ClientFactory(options).createFromUrl(url('lead'), '');
    const task = await send(client, 'slow', { contextId: 'later' });
    expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(stateOf(task));
    await followUntil(await project.connect(), 'later', turnsEnded(1));
    expect(artifacts(await get(client, task.id))).toEqual([
      ['lead', 'One word after another comes here and there and on'],
    ]);
  });

  it('an A2A task reports a failure with the text so far, also if another agent of the team answers', async () => {
    const failed = await send(await open(), 'fail');
    expect([stateOf(failed), asked(failed), artifacts(failed)]).toEqual([
      'TASK_STATE_FAILED',
      'MODEL_ERROR: out of order',
      [['lead', 'So far']],
    ]);
    const team = await new ClientFactory().createFromUrl(project.http);
    expect(artifacts(await send(team, 'give it away'))).toEqual([
      ['lead', 'Dev does it.'],
      ['dev', 'Done by dev.'],
    ]);
  });

  it('A2A clients of version 0.3 get answers of that version', async () => {
    const legacyCompat = { enabled: true };
    const client = await new ClientFactory({
      transports: [new JsonRpcTransportFactory({ legacyCompat })],
      cardResolver: new DefaultAgentCardResolver({
        legacyCompat,
        fetchImpl: (address) => fetch(address), // without a version, as these clients send
      }),
    }).createFromUrl(url('lead'), '');
    expect(client.protocolVersion).toBe('0.3');
    const task = await send(client, 'Hello', { contextId: 'old' });
    expect([stateOf(task), artifacts(task)]).toEqual([
      'TASK_STATE_COMPLETED',
      [['lead', 'Noted by the lead.']],
    ]);
    const payloads = await all(client.sendMessageStream(message('unsure', { contextId: 'old' })));
    expect(payloads.at(-1)).toMatchObject({
      value: { status: { state: TaskState.TASK_STATE_INPUT_REQUIRED } },
    });
  });
});

/** Task lists and other messages than text, with the official A2A client on a daemon in its own process. */
describe('a client of `@a2a-js/sdk`', () => {
  const RULES = [
    { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
    on('/write/', call('', 'fs_write', { path: '@project/x', content: 'x' })),
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
