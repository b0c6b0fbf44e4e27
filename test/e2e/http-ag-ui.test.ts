import { type BaseEvent, buildResumeArray, HttpAgent, type Interrupt, type Message } from '@ag-ui/client';
import { describe, expect, it } from 'vitest';
import { EVERYBODY } from '../support/batch.ts';
import { posting } from '../support/http.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { sharedProject } from '../support/project.ts';
import { call, FAILS, GIVES, LOOKS, on, SLOW } from '../support/route-rules.ts';

/** The AG-UI route with the official client and its verifier, on a daemon in its own process. */
describe('the package `@ag-ui/client`', () => {
  const write = (path: string) => call('', 'fs_write', { path: `@project/${path}`, content: 'x' });
  const RULES = [
    LOOKS,
    GIVES,
    on('/order/', call('', 'delegate', { to: 'dev', request: 'write' }), { agent: 'lead' }),
    on('/unsure/', call('', 'ask', { question: 'Which one?', options: ['a', 'b'] }), { agent: 'lead' }),
    on('/plan/', call('', 'set_phase', { phase: 'plan', reason: 'r' }), { agent: 'lead', n: 0 }),
    on('/write/', write('x')),
    FAILS,
    on('/mute/', { text: '', error: { code: 'MODEL_ERROR', message: 'no words' } }),
    SLOW,
    { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
    { reply: { text: 'Noted by the lead.' } },
  ];
  const project = sharedProject({
    settings: { retry: { attempts: 1 }, approvals: EVERYBODY },
    agents: {
      lead: '---\nname: Lead\ntools: [fs_list, fs_write, handoff, delegate, ask, set_phase]\n---\nYou lead.',
      dev: '---\nname: Dev\ntools: [fs_write]\n---\nYou build.',
    },
    script: RULES,
    http: true,
  });
  const { daemon } = project;

  const user = (id: string, content: string): Message => ({ id, role: 'user', content });
  function application(agent: string, threadId: string, initialMessages: Message[] = []) {
    const own = new HttpAgent({ url: `${project.http}/ag-ui/${agent}`, threadId, initialMessages });
    const events: BaseEvent[] = [];
    own.subscribe({ onEvent: ({ event }) => void events.push(event) });
    return {
      own,
      /** New events since the last call. */
      seen: () => events.splice(0),
      async say(id: string, content: string) {
        own.addMessage(user(id, content));
        await own.runAgent();
        return events.splice(0);
      },
      answer: (reply: unknown) => {
        const [interrupt] = own.pendingInterrupts as Interrupt[];
        return own.runAgent({
          resume: buildResumeArray(own.pendingInterrupts, {
            [`${interrupt?.id}`]: { status: 'resolved', payload: reply },
          }),
        });
      },
      words: () =>
        own.messages.filter(({ role }) => role !== 'user').map(({ role, content }) => [role, content]),
    };
  }
  const typesOf = (events: readonly BaseEvent[]) => [...new Set(events.map(({ type }) => type))];

  it('the AG-UI client streams an answer, and a further run posts only new messages', async () => {
    const app = application('lead', 'chat');
    const events = await app.say('u1', 'Hello');
    expect(typesOf(events)).toEqual([
      'RUN_STARTED',
      'STATE_SNAPSHOT',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ]);
    expect(app.words()).toEqual([['assistant', 'Noted by the lead.']]);
    expect(app.own.state).toMatchObject({
      phase: 'chat',
      mode: 'agent',
      activeAgent: null,
      agents: { lead: { lastProcessedMessageIndex: 5, status: 'idle' } },
    });
    expect(events.at(-1)).toMatchObject({
      outcome: { type: 'success' },
      usage: [{ totalTokens: expect.any(Number) }],
    });
    expect(typesOf(await app.say('u2', 'More'))).not.toContain('MESSAGES_SNAPSHOT'); // it has the messages of the log
    const people = ofType(await entriesOf(await project.connect(), 'chat'), 'message').filter(
      ({ role }) => role === 'user',
    );
    expect(people.map(({ id, content, to }) => [id, content, to])).toEqual([
      ['u1', 'Hello', ['lead']],
      ['u2', 'More', ['lead']],
    ]);
  });

  it('the AG-UI client receives tool calls and their results', async () => {
    const app = application('lead', 'tools');
    const types = typesOf(await app.say('u1', 'look around'));
    for (const type of ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'])
      expect(types).toContain(type);
    expect(app.own.messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: 'Let me look.',
        toolCalls: [{ id: 'c2_0', function: { name: 'fs_list', arguments: '{"path":"@project/"}' } }],
      },
      { role: 'tool', toolCallId: 'c2_0' },
      { role: 'assistant', content: 'Noted by the lead.' },
    ]);
  });

  it('an AG-UI run is interrupted for an approval, and continues when it is given', async () => {
    const app = application('lead', 'approve');
    await app.say('u1', 'write it');
    expect(app.own.pendingInterrupts).toMatchObject([
      {
        reason: 'tool_call',
        message: 'lead wants to call fs_write {"path":"@project/x","content":"x"}',
        metadata: { tool: 'fs_write' },
      },
    ]);
    await app.answer({ approved: true });
    expect(app.own.pendingInterrupts).toEqual([]);
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
    expect(await entriesOf(await project.connect(), 'approve')).toContainEqual(
      expect.objectContaining({ type: 'approval-answered', answer: 'approve' }),
    );
  });

  it('an AG-UI run denies an approval that is not decided', async () => {
    const app = application('lead', 'deny');
    await app.say('u1', 'write it');
    const [interrupt] = app.own.pendingInterrupts;
    await app.own.runAgent({ resume: [{ interruptId: `${interrupt?.id}`, status: 'cancelled' }] });
    expect(app.own.messages.find(({ role }) => role === 'tool')?.content).toMatch(/DENIED/);
  });

  it('an AG-UI run is interrupted for a question, and receives the answer', async () => {
    const app = application('lead', 'ask');
    await app.say('u1', 'unsure');
    expect(app.own.pendingInterrupts).toMatchObject([
      { reason: 'input_required', message: 'Which one? (a, b)' },
    ]);
    await app.answer('The first.');
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
    const entries = ofType(await entriesOf(await project.connect(), 'ask'), 'message');
    expect(entries.map(({ role, content }) => [role, content])).toContainEqual(['tool', 'The first.']);
  });

  it('an answer to a question is not posted again, also if no words of an agent follow before the next message', async () => {
    const app = application('lead', 'answered');
    await app.say('u1', 'unsure');
    await app.answer('The first.');
    await app.say('u2', 'mute').catch(() => {}); // the client gets the answer as a message here
    await app.say('u3', 'Hello');
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
    const posts = ofType(await entriesOf(await project.connect(), 'answered'), 'message').filter(
      ({ role }) => role === 'user',
    );
    expect(posts.map(({ content }) => content)).toEqual(['unsure', 'The first.', 'mute', 'Hello']);
  });

  it('a message of another person is not posted again by an application that has it from the log', async () => {
    const client = await project.connect();
    await client.post({ conversation: 'shared', publisher: 'ann', id: 'a1', content: 'mute' });
    await followUntil(client, 'shared', turnsEnded(1));
    const app = application('lead', 'shared');
    await app.own.runAgent();
    expect(app.own.messages.map(({ id }) => id)).toEqual(['a1']);
    await app.own.runAgent();
    await app.say('u1', 'Hello');
    const posts = ofType(await entriesOf(client, 'shared'), 'message').filter(({ role }) => role === 'user');
    expect(posts.map(({ id, author }) => [id, author.id])).toEqual([
      ['a1', 'ann'],
      ['u1', 'ag-ui'],
    ]);
  });

  it('an AG-UI run is interrupted for the approval of an agent that its own agent asked', async () => {
    const app = application('lead', 'order');
    await app.say('u1', 'order it');
    expect(app.own.pendingInterrupts).toMatchObject([
      { message: 'dev wants to call fs_write {"path":"@project/x","content":"x"}' },
    ]);
    await app.answer({ approved: false });
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
  });

  it('the AG-UI client connects to a thread and gets its messages and open interrupts', async () => {
    await application('lead', 'open').say('u1', 'write it');
    const app = application('lead', 'open');
    await app.own.runAgent();
    expect(typesOf(app.seen())).toEqual([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'STATE_SNAPSHOT',
      'RUN_FINISHED',
    ]);
    expect(app.own.messages).toMatchObject([
      { id: 'u1', role: 'user', content: 'write it' },
      { role: 'assistant', toolCalls: [{ function: { name: 'fs_write' } }] },
    ]);
    await app.answer({ approved: true });
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
  });

  it('an AG-UI run without an agent follows a change of phase and a handoff to the end', async () => {
    const app = application('parley', 'team');
    await app.say('u1', 'plan this');
    expect(app.own.state).toMatchObject({ phase: 'plan' });
    await app.say('u2', 'give it away');
    expect(app.words().slice(-2)).toEqual([
      ['tool', 'dev has the floor.'],
      ['assistant', 'Done by dev.'],
    ]);
    expect(app.own.messages.at(-1)).toMatchObject({ name: 'dev' });
    expect(app.own.state).toMatchObject({ activeAgent: 'dev' });
  });

  it('an abort by the application does not end the turn, and the same run is read from the log', async () => {
    const app = application('lead', 'left');
    app.own.addMessage(user('u1', 'slow'));
    app.own.subscribe({ onTextMessageContentEvent: () => app.own.abortRun() });
    await app.own.runAgent();
    expect(app.words()[0]?.[1]).not.toContain('there');
    const client = await project.connect();
    const entries = await followUntil(client, 'left', turnsEnded(1));
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    const again = application('lead', 'left', app.own.messages);
    await again.own.runAgent();
    expect(again.words()).toEqual([['assistant', 'One word after another comes here and there and on']]);
    expect((await entriesOf(client, 'left')).length).toBe(entries.length);
  });

  it('an AG-UI run ends as cancelled when a person stops the agent, and the next message continues', async () => {
    const app = application('lead', 'stopped');
    const isBegun = new Promise<void>((resolve) => {
      app.own.subscribe({ onTextMessageContentEvent: () => resolve() });
    });
    app.own.addMessage(user('u1', 'slow'));
    const run = app.own.runAgent();
    await isBegun;
    await (await project.connect()).request('stop', { conversation: 'stopped' });
    await run;
    expect(app.seen().at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
    await app.say('u2', 'Hello');
    expect(app.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
  });

  it('an AG-UI run reports the failure of an agent after its text', async () => {
    const app = application('lead', 'fail');
    const events = await app.say('u1', 'fail').catch(() => app.seen());
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'MODEL_ERROR', message: 'out of order' });
    expect(app.words()).toEqual([['assistant', 'So far']]);
  });

  itLong('the AG-UI client gets the same after a restart of the daemon', async () => {
    const app = application('lead', 'again');
    await app.say('u1', 'write it');
    const before = app.own.messages;
    await daemon.stop();
    await project.up();
    const after = application('lead', 'again');
    await after.own.runAgent();
    expect(after.own.messages.map(({ id, role }) => [id, role])).toEqual(
      before.map(({ id, role }) => [id, role]),
    );
    await after.answer({ approved: true });
    expect(after.words().at(-1)).toEqual(['assistant', 'Noted by the lead.']);
  });
});

const user = (id: string, content: string) => ({ id, role: 'user', content });

describe('an AG-UI run with a message that is refused', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\ntools: [ask]\n---\nYou lead.' },
    script: [on('/unsure/', call('', 'ask', { question: 'Which one?' })), { reply: { text: 'Noted.' } }],
    http: true,
  });
  const { client } = project;

  async function run(threadId: string, messages: object[], resume: object[] = []) {
    const input = { threadId, runId: 'r', messages, resume, tools: [], context: [], forwardedProps: {} };
    const answer = await fetch(`${project.http}/ag-ui/lead`, posting(input));
    const text = await answer.text();
    return { status: answer.status, text, code: answer.ok ? undefined : JSON.parse(text).code };
  }
  const listed = async () => (await client.request('conversations', {})).conversations.map(({ id }) => id);

  it.each([
    ['nothing visible', user('u2', ' \u200b'), 400, 'EMPTY_CONTENT'],
    ['half a surrogate pair', user('u2', '\ud83d'), 400, 'INVALID_FIELD'],
    ['an id that is not printable', user('u\n2', 'Second'), 400, 'INVALID_FIELD'],
    ['the id of another message of the run', user('u1', 'Second'), 400, 'BAD_REQUEST'],
  ])('an AG-UI run posts none of its messages if the second one has %s', async (_, second, status, code) => {
    expect(await run('none', [user('u1', 'First'), second])).toMatchObject({ status, code });
    expect(await listed()).not.toContain('none');
  });

  it('an AG-UI run posts none of its messages if the second one has the id of another message in the log', async () => {
    expect(await run('known', [user('u1', 'Hello')])).toMatchObject({ status: 200 });
    const before = await entriesOf(client, 'known');
    const refused = await run('known', [user('u0', 'First'), user('u1', 'Second')]);
    expect(refused).toMatchObject({ status: 409, code: 'ID_CONFLICT' });
    expect(await entriesOf(client, 'known')).toEqual(before);
  });

  it('an AG-UI run that is refused gives none of its answers', async () => {
    const asked = await run('asked', [user('u1', 'unsure')]);
    const [interruptId] = /c\d+_0@\d+/.exec(asked.text) ?? [];
    const before = await entriesOf(client, 'asked');
    const answer = { interruptId, status: 'resolved', payload: 'The first.' };
    expect(await run('asked', [user('u2', ' ')], [answer])).toMatchObject({ code: 'EMPTY_CONTENT' });
    const unknown = { interruptId: 'c1_7', status: 'resolved', payload: 'x' };
    expect(await run('asked', [], [answer, unknown])).toMatchObject({ code: 'BAD_REQUEST' });
    expect(await entriesOf(client, 'asked')).toEqual(before);
    expect(await run('asked', [user('u2', 'More')], [answer])).toMatchObject({ status: 200 });
  });

  it('an AG-UI run posts each of its valid messages once, however often it is sent', async () => {
    const messages = [user('u1', 'First'), user('u2', 'Second')];
    for (const _ of [1, 2]) expect(await run('right', messages)).toMatchObject({ status: 200 });
    const posted = (await entriesOf(client, 'right')).filter(
      (entry) => 'role' in entry && entry.role === 'user',
    );
    expect(posted.map(({ id }) => id)).toEqual(['u1', 'u2']);
  });
});

describe('an AG-UI application with the token of an approver or a reader', () => {
  const list = { name: 'fs_list', arguments: { path: '@project/' } };
  const write = { name: 'fs_write', arguments: { path: '@project/x', content: 'x' } };
  const project = sharedProject({
    settings: {
      http: {
        people: [
          // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration names a variable
          { role: 'approve', token: '${BOB}', publisher: 'bob' },
          // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration names a variable
          { role: 'read', token: '${EVE}', publisher: 'ann' },
        ],
      },
      approvals: EVERYBODY,
    },
    env: { BOB: 'approves-secret-bob', EVE: 'reads-secret-eve' },
    agents: { lead: '---\nname: Lead\ntools: [fs_list, fs_write]\n---\nYou lead.' },
    script: [on('/write/', { tool_calls: [list, write] }), { reply: { text: 'Written.' } }],
    http: true,
  });

  it('approves a call beside the result of another one and before the message of another person', async () => {
    const client = await project.connect();
    await client.post({ conversation: 'due', publisher: 'ann', id: 'a1', content: 'write' });
    await followUntil(client, 'due', (entries) => ofType(entries, 'turn-ended').length === 1);
    await client.post({
      conversation: 'due',
      publisher: 'carl',
      id: 'c1',
      content: 'Hurry',
      delivery: 'queue',
    });
    const app = new HttpAgent({
      url: `${project.http}/ag-ui/parley`,
      threadId: 'due',
      headers: { Authorization: 'Bearer approves-secret-bob' },
    });
    await app.runAgent();
    expect(app.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
    const [interrupt] = app.pendingInterrupts;
    const verdict = { status: 'resolved' as const, payload: { approved: true } };
    await app.runAgent({
      resume: buildResumeArray(app.pendingInterrupts, { [`${interrupt?.id}`]: verdict }),
    });
    const entries = ofType(await entriesOf(client, 'due'), 'message');
    const said = (role: string) => entries.flatMap((entry) => (entry.role === role ? [entry.id] : []));
    expect(said('user')).toEqual(['a1', 'c1']);
    expect(said('tool')).toHaveLength(2);
  });

  it('a reader opens the thread with the messages that it has from the log, and posts none', async () => {
    const client = await project.connect();
    await client.post({ conversation: 'shown', publisher: 'ann', id: 'a1', content: 'Hello' });
    await followUntil(client, 'shown', (entries) => ofType(entries, 'turn-ended').length === 1);
    const app = new HttpAgent({
      url: `${project.http}/ag-ui/parley`,
      threadId: 'shown',
      headers: { Authorization: 'Bearer reads-secret-eve' },
    });
    for (const _ of [1, 2]) {
      await app.runAgent();
      expect(app.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    }
    const { length } = await entriesOf(client, 'shown');
    app.addMessage({ id: 'e1', role: 'user', content: 'And mine?' });
    await expect(app.runAgent()).rejects.toThrow('403');
    expect(await entriesOf(client, 'shown')).toHaveLength(length);
  });
});
