import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectTurn, testTeam } from 'parleyd/testing';

// The real team and its tools, in memory. The answers come from the script, whatever model is configured.
let team;
before(async () => {
  team = await testTeam({ config: 'config', models: 'config/script.yaml' });
});
after(() => team?.stop());

test('the workflow returns an article to the writer until the review passes', async () => {
  const { answers } = await team.say('Write about delivery.', { workflow: 'article' });
  expectTurn(team, { agent: 'writer', text: 'Corrected: from 40 euros' });
  assert.match(answers.at(-1).text, /Passed\./);
});
