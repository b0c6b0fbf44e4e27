import { expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { NOTING } from '../support/project.ts';
import { startGuarded } from '../support/server-users.ts';

/** Alice may answer no approval but those of her own requests. She denies what does not exist, as fast as she can. */
const FLOOD = 60_000;
const USERS = {
  daemon: { role: 'daemon' },
  alice: { role: 'publisher', conversations: ['demo'] },
  bob: { role: 'publisher', conversations: ['demo'] },
};

const project = perTest(() => startGuarded(NOTING, USERS, ...['--store', 'jetstream']));

it('a publisher that answers unknown approvals as fast as it can does not keep others from posting', async () => {
  const alice = await project.connectAs('alice');
  const bob = await project.connectAs('bob');
  const codes = new Set<string>();
  alice.subscribe('_INBOX.alice.flood', {
    callback: (_error, message) => void codes.add(message.json<{ code: string }>().code),
  });
  for (let count = 0; count < FLOOD; count++) {
    const body = JSON.stringify({ approvalId: `none-${count}`, answer: 'deny' });
    alice.publish('parley.api.answer.alice', body, { reply: '_INBOX.alice.flood' });
    if (count % 5_000 === 0) await alice.flush();
  }
  await alice.flush();
  const post = JSON.stringify({ content: 'Hello', id: 'h' });
  const answer = await bob.request('parley.api.post.bob.demo', post, { timeout: 15_000 });
  expect(answer.json()).toMatchObject({ id: 'h' });
  await expect.poll(() => [...codes].sort()).toEqual(['NOT_FOUND', 'RATE_LIMITED']);
  const later = await alice.request('parley.api.answer.alice', '{"approvalId":"x","answer":"deny"}', {
    timeout: 10_000,
  });
  expect(later.json()).toMatchObject({ code: 'NOT_FOUND' });
}, 90_000);
