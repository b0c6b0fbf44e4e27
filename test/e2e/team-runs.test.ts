import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import {
  callsOf,
  checkLog,
  finished,
  followUntil,
  hasWaited,
  ofType,
  parseLog,
  saidBy,
} from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { projectPerTest } from '../support/project.ts';

/**
 * Mode run: a workflow that returns to an earlier node once, and a daemon that is killed in the middle of a node.
 */
describe('a workflow run', () => {
  const agents = {
    lead: '---\nname: Lead\ntools: [ask]\n---\nYou lead.',
    dev: '---\nname: Dev\n---\nYou build.',
    qa: '---\nname: Quinn\n---\nYou check.',
  };
  const ship = `
id: ship
start: build
nodes:
  build:  { agent: dev, brief: Build the thing., outcomes: { built: verify } }
  verify: { agent: qa, brief: Try to break it., outcomes: { passed: end, failed: build } }
`;
  const talk = `
id: talk
start: consult
nodes:
  consult: { agent: lead, brief: Find out what is wanted., outcomes: { done: end } }
`;
  const script = `
rules:
  - when: { agent: dev, mode: run, n: 0 }
    reply:
      text: It stands.
      tool_calls: [ { name: complete_node, arguments: { outcome: built, summary: The first one. } } ]
  - when: { agent: dev, mode: run }
    reply:
      text: It stands again.
      tool_calls: [ { name: complete_node, arguments: { outcome: built, summary: The repaired one. } } ]
  - when: { agent: qa, mode: run, n: 0 }
    reply:
      text: I try it ... and it falls over.
      delayMs: 20
      tool_calls: [ { name: complete_node, arguments: { outcome: failed, summary: It falls over. } } ]
  - when: { agent: qa, mode: run }
    reply:
      text: It holds.
      tool_calls: [ { name: complete_node, arguments: { outcome: passed, summary: Nothing to complain about. } } ]
  - when: { agent: lead, mode: run }
    reply:
      tool_calls:
        - { name: ask, arguments: { question: What is it for? } }
        - { name: complete_node, arguments: { outcome: done, summary: All is known. } }
  - when: { agent: lead, tool: complete_node }
    reply: { text: 'The run is over, so I leave it at that.' }
  - when: { agent: lead, last: '/^What did/' }
    reply: { text: 'They built it twice.' }
  - reply: { text: 'Noted.' }
`;
  /** The same workflow with a check that never ends. */
  const hanging = script.replace('delayMs: 20', 'delayMs: 3600000');

  const project = projectPerTest({
    agents,
    files: { 'workflows/ship.yaml': ship, 'workflows/talk.yaml': talk },
    script: hanging,
  });
  const { client, daemon } = project;
  beforeEach(async () => {
    await client.post({ conversation: 'demo', publisher: 'ann', content: 'Build me a thing.' });
    await followUntil(client, 'demo', finished(1));
  });

  const answers = (entries: readonly Entry[], agent: string) =>
    ofType(entries, 'message').filter(
      ({ role, author }) => role === 'assistant' && author.kind === 'agent' && author.id === agent,
    );

  /** The directive between prefix and history of the request of this entry, or of the next request. */
  async function runContextOf(agent: string, at?: number): Promise<string[]> {
    const { messages } = await client.request('view', { conversation: 'demo', agent, at });
    return messages
      .slice(1)
      .map(({ content }) => content ?? '')
      .filter((content) => /^(RUN_DIRECTIVE|NODE_BRIEF|STEP) /.test(content));
  }

  itLong(
    'a run whose daemon is killed in a node continues there, returns to an earlier node, ends, and leaves no directive',
    async () => {
      const started = await project.parley(...'mode demo run --workflow ship --input It --json'.split(' '));
      expect([started.code, started.json()]).toEqual([0, [expect.objectContaining({ mode: 'run' })]]);
      const isChecking = (entries: readonly Entry[]) =>
        ofType(entries, 'turn-started').some(({ agent }) => agent === 'qa');
      await followUntil(client, 'demo', isChecking);
      await daemon.kill9();
      await writeFile(join(project.config, 'script.yaml'), script);
      expect(parseLog(await project.logFile('demo')).at(-1)).toMatchObject({
        type: 'turn-started',
        agent: 'qa',
      });
      await project.up();
      const run = await followUntil(client, 'demo', finished(5));

      const nodes = ofType(run, 'node-entered');
      expect(nodes.map(({ node, outcome, summary, hops }) => [node, outcome, summary, hops])).toEqual([
        ['build', undefined, undefined, 0],
        ['verify', 'built', 'The first one.', 1],
        ['build', 'failed', 'It falls over.', 2],
        ['verify', 'built', 'The repaired one.', 3],
      ]);
      expect(ofType(run, 'run-started').length).toBe(1);
      expect(ofType(run, 'run-ended').map(({ outcome, summary }) => [outcome, summary])).toEqual([
        ['passed', 'Nothing to complain about.'],
      ]);
      const runIds = [...nodes, ...ofType(run, 'run-started'), ...ofType(run, 'run-ended')];
      expect(new Set(runIds.map(({ runId }) => runId)).size).toBe(1);
      expect(ofType(run, 'mode-entered').map(({ to }) => to)).toEqual(['run', 'agent']);
      expect(saidBy(run, 'dev').map(([words]) => words)).toEqual(['It stands.', 'It stands again.']);
      expect(saidBy(run, 'qa').map(([words]) => words)).toEqual([
        'I try it ... and it falls over.',
        'It holds.',
      ]);

      // Each request had the directive of its node, and the result of the node before.
      const [first, second] = answers(run, 'dev');
      expect(await runContextOf('dev', first?.index)).toEqual([
        expect.stringMatching(
          /^RUN_DIRECTIVE .*not something a person said.*\n.*the node build of the workflow ship/,
        ),
        expect.stringMatching(/^NODE_BRIEF [\s\S]*Build the thing\.[\s\S]*- built: leads to verify/),
        expect.stringContaining('This is the first node'),
      ]);
      expect((await runContextOf('dev', second?.index)).at(-1)).toContain(
        'the outcome failed:\nIt falls over.',
      );

      const asked = await project.parley('say', 'demo', 'What did you two do?', '--wait');
      expect([asked.code, asked.stdout]).toEqual([0, 'They built it twice.\n']);
      const entries = await followUntil(client, 'demo', finished(6));
      const told = answers(entries, 'lead').at(-1);
      expect(await runContextOf('lead', told?.index)).toEqual([]);
      expect(told).toMatchObject({ mode: 'agent' });
      expect(told).not.toHaveProperty('runId');
      // The next request of an agent of the run has none either.
      expect(await runContextOf('dev')).toEqual([]);
      expect(await daemon.stop()).toBe(0);
      expect(checkLog(await project.logFile('demo'))).toEqual([]);
    },
  );

  itLong('a run of an unknown workflow is refused and changes nothing', async () => {
    const before = await client.request('conversation', { conversation: 'demo' });
    const unknown = await project.parley('mode', 'demo', 'run', '--workflow', 'shipp', '--json');
    expect([unknown.code, unknown.json()]).toEqual([
      1,
      [{ error: expect.objectContaining({ code: 'UNKNOWN_WORKFLOW', hint: 'workflows: ship, talk' }) }],
    ]);
    const missing = await project.parley('mode', 'demo', 'run');
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('needs a workflow')]);
    expect(await client.request('conversation', { conversation: 'demo' })).toEqual(before);
  });

  itLong(
    'a run in a new conversation shows that it waits for its input, and --input starts it at once',
    async () => {
      const entered = await project.parley('mode', 'new', 'run', '--workflow', 'talk');
      expect([entered.code, entered.stdout]).toEqual([
        0,
        'new: phase chat, mode run, no agent has the floor, run of talk at consult; lead begins with the next message\n',
      ]);
      const rows = async () => (await project.parley('ls', '--json')).json();
      expect(await rows()).toContainEqual(
        expect.objectContaining({ id: 'new', running: [], waiting: ['lead'] }),
      );
      await daemon.kill9();
      await project.up();
      expect(await rows()).toContainEqual(
        expect.objectContaining({ id: 'new', running: [], waiting: ['lead'] }),
      );
      const { agents, run } = await client.request('conversation', { conversation: 'new' });
      expect(agents.lead).toMatchObject({ status: 'waiting' });
      const roster = (await client.request('agents', {})).agents;
      expect(roster.find(({ slug }) => slug === 'lead')).toMatchObject({ status: 'waiting' });
      expect(run).toMatchObject({ workflow: 'talk', node: 'consult', agent: 'lead', awaitsInput: true });

      await client.post({ conversation: 'new', publisher: 'ann', content: 'Build me a clock' });
      const begun = ['mode', 'other', 'run', '--workflow', 'talk', '--as', 'Bob', '--publisher', 'ann'];
      expect((await project.parley(...begun, '--input', 'Build me a clock')).code).toBe(0);
      for (const [conversation, author] of [
        ['new', { kind: 'person', id: 'ann', name: 'ann' }],
        ['other', { kind: 'person', id: 'ann/Bob', name: 'Bob' }],
      ] as const) {
        const entries = await followUntil(client, conversation, (known) => hasWaited(known, 'lead'));
        const said = ofType(entries, 'message').filter(({ role }) => role === 'user');
        expect(said).toMatchObject([{ author, content: 'Build me a clock', to: ['lead'] }]);
        expect(ofType(entries, 'turn-started')).toMatchObject([{ agent: 'lead', trigger: [said[0]?.index] }]);
        const shown = await client.request('conversation', { conversation });
        expect(shown.run).toMatchObject({ node: 'consult', awaitsInput: false });
      }
      expect(await daemon.stop()).toBe(0);
      for (const conversation of ['new', 'other'])
        expect(checkLog(await project.logFile(conversation))).toEqual([]);
    },
  );

  itLong('a run that a person leaves ends, and its agent is no longer in a node', async () => {
    const run = { mode: 'run', workflow: 'talk', input: 'Ask me.' } as const;
    await client.request('mode', { conversation: 'demo', ...run, publisher: 'ann' });
    await followUntil(client, 'demo', (entries) => hasWaited(entries, 'lead'));
    const left = await project.parley('mode', 'demo', 'agent', '--json');
    expect([left.code, left.json()]).toEqual([0, [expect.objectContaining({ mode: 'agent' })]]);
    await client.post({ conversation: 'demo', publisher: 'ann', content: 'for nothing, I leave' });
    const entries = await followUntil(client, 'demo', finished(2));
    expect(ofType(entries, 'run-ended').map(({ outcome }) => outcome)).toEqual(['left']);
    const results = callsOf(entries).map((call) => [call.name, call.results.map(({ content }) => content)]);
    expect(results).toEqual([
      ['ask', ['for nothing, I leave']],
      ['complete_node', [expect.stringContaining('NO_NODE')]],
    ]);
    const [, asking, last] = answers(entries, 'lead');
    expect(last?.content).toBe('The run is over, so I leave it at that.');
    expect((await runContextOf('lead', asking?.index)).length).toBe(3);
    expect(await runContextOf('lead', last?.index)).toEqual([]);
    expect(await daemon.stop()).toBe(0);
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});
