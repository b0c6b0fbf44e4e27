import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { Reply, type Said } from '../../../src/gateway/openai/reply.ts';
import { messageEntry } from './support.ts';

describe('a streamed reply', () => {
  const base = { id: 'x', createdAt: '', author: { kind: 'agent' as const, id: 'pm', name: 'Pam' } };
  const begun = (index: number, turnId: string, agent: string): Entry =>
    ({ ...base, index, type: 'turn-started', turnId, agent, trigger: [0], upTo: 0, hops: 0 }) as Entry;
  const said = (index: number, turnId: string, agent: string, content: string, more: object = {}): Entry =>
    ({
      ...messageEntry(index, content),
      role: 'assistant',
      author: { kind: 'agent', id: agent, name: agent },
      turnId,
      usage: { inputTokens: 10, outputTokens: 1 },
      ...more,
    }) as Entry;
  const ended = (index: number, turnId: string, agent: string, outcome = 'completed'): Entry =>
    ({ ...base, index, type: 'turn-ended', turnId, agent, outcome, lastProcessedMessageIndex: 0 }) as Entry;
  const live = (turnId: string, agent: string, call: string, delta: string, n = 0) => ({
    kind: 'live' as const,
    agent,
    chunk: { turnId, call, n, type: 'text' as const, delta },
  });

  function tell(reply: Reply, ...happened: (Entry | ReturnType<typeof live>)[]) {
    const all: Said[] = happened.flatMap((one) => [
      ...reply.accept('kind' in one ? one : { kind: 'entries', entries: [one], isCurrent: true }),
    ]);
    const text = all.map((one) => (one.kind === 'text' ? one.text : '')).join('');
    return { text, last: all.at(-1), texts: all.filter((one) => one.kind === 'text').length };
  }

  /** A turn of pm that answers a message to it. */
  const tellOfPm = (...happened: Parameters<typeof tell>[1][]) =>
    tell(new Reply(0, ['pm'], null), begun(1, 't', 'pm'), ...happened);

  it('a reply is streamed once, even if the call is retried', () => {
    const { text, last, texts } = tellOfPm(
      live('t', 'pm', 'a', 'One '),
      live('t', 'pm', 'a', 'two', 1),
      live('t', 'pm', 'b', 'One '),
      live('t', 'pm', 'b', 'two three', 1),
      said(2, 't', 'pm', 'One two three.'),
      ended(3, 't', 'pm'),
    );
    expect([text, texts]).toEqual(['One two three.', 4]);
    expect(last).toMatchObject({ kind: 'end', reason: 'stop', usage: { inputTokens: 10, outputTokens: 1 } });
  });

  const typedPost = { ...messageEntry(0, 'How many?'), to: ['pm'], schema: { type: 'object' } } as Entry;

  it('the reply to a post with a schema is the value alone, without the attempt before it', () => {
    const { text, last, texts } = tell(
      new Reply(0, ['pm'], null),
      typedPost,
      begun(1, 't', 'pm'),
      live('t', 'pm', 'a', 'Six'),
      said(2, 't', 'pm', 'Six', { invalid: 'the answer is not JSON' }),
      live('t', 'pm', 'b', '```json'),
      said(3, 't', 'pm', '```json\n{ "n": 6 }\n```', { value: { n: 6 } }),
      ended(4, 't', 'pm'),
    );
    expect([text, texts]).toEqual(['{"n":6}', 1]);
    expect(last).toMatchObject({ kind: 'end', reason: 'stop', usage: { inputTokens: 20 } });
  });

  const typed = new Set(['pm']);

  it('the reply of an agent with a schema is the value alone, also to a post without one', () => {
    const { text, last, texts } = tell(
      new Reply(0, ['pm'], null, [], { typed }),
      begun(1, 't', 'pm'),
      said(2, 't', 'pm', 'Let me see.', { tool_calls: [] }),
      live('t', 'pm', 'a', 'Six'),
      said(3, 't', 'pm', 'Six', { invalid: 'the answer is not JSON' }),
      live('t', 'pm', 'b', '```json'),
      said(4, 't', 'pm', '```json\n{ "n": 6 }\n```', { value: { n: 6 } }),
      ended(5, 't', 'pm'),
    );
    expect([text, texts]).toEqual(['{"n":6}', 1]);
    expect(last).toMatchObject({ kind: 'end', reason: 'stop', usage: { inputTokens: 30 } });
  });

  it('the reply that continues a turn with a schema is the value alone', () => {
    const before = [typedPost, begun(1, 't', 'pm')];
    const { text } = tell(
      new Reply(2, [], 'pm', before, { turns: [{ turnId: 't', agent: 'pm' }] }),
      live('t', 'pm', 'a', 'Six'),
      said(3, 't', 'pm', 'Six', { invalid: 'the answer is not JSON' }),
      said(4, 't', 'pm', '{ "n": 6 }', { value: { n: 6 } }),
      ended(5, 't', 'pm'),
    );
    expect(text).toBe('{"n":6}');
  });

  it('a value waits for the text of another agent that is being streamed', () => {
    const { text } = tell(
      new Reply(0, ['dev', 'pm'], null, [], { typed }),
      begun(1, 'u', 'dev'),
      begun(2, 't', 'pm'),
      live('u', 'dev', 'a', 'I '),
      said(3, 't', 'pm', '{ "n": 6 }', { value: { n: 6 } }),
      live('u', 'dev', 'a', 'build.', 1),
      said(4, 'u', 'dev', 'I build.'),
      ended(5, 't', 'pm'),
      ended(6, 'u', 'dev'),
    );
    expect(text).toBe('I build.\n\n**pm:** {"n":6}');
  });

  it('an agent with a schema whose answers are cut twice gets a failure, and no text', () => {
    const cut = { finishReason: 'length' };
    const { text, last } = tell(
      new Reply(0, ['pm'], null, [], { typed }),
      begun(1, 't', 'pm'),
      said(2, 't', 'pm', '{ "n":', { ...cut, invalid: 'the answer is not JSON' }),
      said(3, 't', 'pm', '{ "n":\n\nLLM_ERROR', { ...cut, partType: 'error' }),
      ended(4, 't', 'pm', 'failed'),
    );
    expect(text).toBe('');
    expect(last).toMatchObject({ kind: 'failed', refusal: { code: 'AGENT_FAILED' } });
  });

  it('a post with a schema gets a failure, and no text, if the turn ends without a value', () => {
    const { text, last } = tell(
      new Reply(0, ['pm'], null),
      typedPost,
      begun(1, 't', 'pm'),
      said(2, 't', 'pm', 'Somebody else should answer.'),
      ended(3, 't', 'pm'),
    );
    expect(text).toBe('');
    expect(last).toMatchObject({ kind: 'failed', refusal: { code: 'AGENT_FAILED' } });
  });

  it('a reply whose entry holds only a preview continues with the stored file', () => {
    const file = '\n[Full output: @state/logs/tool-results/demo/1.json]';
    const { text } = tellOfPm(
      live('t', 'pm', 'a', 'a'.repeat(500)),
      live('t', 'pm', 'a', 'b'.repeat(500), 1),
      said(2, 't', 'pm', `${'a'.repeat(500)}${file}`),
      ended(3, 't', 'pm'),
    );
    expect(text).toBe(`${'a'.repeat(500)}${'b'.repeat(500)}${file}`);
  });

  it('a reply waits for the entry if the retry produces different text', () => {
    const { text } = tellOfPm(
      live('t', 'pm', 'a', 'Yes'),
      live('t', 'pm', 'b', 'No, not'),
      said(2, 't', 'pm', 'No, not yet.'),
      ended(3, 't', 'pm'),
    );
    expect(text).toBe('Yes\n\nNo, not yet.');
  });

  it.each<[string, ...number[]]>([
    ['the beginning', 2, 3],
    ['something in the middle', 0, 3],
  ])('a reply repeats nothing for a reader that missed %s of it', (_, ...heard) => {
    const words = ['One ', 'two ', 'three ', 'four.'];
    const { text } = tellOfPm(
      ...heard.map((n) => live('t', 'pm', 'a', String(words[n]), n)),
      said(2, 't', 'pm', words.join('')),
      ended(3, 't', 'pm'),
    );
    expect(text).toBe('One two three four.');
  });

  it('a reply repeats no text of an agent that began while another one was streaming', () => {
    const { text } = tell(
      new Reply(0, ['pm', 'dev'], null),
      begun(1, 't', 'pm'),
      begun(2, 'u', 'dev'),
      live('t', 'pm', 'a', 'Here.'),
      live('u', 'dev', 'b', 'I '),
      said(3, 't', 'pm', 'Here.'),
      live('u', 'dev', 'b', 'build.', 1),
      said(4, 'u', 'dev', 'I build.'),
      ended(5, 't', 'pm'),
      ended(6, 'u', 'dev'),
    );
    expect(text).toBe('Here.\n\n**dev:** I build.');
  });

  it('a reply keeps the messages of two concurrent agents apart', () => {
    const { text } = tell(
      new Reply(0, ['pm', 'dev'], null),
      begun(1, 't', 'pm'),
      begun(2, 'u', 'dev'),
      live('t', 'pm', 'a', 'I am '),
      live('u', 'dev', 'b', 'I am dev, '),
      said(3, 'u', 'dev', 'I am dev, I build.'),
      ended(4, 'u', 'dev'),
      said(5, 't', 'pm', 'I am here.'),
      ended(6, 't', 'pm'),
    );
    expect(text).toBe('I am here.\n\n**dev:** I am dev, I build.');
  });

  it('a reply to one agent ends with its turn, whatever others do', () => {
    const reply = new Reply(0, ['pm'], 'pm');
    const { text } = tell(
      reply,
      begun(1, 'u', 'dev'),
      said(2, 'u', 'dev', 'Not asked.'),
      begun(3, 't', 'pm'),
      said(4, 't', 'pm', 'Here.'),
      ended(5, 't', 'pm'),
    );
    expect([text, reply.isOver]).toEqual(['Here.', true]);
  });

  it('a reply that ended at a limit reports the limit, and a failed one the reason', () => {
    const limit = {
      ...base,
      index: 2,
      type: 'limit-reached',
      turnId: 't',
      limit: 'calls',
      content: '5 calls',
    };
    const limited = tellOfPm(limit as Entry, ended(3, 't', 'pm', 'limited'));
    expect(limited.last).toMatchObject({
      kind: 'failed',
      refusal: { code: 'LIMIT_REACHED', message: '5 calls' },
    });
    const partly = tellOfPm(
      said(2, 't', 'pm', 'Working.'),
      { ...limit, index: 3 } as Entry,
      ended(4, 't', 'pm', 'limited'),
    );
    expect(partly).toMatchObject({
      text: 'Working.\n\n(LIMIT_REACHED: 5 calls)',
      last: { kind: 'end', reason: 'length' },
    });
    const error = 'So far\n\nLLM_ERROR {"code":"OVERLOADED","message":"later"}';
    const failed = tellOfPm(said(2, 't', 'pm', error, { partType: 'error' }), ended(3, 't', 'pm', 'failed'));
    expect(failed).toMatchObject({
      text: 'So far',
      last: { kind: 'failed', refusal: { code: 'AGENT_FAILED', message: 'OVERLOADED: later' } },
    });
    const silent = tellOfPm(ended(2, 't', 'pm', 'failed'));
    expect(silent.last).toMatchObject({
      kind: 'failed',
      refusal: { message: expect.stringContaining('TURN_FAILED') },
    });
  });

  it.each(['OVERLOADED', 'UNAUTHORIZED', 'BAD_REQUEST', 'CONTEXT_TOO_LONG'])(
    'an answer that failed with %s says how long the same request gets this failure, since the cause may be fixed before',
    (code) => {
      const failed = tellOfPm(
        said(2, 't', 'pm', `LLM_ERROR {"code":"${code}","message":"no"}`, { partType: 'error' }),
        ended(3, 't', 'pm', 'failed'),
      );
      expect(failed.last).toMatchObject({
        refusal: { hint: expect.stringContaining('the same request gets this failure for 5 minutes') },
      });
    },
  );

  it('a reply to a message that triggers no agent ends at once', () => {
    const reply = new Reply(0, [], null);
    expect(reply.drain()).toMatchObject([
      { kind: 'text', text: '(No agent answers this message.)' },
      { kind: 'end', reason: 'stop' },
    ]);
  });

  it.each<[string, Entry[], object]>([
    ['a person stopped it', [], { kind: 'failed', refusal: { code: 'AGENT_STOPPED' } }],
    [
      'a person stopped it after some text',
      [said(2, 't', 'pm', 'So far')],
      { text: 'So far\n\n(AGENT_STOPPED: the turn of pm was stopped)', last: { kind: 'end' } },
    ],
  ])('a reply is never empty without a reason: %s', (_, entries, expected) => {
    const found = tellOfPm(...entries, ended(3, 't', 'pm', 'aborted'));
    expect('kind' in expected ? found.last : found).toMatchObject(expected);
  });

  it('a reply names who has the work, or that there is no text, where an agent ends its turn in silence', () => {
    const silent = tellOfPm(ended(2, 't', 'pm'));
    expect(silent).toMatchObject({ text: '(The turn ended without a text.)', last: { reason: 'stop' } });
    const handoff = { ...base, index: 2, type: 'handoff', turnId: 't', from: 'pm', to: 'dev', summary: 's' };
    const handed = tell(
      new Reply(0, ['pm'], 'pm'),
      begun(1, 't', 'pm'),
      handoff as Entry,
      ended(3, 't', 'pm'),
    );
    expect(handed).toMatchObject({ text: '(Handed over to dev.)', last: { reason: 'stop' } });
  });

  it.each([
    ['RATE_LIMITED', true],
    ['CONTEXT_STILL_TOO_LARGE', false],
    ['REDIRECTED', false],
  ])('a reply that failed with %s advises a retry only if that can help: %s', async (code, isAdvised) => {
    const error = `LLM_ERROR {"code":"${code}","message":"m"}`;
    const { last } = tellOfPm(
      said(2, 't', 'pm', error, { partType: 'error' }),
      ended(3, 't', 'pm', 'failed'),
    );
    const hint = last?.kind === 'failed' ? String(last.refusal.hint) : '';
    expect(hint.includes('for another attempt')).toBe(isAdvised);
  });
});
