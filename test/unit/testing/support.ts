import { type TestTeam, type TestTeamOptions, testTeam } from '../../../src/testing/index.ts';
import { untilTestEnds } from '../../support/lifetime.ts';

/** Teams with a configuration of their own; each ends with its test. */

export function agentFile(name: string, tools: readonly string[] = [], more = ''): string {
  return `---\nname: ${name}\ndescription: ${name} of a test\ntools: [${tools.join(', ')}]\n${more}---\nYou are ${name}.\n`;
}

export async function start(options: TestTeamOptions): Promise<TestTeam> {
  return untilTestEnds(await testTeam(options));
}

export const FRONT = { 'agents/front.md': agentFile('Front', ['handoff', 'delegate', 'ask']) };
export const BACK = { 'agents/back.md': agentFile('Back', ['handoff']) };
