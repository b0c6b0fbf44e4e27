import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { untilTestEnds } from '../support/lifetime.ts';
import { checkLog } from '../support/log.ts';
import { openProject, type Project } from '../support/project.ts';

const workflow = (agent: string) => `
id: talk
start: consult
nodes:
  consult: { agent: ${agent}, brief: Find out what is wanted., outcomes: { done: end } }
`;
const AGENTS = {
  pm: '---\nname: PM\n---\nAnswer.',
  dev: '---\nname: Dev\n---\nBuild.',
};
const INPUT = ['--input', 'clock'];

describe('a restart without a part that a run needs', () => {
  let project: Project;
  async function open(reply: object): Promise<void> {
    const files = { 'workflows/talk.yaml': workflow('dev') };
    const settings = { defaultAgent: 'pm' };
    project = untilTestEnds(
      await openProject({ nats: {}, settings, agents: AGENTS, script: [{ reply }], files }),
    );
  }

  const withoutAgent = async () => {
    await writeFile(join(project.config, 'workflows', 'talk.yaml'), workflow('pm'));
    await rm(join(project.config, 'agents', 'dev.md'));
  };
  const withoutWorkflow = () => rm(join(project.config, 'workflows', 'talk.yaml'));

  it.each([
    ['file', 'agent dev', withoutAgent, []],
    ['file', 'workflow talk', withoutWorkflow, INPUT],
    ['jetstream', 'agent dev', withoutAgent, INPUT],
  ] as const)(
    'the restart ends the run of the %s store with the reason: %s',
    async (store, missing, change, input) => {
      await open({ text: 'Noted.' });
      let daemon = await project.up('--store', store);
      const begun = await project.parley('mode', 'demo', 'run', '--workflow', 'talk', ...input);
      expect([begun.code, begun.stdout]).toEqual([0, expect.stringContaining('run of talk at consult')]);
      expect(await daemon.stop()).toBe(0);
      await change();
      daemon = await project.up('--store', store);
      // Where daemons share the work, the first command claims the conversation.
      if (store === 'jetstream') await project.parley('phase', 'demo', 'plan');
      const rows = async () => (await project.parley('ls', '--json')).json();
      const ended = expect.objectContaining({ mode: 'agent', waiting: [] });
      await expect.poll(rows).toEqual([ended]);
      const shown = (await project.parley('show', 'demo')).stdout;
      expect(shown).toContain(`ended: aborted (${missing} was removed from the configuration)`);
      expect(shown).toMatch(/mode run → agent by /);
      expect(
        (await (await project.connect()).request('conversation', { conversation: 'demo' })).run,
      ).toBeNull();
      const said = await project.parley('say', 'demo', 'and now?', '--to', 'pm', '--wait');
      expect([said.code, said.stdout]).toEqual([0, 'Noted.\n']);
      expect(await daemon.stop()).toBe(0);
      if (store === 'file') expect(checkLog(await project.logFile('demo'))).toEqual([]);
    },
    60_000,
  );

  it('the restart ends the run of the jetstream store at once during a turn, and otherwise with the next message', async () => {
    await open({ text: 'Noted.', delayMs: 60_000 });
    let daemon = await project.up('--store', 'jetstream');
    expect((await project.parley('mode', 'demo', 'run', '--workflow', 'talk', ...INPUT)).code).toBe(0);
    expect((await project.parley('mode', 'rest', 'run', '--workflow', 'talk')).code).toBe(0);
    const shown = async (id: string) => (await project.parley('show', id)).stdout;
    await expect.poll(() => shown('demo')).toMatch(/dev/);
    await daemon.kill9();
    await withoutWorkflow();
    daemon = await project.up('--store', 'jetstream');
    const ended = /ended: aborted \(workflow talk was removed from the configuration\)/;
    await expect.poll(() => shown('demo')).toMatch(ended);
    expect(await shown('rest')).not.toMatch(ended); // no turn runs there, so no daemon claims it
    expect((await project.parley('say', 'rest', 'and now?', '--as', 'alice')).code).toBe(0);
    await expect.poll(() => shown('rest')).toMatch(ended);
    await daemon.kill9();
  }, 90_000);
});
