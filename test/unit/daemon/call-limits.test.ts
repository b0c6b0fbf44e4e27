import { expect, it } from 'vitest';
import { perTest } from '../../support/lifetime.ts';
import { ofType } from '../../support/log.ts';
import { createDaemon, postCommand } from './daemon.ts';

/** A call may use at least 1,000 tokens, its longest answer (`PROFILE`); two are above the limit. */
const limits = { tokensPerConversation: 1_900 };
const daemon = perTest(() => createDaemon({ limits }));

it('L15: calls that start together count together', async () => {
  const worker = await daemon.workers.use('demo');
  await worker.submit(postCommand('m1', 'begin', ['pm', 'dev', 'qa']));
  await expect.poll(() => ofType(worker.entries(), 'turn-ended').length).toBe(2);
  expect(daemon.calls.map(({ request }) => request.agent)).toEqual(['pm']);
  expect(ofType(worker.entries(), 'limit-reached').map(({ agent }) => agent)).toEqual(['dev', 'qa']);
  daemon.calls[0]?.answer('done');
  await expect.poll(() => ofType(worker.entries(), 'turn-ended').at(-1)?.outcome).toBe('completed');
});
