import { describe, expect, it } from 'vitest';
import { posting } from '../support/http.ts';
import { entriesOf } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { call } from '../support/route-rules.ts';

const user = (id: string, content: string) => ({ id, role: 'user', content });

describe('an AG-UI run with a message that is refused', () => {
  const project = sharedProject({
    agents: { lead: '---\nname: Lead\ntools: [ask]\n---\nYou lead.' },
    script: [
      { when: { last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
      { reply: { text: 'Noted.' } },
    ],
    http: true,
  });
  const { client } = project;

  async function run(threadId: string, messages: object[], resume: object[] = []) {
    const input = { threadId, runId: 'r', messages, resume, tools: [], context: [], forwardedProps: {} };
    const answer = await fetch(`${project.http}/ag-ui/lead`, posting(input));
    const text = await answer.text();
    return { status: answer.status, text, code: answer.ok ? undefined : JSON.parse(text).code };
  }
  const listed = async () => (await client.request('conversations', {})).conversations.map(({ id }) => id);

  it.each([
    ['nothing visible', user('u2', ' \u200b'), 400, 'EMPTY_CONTENT'],
    ['half a surrogate pair', user('u2', '\ud83d'), 400, 'INVALID_FIELD'],
    ['an id that is not printable', user('u\n2', 'Second'), 400, 'INVALID_FIELD'],
    ['the id of another message of the run', user('u1', 'Second'), 400, 'BAD_REQUEST'],
  ])('an AG-UI run posts none of its messages if the second one has %s', async (_, second, status, code) => {
    expect(await run('none', [user('u1', 'First'), second])).toMatchObject({ status, code });
    expect(await listed()).not.toContain('none');
  });

  it('an AG-UI run posts none of its messages if the second one has the id of another message in the log', async () => {
    expect(await run('known', [user('u1', 'Hello')])).toMatchObject({ status: 200 });
    const before = await entriesOf(client, 'known');
    const refused = await run('known', [user('u0', 'First'), user('u1', 'Second')]);
    expect(refused).toMatchObject({ status: 409, code: 'ID_CONFLICT' });
    expect(await entriesOf(client, 'known')).toEqual(before);
  });

  it('an AG-UI run that is refused gives none of its answers', async () => {
    const asked = await run('asked', [user('u1', 'unsure')]);
    const [interruptId] = /c\d+_0@\d+/.exec(asked.text) ?? [];
    const before = await entriesOf(client, 'asked');
    const answer = { interruptId, status: 'resolved', payload: 'The first.' };
    expect(await run('asked', [user('u2', ' ')], [answer])).toMatchObject({ code: 'EMPTY_CONTENT' });
    const unknown = { interruptId: 'c1_7', status: 'resolved', payload: 'x' };
    expect(await run('asked', [], [answer, unknown])).toMatchObject({ code: 'BAD_REQUEST' });
    expect(await entriesOf(client, 'asked')).toEqual(before);
    expect(await run('asked', [user('u2', 'More')], [answer])).toMatchObject({ status: 200 });
  });

  it('an AG-UI run posts each of its valid messages once, however often it is sent', async () => {
    const messages = [user('u1', 'First'), user('u2', 'Second')];
    for (const _ of [1, 2]) expect(await run('right', messages)).toMatchObject({ status: 200 });
    const posted = (await entriesOf(client, 'right')).filter(
      (entry) => 'role' in entry && entry.role === 'user',
    );
    expect(posted.map(({ id }) => id)).toEqual(['u1', 'u2']);
  });
});
