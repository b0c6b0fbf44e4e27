import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { openProject, type Project } from '../support/project.ts';

const EXAMPLE = new URL('../../examples/team', import.meta.url).pathname;

/** Answers and calls by agent: agents that work side by side may append in another order. */
function answersOf(entries: readonly Entry[]): Record<string, unknown[]> {
  const answers = entries.flatMap((entry) =>
    entry.type === 'message' && entry.role === 'assistant' ? [entry] : [],
  );
  const agents = [...new Set(answers.map(({ author }) => author.id))];
  const substance = ({ content, tool_calls: calls }: (typeof answers)[number]) => [
    content,
    calls?.map((call) => call.function),
  ];
  return Object.fromEntries(
    agents.map((agent) => [agent, answers.filter(({ author }) => author.id === agent).map(substance)]),
  );
}

describe('parley record', () => {
  const open: Project[] = [];
  const folders: string[] = [];
  afterEach(async () => {
    for (const project of open.splice(0)) await project.close();
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
  });

  /** Runs the posts of the example with this configuration; the project is still running. */
  async function run(config: string): Promise<{ readonly project: Project; readonly entries: Entry[] }> {
    const project = await openProject();
    open.push(project);
    await project.up('--config', config);
    for (const post of ['Please build a link shortener', 'yes, it must'])
      expect((await project.parley('say', 'links', post, '--wait')).code).toBe(0);
    return { project, entries: (await project.parley('show', 'links', '--json')).json() };
  }

  it('writes the script with which another daemon gives the same answers and makes the same calls', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-record-'));
    folders.push(folder);
    await cp(EXAMPLE, folder, { recursive: true });
    const first = await run(EXAMPLE);
    const file = join(folder, 'script.yaml');
    const recorded = await first.project.parley('record', 'links');
    expect(recorded.code).toBe(0);
    await writeFile(file, recorded.stdout);

    const again = await run(folder);
    expect(answersOf(first.entries).qa?.length).toBeGreaterThan(1);
    expect(answersOf(again.entries)).toEqual(answersOf(first.entries));
  });

  it('refuses a conversation that does not exist', async () => {
    const { project } = await run(EXAMPLE);
    const unknown = await project.parley('record', 'nothing');
    expect([unknown.code, unknown.stdout]).toEqual([1, '']);
    expect(unknown.stderr).toContain('there is no conversation nothing');
  });
});
