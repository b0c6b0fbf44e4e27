import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import {
  callsOf,
  checkLog,
  entriesOf,
  finished,
  followUntil,
  hasWaited,
  ofType,
  outcomesOf,
  saidBy,
} from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { type Project, type RunningDaemon, scriptedSettings, startProject } from '../support/project.ts';

/** L15: every chain ends, by a person or by a limit, and people see why. */
const agents = {
  lead: '---\nname: Lead\ntools: [delegate, handoff]\n---\nYou lead.',
  dev: '---\nname: Dev\ntools: [handoff]\n---\nYou build.',
  qa: '---\nname: Quinn\ntools: [ask, handoff]\n---\nYou check.',
  critic: '---\nname: Carl\nruntime: bus\n---\nYou criticize.',
};
const script = `
rules:
  - when: { agent: lead, last: work for both }
    reply:
      tool_calls:
        - { name: delegate, arguments: { to: dev, request: Build it. } }
        - { name: delegate, arguments: { to: qa, request: Check it. } }
  - when: { agent: lead, last: pass it on }
    reply: { tool_calls: [ { name: handoff, arguments: { to: dev, summary: Pass it on again. } } ] }
  - when: { agent: dev, last: Pass it on again }
    reply: { tool_calls: [ { name: handoff, arguments: { to: qa, summary: And again. } } ] }
  - when: { agent: dev, tool: handoff }
    reply: { text: 'I keep it: {{last}}' }
  - when: { agent: dev, last: '/Build it|@dev/' }
    reply: { text: Half of the way is what I can say., delayMs: 3600000 }
  - when: { agent: qa, last: Check it }
    reply: { tool_calls: [ { name: ask, arguments: { question: How? } } ] }
  - reply: { text: 'Noted.' }
`;

let project: Project;
let daemon: RunningDaemon;
let client: ParleyClient;

async function begin(settings = {}): Promise<void> {
  project = untilTestEnds(await startProject({ nats: {}, settings, agents, script }));
  ({ daemon, client } = project);
}

const post = (content: string) => client.post({ conversation: 'demo', publisher: 'ann', content });

async function expectSoundLog(): Promise<void> {
  expect(await daemon.stop()).toBe(0);
  expect(checkLog(await project.logFile('demo'))).toEqual([]);
}

/** Until the agent has sent the first word of its current call. */
async function firstWord(agent: string): Promise<void> {
  for await (const event of client.follow('demo', { from: 0 })) {
    if (event.kind === 'live' && event.agent === agent && event.chunk.type === 'text') return;
  }
}

describe('stopping an agent that waits for others', () => {
  it('stop ends the delegated work, keeps the text, and starts nothing until resume', async () => {
    await begin();
    const heard = firstWord('dev');
    await post('I have work for both of you');
    await heard;
    await followUntil(client, 'demo', (entries) => hasWaited(entries, 'lead') && hasWaited(entries, 'qa'));
    expect((await project.parley('stop', 'demo', 'lead')).code).toBe(0);
    const stopped = await followUntil(
      client,
      'demo',
      (entries) => finished(3)(entries) && ofType(entries, 'delegation-answered').length === 2,
    );
    for (const agent of ['lead', 'dev', 'qa']) expect(outcomesOf(stopped, agent)).toEqual(['aborted']);
    expect(saidBy(stopped, 'dev')).toEqual([['Half ', []]]);
    const results = callsOf(stopped).map((call) => [call.name, call.results.map(({ content }) => content)]);
    expect(results).toEqual([
      ['delegate', ['[no answer: the turn was aborted]']],
      ['delegate', ['[no answer: the turn was aborted]']],
      ['ask', ['[no answer: the turn was aborted]']],
    ]);
    expect(ofType(stopped, 'delegation-answered').map(({ late }) => late)).toEqual([true, true]);
    const { agents: now } = await client.request('conversation', { conversation: 'demo' });
    expect([now.lead?.status, now.dev?.status, now.qa?.status]).toEqual(['stopped', 'idle', 'idle']);

    expect(await post('what now?')).toMatchObject({ agents: ['lead'] });
    expect(
      ofType(await entriesOf(client, 'demo'), 'turn-started').filter(({ agent }) => agent === 'lead').length,
    ).toBe(1);
    expect((await project.parley('resume', 'demo', 'lead')).code).toBe(0);
    const resumed = await followUntil(client, 'demo', finished(4));
    expect(outcomesOf(resumed, 'lead')).toEqual(['aborted', 'completed']);
    const at = resumed.findLast((entry) => entry.type === 'message' && entry.author.id === 'lead')?.index;
    const { messages } = await client.request('view', { conversation: 'demo', agent: 'lead', at });
    expect(messages.slice(1).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'I have work for both of you'],
      ['assistant', null],
      ['tool', '[no answer: the turn was aborted]'],
      ['tool', '[no answer: the turn was aborted]'],
      ['system', '[Dev]: Half '],
      ['system', expect.stringContaining('[Dev]: Half ')],
      ['system', '=== NEW INTERACTION ==='],
      ['user', 'what now?'],
    ]);
    await expectSoundLog();
  });
});

describe('a limit', () => {
  itLong(
    'the hop limit is a tool error for the agent and a notice for people, and the turn continues',
    async () => {
      await begin({ limits: { hopsPerTrigger: 1 } });
      const said = await project.parley('say', 'demo', 'pass it on', '--wait');
      expect([said.code, said.stdout]).toEqual([
        0,
        expect.stringContaining('[dev] I keep it: {"error":{"code":"HOP_LIMIT"'),
      ]);
      const entries = await entriesOf(client, 'demo');
      expect(ofType(entries, 'handoff').map(({ from, to, hops }) => [from, to, hops])).toEqual([
        ['lead', 'dev', 1],
      ]);
      expect(ofType(entries, 'limit-reached')).toMatchObject([{ limit: 'hopsPerTrigger', agent: 'dev' }]);
      expect(outcomesOf(entries, 'dev')).toEqual(['completed']);
      expect((await project.parley('show', 'demo')).stdout).toMatch(
        /limit hopsPerTrigger reached: this request went from agent to agent 1 times; the limit is 1/,
      );
      // No agent waits for it: no work is outstanding.
      expect((await project.parley('resume', 'demo')).code).toBe(0);
      expect((await entriesOf(client, 'demo')).length).toBe(entries.length);
      await expectSoundLog();
    },
  );

  itLong('the time limit ends a turn whose model hangs, and keeps its text', async () => {
    await begin({ limits: { turnSeconds: 1 } });
    const said = await project.parley('say', 'demo', '@dev how far are we?', '--wait');
    expect([said.code, said.stdout]).toEqual([1, expect.stringContaining('Half ')]);
    expect(said.stderr).toContain('limited');
    const entries = await entriesOf(client, 'demo');
    expect(saidBy(entries, 'dev')).toEqual([['Half ', []]]);
    expect(entries.slice(-2)).toMatchObject([
      { type: 'limit-reached', limit: 'turnSeconds', agent: 'dev' },
      { type: 'turn-ended', outcome: 'limited', lastProcessedMessageIndex: entries.length - 2 },
    ]);
    expect((await project.parley('show', 'demo')).stdout).toContain(
      'limit turnSeconds reached: the turn took longer than 1 seconds',
    );
    // The next message is another turn with its own time.
    await post('@qa are you there?');
    const next = await followUntil(client, 'demo', finished(2));
    expect(saidBy(next, 'qa')).toEqual([['Noted.', []]]);
    await expectSoundLog();
  });

  itLong(
    'the tokens that an agent in another process reports count against that agent, and another one continues',
    async () => {
      await begin({ limits: { tokensPerConversation: 30_000 } });
      const usage = { inputTokens: 9e15, outputTokens: 9e15 };
      await client.agent('critic', () => ({ content: 'Bad. '.repeat(8_000), usage }));
      await post('@critic judge it');
      await followUntil(client, 'demo', finished(1));
      await post('@critic judge it again');
      await followUntil(client, 'demo', finished(2));
      await post('@lead please do something');
      const entries = await followUntil(client, 'demo', finished(3));
      expect(ofType(entries, 'limit-reached').map(({ agent, limit }) => [agent, limit])).toEqual([
        ['critic', 'tokensPerConversation'],
      ]);
      expect(saidBy(entries, 'critic').length).toBe(1);
      expect(saidBy(entries, 'lead')).toEqual([['Noted.', []]]);
      await expectSoundLog();
    },
  );

  it('the token limit stops calls of the model until it is raised and the conversation resumed', async () => {
    await begin({ limits: { tokensPerConversation: 1 } });
    const said = await project.parley('say', 'demo', 'please do something', '--wait');
    expect([said.code, said.stdout]).toEqual([1, expect.not.stringContaining('Noted')]);
    const limited = await entriesOf(client, 'demo');
    expect(saidBy(limited, 'lead')).toEqual([]);
    expect(limited.slice(-2)).toMatchObject([
      { type: 'limit-reached', limit: 'tokensPerConversation', agent: 'lead' },
      { type: 'turn-ended', outcome: 'limited' },
    ]);
    expect((await project.parley('show', 'demo')).stdout).toMatch(
      /limit tokensPerConversation reached: .*the limit is 1\n/,
    );
    expect(await daemon.stop()).toBe(0);

    const raised = scriptedSettings({ limits: { tokensPerConversation: 1_000_000 } });
    await writeFile(join(project.config, 'parley.yaml'), JSON.stringify(raised));
    daemon = await project.up();
    expect(await entriesOf(client, 'demo')).toEqual(limited); // a restart does not resume
    expect((await project.parley('resume', 'demo')).code).toBe(0);
    const resumed = await followUntil(client, 'demo', finished(2));
    expect(saidBy(resumed, 'lead')).toEqual([['Noted.', []]]);
    const at = resumed.findLast((entry) => entry.type === 'message')?.index;
    const { messages } = await client.request('view', { conversation: 'demo', agent: 'lead', at });
    expect(messages.slice(1).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'please do something'],
      ['system', expect.stringContaining('=== LIMIT REACHED tokensPerConversation ===')],
    ]);
    const { metadata } = await client.request('conversation', { conversation: 'demo' });
    expect(metadata.tokens).toBeGreaterThan(0);
    await expectSoundLog();
  });
});
