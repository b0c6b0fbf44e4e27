import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectToolCall, expectTurn, testTeam } from 'parleyd/testing';
import { count } from '../programs/count.mjs';

// The real team and its tools, in memory. The answers come from the script, whatever model is configured.
let team;
before(async () => {
  team = await testTeam({
    config: 'config',
    models: { default: 'config/script.yaml', counter: ({ last }) => count(last) },
  });
});
after(() => team?.stop());

test('the Lead searches the notes and lets the Writer write', async () => {
  const { text } = await team.say('Please write about our opening hours', { conversation: 'hours' });
  expectToolCall(team, { conversation: 'hours', agent: 'lead', tool: 'delegate' });
  assert.match(text, /agrees with the notes: .*Saturday from 10 to 14/);
});

test('the workflow ends after the check has passed', async () => {
  const { text } = await team.say('We open on Saturdays.', { conversation: 'news', workflow: 'announce' });
  assert.match(text, /Passed: the notes contain the same hours/);
});

test('a message to the Counter goes to its program', async () => {
  await team.say('@counter One two. Three four five.', { conversation: 'words' });
  expectTurn(team, { conversation: 'words', agent: 'counter', text: '5 words in 2 sentences' });
});
