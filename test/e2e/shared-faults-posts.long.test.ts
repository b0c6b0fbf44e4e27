import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { followUntil, turnsEnded } from '../support/daemon.ts';
import {
  type Crowd,
  type CrowdOptions,
  claimants,
  faultsOf,
  postedIds,
  said,
  startCrowd,
} from '../support/daemons.ts';
import { ofType } from '../support/team.ts';

/** Tests with six sequential starts run with `npm run test:full`. Unit tests cover the same rules. */
const isFull = process.env.PARLEY_FULL === '1';

/** Cases 12 to 15 of docs/spec/cluster.md: repeated posts, posts that kill a daemon, and a lost position. */
describe('posts to daemons that share their logs', () => {
  let crowd: Crowd;
  afterEach(() => crowd?.close());
  const stage = async (options: CrowdOptions) => {
    crowd = await startCrowd(options);
  };
  const lettersOf = async (client: ParleyClient) => (await client.request('dead', {})).letters;

  it('case 12: a message that is posted again is kept once: at once, later, and after all daemons restarted', async () => {
    await stage({ count: 2 });
    const first = await crowd.publish('demo', 'same', 'same');
    expect(await crowd.publish('demo', 'same', 'same')).toBe(first); // the server still knows it
    await delay(300);
    expect(await crowd.publish('demo', 'same', 'same')).toBeGreaterThan(first); // and now no longer
    await followUntil(crowd.client, 'demo', turnsEnded(1));
    for (const daemon of crowd.daemons) await daemon.kill9();
    await crowd.nats.kill9();
    await crowd.nats.restart();
    await Promise.all([crowd.add(), crowd.add()]);
    expect(await crowd.publish('demo', 'same', 'same')).toBeGreaterThan(first);
    const again = { conversation: 'demo', publisher: 'alice', id: 'same', content: 'same' };
    expect(await crowd.client.post(again)).toMatchObject({ duplicate: true });
    await crowd.publish('demo', 'next');
    const entries = await followUntil(crowd.client, 'demo', turnsEnded(2));
    expect(postedIds(entries)).toEqual(['same', 'next']);
    expect(said(entries)).toEqual(['same', 'noted', 'next', 'noted']);
    expect(faultsOf(entries)).toEqual([]);
  });

  /**
   * Starts another daemon that ends itself at that point, perhaps before it is ready. Resolves when it has ended.
   */
  const addDoomed = (point: string): Promise<unknown> =>
    crowd.add({ PARLEY_CRASH_POINTS: point }, '--allow-crash-points').then(
      (daemon) => daemon.exited,
      () => null,
    );

  it.skipIf(!isFull)(
    'case 13: a post that kills each daemon that decides on it is given up after five attempts',
    async () => {
      await stage({ count: 1 });
      await crowd.daemons[0]?.stop(); // it has created the stream
      await crowd.publish('poisoned', 'poison');
      await crowd.publish('poisoned', 'next');
      const lives = async (count: number) => {
        for (let n = 0; n < count; n++) expect(await addDoomed('before-decision@poisoned')).toBeNull();
      };
      await Promise.all([lives(3), lives(2)]); // As supervisors do: a new daemon for each that died.
      await crowd.add();
      await expect
        .poll(() => lettersOf(crowd.client), { timeout: 30_000 })
        .toMatchObject([
          { id: 'poison', code: 'DECISION_FAILED', reason: expect.stringContaining('5 times') },
        ]);
      const entries = await followUntil(crowd.client, 'poisoned', turnsEnded(1));
      expect(postedIds(entries)).toEqual(['next']);
    },
  );

  it.skipIf(!isFull)(
    'case 13: a turn that kills each daemon is given up after five attempts, with a dead letter',
    async () => {
      await stage({
        count: 1,
        handler: ({ json }) =>
          json.messages?.at(-1)?.content === 'deadly'
            ? { text: 'half', hang: 'after-text' }
            : { text: 'noted' },
      });
      const [first] = crowd.daemons;
      await crowd.publish('demo', 'deadly');
      await followUntil(crowd.client, 'demo', (known) => known.some(({ type }) => type === 'turn-started'));
      await first?.kill9();
      for (let dead = 2; dead <= 6; dead++) expect(await addDoomed('before-model-call')).toBeNull();
      await crowd.add();
      const entries = await followUntil(crowd.client, 'demo', turnsEnded(1));
      expect(ofType(entries, 'limit-reached')).toMatchObject([{ limit: 'attempts' }]);
      expect(ofType(entries, 'turn-ended')).toMatchObject([{ outcome: 'failed' }]);
      await expect
        .poll(() => lettersOf(crowd.client))
        .toMatchObject([{ id: 'deadly', code: 'TOO_MANY_ATTEMPTS' }]);
      await crowd.publish('demo', 'next');
      const after = await followUntil(crowd.client, 'demo', turnsEnded(2));
      expect(said(after)).toEqual(['deadly', 'next', 'noted']);
    },
  );

  it('case 14: a turn whose model hangs ends at its deadline, and others are answered meanwhile', async () => {
    await stage({
      count: 2,
      settings: { limits: { turnSeconds: 3 } },
      handler: ({ json }) =>
        json.messages?.at(-1)?.content === 'hang' ? { text: 'half', hang: 'after-text' } : { text: 'noted' },
    });
    await crowd.publish('hung', 'hang');
    await crowd.provider.waitForRequests(1);
    for (const id of ['a', 'b', 'c', 'd']) {
      await crowd.publish(id, id);
      expect(said(await followUntil(crowd.client, id, turnsEnded(1)))).toEqual([id, 'noted']);
    }
    const hung = await followUntil(crowd.client, 'hung', turnsEnded(1));
    expect(ofType(hung, 'limit-reached')).toMatchObject([{ limit: 'turnSeconds' }]);
    expect(faultsOf(hung)).toEqual([]);
    await crowd.publish('hung', 'next');
    expect(said(await followUntil(crowd.client, 'hung', turnsEnded(2))).slice(-2)).toEqual(['next', 'noted']);
  });

  it('case 15: nothing is lost if the consumer position of the posts is deleted repeatedly', async () => {
    // No takeover, however slow the machine is: the conversation must stay with its first owner.
    await stage({ count: 2, settings: { sharing: { silenceMs: 10_000 } } });
    const manager = await crowd.program.jetstreamManager();
    const ids: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (let n = 0; n < 5; n++) {
        ids.push(`m${ids.length}`);
        if (n === 4) await manager.consumers.delete('PARLEY_IN', 'parley').catch(() => undefined); // a busy one
        await crowd.publish('demo', ids.at(-1) ?? '');
      }
    }
    const entries = await followUntil(
      crowd.client,
      'demo',
      (known) => postedIds(known).length >= ids.length && turnsEnded(1)(known),
    );
    expect(postedIds(entries)).toEqual(ids);
    expect(faultsOf(entries)).toEqual([]);
    expect(claimants(entries)).toHaveLength(1);
  });
});
