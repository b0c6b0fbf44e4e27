import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { testTeam } from 'parleyd/testing';

// The real team and its tools, in memory. The answers come from the script, whatever model is configured.
let team;
before(async () => {
  team = await testTeam({ config: 'config', models: 'config/script.yaml' });
});
after(() => team?.stop());

test('the assistant answers from the notes', async () => {
  const { text } = await team.say('What are your opening hours?');
  assert.match(text, /Saturday from 10 to 14/);
});

test('the assistant sends the notes as a file', async () => {
  const { entries } = await team.say('May I have the notes as a file?');
  const sent = entries.flatMap((entry) => (entry.role === 'assistant' ? (entry.parts ?? []) : []));
  assert.deepEqual(sent.at(-1).name, 'shop.md');
});
