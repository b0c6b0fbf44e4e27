import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from './daemon.mjs';

let daemon;
before(async () => {
  daemon = await startDaemon();
});
after(() => daemon?.stop());

test('the desk finds an order', async () => {
  const answer = await daemon.parley('say', 'ann', 'Where is order 1002?', '--wait');
  assert.match(answer, /two cups for 18 euros, on its way/);
});

test('a refund waits for the approval of a person', async () => {
  const answer = await daemon.parley('say', 'bob', 'I want my money back for 1001.', '--wait');
  assert.doesNotMatch(answer, /is refunded/);
  const [, id] = /^(\w+) +bob +refunds wants to call/m.exec(await daemon.parley('approvals')) ?? [];
  await daemon.parley('approve', id);
  assert.match(
    await daemon.parley('say', 'bob', 'Where is order 1001?', '--to', 'desk', '--wait'),
    /refunded/,
  );
});
