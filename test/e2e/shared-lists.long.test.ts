import { describe, expect, it } from 'vitest';
import { checkLaws } from '../../src/conversation/index.ts';
import { FAILURE_TIMEOUT_MS, type Fleet, type FleetOptions, ownerOf, startFleet } from '../support/fleet.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { entriesOf, followUntil, postedIds, turnsEnded } from '../support/log.ts';
import { until } from '../support/steps.ts';

/** Lists and refusals of several daemons after one of them was killed. */
describe('lists after a daemon was killed', () => {
  let fleet: Fleet;
  const start = async (options: FleetOptions) => {
    fleet = untilTestEnds(await startFleet(options));
  };
  const listed = async () => {
    const { conversations } = await fleet.client.request('conversations', {});
    return conversations.map(({ id, length }) => [id, length]);
  };
  const converse = async (...conversations: readonly string[]) => {
    for (const id of conversations) await fleet.publish(id, id);
    for (const id of conversations) await followUntil(fleet.client, id, turnsEnded(1));
    return Promise.all(conversations.map(async (id) => [id, (await entriesOf(fleet.client, id)).length]));
  };

  it('conversations of the killed daemon are listed with their length, although no daemon has opened them', async () => {
    await start({ count: 2 });
    const all = await converse('a', 'b', 'c', 'd', 'e', 'f');
    expect(await listed()).toEqual(all);
    await (await ownerOf(fleet, 'a')).kill9();
    await until(async () => JSON.stringify(await listed()) === JSON.stringify(all));
  });

  it('the status names each daemon and what it works on, and lists all conversations', async () => {
    await start({ count: 2 });
    await converse('a', 'b', 'c', 'd', 'e', 'f');
    const status = await fleet.client.request('status', {});
    const owned = status.daemons.flatMap(({ owns }) => owns?.first ?? []);
    expect([status.daemons.length, new Set(status.daemons.map(({ daemon }) => daemon)).size]).toEqual([2, 2]);
    expect([owned.sort(), status.conversations]).toEqual([['a', 'b', 'c', 'd', 'e', 'f'], 6]);
    expect(status.deadLetters).toBe(0);
    // A daemon that does not read the stream knows it by the record, which is up to two seconds old.
    await until(async () => (await fleet.client.request('status', {})).queue?.posts === 0);
    await (await ownerOf(fleet, 'a')).kill9();
    await until(async () => (await fleet.client.request('status', {})).daemons.length === 1);
    await until(async () => (await fleet.client.request('status', {})).conversations === 6);
  });

  it('the status shows no turn of the killed daemon as running before another one continues it', async () => {
    await start({ count: 3, handler: () => ({ text: 'half', hang: 'after-text' }) });
    const conversations = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const id of conversations) await fleet.publish(id, id);
    await fleet.provider.waitForRequests(6);
    await (await ownerOf(fleet, 'a')).kill9();
    for (let running = 0; running < 6; ) {
      const status = await fleet.client.request('status', {});
      const owned = status.daemons.flatMap(({ owns }) => owns?.first ?? []);
      const rows = status.running.first.map(({ conversation }) => conversation);
      expect(rows.filter((id) => !owned.includes(id))).toEqual([]);
      running = status.daemons.length === 2 ? rows.length : 0;
    }
  });

  it('a search finds each message once, whichever daemon works on its conversation, and none of a deleted one', async () => {
    await start({ count: 2 });
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) await fleet.publish(id, `hello-${id}`);
    for (const id of ids) await followUntil(fleet.client, id, turnsEnded(1));
    const found = async () => {
      let answer = await fleet.client.request('search', { q: 'hello', person: 'alice' });
      // The first search of a daemon builds its index, and may take longer than others wait for it.
      for (let tries = 0; answer.incomplete && tries < 50; tries++)
        answer = await fleet.client.request('search', { q: 'hello', person: 'alice' });
      return answer.hits.map(({ conversation, index }) => `${conversation}/${index}`).sort();
    };
    const first = await Promise.all(
      ids.map(async (id) => {
        const entries = await entriesOf(fleet.client, id);
        return `${id}/${entries.find(({ type }) => type === 'message')?.index}`;
      }),
    );
    for (let n = 0; n < 4; n++) expect(await found()).toEqual(first);
    await fleet.client.request('delete', { conversation: 'a' });
    for (let n = 0; n < 4; n++) expect(await found()).toEqual(first.slice(1));
  });

  it('a deleted conversation is not listed by other daemons that have read it', async () => {
    await start({ count: 1 });
    const all = await converse('a');
    await (await ownerOf(fleet, 'a')).kill9();
    await Promise.all([fleet.add(), fleet.add()]);
    await until(async () => JSON.stringify(await listed()) === JSON.stringify(all));
    for (let n = 0; n < 10; n++) await entriesOf(fleet.client, 'a'); // any that has it in memory
    await fleet.client.request('delete', { conversation: 'a' });
    for (let n = 0; n < 10; n++) expect(await listed()).toEqual([]);
  });

  it('posts that the killed daemon refused stay refused, with one dead letter each', async () => {
    const settings = { publishers: { default: { postsPerMinute: 3 } } };
    await start({
      count: 1,
      settings: { sharing: { failureTimeoutMs: 4 * FAILURE_TIMEOUT_MS }, ...settings },
    });
    await fleet.add(); // Limits are counted by each daemon: this one has used none of it.
    const letters = async () => (await fleet.client.request('dead', {})).letters.length;
    await fleet.publish('a', 'p0');
    await followUntil(fleet.client, 'a', turnsEnded(1));
    for (let n = 1; n < 8; n++) await fleet.publish('a', `p${n}`);
    await until(async () => (await letters()) + postedIds(await entriesOf(fleet.client, 'a')).length >= 8);
    const before = postedIds(await entriesOf(fleet.client, 'a'));
    expect(await letters()).toBe(8 - before.length);
    await (await ownerOf(fleet, 'a')).kill9();
    const body = JSON.stringify({ id: 'of-bob', content: 'hello' });
    await fleet.program.jetstream().publish('parley.in.bob.a', body);
    const entries = await followUntil(fleet.client, 'a', (known) => postedIds(known).includes('of-bob'));
    expect(postedIds(entries)).toEqual([...before, 'of-bob']);
    expect(checkLaws(entries)).toEqual([]);
    expect(await letters()).toBe(8 - before.length);
  });
});
