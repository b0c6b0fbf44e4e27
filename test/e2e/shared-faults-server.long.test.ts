import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { layCable } from '../support/cable.ts';
import { entriesOf, followUntil, turnsEnded } from '../support/daemon.ts';
import {
  type Crowd,
  type CrowdOptions,
  claimants,
  faultsOf,
  postedIds,
  startCrowd,
} from '../support/daemons.ts';

/** Cases 9 and 10 of docs/spec/cluster.md: failures of the server of several daemons. */
describe('a server failure with daemons that share their logs', () => {
  let crowd: Crowd;
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    await crowd?.close();
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });
  const stage = async (options: CrowdOptions) => {
    crowd = await startCrowd(options);
  };

  /** Posts in order into these conversations, each repeated with its id until the stream has it, until stopped. */
  function keepPosting(conversations: readonly string[]) {
    let isOver = false;
    const posted = new Map(conversations.map((id) => [id, [] as string[]]));
    const lanes = conversations.map(async (conversation) => {
      while (!isOver) {
        const id = `${conversation}-${posted.get(conversation)?.length}`;
        await crowd.publish(conversation, id, id).then(
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
        crowd.client,
        conversation,
        (known) => postedIds(known).length >= ids.length && turnsEnded(1)(known),
      );
      expect(postedIds(entries)).toEqual(ids);
      expect(faultsOf(entries)).toEqual([]);
      expect(claimants(entries)).toHaveLength(1);
    }
  }

  it('case 9: after the server is killed under load, no daemon takes over from one that reconnects later', async () => {
    const silenceMs = 3_000;
    await stage({
      count: 0,
      settings: { sharing: { silenceMs } },
      handler: ({ json }) =>
        json.messages?.at(-1)?.content === 'long' ? { text: 'half', hang: 'after-text' } : { text: 'noted' },
    });
    const cable = await layCable(crowd.nats.url);
    cleanups.push(() => cable.close());
    await crowd.add({}, '--nats', cable.url.replace('http:', 'nats:'));
    await crowd.publish('long', 'long');
    await crowd.provider.waitForRequests(1);
    await crowd.add();
    const stop = keepPosting(['a', 'b', 'c', 'd', 'e', 'f']);
    await delay(500);
    await crowd.nats.kill9();
    await crowd.nats.restart();
    await delay(500);
    await crowd.nats.kill9();
    cable.cut();
    await delay(silenceMs * 1.5);
    await crowd.nats.restart();
    await delay(silenceMs / 3);
    cable.restore();
    await delay(silenceMs * 1.5); // long enough for a takeover, if there were one
    await expectAll(await stop());
    const long = await entriesOf(crowd.client, 'long');
    expect(claimants(long)).toHaveLength(1);
    const asked = crowd.provider.requests.filter(({ json }) => json.messages?.at(-1)?.content === 'long');
    expect(asked).toHaveLength(1);
  });

  it('case 10: daemons continue on an image of the store that was taken while the server was frozen', async () => {
    await stage({ count: 2 });
    const stop = keepPosting(['a', 'b', 'c']);
    await delay(1_000);
    crowd.nats.freeze();
    const store = join(crowd.nats.directory, 'store');
    await cp(store, `${store}-image`, { recursive: true });
    await crowd.nats.kill9();
    await rm(store, { recursive: true });
    await rename(`${store}-image`, store);
    await crowd.nats.restart();
    await crowd.publish('d', 'd-0').catch(() => undefined);
    await expectAll(await stop());
  });
});
