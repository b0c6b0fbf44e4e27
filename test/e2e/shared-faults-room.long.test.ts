import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { type Fleet, type FleetOptions, startFleet } from '../support/fleet.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { claimants, entriesOf, followUntil, postedIds, said, turnsEnded } from '../support/log.ts';
import { until } from '../support/steps.ts';

/** Case 11 of docs/spec/cluster.md: the stream of posts or the stream of logs is full. */
describe('full streams of daemons that share their logs', () => {
  let fleet: Fleet;
  const start = async (options: FleetOptions) => {
    fleet = untilTestEnds(await startFleet(options));
  };

  /** Space for this many further messages; null: unlimited. */
  async function leaveRoom(stream: string, messages: number | null): Promise<void> {
    const manager = await fleet.program.jetstreamManager();
    const { config, state } = await manager.streams.info(stream);
    await manager.streams.update(stream, {
      ...config,
      max_msgs: messages === null ? -1 : state.messages + messages,
    });
  }

  it('case 11: accepted posts are kept while the logs are full, and appended in order after that', async () => {
    let speak: () => void = () => undefined;
    const spoken = new Promise<void>((resolve) => {
      speak = resolve;
    });
    await start({
      count: 2,
      handler: async (_, count) => {
        if (count === 0) await spoken;
        return { text: 'noted' };
      },
    });
    await fleet.publish('demo', 'm0');
    await fleet.provider.waitForRequests(1);
    await leaveRoom('PARLEY_LOG', 0);
    speak(); // an answer that cannot be appended
    for (let n = 1; n <= 5; n++) await fleet.publish('demo', `m${n}`);
    const patient = await connect({ url: fleet.nats.url });
    const refused = patient.post({ conversation: 'other', publisher: 'alice', id: 'refused', content: 'x' });
    await expect(refused).rejects.toMatchObject({ code: 'STORE_FULL' });
    await fleet.publish('other', 'waits');
    expect(postedIds(await entriesOf(fleet.client, 'demo'))).toEqual(['m0']);
    await leaveRoom('PARLEY_LOG', null);
    await patient.close();
    const isWhole = (known: Parameters<typeof postedIds>[0]) =>
      postedIds(known).length === 6 && turnsEnded(2)(known);
    const demo = await followUntil(fleet.client, 'demo', isWhole);
    expect(postedIds(demo)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4', 'm5']);
    expect(said(demo).filter((words) => words === 'noted').length).toBeGreaterThanOrEqual(2);
    const other = await followUntil(fleet.client, 'other', turnsEnded(1));
    expect(postedIds(other)).toEqual(['waits']);
    for (const entries of [demo, other]) {
      expect(checkLaws(entries)).toEqual([]);
      expect(claimants(entries)).toHaveLength(1);
    }
  });

  it('case 11: a full stream of posts loses no accepted post, keeps no refused one, and is freed', async () => {
    await start({ count: 2 });
    await fleet.publish('demo', 'first');
    await leaveRoom('PARLEY_IN', 12);
    const content = 'x'.repeat(5_000);
    const publish = (id: string) =>
      fleet.program.jetstream().publish('parley.in.alice.demo', JSON.stringify({ id, content }));
    const ids = Array.from({ length: 60 }, (_, n) => `m${n}`);
    const taken: string[] = [];
    const refused: string[] = [];
    await Promise.all(
      ids.map((id) =>
        publish(id).then(
          () => taken.push(id),
          (error) => {
            expect(error.api_error?.err_code).toBe(10077);
            refused.push(id);
          },
        ),
      ),
    );
    expect(refused.length).toBeGreaterThan(0);
    await followUntil(
      fleet.client,
      'demo',
      (known) => postedIds(known).length > taken.length && turnsEnded(1)(known),
    );
    const [again = ''] = refused;
    await until(() =>
      publish(again).then(
        () => true,
        () => delay(50).then(() => false),
      ),
    );
    const entries = await followUntil(fleet.client, 'demo', (known) => postedIds(known).includes(again));
    expect(postedIds(entries).sort()).toEqual(['first', again, ...taken].sort());
    expect(checkLaws(entries)).toEqual([]);
  });
});
