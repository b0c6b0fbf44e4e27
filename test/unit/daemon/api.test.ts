import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { refusedWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { toolboxOf, toolNamed } from '../../support/toolbox.ts';
import { createDaemon } from './daemon.ts';

describe('the request API', () => {
  const daemon = perTest(() => createDaemon({ maxPayload: 10_000 }));

  const ask = (endpoint: string, body: unknown = {}) => daemon.request(endpoint, body);
  const say = (content: string, conversation = 'demo') =>
    ask('post', { conversation, publisher: 'alice', content });
  /** Posts and has it answered. */
  async function talk(content: string, conversation = 'demo') {
    await say(content, conversation);
    daemon.calls.at(-1)?.answer(`answer to ${content}`);
    await expect.poll(async () => (await daemon.entries(conversation)).at(-1)?.type).toBe('turn-ended');
  }

  it.each<[string, unknown]>([
    ['entries', { conversation: 'none' }],
    ['conversation', { conversation: 'none' }],
    ['view', { conversation: 'none', agent: 'pm' }],
    ['stop', { conversation: 'none' }],
    ['resume', { conversation: 'none' }],
    ['answer', { approvalId: 'none', answer: 'approve' }],
    ['dance', {}],
  ])('%s of a missing conversation answers NOT_FOUND and creates nothing', async (endpoint, body) => {
    expect(await ask(endpoint, body)).toMatchObject({ ok: false, refusal: { code: 'NOT_FOUND' } });
    expect(await ask('conversations')).toEqual({ ok: true, body: { conversations: [], next: null } });
  });

  it.each<[string, unknown]>([
    ['entries', {}],
    ['entries', { conversation: 'a.b' }],
    ['entries', { conversation: 'demo', from: -1 }],
    ['entries', { conversation: 'demo', limit: 0 }],
    ['view', { conversation: 'demo', agent: 'No Slug' }],
    ['mode', { conversation: 'demo', mode: 'sleep' }],
    ['mode', { conversation: 'demo', mode: 'run', workflow: 'w', input: ' \u200b' }],
    ['phase', { conversation: 'demo', phase: 'plan', surprise: true }],
    ['agents', { surprise: true }],
    ['approvals', { surprise: true }],
    ['entries', null],
    ['post', 'text'],
    ['post', ['list']],
  ])('%s with the body %j is a bad request that names what is expected', async (endpoint, body) => {
    expect(await ask(endpoint, body)).toMatchObject(refusedWith('BAD_REQUEST', endpoint, /\w/));
  });

  it('the state document of a long conversation names the limit that ended the last turn of an agent', async () => {
    const limited = createDaemon({ limits: { tokensPerConversation: 1 } });
    const post = { conversation: 'demo', publisher: 'alice', content: 'aside' };
    for (let n = 0; n < 60; n++) await limited.request('post', { ...post, includeInContext: false });
    await limited.request('post', post);
    await expect
      .poll(() => limited.request('conversation', { conversation: 'demo' }))
      .toMatchObject({ body: { agents: { pm: { status: 'limited', limit: 'tokensPerConversation' } } } });
  });

  it('turns are a table across conversations, in pages, newest conversation first, with filters', async () => {
    await talk('one');
    await talk('two');
    await talk('other', 'second');
    await say('waits', 'third');
    type Page = { turns: { conversation: string; outcome: string; index: number }[]; next: string | null };
    const table = async (more: object = {}) => {
      const answer = await ask('turns', more);
      if (!answer.ok) throw new Error(answer.refusal.code);
      return answer.body as Page;
    };
    const all = await table();
    expect(all.next).toBe(null);
    expect(all.turns.map(({ conversation, outcome }) => [conversation, outcome])).toEqual([
      ['third', 'running'],
      ['second', 'completed'],
      ['demo', 'completed'],
      ['demo', 'completed'],
    ]);
    expect(all.turns[1]).toMatchObject({ agent: 'pm', answer: expect.any(Number), calls: 1, tools: [] });
    const paged: Page['turns'] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page: Page = await table({ limit: 1, ...(after && { after }) });
      expect(page.turns.length).toBeLessThanOrEqual(1);
      paged.push(...page.turns);
      after = page.next;
    }
    expect(paged).toEqual(all.turns);
    expect((await table({ outcome: 'running' })).turns).toHaveLength(1);
    expect((await table({ conversation: 'demo' })).turns).toHaveLength(2);
    for (const none of [{ agent: 'dev' }, { tool: 'shell' }, { model: 'm9' }, { since: '2999-01-01' }])
      expect((await table(none)).turns).toEqual([]);
    expect(await ask('turns', { conversation: 'none' })).toMatchObject({ refusal: { code: 'NOT_FOUND' } });
    for (const wrong of [{ after: 'x' }, { after: 'gone:1' }, { outcome: 'good' }, { limit: 0 }])
      expect(await ask('turns', wrong)).toMatchObject({ refusal: { code: 'BAD_REQUEST' } });
  });

  it('a failed turn names the model that was asked last, and turns are found by its configured name too', async () => {
    const other = createDaemon({
      window: { fields: { model: 'wire-1' } },
      fallbacks: [{ name: 'spare', fields: { model: 'wire-2' } }],
    });
    const found = async (more: object = {}) => {
      const answer = await other.request('turns', more);
      if (!answer.ok) throw new Error(answer.refusal.code);
      return (answer.body as { turns: { models: string[]; outcome: string }[] }).turns;
    };
    const isOver = (turns: number) =>
      expect
        .poll(async () => (await other.entries('demo')).filter(({ type }) => type === 'turn-ended').length)
        .toBe(turns);
    await other.request('post', { conversation: 'demo', publisher: 'alice', content: 'one' });
    other.calls.at(-1)?.fail('UNAUTHORIZED');
    await expect.poll(() => other.calls.length).toBe(2);
    other.calls.at(-1)?.fail('UNAUTHORIZED');
    await isOver(1);
    expect(await found()).toMatchObject([{ outcome: 'failed', models: ['wire-2'] }]);
    for (const model of ['default', 'spare', 'wire-1', 'wire-2'])
      expect(await found({ model })).toHaveLength(1);
    expect(await found({ model: 'wire-3' })).toEqual([]);
    await other.end();
  });

  it('turns are found by a tool that they called, and by a pattern', async () => {
    await say('hello');
    const call = { id: 'c', name: 'mcp__git__log', arguments: '{}' };
    daemon.calls.at(-1)?.answer(null, [call]);
    const found = async (tool: string) => {
      const answer = await ask('turns', { tool });
      return answer.ok ? (answer.body as { turns: object[] }).turns.length : answer;
    };
    await expect.poll(() => found('mcp__git__log')).toBe(1);
    const tools = ['mcp__git__*', 'mcp__git__l*', 'mcp__*', 'mcp__git__', 'mcp__web__*'];
    expect(await Promise.all(tools.map(found))).toEqual([1, 1, 1, 0, 0]);
  });

  it('a page of turns that is larger than an answer may be ends before, and the next one continues', async () => {
    for (let told = 0; told < 60; told += 1) await talk(`hello ${told}`);
    type Page = { turns: { index: number }[]; next: string | null };
    const found: Page['turns'] = [];
    for (let after: string | null | undefined; after !== null; ) {
      const answer = await ask('turns', { limit: 500, ...(after && { after }) });
      if (!answer.ok) throw new Error(answer.refusal.code);
      const page = answer.body as Page;
      expect(JSON.stringify(page).length).toBeLessThan(10_000);
      found.push(...page.turns);
      after = page.next;
    }
    expect(new Set(found.map(({ index }) => index)).size).toBe(60);
    expect(found).toHaveLength(60);
  });

  it('turns since a time in another zone, or without milliseconds, are those since that moment', async () => {
    await talk('hello');
    const answer = await ask('turns');
    const [turn] = answer.ok ? (answer.body as { turns: { startedAt: string }[] }).turns : [];
    const moment = Date.parse(turn?.startedAt ?? '');
    const east = (ms: number) => new Date(ms + 5 * 3_600_000).toISOString().replace('Z', '+05:00');
    const west = (ms: number) => new Date(ms - 5 * 3_600_000).toISOString().replace('Z', '-05:00');
    const second = `${new Date(moment).toISOString().slice(0, 19)}Z`;
    for (const since of [east(moment), west(moment), second])
      expect(await ask('turns', { since })).toMatchObject({ body: { turns: [{}] } });
    for (const since of [east(moment + 1), west(moment + 1)])
      expect(await ask('turns', { since })).toMatchObject({ body: { turns: [] } });
  });

  it('feedback names its author, is kept once, and does not change what is new in the list', async () => {
    await talk('hello');
    const isAnswer = (entry: Entry) => entry.type === 'message' && entry.author.kind === 'agent';
    const index = (await daemon.entries()).findIndex(isAnswer);
    const row = async () => {
      const listed = await ask('conversations');
      return listed.ok && (listed.body as { conversations: { activeLength: number }[] }).conversations[0];
    };
    const before = await row();
    const rating = { conversation: 'demo', index, value: 'down', note: 'too long', publisher: 'alice' };
    const rate = (more: object = {}) => ask('feedback', { ...rating, ...more });
    expect(await rate()).toEqual({ ok: true, body: { accepted: true } });
    await rate();
    for (const [rated, found] of [
      ['down', [{ rated: ['down'] }]],
      ['up', []],
    ])
      expect(await ask('turns', { rated })).toMatchObject({ body: { turns: found } });
    expect(await ask('turns', { rated: 'none' })).toMatchObject(refusedWith('BAD_REQUEST'));
    const kept = (await daemon.entries()).filter(({ type }) => type === 'feedback');
    expect(kept).toMatchObject([{ author: { id: 'alice' }, on: index, value: 'down', note: 'too long' }]);
    expect(await row()).toMatchObject({ activeLength: before ? before.activeLength : 0 });
    expect(await rate({ index: 0 })).toMatchObject({ ok: false, refusal: { code: 'NO_SUCH_ENTRY' } });
    expect(await rate({ conversation: 'none' })).toMatchObject({ ok: false, refusal: { code: 'NOT_FOUND' } });
    expect(await rate({ value: 'good' })).toMatchObject({ ok: false, refusal: { code: 'BAD_REQUEST' } });
    expect(await rate({ note: ' ' })).toMatchObject({ ok: false, refusal: { code: 'BAD_REQUEST' } });
  });

  it.each<[string, object, string]>([
    ['without a publisher', { publisher: undefined }, 'INVALID_NAME'],
    ['to an illegal conversation', { conversation: 'a b' }, 'INVALID_NAME'],
    ['without content', { content: undefined }, 'EMPTY_CONTENT'],
    ['with an unknown field', { shout: 1 }, 'UNKNOWN_FIELD'],
  ])('the API refuses a post %s', async (_, fields, code) => {
    const body = { conversation: 'demo', publisher: 'alice', content: 'x', ...fields };
    expect(await ask('post', JSON.parse(JSON.stringify(body)))).toMatchObject(refusedWith(code));
    expect(daemon.bus.dead).toEqual([]);
  });

  it('only the subject determines the publisher of a post', async () => {
    const body = { conversation: 'demo', content: 'hi' };
    expect(await daemon.request('post', body, 'alice')).toMatchObject({ ok: true });
    expect((await daemon.entries())[0]?.author.id).toBe('alice');
    expect(await daemon.request('post', { ...body, publisher: 'bob' }, 'alice')).toMatchObject(
      refusedWith('FORBIDDEN'),
    );
  });

  it('the API pages entries by limit', async () => {
    await talk('hello');
    const first = await ask('entries', { conversation: 'demo', limit: 3 });
    expect(first).toMatchObject({ ok: true, body: { conversation: 'demo', length: 5 } });
    const indexes = (answer: object) =>
      (answer as { body: { entries: { index: number }[] } }).body.entries.map(({ index }) => index);
    expect(indexes(first)).toEqual([0, 1, 2]);
    expect(indexes(await ask('entries', { conversation: 'demo', from: 3 }))).toEqual([3, 4]);
    expect(indexes(await ask('entries', { conversation: 'demo', from: 5 }))).toEqual([]);
  });

  it('an answer has as many entries as fit the payload, and at least one', async () => {
    for (let n = 0; n < 6; n++) await say('x'.repeat(3_000));
    const answer = await ask('entries', { conversation: 'demo' });
    const { entries, length } = (answer as { body: { entries: unknown[]; length: number } }).body;
    expect(length).toBe(7);
    expect(entries.length).toBeLessThan(7);
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(10_000);
    const alone = createDaemon({ maxPayload: 1 });
    await alone.deliver('hello').catch(() => undefined);
    await alone.workers.submit('demo', {
      type: 'post',
      post: { id: 'm1', content: 'large', delivery: 'steer', author: { id: 'alice', name: 'Alice' } },
    });
    expect(await alone.request('entries', { conversation: 'demo' })).toMatchObject({
      body: { entries: [{ content: 'large' }] },
    });
    await alone.end();
  });

  it('an entry that fits no answer is shortened and marked, and the next page continues after it', async () => {
    await say('before');
    await daemon.workers.submit('demo', {
      type: 'post',
      post: {
        id: 'large',
        content: 'é'.repeat(40_000),
        delivery: 'steer',
        author: { id: 'alice', name: 'Alice' },
        meta: { picture: 'x'.repeat(40_000) },
      },
    });
    await say('behind');
    const all = await daemon.entries();
    const at = all.findIndex(({ id }) => id === 'large');
    const page = async (from: number) => {
      const answer = await ask('entries', { conversation: 'demo', from });
      return (answer as unknown as { body: { entries: Entry[] } }).body.entries;
    };
    expect((await page(0)).map(({ index }) => index)).toEqual(all.slice(0, at).map(({ index }) => index));
    const large = await page(at);
    expect(large).toMatchObject([{ index: at, id: 'large', truncated: true, to: ['pm'] }]);
    expect(Buffer.byteLength(JSON.stringify(large))).toBeLessThan(10_000);
    expect((await page(at + 1)).map(({ index }) => index)).toEqual(
      all.slice(at + 1).map(({ index }) => index),
    );
  });

  it('the API describes a conversation', async () => {
    await talk('What shall we build?');
    expect(await ask('conversation', { conversation: 'demo' })).toMatchObject({
      ok: true,
      body: {
        id: 'demo',
        title: 'What shall we build?',
        phase: 'chat',
        mode: 'agent',
        activeAgent: null,
        length: 5,
        metadata: {
          referencedArticles: [],
          executionMs: { pm: expect.any(Number), dev: 0, qa: 0 },
          tokens: 0,
          usage: { pm: { calls: 1, inputTokens: 0 }, dev: { calls: 0 }, qa: { calls: 0 } },
        },
        agents: {
          pm: { lastProcessedMessageIndex: 5, status: 'idle' },
          dev: { lastProcessedMessageIndex: 0, status: 'idle' },
        },
      },
    });
  });

  it('the API lists conversations by id, page by page', async () => {
    for (const id of ['b', 'c', 'a']) await say('hello', id);
    const first = await ask('conversations', { limit: 2 });
    expect(first).toMatchObject({ body: { conversations: [{ id: 'a' }, { id: 'b' }], next: 'b' } });
    expect(await ask('conversations', { after: 'b' })).toMatchObject({
      body: { conversations: [{ id: 'c', length: 2, title: 'hello' }], next: null },
    });
  });

  it('a page of conversations fits a message, and the next one continues after it', async () => {
    const ids = Array.from({ length: 30 }, (_, at) => `c${at + 10}`);
    for (const id of ids) await say('hello', id);
    const shown: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const answer = await ask('conversations', { after });
      if (!answer.ok) throw new Error(answer.refusal.code);
      expect(JSON.stringify(answer.body).length).toBeLessThan(10_000);
      const page = answer.body as { conversations: { id: string }[]; next: string | null };
      shown.push(...page.conversations.map(({ id }) => id));
      after = page.next;
    }
    expect(shown).toEqual(ids);
  });

  it('a conversation reports which agents work', async () => {
    await say('hello');
    expect(await ask('agents')).toMatchObject({
      body: {
        agents: [
          { slug: 'dev', status: 'idle' },
          { slug: 'pm', status: 'running', name: 'Pm', description: 'does pm', runtime: 'local' },
          { slug: 'qa', status: 'idle' },
        ],
      },
    });
  });

  it('the verb view returns the request of an answer as it was sent', async () => {
    await talk('hello');
    const answer = await ask('view', { conversation: 'demo', agent: 'pm', at: 2 });
    const request = daemon.calls[0]?.request;
    expect(answer).toMatchObject({
      body: { messages: request?.messages, report: { requestHash: request?.hash } },
    });
    expect(await ask('view', { conversation: 'demo', agent: 'pm', at: 9 })).toMatchObject(
      refusedWith('NO_SUCH_ENTRY'),
    );
    expect(await ask('view', { conversation: 'demo', agent: 'nobody' })).toMatchObject(
      refusedWith('UNKNOWN_AGENT'),
    );
  });

  it('the verb view without an agent returns the request of the answer at an index, or of the newest answer', async () => {
    await talk('hello');
    await talk('@dev and you?');
    const view = async (more: object) => ask('view', { conversation: 'demo', ...more });
    const newest = (await daemon.entries('demo')).findLast(({ type }) => type === 'message');
    expect(await view({})).toMatchObject({ body: { report: { agent: 'dev', answer: newest?.index } } });
    expect(await view({ at: 2 })).toEqual(await view({ agent: 'pm', at: 2 }));
    expect(await view({ at: 2 })).toMatchObject({ body: { report: { agent: 'pm', answer: 2, sent: true } } });
    expect(await view({ at: 0 })).toMatchObject(refusedWith('NOTHING_TO_EXPLAIN'));
    expect(await view({ at: 99 })).toMatchObject(refusedWith('NO_SUCH_ENTRY'));
  });

  it('the verb view without an agent is refused where none has answered', async () => {
    await say('hello', 'quiet');
    expect(await ask('view', { conversation: 'quiet' })).toMatchObject(refusedWith('NOTHING_TO_EXPLAIN'));
  });

  it('the API switches phase and mode, and refuses unknown ones', async () => {
    await talk('hello');
    expect(
      await ask('phase', { conversation: 'demo', phase: 'plan', reason: 'now', publisher: 'alice' }),
    ).toMatchObject({ ok: true, body: { phase: 'plan' } });
    expect((await daemon.entries()).at(-1)).toMatchObject({
      type: 'phase-entered',
      by: 'alice',
      reason: 'now',
    });
    expect(await ask('phase', { conversation: 'demo', phase: 'lunch' })).toMatchObject({
      refusal: { code: 'UNKNOWN_PHASE', hint: expect.stringContaining('plan') },
    });
    expect(await ask('mode', { conversation: 'demo', mode: 'agent', agent: 'qa' })).toMatchObject({
      body: { mode: 'agent', activeAgent: 'qa' },
    });
    expect(await ask('mode', { conversation: 'demo', mode: 'agent', agent: 'nobody' })).toMatchObject(
      refusedWith('UNKNOWN_AGENT'),
    );
    expect(await ask('mode', { conversation: 'demo', mode: 'run' })).toMatchObject({
      refusal: { code: 'UNKNOWN_WORKFLOW', message: 'mode run needs a workflow' },
    });
    expect(await ask('mode', { conversation: 'demo', mode: 'run', workflow: 'ship-it' })).toMatchObject({
      refusal: {
        code: 'UNKNOWN_WORKFLOW',
        message: 'there is no workflow ship-it',
        hint: expect.stringContaining('workflows/'),
      },
    });
  });

  it('the API stops one agent or all, and resumes', async () => {
    await say('hello');
    expect(await ask('stop', { conversation: 'demo', agent: 'nobody' })).toMatchObject(
      refusedWith('UNKNOWN_AGENT'),
    );
    expect(await ask('stop', { conversation: 'demo', agent: 'pm' })).toMatchObject({ ok: true });
    await expect.poll(async () => (await daemon.entries()).at(-1)).toMatchObject({ outcome: 'aborted' });
    expect(await ask('conversation', { conversation: 'demo' })).toMatchObject({
      body: { agents: { pm: { status: 'stopped' }, dev: { status: 'idle' } } },
    });
    await say('waiting');
    expect(daemon.calls.length).toBe(1);
    expect(await ask('resume', { conversation: 'demo' })).toMatchObject({ ok: true });
    expect(daemon.calls.length).toBe(2);
  });

  it('the log records who switches, stops and resumes: a publisher, its person, or the operator', async () => {
    await talk('hello');
    const stop = { conversation: 'demo' };
    await ask('stop', { ...stop, publisher: 'office', author: { name: 'Alice' } });
    await ask('resume', { ...stop, publisher: 'office' });
    await ask('phase', { ...stop, phase: 'plan' });
    expect(await ask('mode', { ...stop, mode: 'chat', author: { name: 'a]b' } })).toMatchObject({
      refusal: { code: 'INVALID_AUTHOR', hint: expect.stringMatching(/\w/) },
    });
    const authors = (await daemon.entries()).slice(-3).map(({ author }) => author.id);
    expect(authors).toEqual(['office/Alice', 'office', 'operator']);
  });

  it.each(['dev', 'Dev', 'DEV', 'pm', 'qa'])(
    'a person with the name %s may not post, switch, stop or resume (L17)',
    async (publisher) => {
      await talk('hello');
      const before = await daemon.entries();
      const refused = refusedWith('AUTHOR_IS_AN_AGENT', publisher);
      for (const [endpoint, fields] of [
        ['phase', { phase: 'plan' }],
        ['mode', { mode: 'chat' }],
        ['stop', {}],
        ['resume', {}],
      ] as const) {
        const body = { conversation: 'demo', ...fields };
        expect(await ask(endpoint, { ...body, publisher })).toMatchObject(refused);
        const named = { ...body, publisher: 'alice', author: { name: publisher } };
        expect(await ask(endpoint, named)).toMatchObject(refused);
      }
      expect(await ask('post', { conversation: 'demo', publisher, content: 'x' })).toMatchObject(refused);
      expect(await daemon.entries()).toEqual(before);
    },
  );

  it('a new conversation has no approvals', async () => {
    expect(await ask('approvals')).toEqual({ ok: true, body: { approvals: [] } });
  });

  it('a conversation is deleted with its running turns, and a second deletion succeeds', async () => {
    await say('hello');
    const [call] = daemon.calls;
    const remove = () => ask('delete', { conversation: 'demo' });
    expect(await remove()).toMatchObject({ ok: true, body: { deleted: true, existed: true } });
    expect(call?.signal.aborted).toBe(true);
    expect(await remove()).toMatchObject({ ok: true, body: { deleted: true, existed: false } });
    expect(await ask('conversation', { conversation: 'demo' })).toMatchObject(refusedWith('NOT_FOUND'));
    expect(await say('a new life')).toMatchObject({ body: { index: 0, duplicate: false } });
  });

  it('an internal error is reported to the caller, and logged for the operator', async () => {
    daemon.faults.push(new Error('no space left'));
    expect(await ask('phase', { conversation: 'demo', phase: 'plan' })).toMatchObject(
      refusedWith('INTERNAL', 'no space left'),
    );
    expect(daemon.lines.join('\n')).toMatch(/error a request failed.*phase/);
  });
});

describe('what a person can choose from', () => {
  const daemon = perTest(() => createDaemon());

  it('the verb phases lists every phase with the phases that may follow', async () => {
    expect(await daemon.request('phases', {})).toMatchObject({
      ok: true,
      body: {
        phases: expect.arrayContaining([
          { phase: 'plan', description: expect.any(String), next: ['execute'] },
        ]),
      },
    });
  });

  it('the verb workflows lists every workflow with its nodes', async () => {
    expect(await daemon.request('workflows', {})).toMatchObject({
      ok: true,
      body: { workflows: expect.any(Array) },
    });
  });

  it('the answer about agents names the configured models, for a what-if', async () => {
    const { names } = daemon.runtime.whatIfs.models;
    expect(names.length).toBeGreaterThan(0);
    expect(await daemon.request('agents', {})).toMatchObject({ ok: true, body: { models: names } });
  });

  it('the answer about agents lists the tools of each, and the persona of the one that is named', async () => {
    const answer = await daemon.request('agents', { persona: 'dev' });
    const { agents } = (answer as { body: { agents: { slug: string; tools: object; persona?: string }[] } })
      .body;
    expect(agents.every(({ tools }) => Array.isArray(tools))).toBe(true);
    expect(agents.flatMap(({ slug, persona }) => (persona === undefined ? [] : [[slug, persona]]))).toEqual([
      ['dev', expect.stringContaining('Persona of')],
    ]);
    expect(JSON.stringify(await daemon.request('agents', {}))).not.toContain('Persona of');
  });

  it('a persona is asked of an agent that exists', async () => {
    expect(await daemon.request('agents', { persona: 'nobody' })).toMatchObject({
      ok: false,
      refusal: { code: 'UNKNOWN_AGENT', hint: expect.stringContaining('dev') },
    });
  });

  it.each(['phases', 'workflows'])('the tables are requested without fields: %s', async (endpoint) => {
    expect(await daemon.request(endpoint, { more: 1 })).toMatchObject(refusedWith('BAD_REQUEST'));
  });
});

describe('the list of conversations', () => {
  it('the list of conversations names agents whose turn runs, and none after it ended', async () => {
    const daemon = createDaemon();
    const row = async () => {
      const answer = await daemon.request('conversations', {});
      return answer.ok ? (answer.body as { conversations: object[] }).conversations[0] : answer;
    };
    await daemon.request('post', { conversation: 'demo', publisher: 'alice', content: 'hello' });
    expect(await row()).toMatchObject({ id: 'demo', running: ['pm'], waiting: [] });
    daemon.calls.at(-1)?.answer('done');
    await expect.poll(row).toMatchObject({ id: 'demo', running: [], waiting: [] });
    await daemon.end();
  });
});

describe('a post that is asked for', () => {
  it('a post is refused with the path of a number in meta that JSON would write as null', async () => {
    const daemon = createDaemon();
    const body = { conversation: 'demo', publisher: 'alice', content: 'x', meta: { a: [Infinity] } };
    expect(await daemon.request('post', body)).toMatchObject(refusedWith('INVALID_FIELD', 'meta.a.0'));
    await daemon.end();
  });
});

describe('the endpoint `tools`', () => {
  it('the verb tools lists the tools with their risk and the state of the MCP servers', async () => {
    const servers = [{ server: 'web', state: 'failed', tools: [], error: 'HTTP 401' }] as const;
    const definitions = () => new Map([['shell', toolNamed('shell')]]);
    const daemon = createDaemon({ toolbox: toolboxOf({ definitions, servers: () => servers }) });
    expect(await daemon.request('tools', {})).toEqual({
      ok: true,
      body: { tools: [{ name: 'shell', risk: 'risky' }], servers },
    });
    expect(await daemon.request('tools', { more: 1 })).toMatchObject(refusedWith('BAD_REQUEST'));
    await daemon.end();
  });
});
