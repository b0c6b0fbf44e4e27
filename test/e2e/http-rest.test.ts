import { describe, expect, it } from 'vitest';
import { CONTRACT } from '../../src/bus/contract.ts';
import { readConnectionFile } from '../../src/client/index.ts';
import { identity } from '../../src/gateway/rest/routes.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { openProject, scriptedSettings, sharedProject } from '../support/project.ts';
import { on } from '../support/route-rules.ts';

const SCRIPT = [
  on('/write/', { tool_calls: [{ name: 'fs_write', arguments: { path: '@project/x.txt', content: 'x' } }] }),
  { reply: { text: 'Noted.' } },
];

/** The REST routes of a daemon in its own process. */
describe('the REST API', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\ntools: [fs_write]\n---\nYou lead.' },
    script: SCRIPT,
    http: true,
  });
  const { nats } = project;

  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${project.http}/api${path}`, {
      method,
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };

  it('REST creates, reads, steers, answers and deletes in the forms of its OpenAPI document', async () => {
    const begun = await call('POST', '/conversations', { content: 'Hello', id: 'one', publisher: 'alice' });
    expect(begun.status).toBe(201);
    const { conversation, index, duplicate, agents } = CONTRACT.post.answer.parse(begun.body);
    expect([index, duplicate, agents]).toEqual([0, false, ['lead']]);
    const again = await call('POST', `/conversations/${conversation}/messages`, {
      content: 'Hello',
      id: 'one',
      publisher: 'alice',
    });
    expect(again.body).toMatchObject({ index: 0, duplicate: true });
    const read = async () =>
      CONTRACT.entries.answer.parse((await call('GET', `/conversations/${conversation}/entries`)).body);
    await expect.poll(async () => (await read()).entries.at(-1)?.type).toBe('turn-ended');
    const document = CONTRACT.conversation.answer.parse(
      (await call('GET', `/conversations/${conversation}`)).body,
    );
    expect(document.title).toBe('Hello');
    expect(
      CONTRACT.conversations.answer.parse((await call('GET', '/conversations')).body).conversations,
    ).toHaveLength(1);
    CONTRACT.view.answer.parse((await call('GET', `/conversations/${conversation}/view?agent=lead`)).body);
    CONTRACT.agents.answer.parse((await call('GET', '/agents')).body);
    CONTRACT.tools.answer.parse((await call('GET', '/tools')).body);
    CONTRACT.phases.answer.parse((await call('GET', '/phases')).body);
    CONTRACT.workflows.answer.parse((await call('GET', '/workflows')).body);
    expect(identity.parse((await call('GET', '/identity')).body)).toEqual({
      role: 'operate',
      publisher: null,
      name: null,
      isSession: false,
    });
    for (const [verb, body] of [
      ['phase', { phase: 'plan' }],
      ['mode', { mode: 'chat' }],
      ['stop', undefined],
      ['resume', {}],
    ] as const) {
      CONTRACT.conversation.answer.parse(
        (await call('POST', `/conversations/${conversation}/${verb}`, body)).body,
      );
    }
    await call('POST', `/conversations/${conversation}/messages`, { content: 'write it' });
    const waiting = async () =>
      CONTRACT.approvals.answer.parse((await call('GET', '/approvals')).body).approvals;
    await expect.poll(waiting).toHaveLength(1);
    const [approval] = await waiting();
    const answered = await call('POST', `/approvals/${approval?.approvalId}`, {
      answer: 'deny',
      reason: 'no',
    });
    CONTRACT.answer.answer.parse(answered.body);
    const since = '?lastEntryBefore=2020-01-01T00:00:00Z';
    const kept = CONTRACT.delete.answer.parse(
      (await call('DELETE', `/conversations/${conversation}${since}`)).body,
    );
    expect(kept).toEqual({ deleted: false, existed: true, kept: 'it has a newer entry' });
    CONTRACT.delete.answer.parse((await call('DELETE', `/conversations/${conversation}`)).body);
    expect(await call('GET', `/conversations/${conversation}`)).toMatchObject({
      status: 404,
      body: { code: 'NOT_FOUND', hint: expect.stringMatching(/\w/) },
    });
  });

  it('the daemon shows its HTTP address to users that may read its data directory', async () => {
    expect(await readConnectionFile(project.data)).toMatchObject({ http: project.http });
  });

  it('a token allows its roles and no more, and appears nowhere in outputs', async () => {
    const env = {
      PARLEY_HTTP_TOKENS_READ: 'geheim-geheim-read',
      PARLEY_HTTP_TOKENS_POST: 'geheim-geheim-post',
    };
    const guarded = untilTestEnds(
      await openProject({
        nats: nats.url,
        env,
        settings: scriptedSettings({
          subjectPrefix: 'guarded',
          models: {},
          http: { publishers: { post: 'alice' } },
        }),
        agents: { lead: '---\nname: Lead\n---\nYou lead.' },
      }),
    );
    const daemon = await guarded.up('--http', '127.0.0.1:0');
    const ask = (token: string, method: string, body?: object) =>
      fetch(`${guarded.http}/api/conversations`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: body && JSON.stringify(body),
      });
    expect((await ask('wrong', 'GET')).status).toBe(401);
    expect((await ask('geheim-geheim-read', 'POST', { content: 'x' })).status).toBe(403);
    const posted = CONTRACT.post.answer.parse(
      await (await ask('geheim-geheim-post', 'POST', { content: 'x' })).json(),
    );
    const read = await fetch(`${guarded.http}/api/conversations/${posted.conversation}/entries`, {
      headers: { authorization: 'Bearer geheim-geheim-read' },
    });
    expect(CONTRACT.entries.answer.parse(await read.json()).entries[0]?.author).toMatchObject({
      id: 'alice',
    });
    await daemon.stop();
    expect(daemon.stderr()).not.toContain('geheim');
  });

  it('approvals, stops, resumes and switches have the person of the token as author', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: so the file refers to a variable
    const people = { role: 'operate', token: '${ALICE_TOKEN}', publisher: 'office', name: 'Alice' };
    const office = untilTestEnds(
      await openProject({
        nats: nats.url,
        env: { ALICE_TOKEN: 'geheim-geheim-alice' },
        settings: { subjectPrefix: 'office', http: { people: [people] } },
        agents: { lead: '---\nname: Lead\ntools: [fs_write]\n---\nYou lead.' },
        script: SCRIPT,
      }),
    );
    await office.up('--http', '127.0.0.1:0');
    const ask = async (method: string, path: string, body?: object) => {
      const answer = await fetch(`${office.http}/api${path}`, {
        method,
        headers: { authorization: 'Bearer geheim-geheim-alice', 'content-type': 'application/json' },
        body: body && JSON.stringify(body),
      });
      return await answer.json();
    };
    expect(await ask('GET', '/identity')).toEqual({
      ...{ role: 'operate', publisher: 'office', name: 'Alice', isSession: false },
    });
    await ask('POST', '/conversations/demo/messages', { content: 'write it' });
    const waiting = async () => CONTRACT.approvals.answer.parse(await ask('GET', '/approvals')).approvals;
    await expect.poll(waiting).toHaveLength(1);
    await ask('POST', `/approvals/${(await waiting())[0]?.approvalId}`, { answer: 'deny' });
    await ask('POST', '/conversations/demo/stop', {});
    await ask('POST', '/conversations/demo/resume', {});
    await ask('POST', '/conversations/demo/phase', { phase: 'plan' });
    await ask('POST', '/conversations/demo/mode', { mode: 'chat' });
    const { entries } = CONTRACT.entries.answer.parse(await ask('GET', '/conversations/demo/entries'));
    const alice = { kind: 'person', id: 'office/Alice', name: 'Alice' };
    const types = ['approval-answered', 'agent-stopped', 'agent-resumed', 'phase-entered', 'mode-entered'];
    for (const type of types)
      expect([type, entries.find((entry) => entry.type === type)?.author]).toEqual([type, alice]);
  });
});
