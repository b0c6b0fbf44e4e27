import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLaws } from '../../src/conversation/index.ts';
import { layCable } from '../support/cable.ts';
import { type Fleet, type FleetOptions, startFleet } from '../support/fleet.ts';
import { claimants, entriesOf, followUntil, postedIds, turnsEnded } from '../support/log.ts';

/** Cases 9 and 10 of docs/spec/cluster.md: failures of the server of several daemons. */
describe('a server failure with daemons that share their logs', () => {
  let fleet: Fleet;
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    await fleet?.close();
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });
  const start = async (options: FleetOptions) => {
    fleet = await startFleet(options);
  };

  /** Posts in order into these conversations, each repeated with its id until the stream has it, until stopped. */
  function keepPosting(conversations: readonly string[]) {
    let isOver = false;
    const posted = new Map(conversations.map((id) => [id, [] as string[]]));
    const lanes = conversations.map(async (conversation) => {
      while (!isOver) {
        const id = `${conversation}-${posted.get(conversation)?.length}`;
        await fleet.publish(conversation, id, id).then(
          () => posted.get(conversation)?.push(id),
          () => undefined,
        );
        await delay(50);
      }
    });
    return async () => {
      isOver = true;
      await Promise.all(lanes);
      return posted;
    };
  }

  async function expectAll(posted: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const [conversation, ids] of posted) {
      const entries = await followUntil(
        fleet.client,
        conversation,
        (known) => postedIds(known).length >= ids.length && turnsEnded(1)(known),
      );
      expect(postedIds(entries)).toEqual(ids);
      expect(checkLaws(entries)).toEqual([]);
      expect(claimants(entries)).toHaveLength(1);
    }
  }

  it('case 9: after the server is killed under load, no daemon takes over from one that reconnects later', async () => {
    const failureTimeoutMs = 3_000;
    await start({
      count: 0,
      settings: { sharing: { failureTimeoutMs } },
      handler: ({ json }) =>
        json.messages?.at(-1)?.content === 'long' ? { text: 'half', hang: 'after-text' } : { text: 'noted' },
    });
    const cable = await layCable(fleet.nats.url);
    cleanups.push(() => cable.close());
    await fleet.add({}, '--nats', cable.url.replace('http:', 'nats:'));
    await fleet.publish('long', 'long');
    await fleet.provider.waitForRequests(1);
    await fleet.add();
    const stop = keepPosting(['a', 'b', 'c', 'd', 'e', 'f']);
    await delay(500);
    await fleet.nats.kill9();
    await fleet.nats.restart();
    await delay(500);
    await fleet.nats.kill9();
    cable.cut();
    await delay(failureTimeoutMs * 1.5);
    await fleet.nats.restart();
    await delay(failureTimeoutMs / 3);
    cable.restore();
    await delay(failureTimeoutMs * 1.5); // long enough for a takeover, if there were one
    await expectAll(await stop());
    const long = await entriesOf(fleet.client, 'long');
    expect(claimants(long)).toHaveLength(1);
    const asked = fleet.provider.requests.filter(({ json }) => json.messages?.at(-1)?.content === 'long');
    expect(asked).toHaveLength(1);
  });

  it('case 10: daemons continue on an image of the store that was taken while the server was frozen', async () => {
    await start({ count: 2 });
    const stop = keepPosting(['a', 'b', 'c']);
    await delay(1_000);
    fleet.nats.freeze();
    const store = join(fleet.nats.directory, 'store');
    await cp(store, `${store}-image`, { recursive: true });
    await fleet.nats.kill9();
    await rm(store, { recursive: true });
    await rename(`${store}-image`, store);
    await fleet.nats.restart();
    await fleet.publish('d', 'd-0').catch(() => undefined);
    await expectAll(await stop());
  });
});
