import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, providerSettings, TEAM } from '../support/project.ts';
import { createSteps, LOOK, type Steps, until } from '../support/steps.ts';

describe('a reload that changes an MCP server', () => {
  let provider: FakeProvider;
  let project: Project;
  let client: ParleyClient;
  let before: Steps;
  let after: Steps;

  beforeEach(async () => {
    [before, after] = [createSteps(), createSteps()];
    provider = await startFakeProvider(({ json }) =>
      json.messages?.at(-1)?.role === 'tool'
        ? { text: 'Seen.' }
        : { toolCalls: [{ name: LOOK, arguments: '{"name":"it"}' }] },
    );
    const pm = String(TEAM.pm).replace('phases:', `tools: [${LOOK}]\nphases:`);
    project = await openProject({ settings: settingsWith(before.server), agents: { pm } });
    await project.up();
    client = await project.connect();
  });
  afterEach(async () => {
    await project.close();
    await provider.close();
    for (const steps of [before, after]) steps.remove();
  });

  const settingsWith = (server: object) =>
    providerSettings(provider.url, { tools: { mcpServers: { steps: server } } });
  const configure = (server: object) =>
    writeFile(join(project.config, 'parley.yaml'), JSON.stringify(settingsWith(server)));
  const post = (content: string) => client.post({ conversation: 'demo', publisher: 'alice', content });
  const results = async (turns: number) =>
    ofType(await followUntil(client, 'demo', turnsEnded(turns)), 'message')
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content);

  itLong(
    'a call that runs is completed by the old server, and the next call goes to the new one',
    async () => {
      before.hold('it', 'before');
      await post('one');
      await until(async () => (await before.entered('it')) === 1);
      const reported = async () => (await project.parley('ls')).stdout.includes('1 of 2: it began');
      await until(reported);
      await configure(after.server);
      const reloaded = await project.parley('reload');
      expect([reloaded.code, reloaded.stderr]).toEqual([0, '']);
      before.release('it');
      expect(await results(1)).toEqual([expect.stringContaining('it is done')]);
      await post('two');
      expect(await results(2)).toHaveLength(2);
      expect(await reported()).toBe(false);
      expect([await before.effects('it'), await after.effects('it')]).toEqual([1, 1]);
    },
  );

  itLong('a changed server that does not start refuses the reload, and the old one remains', async () => {
    await configure({ command: process.execPath, args: ['-e', 'process.exit(3)'] });
    const refused = await project.parley('reload');
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('steps');
    await post('one');
    expect(await results(1)).toEqual([expect.stringContaining('it is done')]);
    expect(await before.effects('it')).toBe(1);
  });
});
