import { describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf } from '../support/log.ts';
import { openProject } from '../support/project.ts';

/** A post that kills the daemon process each time it is decided on. */
describe('a post that kills the daemon', { timeout: 300_000 }, () => {
  const project = shared(() =>
    openProject({
      nats: {},
      env: { PARLEY_CRASH_POINTS: 'before-decision@poisoned' },
      script: [{ reply: { text: 'fine' } }],
    }),
  );
  const { nats } = project;

  it('a post that kills the daemon is given up after five attempts, and others are served meanwhile', async () => {
    const connection = await openNats({ url: nats.url });
    const post = (conversation: string, id: string) => {
      const body = new TextEncoder().encode(JSON.stringify({ id, content: `content ${id}` }));
      return connection.jetstream().publish(`parley.in.alice.${conversation}`, body);
    };
    const begin = () => project.up('--allow-crash-points');
    const first = await begin();
    await Promise.all([post('poisoned', 'poison'), post('poisoned', 'next')]);
    expect(await first.exited).toBeNull();
    // Killed again at once, perhaps before it reports that it is ready.
    const second = begin().then((daemon) => daemon.exited);
    await second.then(
      (code) => expect(code).toBeNull(),
      (error) => expect(error.message).toContain('the daemon ended with null before it was ready'),
    );
    for (let death = 3; death <= 5; death++) {
      const daemon = await begin();
      // From now on the post is delayed, and the daemon serves others.
      const client = await project.connect();
      const served = { conversation: 'other', publisher: 'bob', content: 'hi', id: `o-${death}` };
      expect(await client.post(served)).toMatchObject({ duplicate: false });
      expect(await daemon.exited).toBeNull();
      await client.close();
    }
    await project.up(); // Nothing kills it now: only the stored attempts keep the post out.
    const client = await project.connect();
    await expect
      .poll(async () => (await client.request('dead', {})).letters, { timeout: 30_000 })
      .toMatchObject([{ id: 'poison', code: 'DECISION_FAILED', reason: expect.stringContaining('5 times') }]);
    await expect
      .poll(async () => (await client.request('conversations', {})).conversations.map(({ id }) => id), {
        timeout: 30_000,
      })
      .toContain('poisoned');
    const people = (await entriesOf(client, 'poisoned')).filter(({ type }) => type === 'message');
    expect(people[0]).toMatchObject({ id: 'next', index: 0 });
    await connection.close();
  });
});
