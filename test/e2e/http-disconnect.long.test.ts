import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { shared } from '../support/lifetime.ts';
import { followUntil, ofType, turnsEnded } from '../support/log.ts';
import { openProject } from '../support/project.ts';
import { until } from '../support/steps.ts';

/** `stopOnDisconnect` of all tokens or of one: a client of `/v1` that leaves ends the turns of its request. */
describe('a client of `/v1` that disconnects', () => {
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: names of variables
  const people = [
    { role: 'post', token: '${STAYS}', publisher: 'site', stopOnDisconnect: false },
    { role: 'post', token: '${STOPS_TOO}', publisher: 'desk' },
  ];
  const tokens = { post: '${STOPS}' };
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: names of variables
  const project = shared(async () => {
    const opened = await openProject({
      nats: {},
      env: { STOPS: 'a-token-that-stops', STOPS_TOO: 'a-token-that-stops-too', STAYS: 'a-token-that-stays' },
      settings: { retry: { attempts: 1 }, http: { stopOnDisconnect: true, tokens, people } },
      model: () => ({ text: 'one two three four five six seven eight', delayMs: 400 }),
      agents: {
        pm: '---\nname: Pam\ndescription: plans\n---\nPERSONA OF PAM',
        shy: '---\nclientTools: false\n---\nPERSONA OF SHY',
      },
    });
    await opened.up('--http', '127.0.0.1:0');
    return opened;
  });
  const openai = (apiKey: string) => new OpenAI({ baseURL: `${project.http}/v1`, apiKey, maxRetries: 0 });
  const asked = (conversation: string) => ({
    model: 'pm',
    messages: [{ role: 'user' as const, content: 'Count' }],
    metadata: { conversation },
  });
  async function outcomeIn(conversation: string) {
    const entries = await followUntil(await project.connect(), conversation, turnsEnded(1));
    return ofType(entries, 'turn-ended').at(-1)?.outcome;
  }
  /** Leaves as soon as the model writes. */
  async function leave(request: (signal: AbortSignal) => PromiseLike<unknown>): Promise<void> {
    const before = project.provider.requests.length;
    const gone = new AbortController();
    const answered = Promise.resolve(request(gone.signal)).catch(() => 'gone');
    await until(() => project.provider.requests.length > before);
    gone.abort();
    expect(await answered).toBe('gone');
  }

  it.each([
    ['a-token-that-stops', 'aborted'],
    ['a-token-that-stops-too', 'aborted'],
    ['a-token-that-stays', 'completed'],
  ])('while it waits or streams, with %s: its turn is %s', async (token, outcome) => {
    const { chat, responses } = openai(token);
    await leave((signal) => chat.completions.create(asked(`whole-${token}`), { signal }));
    await leave(async (signal) => {
      const body = { ...asked(`stream-${token}`), stream: true as const };
      for await (const _ of await chat.completions.create(body, { signal }));
      return signal.aborted ? Promise.reject(new Error('left')) : 'whole';
    });
    await leave((signal) =>
      responses.create({ model: 'pm', input: 'Count', conversation: `response-${token}` }, { signal }),
    );
    for (const how of ['whole', 'stream', 'response'])
      expect(await outcomeIn(`${how}-${token}`)).toBe(outcome);
  });

  it('a turn that another publisher began continues when a client that waits for the same agent leaves', async () => {
    const client = await project.connect();
    const before = project.provider.requests.length;
    await client.post({ conversation: 'joined', publisher: 'alice', content: 'Count' });
    await until(() => project.provider.requests.length > before);
    const gone = new AbortController();
    const answered = openai('a-token-that-stops')
      .chat.completions.create(asked('joined'), { signal: gone.signal })
      .then(
        () => 'answered',
        () => 'gone',
      );
    await followUntil(client, 'joined', (all) => all.filter(({ type }) => type === 'message').length > 1);
    gone.abort();
    expect(await answered).toBe('gone');
    const entries = await followUntil(client, 'joined', turnsEnded(1));
    expect(ofType(entries, 'turn-ended')[0]?.outcome).toBe('completed');
  });

  it('an agent that was stopped so answers the next message', async () => {
    const client = openai('a-token-that-stops');
    await leave((signal) => client.chat.completions.create(asked('again'), { signal }));
    expect(await outcomeIn('again')).toBe('aborted');
    const answer = await client.chat.completions.create({
      ...asked('again'),
      messages: [{ role: 'user', content: 'More' }],
    });
    expect(answer.choices[0]?.message.content).toContain('eight');
  });

  it('the list of models says what each agent can do', async () => {
    const { data } = await openai('a-token-that-stays').models.list();
    expect(data).toMatchObject([
      { id: 'parley', capabilities: { tools: true, structured: true } },
      { id: 'pm', description: 'plans', capabilities: { tools: true, structured: true } },
      { id: 'shy', capabilities: { tools: false, files: [] } },
    ]);
  });
});
