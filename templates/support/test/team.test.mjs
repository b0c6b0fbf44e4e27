import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectToolCall, testTeam } from 'parleyd/testing';

// The real team and its tools, in memory. The answers come from the script, whatever model is configured.
let team;
before(async () => {
  team = await testTeam({ config: 'config', models: 'config/script.yaml', mcp: true });
});
after(() => team?.stop());

test('the desk finds an order', async () => {
  const { text } = await team.say('Where is order 1002?', { conversation: 'ann' });
  assert.match(text, /two cups for 18 euros, on its way/);
});

test('a refund waits for the approval of a person', async () => {
  const { text } = await team.say('I want my money back for 1001.', { conversation: 'bob' });
  assert.doesNotMatch(text, /is refunded/);
  await team.approve({ conversation: 'bob', tool: 'mcp__orders__refund' });
  expectToolCall(team, { conversation: 'bob', tool: 'mcp__orders__refund', result: 'refunded' });
});
