import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from './daemon.mjs';

let daemon;
before(async () => {
  daemon = await startDaemon();
});
after(() => daemon?.stop());

test('the assistant answers from the notes', async () => {
  const answer = await daemon.parley('say', 'hours', 'What are your opening hours?', '--wait');
  assert.match(answer, /Saturday from 10 to 14/);
});
