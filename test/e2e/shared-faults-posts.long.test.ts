import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { type Fleet, type FleetOptions, startFleet } from '../support/fleet.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { claimants, followUntil, ofType, postedIds, said, turnsEnded } from '../support/log.ts';

/** Tests with six sequential starts run with `npm run test:full`. Unit tests cover the same rules. */
const isFull = process.env.PARLEY_FULL === '1';

/** Cases 12 to 15 of docs/spec/cluster.md: repeated posts, turns that kill a daemon, and a lost position. */
describe('posts to daemons that share their logs', () => {
  let fleet: Fleet;
  const start = async (options: FleetOptions) => {
    fleet = untilTestEnds(await startFleet(options));
  };
  const lettersOf = async (client: ParleyClient) => (await client.request('dead', {})).letters;

  it('case 12: a message that is posted again is kept once: at once, later, and after all daemons restarted', async () => {
    await start({ count: 2 });
    const first = await fleet.publish('demo', 'same', 'same');
    expect(await fleet.publish('demo', 'same', 'same')).toBe(first); // the server still knows it
    await delay(300);
    expect(await fleet.publish('demo', 'same', 'same')).toBeGreaterThan(first); // and now no longer
    await followUntil(fleet.client, 'demo', turnsEnded(1));
    for (const daemon of fleet.daemons) await daemon.kill9();
    await fleet.nats.kill9();
    await fleet.nats.restart();
    await Promise.all([fleet.add(), fleet.add()]);
    expect(await fleet.publish('demo', 'same', 'same')).toBeGreaterThan(first);
    const again = { conversation: 'demo', publisher: 'alice', id: 'same', content: 'same' };
    expect(await fleet.client.post(again)).toMatchObject({ duplicate: true });
    await fleet.publish('demo', 'next');
    const entries = await followUntil(fleet.client, 'demo', turnsEnded(2));
    expect(postedIds(entries)).toEqual(['same', 'next']);
    expect(said(entries)).toEqual(['same', 'noted', 'next', 'noted']);
    expect(checkLaws(entries)).toEqual([]);
  });

  /**
   * Starts another daemon that ends itself at that point, perhaps before it is ready. Resolves when it has ended.
   */
  const addDoomed = (point: string): Promise<unknown> =>
    fleet.add({ PARLEY_CRASH_POINTS: point }, '--allow-crash-points').then(
      (daemon) => daemon.exited,
      () => null,
    );

  it.skipIf(!isFull)(
    'case 13: a turn that kills each daemon is given up after five attempts, with a dead letter',
    async () => {
      await start({
        count: 1,
        handler: ({ json }) =>
          json.messages?.at(-1)?.content === 'deadly'
            ? { text: 'half', hang: 'after-text' }
            : { text: 'noted' },
      });
      const [first] = fleet.daemons;
      await fleet.publish('demo', 'deadly');
      await followUntil(fleet.client, 'demo', (known) => known.some(({ type }) => type === 'turn-started'));
      await first?.kill9();
      for (let dead = 2; dead <= 6; dead++) expect(await addDoomed('before-model-call')).toBeNull();
      await fleet.add();
      const entries = await followUntil(fleet.client, 'demo', turnsEnded(1));
      expect(ofType(entries, 'limit-reached')).toMatchObject([{ limit: 'attempts' }]);
      expect(ofType(entries, 'turn-ended')).toMatchObject([{ outcome: 'failed' }]);
      await expect
        .poll(() => lettersOf(fleet.client))
        .toMatchObject([{ id: 'deadly', code: 'TOO_MANY_ATTEMPTS' }]);
      await fleet.publish('demo', 'next');
      const after = await followUntil(fleet.client, 'demo', turnsEnded(2));
      expect(said(after)).toEqual(['deadly', 'next', 'noted']);
    },
  );

  it('case 14: a turn whose model hangs ends at its deadline, and others are answered meanwhile', async () => {
    await start({
      count: 2,
      settings: { limits: { turnSeconds: 3 } },
      handler: ({ json }) =>
        json.messages?.at(-1)?.content === 'hang' ? { text: 'half', hang: 'after-text' } : { text: 'noted' },
    });
    await fleet.publish('hung', 'hang');
    await fleet.provider.waitForRequests(1);
    for (const id of ['a', 'b', 'c', 'd']) {
      await fleet.publish(id, id);
      expect(said(await followUntil(fleet.client, id, turnsEnded(1)))).toEqual([id, 'noted']);
    }
    const hung = await followUntil(fleet.client, 'hung', turnsEnded(1));
    expect(ofType(hung, 'limit-reached')).toMatchObject([{ limit: 'turnSeconds' }]);
    expect(checkLaws(hung)).toEqual([]);
    await fleet.publish('hung', 'next');
    expect(said(await followUntil(fleet.client, 'hung', turnsEnded(2))).slice(-2)).toEqual(['next', 'noted']);
  });

  it('case 15: nothing is lost if the record of settled posts is deleted repeatedly', async () => {
    // No takeover, however slow the machine is: the conversation must stay with its first owner.
    await start({ count: 2, settings: { sharing: { failureTimeoutMs: 10_000 } } });
    const manager = await fleet.program.jetstreamManager();
    const ids: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 5; n++) {
        ids.push(`m${ids.length}`);
        if (n === 4) await manager.streams.delete('PARLEY_SETTLED').catch(() => undefined);
        await fleet.publish('demo', ids.at(-1) ?? '');
      }
    }
    const entries = await followUntil(
      fleet.client,
      'demo',
      (known) => postedIds(known).length >= ids.length && turnsEnded(1)(known),
    );
    expect(postedIds(entries)).toEqual(ids);
    expect(checkLaws(entries)).toEqual([]);
    expect(claimants(entries)).toHaveLength(1);
  });
});
