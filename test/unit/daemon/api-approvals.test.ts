import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { Toolbox } from '../../../src/agents/index.ts';
import { type Entry, pendingApprovals, type ToolRules } from '../../../src/conversation/index.ts';
import { completed, failed } from '../../../src/tools/toolbox.ts';
import { refusedWith } from '../../support/error-with.ts';
import { toolboxOf } from '../../support/toolbox.ts';
import {
  ASK_FOR_EACH,
  askApproval,
  createDaemon,
  postCommand,
  type TestDaemon,
  type TestDaemonOptions,
} from './daemon.ts';

let daemon: TestDaemon;
afterEach(() => daemon.end());

const open = (options: TestDaemonOptions = {}) => {
  daemon = createDaemon({ tools: ASK_FOR_EACH, ...options });
};
const ask = (conversation = 'demo', text = '{}') => askApproval(daemon, conversation, text);

describe('an answer to an approval', () => {
  const FORBIDDEN = { ok: false, refusal: { code: 'FORBIDDEN', hint: expect.stringMatching(/\w/) } };
  const answeredBy = async () => {
    const entries: readonly Entry[] = await daemon.entries();
    return entries.flatMap((entry) => (entry.type === 'approval-answered' ? [entry.author.id] : []));
  };

  it('an approval may be answered by approvers only, named by the subject or the body', async () => {
    open({ approvers: ['alice'] });
    const approval = { approvalId: await ask('demo'), answer: 'approve' };
    expect(await daemon.request('answer', approval, 'mallory')).toMatchObject(FORBIDDEN);
    expect(await daemon.request('answer', { ...approval, publisher: 'mallory' })).toMatchObject(FORBIDDEN);
    expect(await answeredBy()).toEqual([]);
    expect(await daemon.request('answer', { ...approval, publisher: 'alice' })).toMatchObject({ ok: true });
    expect(await answeredBy()).toEqual(['alice']);
  });

  it('GRANTS-1: an approver that is no operator allows this call and no later ones', async () => {
    open({ approvers: ['alice'], isManagedServer: false });
    const always = { approvalId: await ask('demo'), answer: 'approve', always: true };
    expect(await daemon.request('approvals', {})).toMatchObject({
      body: { approvals: [{ covers: 'all calls of shell' }] },
    });
    const refused = await daemon.request('answer', always, 'alice');
    expect(refused).toMatchObject(FORBIDDEN);
    expect(JSON.stringify(refused)).toContain('only an operator may allow later calls');
    expect(await answeredBy()).toEqual([]);
    expect(await daemon.request('answer', always)).toMatchObject({ ok: true });
    const answers = (await daemon.entries()).filter((entry: Entry) => entry.type === 'approval-answered');
    expect(answers).toMatchObject([{ always: true, author: { id: 'operator' } }]);
  });

  it('a refusal does not say whether there is such a conversation', async () => {
    open({ approvers: ['alice'] });
    await ask('demo');
    const refusalOf = async (conversation: string) => {
      const approvalId = `${conversation}.1.0123456789abcdef`;
      return daemon.request('answer', { approvalId, answer: 'deny' }, 'mallory');
    };
    const elsewhere = JSON.parse(JSON.stringify(await refusalOf('none')).replaceAll('none.', 'demo.'));
    expect(await refusalOf('demo')).toEqual(elsewhere);
  });

  it('the operator may answer an approval without a name on the plain subject', async () => {
    open({ approvers: ['alice'] });
    const approval = { approvalId: await ask('demo'), answer: 'deny' };
    expect(await daemon.request('answer', approval)).toMatchObject({ ok: true });
    expect(await answeredBy()).toEqual(['operator']);
  });

  it('only the operator may answer while no approvers are configured, under any name', async () => {
    open({ approvers: [] });
    const approval = { approvalId: await ask('demo'), answer: 'approve' };
    for (const publisher of ['alice', 'operator', '*'])
      expect(await daemon.request('answer', approval, publisher)).toMatchObject(FORBIDDEN);
    expect(await answeredBy()).toEqual([]);
    expect(await daemon.request('answer', { ...approval, publisher: 'ops' })).toMatchObject({ ok: true });
    expect(await answeredBy()).toEqual(['ops']);
  });

  it('an approval is answered under the name at the end of the subject, and under no other', async () => {
    open();
    const approval = { approvalId: await ask('demo'), answer: 'approve' };
    const borrowed = await daemon.request('answer', { ...approval, publisher: 'alice' }, 'bob');
    expect(borrowed).toMatchObject(FORBIDDEN);
    expect(borrowed).toMatchObject({
      refusal: { message: 'the credentials are those of bob: they may not act as alice' },
    });
    expect(await daemon.request('answer', { ...approval, publisher: 'bob' }, 'bob')).toMatchObject({
      ok: true,
    });
    expect(await answeredBy()).toEqual(['bob']);
  });

  it('an approver changes the arguments, and the call runs with them in canonical form', async () => {
    open();
    const approval = { approvalId: await ask('demo', '{"command":"rm"}'), answer: 'approve' };
    const changed = (given: unknown) => daemon.request('answer', { ...approval, arguments: given });
    expect(await changed('ls')).toMatchObject(refusedWith('BAD_REQUEST'));
    expect(await changed({ command: 'ls\u202e' })).toMatchObject({ ok: true });
    const answered = (await daemon.entries()).find(({ type }) => type === 'approval-answered');
    expect(answered).toMatchObject({ arguments: '{"command":"ls\\u202e"}' });
  });

  it('an answer by a named person of an approver records that person', async () => {
    open({ approvers: ['office'] });
    const approval = { approvalId: await ask('demo'), answer: 'approve', author: { name: 'Alice' } };
    expect(await daemon.request('answer', { ...approval, publisher: 'Alice' })).toMatchObject(FORBIDDEN);
    expect(await daemon.request('answer', { ...approval, publisher: 'console' })).toMatchObject({
      refusal: {
        message: 'console/Alice may not answer approvals',
        hint: 'approvals.approvers in parley.yaml lists the publishers that may; the publisher here is console, and "Alice" is a signature',
      },
    });
    expect(await daemon.request('answer', approval, 'office')).toMatchObject({ ok: true });
    expect(await answeredBy()).toEqual(['office/Alice']);
  });
});

describe('the id of an approval', () => {
  const pending = async (conversation: string) =>
    pendingApprovals((await daemon.workers.use(conversation)).state).map(({ call }) => call.name);
  const approve = (approvalId: string) => daemon.request('answer', { approvalId, answer: 'approve' });
  const NONE = { ok: false, refusal: { code: 'NOT_FOUND', message: expect.stringMatching('no approval') } };

  it('names its conversation and the place of its request', async () => {
    open();
    const approvalId = await ask('demo');
    const asked = (await daemon.entries()).find(({ type }) => type === 'approval-requested');
    expect(approvalId).toMatch(new RegExp(`^demo\\.${asked?.index}\\.[0-9a-f]{16}$`));
  });

  it('an attacker cannot lead an answer to a call elsewhere: an id fits one request with its arguments only', async () => {
    open();
    const [one, other] = [await ask('one', '{"command":"ls"}'), await ask('other', '{"command":"ls"}')];
    const [, place, digest] = one.split('.');
    const forged = [
      `other.${place}.${digest}`, // the digest of the same call in another conversation
      `one.${Number(place) + 1}.${digest}`,
      `one.${place}.${'0'.repeat(16)}`,
      `${one}0`,
      `nobody.${place}.${digest}`,
      'a1',
    ];
    for (const id of forged) expect(await approve(id)).toMatchObject(NONE);
    expect([await pending('one'), await pending('other')]).toEqual([['shell'], ['shell']]);
    expect(await daemon.workers.isThere('nobody')).toBe(false);
    expect(await approve(other)).toMatchObject({ ok: true });
    expect([await pending('one'), await pending('other')]).toEqual([['shell'], []]);
  });
});

const digest = (text: string) => createHash('sha256').update(text).digest('hex');
const diff = (change: string) => ({ change, seen: digest(change) });

describe('what a call that waits would change', () => {
  const shown = async (change: Toolbox['change'], text?: string, sender?: string) => {
    open({ approvers: ['office'], toolbox: toolboxOf({ change }) });
    return daemon.request('change', { approvalId: await ask('demo', text) }, sender);
  };
  const ended: Toolbox['change'] = async () => ({ kind: 'aborted' });

  it.each<[string, Toolbox['change'], string | undefined, object]>([
    ['its difference', async ({ arguments: { n } }) => completed(`n ${n}`), '{"n":1}', diff('n 1')],
    ['no tool that shows one', undefined, '{}', { change: null }],
    ['a tool that shows none', async () => null, '{}', { change: null }],
    ['arguments that are not JSON', async () => completed('x'), '{', { change: null }],
    [
      'why there is none',
      async () => failed('NOT_A_FILE', 'a folder'),
      '{}',
      { change: null, why: 'a folder', seen: digest('a folder') },
    ],
    [
      'the end of the daemon',
      ended,
      '{}',
      { change: null, why: 'the daemon stops', seen: digest('the daemon stops') },
    ],
  ])('the answer has %s', async (_, change, text, body) => {
    expect(await shown(change, text)).toEqual({ ok: true, body });
  });

  it('a publisher that may not approve is shown nothing, and an approval that does not wait is refused', async () => {
    expect(await shown(async () => completed('x'), '{}', 'mallory')).toEqual({
      ok: true,
      body: { change: null, why: 'mallory may not answer approvals' },
    });
    expect(await daemon.request('change', { approvalId: 'demo.1.none' })).toMatchObject(
      refusedWith('NOT_FOUND'),
    );
  });
});

describe('what a call that waits would change with other arguments', () => {
  const judge: ToolRules['judge'] = ({ name, arguments: given }) =>
    given.includes('secret')
      ? { kind: 'refuse', code: 'FORBIDDEN', message: `the policy forbids this call of ${name}` }
      : ASK_FOR_EACH.judge({ agent: 'pm', name, arguments: given, available: [] });
  const change: Toolbox['change'] = async ({ arguments: { n } }) => completed(`n ${n}`);
  const begin = async (options: TestDaemonOptions = {}) => {
    open({ tools: { ...ASK_FOR_EACH, judge }, toolbox: toolboxOf({ change }), ...options });
    return ask('demo', '{"n":1}');
  };
  const shown = (approvalId: string, given: unknown, sender?: string) =>
    daemon.request('change', { approvalId, arguments: given }, sender);

  it('the answer has the difference of those, and the call waits unchanged', async () => {
    const approvalId = await begin();
    const before = JSON.stringify(await daemon.entries());
    expect(await shown(approvalId, { n: 2 })).toEqual({ ok: true, body: diff('n 2') });
    expect(await shown(approvalId, undefined)).toEqual({ ok: true, body: diff('n 1') });
    expect(JSON.stringify(await daemon.entries())).toBe(before);
    expect(await shown(approvalId, 'n 2')).toMatchObject(refusedWith('BAD_REQUEST'));
  });

  it('what could not run with those shows nothing but why: they are judged as in an answer', async () => {
    const approvalId = await begin();
    const why = 'with these arguments: the policy forbids this call of shell';
    expect(await shown(approvalId, { path: 'secret' })).toEqual({ ok: true, body: { change: null, why } });
    expect(
      await daemon.request('answer', { approvalId, answer: 'approve', arguments: { path: 'secret' } }),
    ).toMatchObject({ refusal: { message: why } });
  });

  it('PERSON-4: a publisher that may not approve, or that requested the call, is shown nothing', async () => {
    const approvalId = await begin({ approvers: ['office', 'alice'], ownRequests: false });
    expect(await shown(approvalId, { n: 2 }, 'office')).toEqual({ ok: true, body: diff('n 2') });
    expect(await shown(approvalId, { n: 2 }, 'mallory')).toEqual({
      ok: true,
      body: { change: null, why: 'mallory may not answer approvals' },
    });
    expect(await shown(approvalId, { n: 2 }, 'alice')).toMatchObject({
      body: { change: null, why: expect.stringContaining('alice') },
    });
  });
});

describe('an approval of a change that was seen', () => {
  it('is refused once the call would change something else, with the same or other arguments; without `seen` nothing is compared', async () => {
    let file = 'old';
    const change: Toolbox['change'] = async ({ arguments: { n } }) => completed(`${file} to ${n}`);
    open({ toolbox: toolboxOf({ change }) });
    const approvalId = await ask('demo', '{"n":1}');
    const approve = (more: object) =>
      daemon.request('answer', { approvalId, answer: 'approve', ...more }, 'alice');
    const conflict = refusedWith('CHANGE_CONFLICT');
    const given = { n: 2 };
    file = 'new';
    expect(await approve({ seen: digest('old to 1') })).toMatchObject(conflict);
    expect(await approve({ seen: digest('old to 2'), arguments: given })).toMatchObject(conflict);
    expect(await approve({ seen: digest('new to 1'), arguments: given })).toMatchObject(conflict);
    expect(await approve({ seen: 'old' })).toMatchObject(refusedWith('BAD_REQUEST'));
    expect(await approve({ seen: digest('new to 2'), arguments: given })).toMatchObject({ ok: true });
    expect(await approve({ seen: digest('old to 1') })).toMatchObject(refusedWith('APPROVAL_ANSWERED'));
    const approval = { approvalId: await ask('other', '{"n":1}'), answer: 'approve' };
    expect(await daemon.request('answer', approval, 'alice')).toMatchObject({ ok: true });
  });
});

describe('the list of approvals', () => {
  interface Listed {
    readonly approvals: { conversation: string; arguments: string }[];
    readonly more?: number;
  }
  const list = async (): Promise<Listed> => {
    const answer = await daemon.request('approvals', {});
    return (answer as { body: Listed }).body;
  };
  const sizeOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

  it('the list of approvals has complete arguments if they fit', async () => {
    open({ maxPayload: 10_000 });
    await ask('demo', `{"text":"${'x'.repeat(5_000)}"}`);
    const { approvals, more } = await list();
    expect(approvals[0]?.arguments).toHaveLength(5_011);
    expect(more).toBeUndefined();
  });

  it('the list of approvals omits a call that does not fit instead of cutting its arguments', async () => {
    open({ maxPayload: 10_000 });
    const long = `"${'😀'.repeat(1_500)}"`;
    for (const conversation of ['one', 'two', 'three']) await ask(conversation, long);
    await ask('short', '{"n":1}');
    const listed = await list();
    expect(sizeOf(listed)).toBeLessThan(10_000);
    const short = { conversation: 'short', arguments: '{"n":1}' };
    expect(listed.approvals).toMatchObject([{ arguments: long }, short]);
    expect(listed.more).toBe(2);
  });

  it('the list of approvals reports how many calls do not fit', async () => {
    open({ maxPayload: 2_000 });
    for (let n = 0; n < 20; n++) await ask(`demo-${n}`, `"${'x'.repeat(100)}"`);
    const listed = await list();
    expect(sizeOf(listed)).toBeLessThan(2_000);
    expect(listed.approvals.length).toBeGreaterThan(2);
    expect(listed.more).toBe(20 - listed.approvals.length);
    await daemon.end();
    open({ maxPayload: 10 });
    await ask('demo');
    expect((await list()).approvals).toHaveLength(1);
  });

  it('the list of approvals of a missing conversation is refused, and without waiting calls it is empty', async () => {
    open();
    await daemon.workers.submit('demo', postCommand('m1', 'go', ['pm']));
    const listOf = (conversation: string) => daemon.request('approvals', { conversation });
    expect(await listOf('demo')).toMatchObject({ body: { approvals: [] } });
    const message = 'there is no conversation nonexist';
    expect(await listOf('nonexist')).toMatchObject({ refusal: { code: 'NOT_FOUND', message } });
  });
});
