import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach } from 'vitest';
import { type TestTeam, type TestTeamOptions, testTeam } from '../../../src/testing/index.ts';

/** Teams with a configuration of their own; each ends with its test. */

const teams: TestTeam[] = [];
const folders: string[] = [];

afterEach(async () => {
  await Promise.all(teams.splice(0).map((team) => team.stop()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

/** Writes files below a new folder; returns the folder. */
export async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-team-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

export function agentFile(name: string, tools: readonly string[] = [], more = ''): string {
  return `---\nname: ${name}\ndescription: ${name} of a test\ntools: [${tools.join(', ')}]\n${more}---\nYou are ${name}.\n`;
}

export async function start(options: TestTeamOptions): Promise<TestTeam> {
  const team = await testTeam(options);
  teams.push(team);
  return team;
}

export const FRONT = { 'agents/front.md': agentFile('Front', ['handoff', 'delegate', 'ask']) };
export const BACK = { 'agents/back.md': agentFile('Back', ['handoff']) };
