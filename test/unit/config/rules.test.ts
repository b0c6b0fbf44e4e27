import { expect, it } from 'vitest';
import { loadYaml, refusalOf } from './folder.ts';

it('a policy rule for an unknown agent is refused, with the most similar slug', async () => {
  const refusal = await refusalOf(
    loadYaml('tools: { policy: [ { agent: dve, tool: shell, allow: false } ] }'),
  );
  expect(refusal).toContain('parley.yaml:1:29: tools.policy[0].agent\n    seen:     "dve"');
  expect(refusal).toContain('did you mean "dev"?');
});

it('a rule or risk for a tool that does not exist gets a notice', async () => {
  const { notices } = await loadYaml(
    'models: { default: { provider: scripted } }\ntools: { risk: { fs_wirte: safe, shell: risky }, policy: [ { tool: shel, allow: false } ] }',
  );
  expect(notices).toEqual([
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool fs_wirte; did you mean fs_write\?/),
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool shel; did you mean shell\?/),
  ]);
});

it.each([
  ['^git status', '^git status$'],
  ['git status$', '^git status$'],
  ['git', '^git$'],
  ['', '^$'],
  ['^a|b$', '^(a|b)$'],
  ['^a$|^b$', '^(a$|^b)$'],
  ['^cost\\$', '^cost\\$$'],
  ['^[ab$]', '^[ab$]$'],
  ['^(a|b$)', '^(a|b$)$'],
])('a rule that allows %j is refused: the pattern of the whole argument is %j', async (pattern, whole) => {
  const rule = { tool: 'shell', match: { command: pattern }, allow: true };
  const refusal = await refusalOf(loadYaml(JSON.stringify({ tools: { policy: [rule] } })));
  expect(refusal).toContain('tools.policy[0].match.command');
  const expected = refusal.split('\n').filter((line) => line.includes('expected:'));
  expect(expected.map((line) => line.endsWith(`, such as ${whole}`))).toEqual([true]);
});

it('a pattern of the whole argument is accepted, and any pattern in a rule that forbids', async () => {
  const patterns = ['^git status$', '^(a|b)$', '^[|]$', '^a\\|b$', '^npm (test|run (lint|build))$'];
  const rules = [
    ...patterns.map((command) => ({ tool: 'shell', match: { command }, allow: true })),
    { tool: 'shell', match: { command: 'rm' }, allow: false },
  ];
  expect((await loadYaml(JSON.stringify({ tools: { policy: rules } }))).tools.policy).toEqual(rules);
});
