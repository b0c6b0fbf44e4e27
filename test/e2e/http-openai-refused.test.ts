import { describe, expect, it } from 'vitest';
import { posting } from '../support/http.ts';
import { sharedProject } from '../support/project.ts';

const MAX_BYTES = 20_000;
const user = (content: string) => ({ role: 'user', content });
const history = [user('Hi'), { role: 'assistant', content: 'Hello.' }];

describe('a request at `/v1` whose last message is refused', () => {
  const project = sharedProject({
    settings: {
      publishers: { default: { maxBytes: MAX_BYTES }, openai: { maxBytes: MAX_BYTES, postsPerMinute: 1 } },
    },
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'Noted.' } }],
    http: true,
  });
  const { client } = project;

  async function complete(messages: object[], conversation?: string) {
    const answer = await fetch(`${project.http}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(conversation && { 'x-parley-conversation': conversation }),
      },
      body: JSON.stringify({ model: 'lead', messages }),
    });
    const body = (await answer.json()) as { error?: { code: string } };
    return { status: answer.status, code: body.error?.code };
  }
  const listed = async () => (await client.request('conversations', {})).conversations.map(({ id }) => id);

  it.each([
    ['half a surrogate pair', '\ud83d', 400, 'INVALID_FIELD'],
    ['nothing visible', ' \u200b', 400, 'EMPTY_CONTENT'],
    ['more bytes than its publisher may send', 'x'.repeat(MAX_BYTES), 413, 'TOO_LARGE'],
  ])(
    'a refused request at `/v1` leaves no conversation with its history: %s',
    async (_, content, status, code) => {
      for (const named of [undefined, 'named']) {
        expect(await complete([...history, user(content)], named)).toEqual({ status, code });
        expect(await listed()).toEqual([]);
      }
    },
  );

  it('a request at `/v1` over the rate of its publisher leaves no conversation with its history', async () => {
    expect(await complete([user('First')], 'first')).toMatchObject({ status: 200 });
    const refused = await complete([...history, user('Second')], 'second');
    expect(refused).toEqual({ status: 429, code: 'RATE_LIMITED' });
    expect(await listed()).toEqual(['first']);
  });

  it('the `retry-after` header has the seconds of the error text on every route, and no refused request leaves a dead letter', async () => {
    await complete([user('First')], 'first');
    for (const [path, body] of [
      ['/v1/chat/completions', { model: 'lead', messages: [user('Third')] }],
      ['/v1/chat/completions', { model: 'lead', messages: [...history, user('Third')] }],
      ['/api/conversations/third/messages', { publisher: 'openai', content: 'Third' }],
    ] as const) {
      const answer = await fetch(`${project.http}${path}`, posting(body));
      const [, seconds] = /post it again in (\d+) s/.exec(await answer.text()) ?? [];
      expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 429, seconds]);
      expect(Number(seconds)).toBeGreaterThan(1);
    }
    expect((await client.request('dead', {})).letters).toEqual([]);
  });
});
