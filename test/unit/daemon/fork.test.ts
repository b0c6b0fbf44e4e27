import { expect, it } from 'vitest';
import { perTest } from '../../support/lifetime.ts';
import { ofType } from '../../support/log.ts';
import { createDaemon } from './daemon.ts';

const daemon = perTest(() => createDaemon());

it.each(['demo', 'logs', 'tool-results'])(
  'the copy of the conversation %s names its own large outputs',
  async (from) => {
    await daemon.request('post', { conversation: from, publisher: 'alice', content: 'go' });
    const text = 'word '.repeat(300_000); // becomes a file
    daemon.calls[0]?.answer(text);
    await daemon.workers.idle();
    const forked = await daemon.request('fork', { conversation: from, as: 'copy', publisher: 'alice' });
    expect(forked).toMatchObject({ ok: true });
    const answer = ofType(await daemon.entries('copy'), 'message').find(({ role }) => role === 'assistant');
    expect(answer?.fullOutputPath).toBe(`@state/logs/tool-results/copy/${answer?.id}.json`);
    expect(await daemon.store.toolRecords.readOutput('copy', answer?.id ?? '')).toBe(text);
  },
);

it('the copy has the stored arguments of a call, too', async () => {
  await daemon.request('post', { conversation: 'demo', publisher: 'alice', content: 'go' });
  const given = JSON.stringify({ text: 'word '.repeat(300_000) }); // become a file
  daemon.calls[0]?.answer(null, [{ id: 'c', name: 'write', arguments: given }]);
  await expect.poll(() => daemon.calls.length).toBe(2);
  daemon.calls[1]?.answer('I could not.');
  await daemon.workers.idle();
  await daemon.request('fork', { conversation: 'demo', as: 'copy', publisher: 'alice' });
  const called = ofType(await daemon.entries('copy'), 'message').flatMap(
    ({ tool_calls }) => tool_calls ?? [],
  );
  const [, id = ''] = /([\w-]+)\.json/.exec(called[0]?.function.arguments ?? '') ?? [];
  expect(await daemon.store.toolRecords.readOutput('copy', id)).toBe(given);
});
