import { expect, it } from 'vitest';
import { loadYaml, refusalOf } from './folder.ts';

it('a rule of the policy for an agent that does not exist is refused, with the nearest one', async () => {
  const refusal = await refusalOf(
    loadYaml('tools: { policy: [ { agent: dve, tool: shell, allow: false } ] }'),
  );
  expect(refusal).toContain('parley.yaml:1:29: tools.policy[0].agent\n    seen:     "dve"');
  expect(refusal).toContain('did you mean "dev"?');
});

it('a rule or a risk for a tool that nobody offers is pointed out', async () => {
  const { notices } = await loadYaml(
    'models: { default: { provider: scripted } }\ntools: { risk: { fs_wirte: safe, shell: risky }, policy: [ { tool: shel, allow: false } ] }',
  );
  expect(notices).toEqual([
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool fs_wirte; did you mean fs_write\?/),
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool shel; did you mean shell\?/),
  ]);
});
