import { connect as connectToNats } from 'nats';
import { describe, expect, it } from 'vitest';
import type { FakeHandler, FakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, TEAM } from '../support/project.ts';

describe('a daemon with the JetStream store', () => {
  let provider: FakeProvider;
  let project: Project;

  async function start(model: FakeHandler, settings = {}, agents = TEAM, nats = {}): Promise<void> {
    project = untilTestEnds(await openProject({ nats, model, settings, agents }));
    provider = project.provider;
  }
  const up = () => project.up('--store', 'jetstream');

  it('a daemon with the JetStream store answers, shows, explains, lists and deletes, before and after a restart', async () => {
    await start((_, count) => ({ text: `answer ${count + 1}` }));
    const first = await up();
    expect(first.ready.store).toBe('jetstream');
    expect((await project.parley('say', 'demo', 'hello', '--as', 'alice', '--wait')).stdout).toContain(
      'answer 1',
    );
    expect(await first.stop()).toBe(0);

    const second = await up();
    expect((await project.parley('say', 'demo', 'again', '--as', 'alice', '--wait')).stdout).toContain(
      'answer 2',
    );
    const shown = (await project.parley('show', 'demo', '--json')).stdout;
    for (const text of ['hello', 'answer 1', 'again', 'answer 2']) expect(shown).toContain(text);
    expect((await project.parley('ls')).stdout).toContain('demo');
    const explained = await project
      .connect()
      .then((client) => client.request('view', { conversation: 'demo', agent: 'pm' }));
    expect(JSON.stringify(explained.messages)).toContain('hello');
    await expect(project.logFile('demo')).rejects.toThrow('ENOENT');
    expect((await project.parley('rm', 'demo')).code).toBe(0);
    expect(await second.stop()).toBe(0);

    await up();
    expect((await project.parley('ls', '--json')).stdout).not.toContain('demo');
  });

  itLong(
    'a killed daemon with the JetStream store continues its outstanding work with the same request',
    async () => {
      await start((_, count) => (count === 0 ? { text: 'half', hang: 'after-text' } : { text: 'whole' }));
      const first = await up();
      const client = await project.connect();
      await client.post({ conversation: 'demo', publisher: 'alice', content: 'hello' });
      await provider.waitForRequests(1);
      await first.kill9();
      await provider.waitForIdle();
      await up();
      await followUntil(client, 'demo', turnsEnded(1));
      expect(provider.requests[1]?.body.equals(provider.requests[0]?.body ?? Buffer.alloc(0))).toBe(true);
      const entries = await entriesOf(client, 'demo');
      expect(entries.map((entry) => entry.index)).toEqual(entries.map((_, index) => index));
    },
  );

  itLong(
    'a daemon with the JetStream store publishes each append once, as the message that is stored',
    async () => {
      await start(() => ({ text: 'noted' }));
      await up();
      const program = await connectToNats({ servers: project.nats.url });
      project.defer(() => program.close());
      const heard: number[] = [];
      program.subscribe('parley.log.demo', {
        callback: (_, message) => {
          for (const { index } of message.json<{ entries: { index: number }[] }>().entries) heard.push(index);
        },
      });
      await program.flush();
      const client = await project.connect();
      const entries = await ask(client, 'demo', 'hello');
      await program.flush();
      expect(heard).toEqual(entries.map((entry) => entry.index));
      const { streams } = await program.jetstreamManager();
      const { state } = await streams.info('PARLEY_LOG');
      expect(state.messages).toBeLessThanOrEqual(entries.length);
    },
  );

  itLong(
    'a daemon with the JetStream store appends posts separately that exceed one message together',
    async () => {
      await start(() => ({ text: 'noted' }), {}, TEAM, { config: 'max_payload: 131072' });
      await up();
      const client = await project.connect();
      const posts = Array.from({ length: 6 }, (_, count) =>
        client.post({
          conversation: 'demo',
          publisher: 'alice',
          content: `${count}`.repeat(60_000),
          id: `p${count}`,
        }),
      );
      const indexes = (await Promise.all(posts)).map(({ index }) => index);
      expect(new Set(indexes).size).toBe(6);
      await expect(
        client.post({ conversation: 'demo', publisher: 'alice', content: 'x'.repeat(122_000) }),
      ).rejects.toMatchObject({ code: 'TOO_LARGE' });
    },
  );

  itLong(
    'a daemon with the JetStream store stores a large output as an object that an agent can read',
    async () => {
      const agents = {
        pm: '---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [shell, fs_read]\n---\nPAM',
      };
      let path = '';
      await start(
        (request, count) => {
          if (count === 0)
            return {
              toolCalls: [
                { name: 'shell', arguments: JSON.stringify({ command: 'yes 123456789 | head -n 6000' }) },
              ],
            };
          path = /@state\/\S+?\.json/.exec(request.body.toString())?.[0] ?? '';
          if (count === 1)
            return { toolCalls: [{ name: 'fs_read', arguments: JSON.stringify({ path, lines: 3 }) }] };
          return { text: 'done' };
        },
        { tools: { policy: [{ agent: 'pm', tool: 'shell', allow: true }] } },
        agents,
      );
      await up();
      const client = await project.connect();
      const entries = await ask(client, 'demo', 'go');
      expect(path).not.toBe('');
      const results = entries.filter((entry) => entry.type === 'message' && entry.role === 'tool');
      expect(JSON.stringify(results.at(-1))).toContain('123456789\\n123456789\\n[there is more');
    },
  );

  itLong(
    'a daemon with the JetStream store stops with code 0 without the server, and loses no accepted post',
    async () => {
      await start(() => ({ text: 'noted' }), { shutdown: { graceMs: 500 } });
      const first = await up();
      const client = await project.connect();
      await ask(client, 'demo', 'hello');
      await project.nats.kill9();
      expect(await first.stop()).toBe(0);
      await project.nats.restart();
      await up();
      expect((await project.parley('show', 'demo')).stdout).toContain('hello');
    },
  );
});
