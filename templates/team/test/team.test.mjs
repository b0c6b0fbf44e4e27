import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { startDaemon } from './daemon.mjs';

let daemon;
let counter;
before(async () => {
  daemon = await startDaemon();
});
after(async () => {
  counter?.kill();
  await daemon?.stop();
});

test('the Lead searches the notes and lets the Writer write', async () => {
  const answer = await daemon.parley('say', 'hours', 'Please write about our opening hours', '--wait');
  assert.match(answer, /agrees with the notes: .*Saturday from 10 to 14/);
});

test('the workflow ends after the check has passed', async () => {
  await daemon.parley('mode', 'news', 'run', '--workflow', 'announce');
  const answer = await daemon.parley('say', 'news', 'We open on Saturdays.', '--wait');
  assert.match(answer, /Passed: the notes contain the same hours/);
});

test('the Counter answers from its own process', async () => {
  const env = { ...process.env, PARLEY_DATA: daemon.data };
  counter = spawn(process.execPath, ['programs/counter.mjs'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await Promise.race([once(counter.stdout, 'data'), once(counter, 'exit')]);
  assert.match(String(line), /ready/);
  const answer = await daemon.parley('say', 'words', '@counter One two. Three four five.', '--wait');
  assert.match(answer, /5 words in 2 sentences/);
});
