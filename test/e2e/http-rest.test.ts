import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as answers from '../../src/gateway/rest/answers.ts';
import { openSite, type Site, scriptedSettings } from '../support/daemon.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';

/** The REST doors of a daemon that runs as a stranger would run it. */
describe('REST', () => {
  let nats: TestNatsServer;
  let site: Site;
  let url: string;
  beforeAll(async () => {
    nats = await startNatsServer();
    site = await openSite({
      nats: nats.url,
      settings: scriptedSettings(),
      agents: { lead: '---\nname: Lead\ntools: [fs_write]\n---\nYou lead.' },
      files: {
        'script.yaml': {
          rules: [
            {
              when: { last: '/write/' },
              reply: {
                tool_calls: [{ name: 'fs_write', arguments: { path: '@project/x.txt', content: 'x' } }],
              },
            },
            { reply: { text: 'Noted.' } },
          ],
        },
      },
    });
    url = String((await site.up('--http', '127.0.0.1:0')).ready.http);
  });
  afterAll(async () => {
    await site?.close();
    await nats?.stop();
  });

  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}/api${path}`, {
      method,
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };

  it('begins, reads, steers, answers and deletes, in the shapes that its document says', async () => {
    const begun = await call('POST', '/conversations', { content: 'Hello', id: 'one', publisher: 'alice' });
    expect(begun.status).toBe(201);
    const { conversation, index, duplicate, agents } = answers.posted.parse(begun.body);
    expect([index, duplicate, agents]).toEqual([0, false, ['lead']]);
    const again = await call('POST', `/conversations/${conversation}/messages`, {
      content: 'Hello',
      id: 'one',
      publisher: 'alice',
    });
    expect(again.body).toMatchObject({ index: 0, duplicate: true });
    const read = async () =>
      answers.entries.parse((await call('GET', `/conversations/${conversation}/entries`)).body);
    await expect.poll(async () => (await read()).entries.at(-1)?.type).toBe('turn-ended');
    const document = answers.conversation.parse((await call('GET', `/conversations/${conversation}`)).body);
    expect(document.title).toBe('Hello');
    expect(
      answers.conversations.parse((await call('GET', '/conversations')).body).conversations,
    ).toHaveLength(1);
    answers.view.parse((await call('GET', `/conversations/${conversation}/view?agent=lead`)).body);
    answers.agents.parse((await call('GET', '/agents')).body);
    answers.tools.parse((await call('GET', '/tools')).body);
    for (const [verb, body] of [
      ['phase', { phase: 'plan' }],
      ['mode', { mode: 'chat' }],
      ['stop', undefined],
      ['resume', {}],
    ] as const) {
      answers.conversation.parse((await call('POST', `/conversations/${conversation}/${verb}`, body)).body);
    }
    await call('POST', `/conversations/${conversation}/messages`, { content: 'write it' });
    const waiting = async () => answers.approvals.parse((await call('GET', '/approvals')).body).approvals;
    await expect.poll(waiting).toHaveLength(1);
    const [approval] = await waiting();
    const answered = await call('POST', `/approvals/${approval?.approvalId}`, {
      answer: 'deny',
      reason: 'no',
    });
    answers.accepted.parse(answered.body);
    answers.deleted.parse((await call('DELETE', `/conversations/${conversation}`)).body);
    expect(await call('GET', `/conversations/${conversation}`)).toMatchObject({
      status: 404,
      body: { code: 'NOT_FOUND', hint: expect.stringMatching(/\w/) },
    });
  });

  it('refuses with the code that the bus gives', async () => {
    expect(await call('POST', '/conversations/x/messages', { content: 'x', to: ['nobody'] })).toMatchObject({
      status: 400,
      body: { code: 'UNKNOWN_AGENT' },
    });
    expect(await call('POST', '/conversations/x/messages', { content: 'x', publisher: 'a.b' })).toMatchObject(
      {
        status: 400,
        body: { code: 'INVALID_NAME' },
      },
    );
  });
});
