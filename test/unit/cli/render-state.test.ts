import { expect, it } from 'vitest';
import { renderState } from '../../../src/cli/render/state.ts';

it.each([
  ['stopped', '; dev is stopped: the run waits until it is resumed'],
  ['waiting', '; dev begins with the next message'],
])('the line of a conversation shows what its run waits for if its agent is %s', (status, said) => {
  const run = { runId: 'r', workflow: 'w', node: 'build', agent: 'dev', awaitsInput: true };
  const detail = { id: 'c', phase: 'chat', mode: 'run', activeAgent: null, run, agents: { dev: { status } } };
  const line = renderState(detail as unknown as Parameters<typeof renderState>[0]);
  expect(line).toBe(`c: phase chat, mode run, no agent has the floor, run of w at build${said}`);
});
