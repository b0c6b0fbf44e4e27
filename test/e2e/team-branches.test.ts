import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLog, followUntil, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { projectPerTest } from '../support/project.ts';

/** A workflow whose nodes run side by side and meet, and a daemon that is killed while they do. */
describe('a workflow with branches', () => {
  const workflow = `
id: site
start: plan
nodes:
  plan: { agent: lead, brief: Plan it., outcomes: { planned: [build, describe] } }
  build:
    agent: dev
    brief: Build it.
    answers: { type: object, properties: { files: { type: integer } }, required: [files] }
    outcomes: { built: check, dropped: end }
  describe: { agent: doc, brief: Describe it., outcomes: { described: check } }
  check:
    agent: qa
    brief: "Check {{nodes.build.value.files}} files."
    after: [build, describe]
    outcomes: { passed: end }
`;
  const complete = (agent: string, outcome: string, more = '', reply = '') => `
  - when: { agent: ${agent}, mode: run }
    reply:
      ${reply}
      tool_calls: [ { name: complete_node, arguments: { outcome: ${outcome}, summary: "${agent} says so."${more} } } ]`;
  const script = (delay: string) => `
rules:${complete('lead', 'planned')}${complete('dev', 'built', ', value: { files: 3 }', delay)}${complete('doc', 'described')}${complete('qa', 'passed')}
  - reply: { text: Noted. }
`;
  const project = projectPerTest({
    settings: { publishers: { ann: { workflows: ['site'] } } },
    agents: Object.fromEntries(['lead', 'dev', 'doc', 'qa'].map((slug) => [slug, `You are ${slug}.`])),
    files: { 'workflows/site.yaml': workflow },
    script: script('text: I build. \n      delayMs: 3600000'),
  });
  const { client, daemon } = project;
  async function start(conversation: string): Promise<void> {
    await client.post({ conversation, publisher: 'ann', content: 'A shop', workflow: 'site' });
  }
  const nodes = (entries: readonly Entry[]) =>
    ofType(entries, 'node-entered').map(({ node, to }) => `${node} ${to?.[0] ?? 'waits'}`);

  itLong(
    'nodes run side by side; a daemon that is killed meanwhile continues the branch that runs, and each node runs once',
    async () => {
      await start('demo');
      const waiting = await followUntil(client, 'demo', (entries) => nodes(entries).includes('check waits'));
      expect(nodes(waiting).slice(1)).toEqual(['build dev', 'describe doc', 'check waits']);
      const status = await project.parley('status', 'demo');
      expect(status.stdout).toContain('run of site at build and check (the branch describe waits)');
      const { run } = await client.request('conversation', { conversation: 'demo' });
      expect(run).toMatchObject({
        node: 'build',
        branches: [
          { branch: 'build', node: 'build', agent: 'dev' },
          { branch: 'describe', node: 'check', agent: null },
        ],
      });
      await daemon.kill9();
      await writeFile(join(project.config, 'script.yaml'), script('text: I build.'));
      await project.up();
      const entries = await followUntil(client, 'demo', (all) => ofType(all, 'run-ended').length > 0);
      expect(nodes(entries).slice(1)).toEqual(['build dev', 'describe doc', 'check waits', 'check qa']);
      const met = ofType(entries, 'node-entered').at(-1);
      expect(met).toMatchObject({ brief: 'Check 3 files.', from: 'build', value: { files: 3 } });
      const asked = ofType(entries, 'message').findLast(({ author }) => author.id === 'qa');
      const { messages } = await client.request('view', {
        conversation: 'demo',
        agent: 'qa',
        at: asked?.index,
      });
      const step = messages.find(({ content }) => content?.startsWith('STEP '))?.content;
      expect(step).toContain('The node describe before ended with the outcome described:\ndoc says so.');
      expect(step).toContain('The node build before ended with the outcome built:\ndev says so.');
      expect(await daemon.stop()).toBe(0);
      expect(checkLog(await project.logFile('demo'))).toEqual([]);
    },
  );

  itLong('a stop and a resume continue the branch that was stopped at its node', async () => {
    await start('held');
    await followUntil(client, 'held', (entries) => nodes(entries).includes('check waits'));
    await client.request('stop', { conversation: 'held', publisher: 'ann', agent: 'dev' });
    expect((await project.parley('status', 'held')).stdout).toContain('dev is stopped: the run waits');
    await daemon.stop();
    await writeFile(join(project.config, 'script.yaml'), script('text: I build.'));
    await project.up();
    await client.post({ conversation: 'held', publisher: 'ann', content: 'Go on', to: ['dev'] });
    const entries = await followUntil(client, 'held', (all) => ofType(all, 'run-ended').length > 0);
    expect(nodes(entries).at(-1)).toBe('check qa');
  });
});
