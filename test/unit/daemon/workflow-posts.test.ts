import { expect, it } from 'vitest';
import { TALK } from '../conversation/team-core.ts';
import { createDaemon } from './daemon.ts';

/** Who may start a workflow by a post. `managed`: the nats-server is the daemon's own. */
const API_ROWS = [
  ['an operator', { publisher: null }, false, undefined, true],
  ['a publisher of a server', { publisher: 'alice' }, false, undefined, false],
  ['a publisher whose row names it', { publisher: 'alice' }, false, ['talk'], true],
  ['a publisher whose row names all', { publisher: 'alice' }, false, ['*'], true],
  ['a publisher whose row names another one', { publisher: 'alice' }, false, ['ship-it'], false],
  ['the local person of a managed server', { publisher: 'alice' }, true, undefined, true],
  ['a token that may operate', { publisher: 'alice', name: null, mayOperate: true }, false, undefined, true],
  ['a token that may post', { publisher: 'alice', name: null, mayOperate: false }, true, undefined, false],
  [
    'a token that may post, of a publisher whose row names it',
    { publisher: 'alice', name: null, mayOperate: false },
    true,
    ['talk'],
    true,
  ],
] as const;

it.each(API_ROWS)(
  'PERSON-6: the verb post of %s starts a workflow only with the right to',
  async (_, caller, isManagedServer, workflows, may) => {
    const daemon = await createDaemon({ isManagedServer, alice: { workflows }, workflows: [TALK] });
    const body = { publisher: 'alice', conversation: 'demo', content: 'a clock', workflow: 'talk', id: 'x' };
    const answer = await daemon.api.handle({ endpoint: 'post', body, ...caller });
    const types = (await daemon.entries()).map(({ type }) => type);
    if (may) {
      expect(answer).toMatchObject({ ok: true, body: { agents: ['pm'], index: 3 } });
      expect(types).toContain('run-started');
    } else {
      expect(answer).toMatchObject({
        refusal: {
          code: 'FORBIDDEN',
          message: 'alice may not start the workflow talk',
          hint: expect.stringContaining('publishers.alice.workflows'),
        },
      });
      expect(types).toEqual([]);
    }
    await daemon.end();
  },
);

const STREAM_ROWS = [
  ['of a server', false, undefined, false],
  ['of a server, of a publisher whose row names it', false, ['talk'], true],
  ['of a managed server', true, undefined, true],
] as const;

it.each(STREAM_ROWS)(
  'PERSON-6: a post from the stream %s starts a workflow, or becomes a dead letter',
  async (_, isManagedServer, workflows, may) => {
    const daemon = await createDaemon({ isManagedServer, alice: { workflows }, workflows: [TALK] });
    await daemon.deliver({ content: 'a clock', workflow: 'talk', id: 'x' });
    const entries = await daemon.entries();
    expect(entries.some(({ type }) => type === 'run-started')).toBe(may);
    expect(daemon.bus.dead.map(({ refused }) => refused.code)).toEqual(may ? [] : ['FORBIDDEN']);
    if (!may) expect(entries).toEqual([]);
    await daemon.end();
  },
);

const SESSION_ROWS = [
  ['the verb post of an operator', { publisher: null }, undefined, true],
  ['the verb post of a publisher of a server', { publisher: 'alice' }, undefined, false],
  ['the verb post of a publisher whose row says no', { publisher: 'alice' }, false, false],
  ['the verb post of a publisher whose row allows it', { publisher: 'alice' }, true, true],
  ['a token that may operate', { publisher: 'alice', name: null, mayOperate: true }, undefined, true],
  ['a token that may post', { publisher: 'alice', name: null, mayOperate: false }, undefined, false],
  [
    'a token that may post, of such a publisher',
    { publisher: 'alice', name: null, mayOperate: false },
    true,
    true,
  ],
  ['the stream', null, undefined, false],
  ['the stream, of a publisher whose row allows it', null, true, true],
] as const;

it.each(SESSION_ROWS)(
  'PERSON-7: a session from %s is set only with the right to, else the answer names it as ignored',
  async (_, caller, sessions, may) => {
    const daemon = await createDaemon({ isManagedServer: false, alice: { sessions } });
    const body = { content: 'hello', claudeSessionId: 's1', id: 'x' };
    if (caller) {
      const asked = { ...body, publisher: 'alice', conversation: 'demo' };
      const answer = await daemon.api.handle({ endpoint: 'post', body: asked, ...caller });
      const { ignored } = (answer as { body: { ignored?: unknown } }).body;
      expect(ignored).toEqual(may ? undefined : ['sessionId']);
    } else await daemon.deliver(body);
    const entries = await daemon.entries();
    expect(entries[0]).toMatchObject({ type: 'message', sessionId: 's1' });
    const set = entries.filter(({ type }) => type === 'session-set');
    expect(set).toMatchObject(may ? [{ agent: 'pm', sessionId: 's1', from: 0 }] : []);
    const repeated = await daemon.request('post', { ...body, publisher: 'alice', conversation: 'demo' });
    expect(repeated).toMatchObject({ body: { duplicate: true } });
    expect((repeated as { body: object }).body).toEqual(
      expect.objectContaining(may ? { index: 0 } : { ignored: ['sessionId'] }),
    );
    await daemon.end();
  },
);

it('PERSON-7: an operator who retries a dead letter for another reason sets no session for its publisher', async () => {
  const daemon = await createDaemon({ isManagedServer: false, workflows: [TALK] });
  await daemon.deliver({ content: 'a clock', workflow: 'talk', sessionId: 'stolen', id: 'x' });
  const answer = await daemon.request('dead-retry', { sequence: 1 });
  expect(answer).toMatchObject({ ok: true, body: { id: 'x', ignored: ['sessionId'] } });
  const entries = await daemon.entries();
  expect(entries.some(({ type }) => type === 'run-started')).toBe(true);
  expect(entries.some(({ type }) => type === 'session-set')).toBe(false);
  await daemon.end();
});

it('PERSON-6: an operator who retries the dead letter of a forbidden start starts it', async () => {
  const daemon = await createDaemon({ isManagedServer: false, workflows: [TALK] });
  await daemon.deliver({ content: 'a clock', workflow: 'talk', id: 'x' });
  const answer = await daemon.request('dead-retry', { sequence: 1 });
  expect(answer).toMatchObject({ ok: true, body: { id: 'x', agents: ['pm'] } });
  expect((await daemon.entries()).some(({ type }) => type === 'run-started')).toBe(true);
  await daemon.end();
});

it('an unknown workflow, and one while a run is active, become dead letters that name the known ones', async () => {
  const daemon = await createDaemon({ workflows: [TALK] });
  await daemon.deliver({ content: 'a clock', workflow: 'none' });
  await daemon.deliver({ content: 'a clock', workflow: 'talk' });
  await daemon.deliver({ content: 'a lamp', workflow: 'talk' });
  expect(
    daemon.bus.dead.map(({ refused: { code, hint } }) => [code, /workflows: talk/.test(hint ?? '')]),
  ).toEqual([
    ['UNKNOWN_WORKFLOW', true],
    ['RUN_CONFLICT', true],
  ]);
  await daemon.end();
});
