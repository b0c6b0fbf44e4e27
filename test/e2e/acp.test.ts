import { type LoadSessionRequest, methods } from '@agentclientprotocol/sdk';
import { describe, expect, it } from 'vitest';
import { filesOf } from '../../src/client/index.ts';
import { type Editor, saidIn, startEditor } from '../support/acp-client.ts';
import { EVERYBODY } from '../support/batch.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { type Project, projectPerTest, sharedProject } from '../support/project.ts';
import { call, FAILS, GIVES, LOOKS, on, SLOW } from '../support/route-rules.ts';
import { until } from '../support/steps.ts';
import { PNG } from '../support/uploaded-files.ts';

async function edit(project: Project, ...args: readonly string[]): Promise<Editor> {
  const editor = await startEditor(['--data', project.data, '--publisher', 'ed', ...args], project.root);
  return untilTestEnds(editor);
}

/** With a session. */
async function begin(project: Project) {
  const editor = await edit(project);
  return { editor, id: await editor.begin() };
}

/** The agent has begun a slow answer. */
async function beginSlow(project: Project) {
  const { editor, id } = await begin(project);
  const ended = editor.prompt(id, 'slow');
  await until(() => saidIn(editor.updates(id)) !== '');
  return { editor, id, ended };
}

const typesIn = (editor: Editor, session: string) => [
  ...new Set(editor.updates(session).map(({ sessionUpdate }) => sessionUpdate)),
];

/** `parley acp` with the client side of the package `@agentclientprotocol/sdk`, on a daemon in its own process. */
describe('an editor', () => {
  const write = (path: string) => call('', 'fs_write', { path: `@project/${path}`, content: 'x' });
  const RULES = [
    LOOKS,
    GIVES,
    on('/order/', call('', 'delegate', { to: 'dev', request: 'write it' }), { agent: 'lead' }),
    on('/unsure/', call('', 'ask', { question: 'Which one?', options: ['a', 'b'] }), { agent: 'lead' }),
    on('/write/', write('x')),
    FAILS,
    SLOW,
    {
      when: { mode: 'run', agent: 'lead' },
      reply: call('', 'complete_node', { outcome: 'done', summary: 's' }),
    },
    on('/Build/', call('', 'complete_node', { outcome: 'ok', summary: 's' }), { mode: 'run', agent: 'dev' }),
    { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
    { reply: { text: 'Noted by the lead.' } },
  ];
  const project = sharedProject({
    settings: { retry: { attempts: 1 }, approvals: EVERYBODY },
    agents: {
      lead: '---\nname: Lead\ndescription: leads\ntools: [fs_list, fs_write, handoff, delegate, ask]\n---\nYou lead.',
      dev: '---\nname: Dev\ntools: [fs_write]\n---\nYou build.',
    },
    files: {
      'workflows/ship.yaml': {
        id: 'ship',
        start: 'plan',
        nodes: {
          plan: { agent: 'lead', brief: 'Plan.', outcomes: { done: 'build' } },
          build: { agent: 'dev', brief: 'Build.', outcomes: { ok: 'end' } },
        },
      },
      'workflows/idle.yaml': {
        id: 'idle',
        start: 'plan',
        nodes: {
          plan: { agent: 'lead', brief: 'Plan.', outcomes: { done: 'wait' } },
          wait: { agent: 'dev', brief: 'Be slow.', outcomes: { ok: 'end' } },
        },
      },
    },
    script: RULES,
  });

  it('a prompt is streamed, is posted as the person and names the conversation', async () => {
    const editor = await edit(project, '--as', 'Edith');
    const id = await editor.begin();
    expect(await editor.prompt(id, 'Hello')).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toBe('Noted by the lead.');
    expect(editor.updates(id).length).toBeGreaterThan(2); // in several chunks, and the title
    expect(typesIn(editor, id)).toEqual(['agent_message_chunk', 'session_info_update']);
    const [post] = ofType(await entriesOf(project.client, id), 'message');
    expect(post).toMatchObject({ content: 'Hello', author: { id: 'ed/Edith' }, to: ['lead'] });
    for (const line of editor.lines()) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  });

  it('a picture is posted as what it is, whatever the editor calls it, and replayed with its bytes', async () => {
    const { editor, id } = await begin(project);
    const data = PNG.toString('base64');
    const prompt = [{ type: 'image' as const, mimeType: 'audio/wav', data, uri: 'file:///shop/plan.png' }];
    await editor.agent.request(methods.agent.session.prompt, { sessionId: id, prompt });
    const [post] = ofType(await entriesOf(project.client, id), 'message');
    expect(filesOf(post ?? {})).toMatchObject([{ mediaType: 'image/png', name: 'plan.png', width: 3 }]);
    const other = await edit(project);
    await other.agent.request(methods.agent.session.load, { sessionId: id, cwd: '/', mcpServers: [] });
    expect(other.updates(id)).toContainEqual({
      ...{ sessionUpdate: 'user_message_chunk', messageId: post?.id },
      content: { type: 'image', mimeType: 'image/png', data, uri: expect.stringMatching(/plan\.png$/) },
    });
  });

  it('calls, their results and the agents that speak are told apart', async () => {
    const { editor, id } = await begin(project);
    expect(await editor.prompt(id, 'look around')).toBe('end_turn');
    expect(editor.updates(id)).toContainEqual({
      ...{ sessionUpdate: 'tool_call', toolCallId: 'c2_0', title: 'fs_list {"path":"@project/"}' },
      ...{ name: 'fs_list', kind: 'read', status: 'pending', rawInput: { path: '@project/' } },
      locations: [{ path: project.root }],
    });
    const statuses = editor
      .updates(id)
      .flatMap((update) => (update.sessionUpdate === 'tool_call_update' ? [update.status] : []));
    expect(statuses).toEqual(['in_progress', 'completed']);
    expect(await editor.prompt(id, 'give it to dev')).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toMatch(/Dev does it\.\**dev:\*\* Done by dev\.$/);
    expect(editor.updates(id).at(-1)).toEqual({
      sessionUpdate: 'current_mode_update',
      currentModeId: 'agent:dev',
    });
  });

  it('an approval is requested with the whole call and its difference, also of an agent that was asked by another', async () => {
    const editor = await edit(project);
    editor.decide = () => 'approve';
    const id = await editor.begin();
    expect(await editor.prompt(id, 'order')).toBe('end_turn');
    expect(editor.permissions).toHaveLength(1);
    const title = 'fs_write {"path":"@project/x","content":"x"}';
    const difference = { type: 'diff', path: `${project.root}/x`, newText: 'x' };
    expect(editor.permissions[0]?.request).toMatchObject({
      sessionId: id,
      toolCall: {
        title,
        kind: 'edit',
        rawInput: { content: 'x' },
        content: [difference, { type: 'content' }],
      },
      options: [
        { kind: 'allow_once' },
        { kind: 'reject_once' },
        {
          kind: 'allow_always',
          name: expect.stringContaining('fs_write with path "@project/x" in this conv'),
        },
      ],
    });
    expect(saidIn(editor.updates(id))).toContain('Done by dev.');
    expect(saidIn(editor.updates(id))).toMatch(/\*\*lead:\*\* Noted by the lead\.$/);
    const [answer] = ofType(await entriesOf(project.client, id), 'approval-answered');
    expect(answer).toMatchObject({ answer: 'approve', author: { id: 'ed' } });
  });

  it('a call that is allowed for the conversation is not requested again', async () => {
    const editor = await edit(project);
    editor.decide = () => 'always';
    const id = await editor.begin();
    expect(await editor.prompt(id, 'write')).toBe('end_turn');
    expect(await editor.prompt(id, 'write')).toBe('end_turn');
    expect(editor.permissions).toHaveLength(1);
    const answers = ofType(await entriesOf(project.client, id), 'approval-answered');
    expect(answers).toMatchObject([
      { always: true },
      { grant: answers[0]?.index, author: { id: 'operator/ed' } },
    ]);
  });

  it('a rejected call fails, and the turn continues', async () => {
    const editor = await edit(project);
    editor.decide = () => 'deny';
    const id = await editor.begin();
    expect(await editor.prompt(id, 'write')).toBe('end_turn');
    const ends = editor
      .updates(id)
      .flatMap((update) => (update.sessionUpdate === 'tool_call_update' ? [update.status] : []));
    expect(ends).toEqual(['failed']);
    expect(saidIn(editor.updates(id))).toBe('Noted by the lead.');
  });

  it('a request for permission is cancelled when the approval is answered elsewhere', async () => {
    const { editor, id } = await begin(project);
    const ended = editor.prompt(id, 'write');
    await until(() => editor.permissions.length === 1);
    const [pending] = (await project.client.request('approvals', { conversation: id })).approvals;
    await project.parley('approve', `${pending?.approvalId}`);
    expect(await ended).toBe('end_turn');
    expect(editor.permissions[0]?.signal.aborted).toBe(true);
    expect(saidIn(editor.updates(id))).toBe('Noted by the lead.');
  });

  it('a question ends the prompt, and the next prompt answers it', async () => {
    const { editor, id } = await begin(project);
    expect(await editor.prompt(id, 'unsure')).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toBe('Which one?\n- a\n- b');
    expect(await editor.prompt(id, 'a')).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toBe('Which one?\n- a\n- bNoted by the lead.');
    const results = ofType(await entriesOf(project.client, id), 'message').filter(
      ({ role }) => role === 'tool',
    );
    expect(results).toMatchObject([{ content: 'a' }]);
  });

  it('a cancelled prompt stops its turn, and the agent answers the next one', async () => {
    const { editor, id, ended } = await beginSlow(project);
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await ended).toBe('cancelled');
    const log = await entriesOf(project.client, id);
    expect(ofType(log, 'turn-ended').map(({ outcome }) => outcome)).toEqual(['aborted']);
    expect(ofType(log, 'agent-resumed')).toHaveLength(1);
    expect(await editor.prompt(id, 'Hello')).toBe('end_turn');
  });

  it('a prompt that is cancelled while an approval waits ends the call that waits', async () => {
    const { editor, id } = await begin(project);
    const ended = editor.prompt(id, 'write');
    await until(() => editor.permissions.length === 1);
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await ended).toBe('cancelled');
    expect(editor.permissions[0]?.signal.aborted).toBe(true);
    expect((await project.client.request('approvals', { conversation: id })).approvals).toEqual([]);
    expect(await editor.prompt(id, 'Hello')).toBe('end_turn');
  });

  it('a failed turn is an error that names its cause', async () => {
    const { editor, id } = await begin(project);
    await expect(editor.prompt(id, 'fail')).rejects.toThrow('out of order');
    expect(saidIn(editor.updates(id))).toBe('So far\n\n(lead: MODEL_ERROR: out of order)');
  });

  it('another process lists and loads the conversation, and continues it', async () => {
    const first = await edit(project);
    const id = await first.begin();
    first.decide = () => 'approve';
    await first.prompt(id, 'order');
    await first.close();
    const second = await edit(project);
    const { sessions } = await second.agent.request(methods.agent.session.list, {});
    expect(sessions).toContainEqual(expect.objectContaining({ sessionId: id, title: 'order' }));
    const loading: LoadSessionRequest = { sessionId: id, cwd: project.root, mcpServers: [] };
    const { modes } = await second.agent.request(methods.agent.session.load, loading);
    expect(modes?.currentModeId).toBe('team');
    expect(second.updates(id)[0]).toMatchObject({
      sessionUpdate: 'user_message_chunk',
      content: { text: 'order' },
    });
    expect(saidIn(second.updates(id))).toBe(saidIn(first.updates(id)));
    const callsIn = (editor: Editor) =>
      editor.updates(id).filter(({ sessionUpdate }) => sessionUpdate.startsWith('tool_call'));
    expect(callsIn(second)).toEqual(callsIn(first));
    expect(await second.prompt(id, 'Hello')).toBe('end_turn');
    const third = await edit(project);
    await third.agent.request(methods.agent.session.resume, loading);
    expect(third.updates(id)).toEqual([]);
    await project.parley('say', id, 'Hello by another', '--publisher', 'bob', '--wait');
    await third.prompt(id, 'Hello');
    expect(third.updates(id)[0]).toMatchObject({ content: { text: '**bob:** Hello by another' } });
  });

  it('two sessions run at once and do not mix', async () => {
    const editor = await edit(project);
    const [one, two] = [await editor.begin(), await editor.begin()];
    const slow = editor.prompt(one, 'slow');
    await until(() => saidIn(editor.updates(one)) !== '');
    await expect(editor.prompt(one, 'Hello')).rejects.toThrow('a prompt of the session');
    expect(await editor.prompt(two, 'Hello')).toBe('end_turn');
    expect(saidIn(editor.updates(two))).toBe('Noted by the lead.');
    expect(await slow).toBe('end_turn');
    expect(saidIn(editor.updates(one))).toBe(SLOW.reply.text);
  });

  it('modes select who answers, and a workflow is a plan', async () => {
    const editor = await edit(project);
    const { sessionId: id, modes } = await editor.agent.request(methods.agent.session.new, {
      cwd: project.root,
      mcpServers: [],
    });
    expect(modes?.availableModes.map((mode) => mode.id)).toEqual([
      ...['team', 'agent:dev', 'agent:lead', 'run:idle', 'run:ship', 'chat'],
    ]);
    const enter = (modeId: string) =>
      editor.agent.request(methods.agent.session.setMode, { sessionId: id, modeId });
    await enter('agent:dev');
    await editor.prompt(id, 'Hello');
    expect(saidIn(editor.updates(id))).toBe('Done by dev.');
    await enter('team');
    await editor.prompt(id, 'Hello');
    expect(saidIn(editor.updates(id))).toBe('Done by dev.**lead:** Noted by the lead.');
    await enter('run:ship');
    expect(await editor.prompt(id, 'Ship it')).toBe('end_turn');
    const plans = editor
      .updates(id)
      .flatMap((update) =>
        update.sessionUpdate === 'plan' ? [update.entries.map(({ status }) => status)] : [],
      );
    expect(plans).toEqual([
      ['in_progress', 'pending'],
      ['completed', 'in_progress'],
      ['completed', 'completed'],
    ]);
    await expect(enter('agent:nobody')).rejects.toThrow('there is no agent nobody; known agents: dev, lead');
    await expect(enter('fast')).rejects.toThrow('there is no mode "fast"; choose one of availableModes');
  });

  it('a cancelled prompt stops the agent of a later node of its run', async () => {
    const { editor, id } = await begin(project);
    await editor.agent.request(methods.agent.session.setMode, { sessionId: id, modeId: 'run:idle' });
    const ended = editor.prompt(id, 'Ship it');
    await until(() => saidIn(editor.updates(id)) !== '');
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await ended).toBe('cancelled');
    const ends = ofType(await entriesOf(project.client, id), 'turn-ended');
    expect(ends.map(({ agent, outcome }) => [agent, outcome])).toEqual([
      ['lead', 'completed'],
      ['dev', 'aborted'],
    ]);
  });

  it('an unknown session is an error that says what to do', async () => {
    const editor = await edit(project);
    await expect(editor.prompt('nowhere', 'Hello')).rejects.toMatchObject({
      code: -32002,
      message: 'there is no session "nowhere" here: begin one with session/new, or load it with session/load',
    });
    const loading = { sessionId: 'nowhere', cwd: project.root, mcpServers: [] };
    await expect(editor.agent.request(methods.agent.session.load, loading)).rejects.toMatchObject({
      code: -32002,
      message: expect.stringContaining('there is no conversation nowhere'),
    });
    await expect(editor.prompt(await editor.begin(), ' ')).rejects.toThrow(
      'the prompt is empty; send some text',
    );
  });

  it('lines that are not JSON-RPC are answered with an error, and the next line is read', async () => {
    const editor = await edit(project);
    for (const line of ['{"jsonrpc"', '[]', '7', '{"jsonrpc":"1.0"}']) editor.stdin.write(`${line}\n`);
    expect(await editor.prompt(await editor.begin(), 'Hello')).toBe('end_turn');
    const codes = editor.lines().flatMap((line) => JSON.parse(line).error?.code ?? []);
    expect(codes).toEqual([-32700, -32600, -32600, -32600]);
  });

  it('an editor that disconnects ends the process, and the turn continues', async () => {
    const editor = untilTestEnds(
      await startEditor(['--data', project.data], project.root, { hasProcess: true }),
    );
    const id = await editor.begin();
    editor.prompt(id, 'slow').catch(() => {});
    await until(() => saidIn(editor.updates(id)) !== '');
    editor.stdin.end();
    expect(await editor.exited).toBe(0);
    const log = await followUntil(project.client, id, turnsEnded(1));
    expect(ofType(log, 'turn-ended')).toMatchObject([{ outcome: 'completed' }]);
  });
});

describe('an editor of a daemon that fails', () => {
  const project = projectPerTest({
    settings: { approvals: EVERYBODY },
    agents: { lead: '---\nname: Lead\ntools: [fs_write]\n---\nYou lead.' },
    script: [
      SLOW,
      on('/write/', call('', 'fs_write', { path: '@project/x', content: 'x' })),
      { reply: { text: 'Noted by the lead.' } },
    ],
  });

  itLong(
    'an approval that waits is requested once, and its answer counts after `kill -9` of the daemon',
    async () => {
      const editor = await edit(project);
      let approve = (_: string): void => {};
      editor.decide = () => new Promise((resolve) => (approve = resolve));
      const id = await editor.begin();
      const ended = editor.prompt(id, 'write');
      await until(() => editor.permissions.length === 1);
      await project.daemon.kill9();
      await project.up();
      approve('approve');
      expect(await ended).toBe('end_turn');
      expect(editor.permissions).toHaveLength(1);
      const log = await entriesOf(await project.connect(), id);
      expect(ofType(log, 'tool-started')).toHaveLength(1);
      expect(saidIn(editor.updates(id))).toBe('Noted by the lead.');
    },
  );

  itLong('a prompt continues and ends after the nats-server was away', async () => {
    const { editor, id, ended } = await beginSlow(project);
    await project.nats.restart();
    expect(await ended).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toContain(SLOW.reply.text);
  });

  itLong('a prompt continues and ends after `kill -9` of the daemon', async () => {
    const { editor, id, ended } = await beginSlow(project);
    await project.daemon.kill9();
    await project.up();
    expect(await ended).toBe('end_turn');
    expect(saidIn(editor.updates(id))).toContain(SLOW.reply.text);
    expect(await editor.prompt(id, 'Hello')).toBe('end_turn');
  });

  itLong('a prompt that is sent while no daemon runs is posted once it does', async () => {
    const { editor, id } = await begin(project);
    await project.daemon.kill9();
    const ended = editor.prompt(id, 'Hello');
    await until(() => saidIn(editor.updates(id)).includes('no daemon answers'));
    await project.up();
    expect(await ended).toBe('end_turn');
    expect(ofType(await entriesOf(await project.connect(), id), 'message')).toHaveLength(2);
  });

  itLong('a prompt is cancelled while no daemon runs', async () => {
    const { editor, id, ended } = await beginSlow(project);
    await project.daemon.kill9();
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await ended).toBe('cancelled');
  });

  itLong('without a daemon, the error says how to start one, and the next request finds it', async () => {
    await project.daemon.stop();
    const editor = await edit(project);
    await expect(editor.begin()).rejects.toThrow('no running daemon found');
    await project.up();
    expect(await editor.prompt(await editor.begin(), 'Hello')).toBe('end_turn');
  });
});
