import { cp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import { type FakeProvider, type FakeReply, startFakeProvider } from '../support/fake-provider.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, providerSettings, type RunningDaemon, TEAM } from '../support/project.ts';

describe('a configuration that changes while the daemon runs', () => {
  let provider: FakeProvider;
  let project: Project;
  let client: ParleyClient;
  /** Answers the held request; requests are held while it is not null. */
  let replies: ((reply: FakeReply) => void)[];
  let isHolding: boolean;

  beforeEach(async () => {
    replies = [];
    isHolding = false;
    provider = await startFakeProvider(() =>
      isHolding ? new Promise((resolve) => replies.push(resolve)) : { text: 'Answer.' },
    );
    project = await openProject({ settings: providerSettings(provider.url), agents: TEAM });
  });
  afterEach(async () => {
    await project.close();
    await provider.close();
  });

  async function up(...args: string[]): Promise<RunningDaemon> {
    const daemon = await project.up(...args);
    client = await project.connect();
    return daemon;
  }
  const agentFile = (slug: string) => join(project.config, 'agents', `${slug}.md`);
  const edit = (slug: string, from: string | RegExp, to: string) =>
    writeFile(agentFile(slug), String(TEAM[slug]).replace(from, to));
  const post = (content: string) => client.post({ publisher: 'alice', conversation: 'demo', content });
  const entries = () => entriesOf(client, 'demo');
  const ofType = async (type: Entry['type']) => (await entries()).filter((entry) => entry.type === type);
  const ends = async () => (await ofType('turn-ended')).length;
  const personaOf = (at: number) => String(provider.requests[at]?.json.messages?.[0]?.content);
  const descriptionOf = async (slug: string) =>
    (await client.request('agents', {})).agents.find((agent) => agent.slug === slug)?.description;
  const allSent = async () => {
    const checked = await project.parley('fsck', '--views');
    expect([checked.code, checked.stdout]).toEqual([0, expect.not.stringContaining('view')]);
  };

  it('a running turn keeps its definition, the next turn has the new one, and one entry names the change', async () => {
    const daemon = await up();
    isHolding = true;
    await post('one');
    await expect.poll(() => replies.length).toBe(1);
    await edit('pm', 'PERSONA OF PAM', 'ANOTHER PERSONA');
    const reloaded = await project.parley('reload', '--publisher', 'bob');
    expect([reloaded.code, reloaded.stdout]).toEqual([0, expect.stringContaining('pm: persona')]);
    expect(reloaded.stdout).toContain('recorded in 1 open conversation');
    replies[0]?.({ text: 'Looking.', toolCalls: [{ name: 'nothing', arguments: '{}' }] });
    await expect.poll(() => replies.length).toBe(2);
    replies[1]?.({ text: 'Done.' });
    await expect.poll(ends).toBe(1);
    isHolding = false;
    await post('two');
    await expect.poll(ends).toBe(2);
    expect([0, 1, 2].map((at) => personaOf(at).includes('PERSONA OF PAM'))).toEqual([true, true, false]);
    expect(personaOf(2)).toContain('ANOTHER PERSONA');
    const [changed, ...more] = await ofType('team-changed');
    expect(more).toEqual([]);
    const [first, second] = (await ofType('turn-started')).map((entry) => Reflect.get(entry, 'definition'));
    const agents = [{ agent: 'pm', change: 'changed', before: first, after: second, parts: ['persona'] }];
    expect(changed).toMatchObject({ author: { id: 'bob' }, agents });
    expect((await project.parley('show', 'demo')).stdout).toContain('the team changed by bob: pm: persona');
    expect((await project.parley('reload')).stdout).toContain('the configuration is unchanged');
    expect(await daemon.stop()).toBe(0);
    await allSent();
  });

  it('a configuration that is not valid changes nothing, and the error names file and line', async () => {
    const daemon = await up();
    await edit('pm', 'description: plans', 'description: edited\nmodle: x');
    const refused = await project.parley('reload');
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/pm\.md:4.*modle/su)]);
    expect(await descriptionOf('pm')).toBe('plans');
    await edit('pm', 'description: plans', 'description: edited');
    const settings = { ...providerSettings(provider.url), ingress: { maxBytes: 99_000_000 } };
    await writeFile(join(project.config, 'parley.yaml'), JSON.stringify(settings));
    const restart = await project.parley('reload');
    expect([restart.code, restart.stderr]).toEqual([expect.any(Number), expect.stringContaining('ingress')]);
    expect(restart.code).not.toBe(0);
    expect(await descriptionOf('pm')).toBe('plans');
    await post('one');
    await expect.poll(ends).toBe(1);
    expect(await ofType('team-changed')).toEqual([]);
    expect(await daemon.stop()).toBe(0);
  });

  itLong('SIGHUP reloads, and its failure is in the log of the daemon', async () => {
    const daemon = await up();
    await edit('pm', 'description: plans', 'description: edited');
    daemon.signal('SIGHUP');
    await expect.poll(() => descriptionOf('pm')).toBe('edited');
    await edit('pm', 'description: plans', 'descriptoin: edited');
    daemon.signal('SIGHUP');
    await expect.poll(daemon.stderr).toMatch(/nothing was changed.*pm\.md:3/su);
    expect(await descriptionOf('pm')).toBe('edited');
    expect(await daemon.stop()).toBe(0);
  });

  itLong(
    '--watch reloads when a file of the configuration changes, and logs a bad edit with file and line',
    async () => {
      const daemon = await up('--watch');
      await edit('pm', 'description: plans', 'descriptoin: edited');
      await expect.poll(daemon.stderr).toMatch(/nothing was changed.*pm\.md:3/su);
      await edit('pm', 'description: plans', 'description: edited');
      await expect.poll(() => descriptionOf('pm')).toBe('edited');
      await writeFile(agentFile('new'), '---\ndescription: is new\n---\nNEW.');
      await expect.poll(() => descriptionOf('new')).toBe('is new');
      expect(await daemon.stop()).toBe(0);
    },
  );

  it('--watch reloads after each change of a file that an editor replaced, and of a folder that was made again', async () => {
    const daemon = await up('--watch');
    const text = (description: string) => `---\ndescription: ${description}\n---\nNEW.`;
    await writeFile(agentFile('new'), text('one'));
    await expect.poll(() => descriptionOf('new')).toBe('one');
    await writeFile(`${agentFile('new')}~`, text('two'));
    await rename(`${agentFile('new')}~`, agentFile('new'));
    await expect.poll(() => descriptionOf('new')).toBe('two');
    await writeFile(agentFile('new'), text('three'));
    await expect.poll(() => descriptionOf('new')).toBe('three');
    const folder = dirname(agentFile('new'));
    const aside = `${project.config}-aside`;
    await cp(folder, aside, { recursive: true });
    await rm(folder, { recursive: true });
    await rename(aside, folder);
    await writeFile(agentFile('new'), text('four'));
    await expect.poll(() => descriptionOf('new')).toBe('four');
    await writeFile(agentFile('new'), text('five'));
    await expect.poll(() => descriptionOf('new')).toBe('five');
    expect(await daemon.stop()).toBe(0);
  });

  itLong('an agent that is removed ends its running turn, and answers again when it is back', async () => {
    const daemon = await up();
    isHolding = true;
    await post('@dev one');
    await expect.poll(() => replies.length).toBe(1);
    await rm(agentFile('dev'));
    expect((await project.parley('reload')).stdout).toContain('dev removed');
    await expect.poll(ends).toBe(1);
    expect(await ofType('turn-ended')).toMatchObject([{ agent: 'dev', outcome: 'aborted' }]);
    await expect.poll(() => provider.openAnswers()).toBe(0);
    isHolding = false;
    await edit('dev', 'nothing', '');
    expect((await project.parley('reload')).stdout).toContain('dev added');
    await post('@dev two');
    await expect.poll(ends).toBe(2);
    expect(await ofType('turn-ended')).toMatchObject([{}, { agent: 'dev', outcome: 'completed' }]);
    expect(await daemon.stop()).toBe(0);
    await allSent();
  });
});
