import { afterEach, describe, expect, it } from 'vitest';
import type { Model, ModelOutcome } from '../../../src/agents/index.ts';
import type { AnswerOf, Verb } from '../../../src/bus/index.ts';
import { createDaemon, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

/** The jobs behind `what-if`, with models in the hands of the test. */

const answer = (content: string): ModelOutcome => ({
  kind: 'answered',
  answer: {
    content,
    toolCalls: [],
    usage: { inputTokens: 10, outputTokens: 5 },
  },
});
const replies = (reply: () => ModelOutcome | Promise<ModelOutcome>): Model => ({ call: async () => reply() });
/** Answers when the call is aborted. */
const endless: Model = {
  call: (_, { signal }) =>
    new Promise((resolve) => {
      const partial = { content: 'hal', reasoning: '' };
      signal.addEventListener('abort', () => resolve({ kind: 'aborted', partial }), { once: true });
    }),
};

describe('what-ifs of a daemon', () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.end());

  /** Two turns of pm, answered as posted. */
  async function begin(options: TestDaemonOptions = {}): Promise<void> {
    const m2 = replies(() => answer('else'));
    daemon = createDaemon({ reply: () => 'as recorded', models: { m2, endless }, ...options });
    for (const [at, content] of ['one', 'two'].entries()) {
      await daemon.request('post', { conversation: 'demo', publisher: 'alice', content });
      await expect
        .poll(async () => (await daemon.entries()).filter(({ type }) => type === 'turn-ended').length)
        .toBe(at + 1);
    }
  }

  async function ask<V extends Verb>(verb: V, body: object): Promise<AnswerOf<V>> {
    const reply = await daemon.request(verb, { conversation: 'demo', ...body });
    if (!reply.ok) throw new Error(`${reply.refusal.code}: ${reply.refusal.message}`);
    return reply.body as AnswerOf<V>;
  }

  const ended = (id: string) => expect.poll(async () => (await ask('what-if-result', { id })).state);

  it('compare each turn with its record, and leave the log as it is', async () => {
    await begin();
    const before = JSON.stringify(await daemon.entries());
    const { id, total } = await ask('what-if', { agent: 'pm', at: 'all', model: 'm2', runs: 2 });
    expect(total).toBe(8);
    await ended(id).toBe('done');
    const { results, control, changed, done } = await ask('what-if-result', { id });
    expect([done, control.same, changed.different]).toEqual([8, 4, 4]);
    expect(results.map(({ recorded, changed: [first] }) => [recorded.content, first?.content])).toEqual([
      ['as recorded', 'else'],
      ['as recorded', 'else'],
    ]);
    for (const { recorded, control: runs } of results)
      expect(runs.map(({ requestHash }) => requestHash)).toEqual([
        recorded.requestHash,
        recorded.requestHash,
      ]);
    expect(JSON.stringify(await daemon.entries())).toBe(before);
    expect((await ask('conversation', {})).metadata.tokens).toBe(0);
  });

  it('are read in pages that fit an answer', async () => {
    await begin({ maxPayload: 12_000 });
    const { id } = await ask('what-if', { agent: 'pm', at: 'all', model: 'm2', runs: 12 });
    await ended(id).toBe('done');
    expect((await ask('what-if-result', { id, limit: 0 })).results).toEqual([]);
    const first = await ask('what-if-result', { id });
    const second = await ask('what-if-result', { id, from: first.next ?? -1 });
    expect([first.results.length, second.results.length, second.next]).toEqual([1, 1, null]);
    expect(first.results[0]?.at).toBeLessThan(second.results[0]?.at ?? 0);
  });

  it('have the persona that was tried, of a long one as much as fits each answer', async () => {
    await begin({ maxPayload: 12_000 });
    const long = '\u0001"é'.repeat(400);
    const started = { agent: 'pm', at: 'all', id: 'w0' };
    expect((await ask('what-if', { ...started, persona: 'Rhyme.' })).change.persona).toBe('Rhyme.');
    for (const id of ['w1', 'w2']) await ask('what-if', { ...started, id, persona: long });
    await ended('w2').toBe('done');
    const { change, results } = await ask('what-if-result', { id: 'w2' });
    expect(long.startsWith(change.persona ?? '-')).toBe(true);
    expect(change.persona?.length).toBeGreaterThan(1_000);
    expect(results.length).toBeGreaterThan(0);
    const { whatIfs } = await ask('what-ifs', {});
    expect(whatIfs[2]?.change).toEqual({ model: null, persona: 'Rhyme.' });
    expect(JSON.stringify(whatIfs).length).toBeLessThan(12_000);
  });

  it('are refused above a number of jobs that run or wait', async () => {
    await begin();
    for (let n = 0; n < 8; n++)
      await ask('what-if', { agent: 'pm', at: 'all', model: 'endless', id: `w${n}` });
    await expect(ask('what-if', { agent: 'pm', at: 'all', model: 'm2' })).rejects.toThrow('WHAT_IF_BUSY');
    expect(await ask('what-if', { agent: 'pm', at: 'all', model: 'endless', id: 'w7' })).toMatchObject({
      id: 'w7',
    });
    await ask('what-if-stop', { id: 'w0' });
    await ended('w0').toBe('stopped');
    await ended('w1').toBe('running');
    for (let n = 1; n < 8; n++) await ask('what-if-stop', { id: `w${n}` });
    await ended('w7').toBe('stopped');
    const { whatIfs } = await ask('what-ifs', {});
    expect(whatIfs.map(({ state }) => state)).toEqual(Array.from({ length: 8 }, () => 'stopped'));
  });

  it('end as limited before a call that could exceed a limit of the conversation', async () => {
    await begin({ limits: { tokensPerConversation: 1_500 } });
    const { id } = await ask('what-if', { agent: 'pm', at: 'all', model: 'm2', runs: 20 });
    await ended(id).toBe('limited');
    const result = await ask('what-if-result', { id });
    expect(result.reason).toContain('tokensPerConversation: in what-ifs of this conversation');
    // 15 tokens for each changed answer; the next call is reserved with about 1,050.
    expect(result.changed.used.outputTokens + result.changed.used.inputTokens).toBeGreaterThan(300);
    expect(result.done).toBeLessThan(result.total);
    const state = await ask('conversation', {});
    expect(state.agents.pm?.status).toBe('idle');
  });

  it('end with the daemon', async () => {
    await begin();
    const { id } = await ask('what-if', { agent: 'pm', at: 'all', model: 'endless' });
    await expect.poll(async () => (await ask('what-if-result', { id })).control.same).toBeGreaterThan(0);
    await daemon.runtime.whatIfs.close();
    const { state, control } = await ask('what-if-result', { id });
    expect([state, control.same > 0]).toEqual(['interrupted', true]);
    await expect(ask('what-if', { agent: 'pm', at: 'all', model: 'm2' })).rejects.toThrow('STOPPING');
  });

  it('end before their conversation is deleted, and are not shown for a later one of that name', async () => {
    await begin();
    const { id } = await ask('what-if', { agent: 'pm', at: 'all', model: 'endless' });
    await daemon.request('delete', { conversation: 'demo' });
    await expect(ask('what-if-result', { id })).rejects.toThrow('NOT_FOUND');
    await daemon.request('post', { conversation: 'demo', publisher: 'alice', content: 'new' });
    expect((await ask('what-ifs', {})).whatIfs).toEqual([]);
  });

  it('report a turn without a definition, and refuse one that is named', async () => {
    await begin();
    for (const entry of await daemon.entries()) if (entry.type === 'turn-started') delete entry.definition;
    const at = (await daemon.entries()).findLast((entry) => entry.type === 'turn-ended')?.index ?? 0;
    await expect(ask('what-if', { agent: 'pm', at: at - 1, model: 'm2' })).rejects.toThrow('NO_DEFINITION');
    const { id } = await ask('what-if', { agent: 'pm', at: 'all', model: 'm2' });
    await ended(id).toBe('done');
    const { results, changed } = await ask('what-if-result', { id });
    expect(results.map(({ failure }) => failure?.code)).toEqual(['NO_DEFINITION', 'NO_DEFINITION']);
    expect(changed.failed).toBe(2);
  });

  it('are refused for an agent in another process: its model cannot be called from here', async () => {
    await begin();
    Object.assign(daemon.runtime.team.agents.get('pm')?.card ?? {}, { runtime: 'bus' });
    await expect(ask('what-if', { agent: 'pm', at: 'all', model: 'm2' })).rejects.toThrow(
      'WHAT_IF_REMOTE_AGENT',
    );
  });

  it('send a turn once that several named entries belong to', async () => {
    await begin();
    const answers = (await daemon.entries()).filter(
      (entry) => entry.type === 'message' && entry.role === 'assistant',
    );
    const [one = 0, two = 0] = answers.map(({ index }) => index);
    const { turns } = await ask('what-if', { agent: 'pm', at: [one, one - 1, two], model: 'm2', id: 'turn' });
    expect(turns).toBe(2);
  });

  it('send the turns whose answers people rated down', async () => {
    await begin();
    const answers = (await daemon.entries()).filter(
      (entry) => entry.type === 'message' && entry.role === 'assistant',
    );
    const [one, two] = answers.map(({ index }) => index);
    await ask('feedback', { index: one, value: 'up', publisher: 'alice' });
    await ask('feedback', { index: two, value: 'down', note: 'wrong', publisher: 'alice' });
    const { turns, id } = await ask('what-if', { agent: 'pm', at: 'down', model: 'm2' });
    expect(turns).toBe(1);
    await ended(id).toBe('done');
    expect((await ask('what-if-result', { id })).results).toMatchObject([{ at: two }]);
    await ask('feedback', { index: two, value: 'none', publisher: 'alice' });
    await expect(ask('what-if', { agent: 'pm', at: 'down', model: 'm2' })).rejects.toThrow('NO_SUCH_TURN');
  });

  it.each<[string, object, string]>([
    ['no change', {}, 'BAD_REQUEST'],
    ['an unknown model', { model: 'm9' }, 'UNKNOWN_MODEL'],
    ['another agent than one of this conversation', { agent: 'dev', model: 'm2' }, 'NO_SUCH_TURN'],
    ['an entry beyond the log', { at: 999, model: 'm2' }, 'NO_SUCH_ENTRY'],
    ['an entry of no turn', { at: 0, model: 'm2' }, 'NO_SUCH_TURN'],
    ['no agent for all turns', { agent: undefined, model: 'm2' }, 'BAD_REQUEST'],
    ['too many runs', { runs: 21, model: 'm2' }, 'BAD_REQUEST'],
    ['an id that is no name', { id: 'A/b', model: 'm2' }, 'BAD_REQUEST'],
  ])('are refused: %s', async (_, body, code) => {
    await begin();
    await expect(ask('what-if', { agent: 'pm', at: 'all', ...body })).rejects.toThrow(`${code}: `);
    expect((await ask('what-ifs', {})).whatIfs).toEqual([]);
  });
});
