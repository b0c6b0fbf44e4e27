import { connect as connectToNats } from 'nats';
import { describe, expect, it } from 'vitest';
import type { FakeHandler } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, entriesOf, followUntil, parseLog, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject } from '../support/project.ts';

/** L1, L4, L5, L6: an accepted post is answered once, whatever kills the daemon meanwhile. */
describe('a daemon that is killed', () => {
  const open = async (model: FakeHandler, settings = {}) =>
    untilTestEnds(await openProject({ nats: {}, model, settings }));

  it('a daemon that is killed in the middle of a model call repeats the request byte for byte and answers once', async () => {
    const project = await open((_, count) =>
      count === 1 ? { text: 'half of ', hang: 'after-text' } : { text: `answer ${count}` },
    );
    const first = await project.up();
    const client = await project.connect();
    await ask(client, 'demo', 'before');
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'during', id: 'd1' });
    await project.provider.waitForRequests(2);
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'meanwhile' });
    await first.kill9();
    await project.provider.waitForIdle();

    const second = await project.up();
    const entries = await followUntil(client, 'demo', (known) => {
      const texts = known.map((entry) => (entry.type === 'message' ? entry.content : ''));
      return texts.includes('meanwhile') && turnsEnded(2)(known) && texts.includes('answer 2');
    });
    expect(
      project.provider.requests[2]?.body.equals(project.provider.requests[1]?.body ?? Buffer.alloc(0)),
    ).toBe(true);
    const starts = entries.filter((entry) => entry.type === 'turn-started');
    expect(starts.map(({ resumed }) => resumed ?? false)).toEqual(expect.arrayContaining([true]));
    expect(new Set(starts.slice(1, 3).map(({ requestHash }) => requestHash)).size).toBe(1);
    const posts = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
    expect(posts.map((entry) => ('content' in entry ? entry.content : ''))).toEqual([
      'before',
      'during',
      'meanwhile',
    ]);
    expect(await second.stop()).toBe(0);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });

  itLong('a daemon that was killed answers what was posted while it was down', async () => {
    const project = await open(() => ({ text: 'here again' }));
    const first = await project.up();
    await first.kill9();
    const program = await connectToNats({ servers: project.nats.url });
    project.defer(() => program.close());
    const receipt = await program.jetstream().publish('parley.in.alice.later', 'are you there?');
    expect(receipt.stream).toBe('PARLEY_IN');
    await project.up();
    const client = await project.connect();
    const entries = await followUntil(client, 'later', turnsEnded(1));
    expect(entries.filter((entry) => entry.type === 'message').map(({ content }) => content)).toEqual([
      'are you there?',
      'here again',
    ]);
  });

  it('a daemon that is killed twice during a hundred posts keeps and answers each of them once, in order', {
    timeout: 90_000,
  }, async () => {
    const project = await open(() => ({ text: 'noted', delayMs: 10 }));
    const program = await connectToNats({ servers: project.nats.url });
    project.defer(() => program.close());
    const publish = async (from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const body = JSON.stringify({ id: `post-${n}`, content: `number ${n}` });
        await program.jetstream().publish(`parley.in.alice.c${n % 5}`, body);
      }
    };
    const first = await project.up();
    await publish(0, 40);
    await first.kill9();
    await publish(40, 50);
    const second = await project.up();
    await publish(50, 90);
    await second.kill9();
    await publish(90, 100);
    const third = await project.up();
    const client = await project.connect();
    for (let c = 0; c < 5; c++) {
      const wanted = Array.from({ length: 20 }, (_, n) => `post-${n * 5 + c}`);
      await followUntil(client, `c${c}`, (entries) => {
        const posts = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
        return posts.length >= 20 && turnsEnded(1)(entries);
      });
      const entries = await entriesOf(client, `c${c}`);
      const posts = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
      expect(posts.map(({ id }) => id)).toEqual(wanted);
    }
    expect(await third.stop()).toBe(0);
    for (let c = 0; c < 5; c++) {
      const text = await project.logFile(`c${c}`);
      expect(checkLog(text)).toEqual([]);
      const entries = parseLog(text);
      const shown = entries.flatMap((entry) =>
        entry.type === 'turn-started'
          ? entry.trigger
          : entry.type === 'message-delivered'
            ? entry.entries
            : [],
      );
      const posts = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
      expect(posts.filter(({ index }) => !shown.includes(index))).toEqual([]);
      expect(turnsEnded(1)(entries)).toBe(true);
    }
  });

  it('a daemon stops within its grace period during a stream, and the turn continues at the next start', async () => {
    const project = await open(
      (_, count) => (count === 0 ? { text: 'never finished', hang: 'after-text' } : { text: 'finished' }),
      {
        shutdown: { graceMs: 0 },
      },
    );
    const first = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'go' });
    await project.provider.waitForRequests(1);
    expect(await first.stop()).toBe(0);
    await project.provider.waitForIdle();
    expect(parseLog(await project.logFile('demo')).some((entry) => entry.type === 'turn-ended')).toBe(false);

    await project.up();
    const entries = await followUntil(client, 'demo', turnsEnded(1));
    expect(
      project.provider.requests[1]?.body.equals(project.provider.requests[0]?.body ?? Buffer.alloc(0)),
    ).toBe(true);
    expect(entries.at(-3)).toMatchObject({ type: 'message', role: 'assistant', content: 'finished' });
    expect(entries.at(-2)).toMatchObject({ type: 'title-set', title: 'go' });
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
  });

  itLong('a daemon that stops lets a turn finish that ends within the grace period', async () => {
    const project = await open(() => ({ text: 'a few words that take a moment', delayMs: 40 }));
    const daemon = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'go' });
    await project.provider.waitForRequests(1);
    expect(await daemon.stop()).toBe(0);
    const entries = parseLog(await project.logFile('demo'));
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    expect(entries.at(-2)).toMatchObject({ type: 'title-set', title: 'go' });
    expect(entries.at(-3)).toMatchObject({ content: 'a few words that take a moment' });
    expect(project.provider.requests.length).toBe(1);
  });

  itLong('a second signal ends a stopping daemon at once', async () => {
    const project = await open(() => ({ hang: 'after-headers' }), { shutdown: { graceMs: 60_000 } });
    const daemon = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'go' });
    await project.provider.waitForRequests(1);
    daemon.signal('SIGTERM');
    await expect.poll(() => daemon.stderr()).toContain('stopping');
    daemon.signal('SIGINT');
    expect(await daemon.exited).toBe(1);
  });
});
