import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { followUntil, ofType, outcomesOf, turnsEnded } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';

/** The finish reason of an answer is kept in its entry and reported to its readers. */
describe('an answer that a model did not finish', () => {
  let openai: OpenAI;
  let handler: FakeHandler = () => ({ text: 'fine' });

  const project = sharedProject({
    model: (request, count) => handler(request, count),
    agents: { pm: '---\nname: Pam\ndescription: plans\ntools: [fs_write, fs_list]\n---\nPERSONA OF PAM' },
    http: true,
  });
  const { provider, client } = project;
  beforeAll(async () => {
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  async function ask(conversation: string): Promise<readonly Entry[]> {
    await client.post({ conversation, publisher: 'alice', content: 'go' });
    return followUntil(client, conversation, turnsEnded(1));
  }
  const answerIn = (entries: readonly Entry[]) =>
    ofType(entries, 'message').findLast(({ role }) => role === 'assistant');

  it('a refusal is the text of the answer, and the finish reason marks it', async () => {
    const message = { role: 'assistant', content: null, refusal: 'I will not.' };
    handler = () => ({
      body: { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] },
    });
    expect(answerIn(await ask('refused'))).toMatchObject({ content: 'I will not.', finishReason: 'refusal' });
  });

  it.each([
    ['length', 'OUTPUT_LIMIT', 'maxOutputTokens'],
    ['content_filter', 'CONTENT_FILTERED', 'content filter'],
    ['stop', 'EMPTY_ANSWER', 'only reasoned'],
  ])(
    'an answer without text that ends with %s is a failure with its usage and advice',
    async (reason, code, advice) => {
      handler = () => ({ reasoning: 'Let me think', finishReason: reason });
      const entries = await ask(`nothing-${reason}`);
      const answer = answerIn(entries);
      expect(answer).toMatchObject({ partType: 'error', reasoning: 'Let me think', finishReason: reason });
      expect(answer?.content).toMatch(new RegExp(`^LLM_ERROR \\{"code":"${code}".*${advice}`));
      expect(answer?.usage).toMatchObject({ inputTokens: 10, outputTokens: 2 });
      expect(outcomesOf(entries, 'pm')).toEqual(['failed']);
      expect(checkLaws(entries)).toEqual([]);
    },
  );

  it.each(['stop', 'MALFORMED_FUNCTION_CALL', 'insufficient_system_resource'])(
    'an empty answer that ends with %s is asked for again, and `say --wait` fails if it stays empty',
    async (finishReason) => {
      const first = provider.requests.length;
      handler = (_, count) => (count - first < 2 ? { finishReason } : { text: 'Here it is.' });
      expect(outcomesOf(await ask(`again-${finishReason}`), 'pm')).toEqual(['completed']);
      expect(provider.requests.length - first).toBe(3);
      handler = () => ({ finishReason });
      const said = await project.parley('say', `empty-${finishReason}`, 'go', '--wait');
      expect(said.code).toBe(1);
      expect(said.stdout + said.stderr).toMatch(/EMPTY_ANSWER|INVALID_RESPONSE|PROVIDER_ERROR/);
      expect(said.stdout + said.stderr).toContain('Tried 3 times.');
    },
  );

  it('`say --wait` prints the advice on stderr and exits with 1 if there is no text', async () => {
    handler = () => ({ reasoning: 'Let me think', finishReason: 'length' });
    const said = await project.parley('say', 'say-nothing', 'go', '--wait');
    expect(said.code).toBe(1);
    expect(said.stdout + said.stderr).toContain('OUTPUT_LIMIT');
    expect(said.stderr).toContain('raise maxOutputTokens');
  });

  it('`say --wait` prints a text that was cut, reports this on stderr, and exits with 1', async () => {
    handler = () => ({ text: 'A beginning', finishReason: 'length' });
    const said = await project.parley('say', 'say-cut', 'go', '--wait');
    expect(said.stdout).toBe('A beginning\n');
    expect(said.stderr).toContain('the answer of pm was cut at the output limit (length)');
    expect(said.code).toBe(1);
  });

  it('a call whose arguments were cut is not run, and its result says so', async () => {
    const cut = { name: 'fs_write', arguments: '{"path":"@project/cut.txt","content":"half' };
    const whole = { name: 'fs_list', arguments: '{"path":"@project/"}' };
    handler = ({ json }) =>
      json.messages?.some(({ role }) => role === 'tool')
        ? { text: 'Done.' }
        : { toolCalls: [whole, cut], finishReason: 'length' };
    const entries = await ask('cut-call');
    const results = ofType(entries, 'message').filter(({ role }) => role === 'tool');
    const cutResult = results.find(({ call }) => call?.position === 1);
    expect(cutResult?.content).toContain('ARGUMENTS_CUT');
    expect(cutResult?.content).toContain('output limit');
    expect(results.find(({ call }) => call?.position === 0)?.content).not.toContain('ARGUMENTS_CUT');
    expect(ofType(entries, 'approval-requested')).toEqual([]);
    expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
    expect(checkLaws(entries)).toEqual([]);
  });

  it('`/v1` returns the finish reason of an answer without text', async () => {
    handler = () => ({ reasoning: 'Let me think', finishReason: 'length' });
    const messages = [{ role: 'user' as const, content: 'think' }];
    const { choices } = await openai.chat.completions.create({ model: 'pm', messages });
    expect(choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'length' });
  });
});
