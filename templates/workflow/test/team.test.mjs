import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from './daemon.mjs';

let daemon;
before(async () => {
  daemon = await startDaemon();
});
after(() => daemon?.stop());

test('the workflow returns an article to the writer until the review passes', async () => {
  await daemon.parley('mode', 'news', 'run', '--workflow', 'article');
  const answer = await daemon.parley('say', 'news', 'Write about delivery.', '--wait');
  assert.match(answer, /The limit is wrong[\s\S]*Corrected: from 40 euros[\s\S]*Passed\./);
});
