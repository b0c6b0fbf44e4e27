import { headers } from 'nats';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { readEvents } from '../support/event-source.ts';
import { startFleet } from '../support/fleet.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';

const ROUNDS = 20;

describe('refused appends of daemons that share the work', () => {
  const fleet = shared(() => startFleet({ count: 0 }));
  let addresses: string[];
  beforeAll(async () => {
    for (let n = 0; n < 2; n++) await fleet.add({}, '--http', '127.0.0.1:0');
    addresses = fleet.daemons.map(({ ready }) => String(ready.http));
  });

  it.each<[string, (newest: Entry) => object[]]>([
    [
      'of a daemon that claims the conversation too late',
      ({ index }) => [
        { index: index + 1, type: 'claim', daemon: 'late', epoch: 9 },
        { index: index + 2, type: 'note', content: 'refused' },
      ],
    ],
    [
      'of a frozen daemon that resumes',
      ({ index }) => [{ index: index - 1, type: 'note', content: 'refused' }],
    ],
  ])('a refused append is invisible to followers: %s', async (name, entriesAfter) => {
    const conversation = `refused-${name.length}`;
    const say = (id: string) =>
      fleet.client.post({ conversation, publisher: 'alice', content: id, id, to: ['pm'] });
    await say('one');
    await expect.poll(async () => (await entriesOf(fleet.client, conversation)).length).toBeGreaterThan(4);
    const newest = (await entriesOf(fleet.client, conversation)).at(-1) as Entry;
    const sse = await readEvents(`${addresses[0]}/api/conversations/${conversation}/events`);
    const followed: Entry[] = [];
    const abort = new AbortController();
    const following = (async () => {
      const options = { signal: abort.signal, live: false, pollMs: 3_600_000 };
      for await (const event of fleet.client.follow(conversation, options))
        if (event.kind === 'entry') followed.push(event.entry);
    })();
    await expect.poll(() => [followed.length, sse.indexes().length]).toEqual(Array(2).fill(newest.index + 1));
    const made = headers();
    made.set('Parley-Append', `refused-${name.length}`);
    made.set('Nats-Expected-Last-Subject-Sequence', '1');
    const refused = entriesAfter(newest).map((entry) => ({ ...newest, id: 'refused', ...entry }));
    const body = JSON.stringify({ entries: refused });
    const storing = fleet.program.jetstream().publish(`parley.log.${conversation}`, body, { headers: made });
    await expect(storing).rejects.toThrow('wrong last sequence');
    await say('two');
    await expect.poll(() => followed.filter(({ type }) => type === 'turn-ended').length).toBe(2);
    const log = await entriesOf(fleet.client, conversation);
    expect(followed).toEqual(log);
    const entries = () => sse.events.filter(({ event }) => event === 'entry').map(({ data }) => data);
    await expect.poll(entries).toEqual(log);
    abort.abort();
    sse.close();
    await following;
  });

  itLong(
    'two requests that begin a conversation at two daemons at once are both answered',
    async () => {
      for (let n = 0; n < ROUNDS; n++) {
        const answers = await Promise.all(
          addresses.map(async (address) => {
            const answer = await fetch(`${address}/v1/chat/completions`, {
              method: 'POST',
              signal: AbortSignal.timeout(10_000),
              headers: { 'content-type': 'application/json', 'x-parley-conversation': `n${n}` },
              body: JSON.stringify({ model: 'parley', messages: [{ role: 'user', content: 'x' }] }),
            });
            return await answer.json();
          }),
        );
        const noted = { choices: [{ message: { content: expect.stringContaining('noted') } }] };
        expect(answers, `conversation n${n}`).toMatchObject([noted, noted]);
      }
    },
    120_000,
  );
});
