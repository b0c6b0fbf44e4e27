import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { checkLog, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { modelAt, sharedProject, TEAM } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { TOO_LONG } from '../support/too-long.ts';

/** L16: any failure of a provider becomes an entry that people see, and the conversation continues. */
describe('a provider that fails', () => {
  let handler: FakeHandler = () => ({ text: 'fine' });
  // Nothing listens on port 1 of loopback.
  const nowhere = modelAt('http://127.0.0.1:1/v1');
  const project = sharedProject({
    model: (request, count) => handler(request, count),
    settings: (url) => ({ models: { default: modelAt(url), nowhere } }),
    agents: { ...TEAM, lost: '---\nname: Lost\ndescription: unreachable\nmodel: nowhere\n---\nLOST' },
  });
  const { provider, daemon, client } = project;

  async function ask(conversation: string, content: string, turns: number): Promise<readonly Entry[]> {
    await client.post({ conversation, publisher: 'alice', content });
    return followUntil(client, conversation, turnsEnded(turns));
  }
  const answerIn = (entries: readonly Entry[]) =>
    ofType(entries, 'message').findLast(({ role }) => role === 'assistant');
  const outcomeIn = (entries: readonly Entry[]) => ofType(entries, 'turn-ended').at(-1)?.outcome;

  it.each<[string, ReturnType<FakeHandler>, string, string]>([
    ['refuses the key', { status: 401, body: { error: { message: 'bad key' } } }, 'UNAUTHORIZED', ''],
    ['has no such model', { status: 404, body: { error: { message: 'no model' } } }, 'NOT_FOUND', ''],
    [
      'sends an error in the stream',
      { text: 'as I was ', error: { message: 'overloaded' } },
      'PROVIDER_ERROR',
      'as I was ',
    ],
    ['hangs up in the stream', { text: 'as I was ', drop: 'after-text' }, 'NETWORK_ERROR', 'as I was '],
  ])(
    'a provider that %s causes an error entry with its text and a failed turn, and the next request works',
    async (name, reply, code, partial) => {
      const conversation = name.replaceAll(' ', '-');
      handler = () => reply;
      const before = provider.requests.length;
      const failed = await ask(conversation, 'first', 1);
      expect(outcomeIn(failed)).toBe('failed');
      expect(provider.requests.length).toBe(before + 1);
      const entry = answerIn(failed);
      expect(entry?.partType).toBe('error');
      const [said, report] = (entry?.content ?? '').split('LLM_ERROR ');
      expect(said).toBe(partial === '' ? '' : `${partial}\n\n`);
      expect(JSON.parse(report ?? '')).toEqual({ code, message: expect.stringMatching(/\w/) });
      expect(entry?.content).not.toContain('sk-test');

      handler = () => ({ text: 'going on' });
      const next = await ask(conversation, 'continue', 2);
      expect(outcomeIn(next)).toBe('completed');
      expect(provider.requests.at(-1)?.json.messages?.slice(1)).toEqual([
        { role: 'user', content: 'first' },
        { role: 'assistant', content: entry?.content },
        { role: 'user', content: 'continue' },
      ]);
      expect(checkLog(await project.logFile(conversation))).toEqual([]);
    },
  );

  it('a provider that answers 500 is asked again with the same bytes, and the answer is complete', async () => {
    let count = 0;
    handler = () => (count++ === 0 ? { status: 500, body: 'oops' } : { text: 'better now' });
    const before = provider.requests.length;
    const entries = await ask('retry', 'try', 1);
    expect(outcomeIn(entries)).toBe('completed');
    expect(answerIn(entries)?.content).toBe('better now');
    const [first, second] = provider.requests.slice(before);
    expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
  });

  it('a request that is too long in the words of any known provider is reduced and asked once more', async () => {
    handler = () => ({ text: 'noted' });
    for (const turn of [1, 2, 3]) await ask('too-long', `fact ${turn}: ${'word '.repeat(200)}`, turn);
    const some = /^(DashScope \(|xAI|Copilot|Anthropic, with|Z\.ai|OpenRouter, in|Gemini)/;
    const rows = TOO_LONG.filter(([name]) => hasLongTests || some.test(name));
    for (const [at, [, status, body]] of rows.entries()) {
      let count = 0;
      handler = () => (count++ === 0 ? { status, body: JSON.stringify(body) } : { text: `answer ${at}` });
      const entries = await ask('too-long', `and ${at}? ${'word '.repeat(100)}`, 4 + at);
      expect([at, outcomeIn(entries), answerIn(entries)?.content]).toEqual([at, 'completed', `answer ${at}`]);
      const [refused, asked] = provider.requests.slice(-2);
      expect(asked?.body.length).toBeLessThan(refused?.body.length ?? 0);
    }
    expect(checkLog(await project.logFile('too-long'))).toEqual([]);
  });

  it('a provider that is unreachable fails only the turn of its agent, and its address is named', async () => {
    handler = () => ({ text: 'I am fine' });
    const entries = await ask('unreachable', '@lost and @pm: hello', 2);
    const answers = entries.filter((entry) => entry.type === 'message' && entry.role === 'assistant');
    const byAgent = Object.fromEntries(
      answers.map((entry) => [entry.author.id, 'content' in entry ? entry.content : '']),
    );
    expect(byAgent.pm).toBe('I am fine');
    expect(byAgent.lost).toMatch(/LLM_ERROR \{"code":"NETWORK_ERROR".*127\.0\.0\.1:1/);
  });

  it('a slow provider delays no other conversation, and many concurrent calls cause no warning', async () => {
    const names = Array.from({ length: 15 }, (_, n) => `many-${n}`);
    const all = provider.requests.length + names.length;
    handler = async () => {
      await provider.waitForRequests(all); // All calls are sent before any is answered.
      return { text: 'in time' };
    };
    for (const conversation of names) await client.post({ conversation, publisher: 'alice', content: 'go' });
    await Promise.all(names.map((name) => followUntil(client, name, turnsEnded(1))));
    expect(daemon.stderr()).not.toMatch(/MaxListeners|leak/);
  });
});
