import { describe, expect, it } from 'vitest';
import { checkLaws } from '../../src/conversation/index.ts';
import { startFleet } from '../support/fleet.ts';
import { shared } from '../support/lifetime.ts';
import { claimants, followUntil, postedIds, said, turnsEnded } from '../support/log.ts';

/**
 * Cases 1, 2 and 5 of docs/spec/cluster.md, with real daemons: one of two is killed at a named step of its work. The claim
 * is in the same append as the message, so no step lies between them. Cases 3, 6, 7: `shared-work.test.ts`.
 */
const isFull = process.env.PARLEY_FULL === '1';
const POINTS = [
  ['case 1: before the message is appended', 'post-received:1'],
  ['case 1: with the append made and not sent', 'before-append:1'],
  ['case 2: with the message and its claim appended, before it acts on them', 'after-append:1'],
  ['case 3: before it asks the model', 'before-model-call:1'],
  ['case 3: with the answer of the model, before that is appended', 'after-model-call:1'],
  ['case 5: with the answer appended', 'after-append:2'],
] as const;
/** In `npm test` one of each case. */
const SAMPLE = POINTS.filter((_, place) => isFull || [0, 2, 4, 5].includes(place));

describe('a kill of one of two daemons', () => {
  const fleet = shared(() => startFleet({ count: 1 }));

  /** Posts into new conversations until the armed daemon has received one and is killed. */
  async function postUntilDead(point: string): Promise<string[]> {
    const armed = await fleet.add({ PARLEY_CRASH_POINTS: point }, '--allow-crash-points');
    const conversations: string[] = [];
    let isDead = false;
    void armed.exited.then(() => {
      isDead = true;
    });
    while (!isDead && conversations.length < 100) {
      const id = `${point.split(':')[0]}-${conversations.length}`;
      await fleet.publish(id, `post-of-${id}`);
      conversations.push(id);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await armed.exited).toBeNull(); // a signal
    return conversations;
  }

  it.each(SAMPLE)('%s: the other daemon continues, and nothing is appended twice', async (_, point) => {
    for (const id of await postUntilDead(point)) {
      const entries = await followUntil(fleet.client, id, turnsEnded(1));
      expect(checkLaws(entries)).toEqual([]);
      expect(said(entries)).toEqual([`post-of-${id}`, 'noted']);
      expect(claimants(entries).length).toBeLessThanOrEqual(2);
    }
  });

  it('case 5: a post that is read again after its answer is settled and starts nothing', async () => {
    const ids = Array.from({ length: 5 }, (_, n) => `again-${n}`);
    for (const id of ids) await fleet.publish('again', id);
    const whole = (known: Parameters<typeof postedIds>[0]) =>
      postedIds(known).length === 5 && turnsEnded(1)(known);
    const before = await followUntil(fleet.client, 'again', whole);
    const manager = await fleet.program.jetstreamManager();
    const record = async () => {
      const query = { last_by_subj: 'parley.settled' };
      const { data } = await manager.streams.getMessage('PARLEY_SETTLED', query);
      return JSON.parse(Buffer.from(data).toString());
    };
    const nothing = { settled: { upTo: 0, open: [] }, before: null, last: null, reader: null };
    const rewound = JSON.stringify({ ...(await record()), ...nothing });
    await fleet.program.jetstream().publish('parley.settled', rewound);
    const last = (await manager.streams.info('PARLEY_IN')).state.last_seq;
    await expect.poll(async () => (await record()).settled.upTo).toBe(last);
    expect(await followUntil(fleet.client, 'again', whole)).toEqual(before);
  });
});
