import { access, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { posting } from '../support/http.ts';
import { runCommand } from '../support/in-process.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { call, on } from '../support/route-rules.ts';
import { type Guarded, startGuarded } from '../support/server-users.ts';

/**
 * An approval lets a shell command run. Attackers have the rights that `parley nats-config` gives a publisher, or
 * an HTTP token. The command creates a file, which shows whether it ran.
 */

const USERS = {
  daemon: { role: 'daemon' },
  ops: { role: 'operator' },
  alice: { role: 'publisher', conversations: 'all' },
  bob: { role: 'publisher', conversations: 'all' },
};
const TOKENS = { posts: 'posts-secret-alice', approves: 'approves-secret-alice', bob: 'approves-secret-bob' };

let project: Guarded;
/** Conversations of the test that runs. */
let demo = '';
let aside = '';

/** One server and daemon for the tests of a `describe`. */
function useServer(approvals?: object): void {
  const started = shared(() => start(approvals));
  let tests = 0;
  beforeEach(async () => {
    project = started;
    [demo, aside] = [`demo-${++tests}`, `aside-${tests}`];
    for (const file of ['ran', 'another']) await rm(join(project.root, file), { force: true });
  });
}

function start(approvals?: object): Promise<Guarded> {
  const reply = (file: string) => call('', 'shell', { command: `touch ${file}` });
  const rules = [
    { when: { agent: 'dev', last: '/passed on/' }, reply: reply('ran') },
    on('/pass on/', call('', 'delegate', { to: 'dev', request: 'passed on' }), { agent: 'lead' }),
    on('/hand over/', call('', 'handoff', { to: 'dev', summary: 'passed on' }), { agent: 'lead' }),
    { when: { agent: 'lead', last: '/ask me/' }, reply: call('', 'ask', { question: 'What?' }) },
    on('/slowly/', { ...call('', 'fs_list', { path: '@project/' }), delayMs: 1_500 }, { agent: 'lead' }),
    { when: { agent: 'lead', last: '/instead/' }, reply: reply('another') },
    { when: { agent: 'lead', last: '/make another/' }, reply: reply('another') },
    { when: { agent: 'lead', last: '/make/' }, reply: reply('ran') },
    { reply: { text: 'noted' } },
  ];
  const people = [
    // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the configuration names variables
    { role: 'post', token: '${POSTS}', publisher: 'alice' },
    { role: 'approve', token: '${APPROVES}', publisher: 'alice' },
    { role: 'approve', token: '${BOB}', publisher: 'bob' },
    // biome-ignore-end lint/suspicious/noTemplateCurlyInString: as above
  ];
  const agent = (name: string) =>
    `---\nname: ${name}\ndescription: works\ntools: [shell, delegate, handoff, ask, fs_list]\n---\nYou work.`;
  const options = {
    settings: { http: { people }, ...(approvals && { approvals }) },
    env: { POSTS: TOKENS.posts, APPROVES: TOKENS.approves, BOB: TOKENS.bob },
    agents: { lead: agent('Lead'), dev: agent('Dev') },
    script: rules,
    http: true,
  };
  return startGuarded(options, USERS, '--store', 'jetstream');
}

const client = (name: string) => project.clientOf(name, { attempts: 1 });

async function post(name: string, content: string, conversation = demo, more: object = {}): Promise<void> {
  const connection = await project.connectAs(name);
  const body = JSON.stringify({ content, ...more });
  await connection.request(`parley.in.${name}.${conversation}`, body, { timeout: 5_000 });
}

/** Alice posts as any publisher may. Returns the id of the open approval. */
async function ask(conversation = demo, content = 'make it', more: object = {}): Promise<string> {
  await post('alice', content, conversation, more);
  const ops = await client('ops');
  const isAsked = (entries: Parameters<typeof ofType>[0]) => ofType(entries, 'approval-requested').length > 0;
  const entries = await followUntil(ops, conversation, isAsked);
  return ofType(entries, 'approval-requested')[0]?.approvalId ?? '';
}

/** An answer on a publisher's own subject. */
async function answerAs(name: string, approvalId: string, answer = 'approve', more: object = {}) {
  const raw = await project.connectAs(name);
  const body = JSON.stringify({ approvalId, answer, ...more });
  return (await raw.request(`parley.api.answer.${name}`, body, { timeout: 5_000 })).json();
}

async function answerOver(token: string, approvalId: string, more: object = {}) {
  const response = await fetch(
    `${project.http}/api/approvals/${approvalId}`,
    posting({ answer: 'approve', ...more }, { authorization: `Bearer ${token}` }),
  );
  return { status: response.status, body: (await response.json()) as object };
}

const exists = (file: string) =>
  access(join(project.root, file)).then(
    () => true,
    () => false,
  );
/** Whether the command ran: after an approval, which is in the log before its caller has an answer, it has a second for that. */
const isRun = async (file = 'ran') => {
  const logs = [demo, aside].map(async (one) => entriesOf(await client('ops'), one).catch(() => []));
  const answers = ofType((await Promise.all(logs)).flat(), 'approval-answered');
  const isReleased = answers.some(({ answer }) => answer !== 'deny');
  for (let tries = 0; isReleased && tries < 10 && !(await exists(file)); tries++) await sleep(100);
  return await exists(file);
};
const FORBIDDEN = { code: 'FORBIDDEN', hint: expect.stringContaining('approvals.approvers') };
const OWN = { code: 'FORBIDDEN', hint: expect.stringContaining('approvals.ownRequests') };

describe('a shared server without approvers', () => {
  useServer();

  it('a publisher cannot run a shell command by posting and approving it', async () => {
    const approvalId = await ask();
    expect(await answerAs('alice', approvalId)).toMatchObject(FORBIDDEN);
    expect(await isRun()).toBe(false);
  });

  it('another publisher can neither approve nor deny the call', async () => {
    const approvalId = await ask();
    expect(await answerAs('bob', approvalId)).toMatchObject(FORBIDDEN);
    expect(await answerAs('bob', approvalId, 'deny')).toMatchObject(FORBIDDEN);
    expect(await isRun()).toBe(false);
  });

  it('an HTTP token gives no right that its publisher lacks', async () => {
    const approvalId = await ask();
    expect(await answerOver(TOKENS.posts, approvalId)).toMatchObject({ status: 403 });
    expect(await answerOver(TOKENS.approves, approvalId)).toMatchObject({ status: 403, body: FORBIDDEN });
    expect(await answerOver(TOKENS.bob, approvalId)).toMatchObject({ status: 403, body: FORBIDDEN });
    const borrowed = await answerOver(TOKENS.approves, approvalId, { publisher: 'ops' });
    expect(borrowed).toMatchObject({ status: 403 });
    expect(await isRun()).toBe(false);
  });

  it('the operator approves a call, and the publisher may deny a call of its own request', async () => {
    const approvalId = await ask();
    const flags = project.flags('ops');
    const asPublisher = await runCommand(['approve', approvalId, ...flags]);
    expect([asPublisher.code, asPublisher.stderr]).toEqual([1, expect.stringContaining('--operator')]);
    expect((await runCommand(['approve', approvalId, '--operator', ...flags])).code).toBe(0);
    expect(await isRun()).toBe(true);
    const other = await ask(aside, 'make another');
    expect(await answerAs('alice', other, 'deny')).toEqual({ accepted: true });
    await followUntil(await client('ops'), aside, turnsEnded(1));
    expect(await isRun('another')).toBe(false);
  });
});

describe('a shared server with approvers', () => {
  useServer({ approvers: ['alice', 'bob'] });

  it('a publisher cannot approve its own request, also over a delegation, and another can', async () => {
    const approvalId = await ask(demo, 'pass on');
    expect(await answerAs('alice', approvalId)).toMatchObject(OWN);
    expect(await answerOver(TOKENS.approves, approvalId)).toMatchObject({ status: 403, body: OWN });
    expect(await isRun()).toBe(false);
    expect(await answerOver(TOKENS.bob, approvalId)).toMatchObject({ status: 200 });
    expect(await isRun()).toBe(true);
  });

  it('a publisher cannot approve a call of an agent that got its request by a handoff', async () => {
    const approvalId = await ask(demo, 'hand over');
    expect(await answerAs('alice', approvalId)).toMatchObject(OWN);
    expect(await isRun()).toBe(false);
    expect(await answerAs('bob', approvalId)).toEqual({ accepted: true });
    expect(await isRun()).toBe(true);
  });

  it('neither the author of a question nor of its answer can approve the call that follows', async () => {
    await post('bob', 'ask me');
    const asked = (entries: Parameters<typeof ofType>[0]) =>
      ofType(entries, 'message').find((one) => one.tool_calls?.[0]?.function.name === 'ask');
    const entries = await followUntil(await client('ops'), demo, (all) => asked(all) !== undefined);
    const approvalId = await ask(demo, 'make it', { replyTo: `c${asked(entries)?.index}_0` });
    await expectOperatorAlone(approvalId);
  });

  it('neither the publisher that began a turn nor one that posted into it can approve the call that follows', async () => {
    await post('bob', 'slowly');
    await followUntil(await client('ops'), demo, (all) => ofType(all, 'turn-started').length > 0);
    const approvalId = await ask();
    const delivered = ofType(await entriesOf(await client('ops'), demo), 'message-delivered');
    expect(delivered.length).toBe(1);
    await expectOperatorAlone(approvalId);
  });

  itLong(
    'the publisher of a message that waited for the end of a turn cannot approve its call, and the one that began the turn can',
    async () => {
      await post('bob', 'slowly');
      await followUntil(await client('ops'), demo, (all) => ofType(all, 'turn-started').length > 0);
      const approvalId = await ask(demo, 'make it', { delivery: 'queue' });
      expect(await answerAs('alice', approvalId)).toMatchObject(OWN);
      expect(await isRun()).toBe(false);
      expect(await answerAs('bob', approvalId)).toEqual({ accepted: true });
      expect(await isRun()).toBe(true);
    },
  );

  async function expectOperatorAlone(approvalId: string): Promise<void> {
    expect(await answerAs('alice', approvalId)).toMatchObject(OWN);
    expect(await answerAs('bob', approvalId)).toMatchObject(OWN);
    expect(await answerOver(TOKENS.bob, approvalId)).toMatchObject({ status: 403, body: OWN });
    expect(await isRun()).toBe(false);
    const flags = project.flags('ops');
    expect((await runCommand(['approve', approvalId, '--operator', ...flags])).code).toBe(0);
    expect(await isRun()).toBe(true);
  }

  it('an unknown or answered id releases nothing, wherever it is sent', async () => {
    const approvalId = await ask();
    const open = await ask(aside, 'make another');
    expect(await answerAs('bob', approvalId, 'deny')).toEqual({ accepted: true });
    for (const id of [approvalId, 'unknown']) {
      const code = id === approvalId ? 'APPROVAL_ANSWERED' : 'NOT_FOUND';
      for (const refused of await everywhere(id)) expect(refused, JSON.stringify(refused)).toContain(code);
    }
    const entries = await entriesOf(await client('ops'), aside);
    expect(ofType(entries, 'approval-answered')).toEqual([]);
    expect(await isRun()).toBe(false);
    expect(await isRun('another')).toBe(false);
    expect(open).not.toBe('');
  });

  it('an AG-UI interrupt and an A2A task release only the call that they name', async () => {
    await ask();
    const open = await ask(aside, 'make another');
    const place = await placeOf(demo);
    const [post] = ofType(await entriesOf(await client('ops'), demo), 'message');
    const task = `${demo}.${post?.index}`;
    for (const id of [open, 'unknown']) {
      expect(await run(demo, `${place}.${id}`)).toContain('no approval was requested by');
      expect(await send(task, id)).toContain('is open in this task');
    }
    expect([await isRun(), await isRun('another')]).toEqual([false, false]);
  });

  it('an A2A approval that names no call does not release the one that replaced the call it was shown', async () => {
    const shown = await ask();
    expect(await answerAs('alice', shown, 'deny', { reason: 'run this instead' })).toEqual({
      accepted: true,
    });
    const requests = async () =>
      ofType(await entriesOf(await client('ops'), demo), 'approval-requested').map((one) => one.approvalId);
    await expect.poll(async () => (await requests()).length).toBe(2);
    const [post] = ofType(await entriesOf(await client('ops'), demo), 'message');
    const task = `${demo}.${post?.index}`;
    for (const late of [undefined, shown]) {
      expect(await send(task, late)).toMatch(/the message names none|is open in this task/);
      expect(await isRun('another')).toBe(false);
    }
    expect(await send(task, (await requests())[1])).toContain('"state":"completed"');
    expect(await isRun('another')).toBe(true);
  });

  /** The AG-UI id of the open call of a conversation. */
  async function placeOf(conversation: string): Promise<string> {
    const [asked] = ofType(await entriesOf(await client('ops'), conversation), 'approval-requested');
    return `c${asked?.call.index}_${asked?.call.position}`;
  }

  function run(threadId: string, interruptId: string): Promise<string> {
    const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }];
    return over('/ag-ui/lead', {
      threadId,
      runId: 'r',
      messages: [],
      resume,
      tools: [],
      context: [],
      forwardedProps: {},
    });
  }

  function send(taskId: string, approvalId: string | undefined): Promise<string> {
    const parts = [{ kind: 'data', data: { approved: true, approvalId } }];
    const message = { kind: 'message', messageId: `${approvalId}`, role: 'user', taskId, parts };
    return over('/a2a/lead', { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } });
  }

  /** The answer of each entry point for this id. */
  async function everywhere(id: string): Promise<string[]> {
    const text = JSON.stringify;
    const flags = project.flags('ops');
    const params = { name: 'answer', arguments: { approvalId: id, answer: 'approve' } };
    const cli = await runCommand(['approve', id, '--operator', ...flags, '--json']);
    return [
      text(await answerAs('bob', id)),
      text((await answerOver(TOKENS.bob, id)).body),
      cli.stdout + cli.stderr,
      await over('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    ];
  }

  async function over(path: string, body: object): Promise<string> {
    const response = await fetch(
      `${project.http}${path}`,
      posting(body, { authorization: `Bearer ${TOKENS.bob}`, accept: 'application/json, text/event-stream' }),
    );
    return response.text();
  }
});
