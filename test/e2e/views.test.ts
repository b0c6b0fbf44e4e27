import { describe, expect, it } from 'vitest';
import { AWAY_MARKER, NEW_INTERACTION_MARKER } from '../../src/conversation/index.ts';
import type { FakeRequest } from '../support/fake-provider.ts';
import { entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';

/** What a model receives, read from the requests at a provider. */
describe('the view of each agent', () => {
  const project = sharedProject({ model: (request) => ({ text: `answer to ${lastOf(request).content}` }) });
  const { nats, provider, daemon } = project;

  const messagesOf = (request: FakeRequest | undefined) => request?.json.messages ?? [];
  const lastOf = (request: FakeRequest) => messagesOf(request).at(-1) ?? { role: '', content: '' };

  /** Posts and waits for the answer. Returns the request that the provider received for it. */
  async function ask(conversation: string, content: string, turns: number, name?: string) {
    const client = await project.connect();
    const before = provider.requests.length;
    const author = name === undefined ? {} : { author: { name } };
    await client.post({ conversation, publisher: 'alice', content, ...author });
    await followUntil(client, conversation, turnsEnded(turns));
    await client.close();
    expect(provider.requests.length).toBe(before + 1);
    return messagesOf(provider.requests[before]);
  }

  it("the view of a second agent has the whole history and no block, and the first one's has what it missed, once", async () => {
    const first = await ask('away', 'begin', 1);
    expect(first.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(first[0]?.content).toContain('PERSONA OF PAM');

    const second = await ask('away', '@dev have a look', 2);
    expect(second.map(({ role, content }) => [role, content]).slice(1)).toEqual([
      ['user', 'begin'],
      ['system', '[Pam]: answer to begin'],
      ['user', '@dev have a look'],
    ]);

    const third = await ask('away', 'and now?', 3);
    expect(third.slice(1, 3).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'begin'],
      ['assistant', 'answer to begin'],
    ]);
    const [block, separator, trigger] = third.slice(-3);
    expect(block?.role).toBe('system');
    expect(block?.content?.split('\n')[0]).toBe(AWAY_MARKER);
    expect(block?.content).toContain('@dev have a look');
    expect(block?.content).toContain('[Dev]: answer to @dev have a look');
    expect(block?.content).not.toContain('begin');
    expect(separator).toMatchObject({ role: 'system', content: NEW_INTERACTION_MARKER });
    expect(trigger).toMatchObject({ role: 'user', content: 'and now?' });

    const fourth = await ask('away', 'nothing missed now', 4);
    const texts = fourth
      .slice(1)
      .map(({ content }) => content ?? '')
      .join('\n');
    expect(texts).not.toContain(AWAY_MARKER);
    expect(texts).not.toContain(NEW_INTERACTION_MARKER);
    expect(texts.split('@dev have a look').length - 1).toBe(2); // the post itself, and Dev's answer that quotes it
  });

  it('the view names people from the second one on, and leaves earlier content unchanged', async () => {
    await ask('people', 'I am first', 1, 'Ann');
    const second = await ask('people', 'I am second', 2, 'Ben');
    expect(second.slice(1).map(({ content }) => content)).toEqual([
      'I am first',
      'answer to I am first',
      '[alice as Ben]: I am second',
    ]);
    const third = await ask('people', 'Ann again', 3, 'Ann');
    expect(third.slice(1).map(({ content }) => content)).toEqual([
      'I am first',
      'answer to I am first',
      '[alice as Ben]: I am second',
      'answer to [alice as Ben]: I am second',
      '[alice as Ann]: Ann again',
    ]);
  });

  it('explain prints the request of every answer as the provider received it, online, offline, and after a restart', async () => {
    const client = await project.connect();
    const before = provider.requests.length;
    await client.post({ conversation: 'why', publisher: 'alice', content: 'one' });
    await followUntil(client, 'why', turnsEnded(1));
    await client.post({ conversation: 'why', publisher: 'alice', content: 'two @dev' });
    await followUntil(client, 'why', turnsEnded(2));
    await client.post({ conversation: 'why', publisher: 'alice', content: 'three' });
    await followUntil(client, 'why', turnsEnded(3));
    const answers = (await entriesOf(client, 'why')).filter(
      (entry) => entry.type === 'message' && entry.role === 'assistant',
    );
    const sent = provider.requests.slice(before).map(messagesOf);
    expect(answers.length).toBe(3);

    const explained = await Promise.all(
      answers.map(({ index, author }) =>
        client.request('view', { conversation: 'why', agent: author.id, at: index }),
      ),
    );
    expect(explained.map(({ messages }) => messages)).toEqual(sent);
    const last = answers.at(-1);
    const where = ['--agent', last?.author.id ?? '', '--at', String(last?.index), '--json'];
    const online = await project.parley('explain', 'why', ...where, '--nats', nats.url);
    expect(online.json()).toEqual([{ messages: sent[2], report: explained[2]?.report }]);
    // With --data no daemon is used.
    const offline = await project.parley('explain', 'why', ...where, '--config', project.config);
    expect(offline.stdout).toBe(online.stdout);

    await daemon.stop();
    expect((await project.parley('explain', 'why', ...where, '--config', project.config)).stdout).toBe(
      offline.stdout,
    );
    await project.up();
    const after = await project.parley('explain', 'why', ...where, '--nats', nats.url);
    expect(after.stdout).toBe(online.stdout);
  });
});
