import { describe, expect, it } from 'vitest';
import { Conversation, checkLaws, createRoster } from '../../../src/conversation/index.ts';
import { toolCall } from '../../support/log.ts';
import { Core, card, rulesFor } from './core.ts';

describe('L4: an id is appended once', () => {
  it('the same post three times is one entry and one turn, and each reply has the first index', () => {
    const core = new Core();
    const first = core.post('hello', { id: 'same', to: ['dev'] });
    core.answer(core.callOf('dev'));
    for (let i = 0; i < 2; i++) {
      const again = core.post('hello', { id: 'same', to: ['dev'] });
      expect(again).toEqual({ entries: [], effects: [], reply: { ...first.reply, duplicate: true } });
    }
    core.crash();
    expect(core.post('hello', { id: 'same' }).reply).toMatchObject({
      index: 0,
      duplicate: true,
      agents: ['dev'],
    });
  });

  it.each([
    ['other content', { id: 'same' }, 'other', 'send the same content'],
    ['another name', { id: 'same', author: { id: 'alice/Al', name: 'Al' } }, 'hello', 'another author'],
    ['the id of what is no message', { id: 'made-1' }, 'hello', 'send the same content'],
  ])('the same id with %s is refused with the difference', (_, fields, content, hint) => {
    const core = new Core().posted('hello', { id: 'same' });
    expect(core.post(content, fields)).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'ID_CONFLICT', hint: expect.stringMatching(/a new id/) } },
    });
    expect(core.post(content, fields).reply).toMatchObject({
      refusal: { hint: expect.stringContaining(hint) },
    });
  });

  it('a publisher that takes the ids that another one will use keeps none of its posts out', () => {
    const core = new Core();
    for (const id of ['order-1', 'order-2']) core.post('squatted', { id, by: 'mallory', to: ['qa'] });
    const first = core.post('the order', { id: 'order-1', to: ['dev'] });
    expect(first.reply).toMatchObject({ kind: 'posted', duplicate: false, index: 3 });
    expect(first.entries[0]).toMatchObject({ id: 'order-1', author: { id: 'alice' }, content: 'the order' });
    core.crash();
    expect(core.post('the order', { id: 'order-1', to: ['dev'] }).reply).toMatchObject({
      ...{ duplicate: true, index: 3 },
    });
    expect(core.post('squatted', { id: 'order-1', by: 'mallory', to: ['qa'] }).reply).toMatchObject({
      ...{ duplicate: true, index: 0 },
    });
    expect(core.post('other', { id: 'order-1' }).reply).toMatchObject({ refusal: { code: 'ID_CONFLICT' } });
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('the same id again is a duplicate if it names the same recipients in any order, or none', () => {
    const core = new Core().posted('hello', { id: 'same', to: ['dev', 'pm'] });
    for (const fields of [{ to: ['pm', 'dev', 'pm'] }, {}]) {
      expect(core.post('hello', { id: 'same', ...fields }).reply).toMatchObject({ duplicate: true });
    }
  });

  it.each<[string, object, object]>([
    ['to', { to: ['dev'] }, { to: ['pm'] }],
    ['to', {}, { to: ['pm', 'dev'] }],
    ['replyTo', {}, { replyTo: 'x' }],
    ['includeInContext', { includeInContext: false }, {}],
    ['isCollapsed', {}, { isCollapsed: true }],
  ])('the same id with another %s is refused, and nothing is appended', (field, first, again) => {
    const core = new Core().posted('hello', { id: 'same', ...first });
    expect(core.post('hello', { id: 'same', ...again })).toMatchObject({
      entries: [],
      reply: {
        refusal: {
          code: 'ID_CONFLICT',
          message: expect.stringMatching(new RegExp(`: the message has another "${field}"$`)),
        },
      },
    });
    expect(core.post('hello', { id: 'same', ...first }).reply).toMatchObject({ duplicate: true });
  });

  it('an id that a log contains twice belongs to its first entry', () => {
    const core = new Core().posted('hello', { id: 'same' });
    const [first] = core.entries;
    if (!first) throw new Error('nothing was posted');
    const log = [first, { ...first, index: 1 }];
    const conversation = new Conversation(core.rules, log);
    const post = {
      id: 'same',
      content: 'hello',
      author: { id: 'alice', name: 'Alice' },
      delivery: 'steer',
    } as const;
    expect(conversation.apply({ type: 'post', post }, 0).reply).toMatchObject({ duplicate: true, index: 0 });
  });

  it('an id whose append failed is free again', () => {
    const core = new Core().posted('hello', { id: 'same' });
    core.conversation.truncate(0);
    core.calls = [];
    core.requests = [];
    expect(core.post('other', { id: 'same' }).reply).toMatchObject({
      kind: 'posted',
      index: 0,
      duplicate: false,
    });
  });
});

describe("L17: a person cannot post under an agent's name", () => {
  const cards = [card('pm', { name: 'Project Manager' }), card('dev'), card('agent-x', { name: 'Agent X' })];
  const postBy = (author: { id: string; name: string }) => {
    const core = new Core({ ...rulesFor(), roster: createRoster(cards, 'pm') });
    return core.do({ type: 'post', post: { id: 'x', content: 'x', author, delivery: 'steer' } });
  };

  it.each([
    'Dev',
    'dev',
    ' DEV ',
    '[Dev]',
    'De\u200bv',
    'D\u00adev',
    'D\u2800ev',
    'De\u115fv',
    'De\u3164v',
    'De\ufe0fv',
    'De\u034fv',
    'Dev\u{e0041}',
    'Dev\u0007',
    'Ｄｅｖ',
    'agent Dev',
    'Agent  dev',
    '[agent] Dev',
    'project manager',
    'Project \u00a0Manager',
    'agent-x',
    'Agent X',
    'agent agent x',
    'D\u0435v',
    '\u0440m',
  ])('the name %j is refused', (name) => {
    expect(postBy({ id: 'eve', name })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'AUTHOR_IS_AN_AGENT' } },
    });
  });

  it.each(['pm', 'dev', 'DEV', 'agent-x'])('the publisher %j is refused under any name', (publisher) => {
    for (const author of [
      { id: publisher, name: publisher },
      { id: `${publisher}/Ann`, name: 'Ann' },
    ]) {
      expect(postBy(author)).toMatchObject({
        entries: [],
        reply: {
          kind: 'refused',
          refusal: { code: 'AUTHOR_IS_AN_AGENT', message: expect.stringContaining(publisher) },
        },
      });
    }
  });

  it.each(['Devi', 'Agent Smith', 'agent', 'Dev Ops', 'Ann'])(
    "the name %j is accepted as a person's",
    (name) => {
      expect(postBy({ id: 'eve', name }).reply.kind).toBe('posted');
    },
  );
});

describe('a lone surrogate in any text of an entry', () => {
  const HALF = /\p{Surrogate}/u;
  const whole = (log: readonly unknown[]) => !log.some((entry) => HALF.test(textsOf(entry).join('\n')));

  it.each<[string, (core: Core) => void]>([
    ['in a post', (core) => void core.post('a\ud83d b', { to: ['dev'] })],
    [
      'in an answer',
      (core) => {
        core.post('hello', { to: ['dev'] });
        core.answer(core.callOf('dev'), 'a\ud83d');
      },
    ],
    [
      'at the cut of an answer that broke off',
      (core) => {
        core.post('hello', { to: ['dev'] });
        core.fail(core.callOf('dev'), 'a\ud83d');
      },
    ],
    [
      'in a result',
      (core) => {
        core.post('hello', { to: ['dev'] });
        core.answer(core.callOf('dev'), null, ['write']);
        core.finish(core.tools[0] ?? expect.unreachable(), '\udc18b');
      },
    ],
  ])('a lone surrogate %s is replaced, and the text around it stays', (_, happen) => {
    const core = new Core();
    happen(core);
    expect(whole(core.entries)).toBe(true);
    expect(JSON.stringify(core.entries)).toMatch(/a\ufffd|\ufffdb/u);
  });

  it("lone surrogates in the names and arguments of a model's calls are replaced", () => {
    const core = new Core().posted('hello', { to: ['dev'] });
    const { agent, turnId } = core.callOf('dev');
    const called = { name: 'write\ud83d', arguments: '{"text":"a\udc18"}' };
    const answer = {
      content: null,
      toolCalls: [{ id: 'c\ud83d', type: 'function', function: called }],
    } as const;
    const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: core.entries.length };
    core.do({ type: 'model-answered', ...report, answer });
    expect(whole(core.entries)).toBe(true);
    expect(
      core.entries.find((entry) => entry.type === 'message' && entry.role === 'assistant'),
    ).toMatchObject({
      tool_calls: [toolCall('write\ufffd', '{"text":"a\ufffd"}', 'c\ufffd')],
    });
  });

  it('whole characters stay unchanged', () => {
    const core = new Core().posted('🐘 ü 𝕏');
    expect(core.entries[0]).toMatchObject({ content: '🐘 ü 𝕏' });
  });
});

/** Every text in a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsOf) : [];
}
