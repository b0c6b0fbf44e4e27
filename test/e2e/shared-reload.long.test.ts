import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { WhatIfResult } from '../../src/client/index.ts';
import { FAILURE_TIMEOUT_MS, type Fleet, type FleetOptions, ownerOf, startFleet } from '../support/fleet.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { claimants, entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { type Project, providerSettings, TEAM } from '../support/project.ts';

/** On a slow machine a daemon may count the other one as silent for a moment, and the reload says so. */
const untilReloaded = (project: Project | undefined) =>
  expect.poll(async () => (await project?.parley('reload'))?.code).toBe(0);

/** `parley reload` and `parley what-if` with two daemons that share their logs. */
describe('a configuration that changes while two daemons share the work', () => {
  let fleet: Fleet;

  /** One after the other, so that `daemons` and `projects` have the same order. */
  async function startPair(options: Omit<FleetOptions, 'count'> = {}): Promise<void> {
    fleet = untilTestEnds(await startFleet({ count: 1, agents: TEAM, ...options }));
    await fleet.add();
  }
  const edit = (project: Project | undefined, persona: string) =>
    writeFile(
      join(project?.config ?? '', 'agents', 'pm.md'),
      String(TEAM.pm).replace('PERSONA OF PAM', persona),
    );
  const ask = async (turns: number) => {
    await fleet.publish('demo', `question ${turns}`);
    return followUntil(fleet.client, 'demo', turnsEnded(turns));
  };
  const personas = () => fleet.provider.requests.map(({ json }) => String(json.messages?.[0]?.content));
  /** The daemon that works on the conversation first. */
  async function sides() {
    const owner = fleet.daemons.indexOf(await ownerOf(fleet, 'demo'));
    const other = 1 - owner;
    const [daemon, peer] = [fleet.daemons[owner], fleet.daemons[other]];
    const [project, peerProject] = [fleet.projects[owner], fleet.projects[other]];
    if (!daemon || !peer || !project || !peerProject) throw new Error('two daemons were started');
    return { daemon, project, peer, peerProject };
  }

  it('a reload on one daemon reloads the other, which records the change in its conversation', async () => {
    await startPair();
    await ask(1);
    const { project, peer, peerProject } = await sides();
    for (const one of [project, peerProject]) await edit(one, 'SECOND PERSONA');
    const reloaded = await peerProject.parley('reload', '--publisher', 'bob');
    expect([reloaded.code, reloaded.stderr]).toEqual([0, '']);
    expect(reloaded.stdout).toContain('pm: persona');
    const entries = await ask(2);
    expect(ofType(entries, 'team-changed')).toMatchObject([
      { author: { id: 'bob' }, agents: [{ agent: 'pm', parts: ['persona'] }] },
    ]);
    expect(personas().map((text) => /\w+ PERSONA|PERSONA OF PAM/.exec(text)?.[0])).toEqual([
      'PERSONA OF PAM',
      'SECOND PERSONA',
    ]);
    expect(claimants(entries)).not.toContain(peer.ready.daemon);
  });

  it('a daemon that refuses the edit keeps its configuration, and the answer names it', async () => {
    await startPair();
    await ask(1);
    const { daemon, project, peerProject } = await sides();
    await edit(peerProject, 'SECOND PERSONA');
    await writeFile(join(project.config, 'agents', 'pm.md'), '---\nname: 7\n');
    const refused = await peerProject.parley('reload'); // either daemon executes it
    const printed = `${refused.stdout}${refused.stderr}`;
    expect([1, 2]).toContain(refused.code);
    expect(printed).toContain('pm.md');
    if (refused.code === 1)
      expect(printed).toContain(`daemon ${daemon.ready.daemon} keeps its configuration`);
    await ask(2);
    expect(personas().every((text) => text.includes('PERSONA OF PAM'))).toBe(true);
  });

  it('after a takeover every answer is still explained, and a what-if of an earlier turn runs there', async () => {
    const model = { provider: 'openai', apiKey: 'sk-test' };
    await startPair({ handler: ({ json }) => ({ text: `noted by ${json.model}` }) });
    const settings = {
      ...providerSettings(fleet.provider.url, { sharing: { failureTimeoutMs: FAILURE_TIMEOUT_MS } }),
      models: Object.fromEntries(
        ['default', 'm2'].map((name) => [name, { ...model, baseURL: fleet.provider.url, model: name }]),
      ),
    };
    for (const { config } of fleet.projects)
      await writeFile(join(config, 'parley.yaml'), JSON.stringify(settings));
    await untilReloaded(fleet.projects[0]);
    await ask(1);
    const { daemon, project, peer, peerProject } = await sides();
    for (const one of [project, peerProject]) await edit(one, 'SECOND PERSONA');
    await untilReloaded(peerProject);
    await ask(2);
    await daemon.kill9();
    const entries = await ask(3);
    expect(claimants(entries).at(-1)).toBe(peer.ready.daemon);
    const answers = entries.filter((entry) => entry.type === 'message' && entry.role === 'assistant');
    expect(answers).toHaveLength(3);
    for (const { index } of answers) {
      const explained = await peerProject.parley(
        'explain',
        'demo',
        '--agent',
        'pm',
        '--at',
        `${index}`,
        '--nats',
        fleet.nats.url,
        '--json',
      );
      expect(JSON.parse(explained.stdout)).toMatchObject({ report: { sent: true } });
    }
    const first = answers[0]?.index ?? -1;
    const tried = await peerProject.parley(
      'what-if',
      'demo',
      '--agent',
      'pm',
      '--at',
      `${first}`,
      '--model',
      'm2',
      '--json',
    );
    expect([tried.code, tried.stderr]).toEqual([0, '']);
    const { results } = JSON.parse(tried.stdout) as WhatIfResult;
    expect(results).toMatchObject([
      { changed: [{ content: 'noted by m2' }], control: [{ verdict: 'same', content: 'noted by default' }] },
    ]);
    const sent = fleet.provider.requests.slice(-2).map(({ json }) => String(json.messages?.[0]?.content));
    expect(sent.every((text) => text.includes('PERSONA OF PAM'))).toBe(true);
    expect(await entriesOf(fleet.client, 'demo')).toEqual(entries);
  });
});
