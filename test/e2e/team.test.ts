import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect as connectToNats } from 'nats';
import { describe, expect, it } from 'vitest';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import { AWAY_MARKER, NEW_INTERACTION_MARKER } from '../../src/conversation/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import {
  callsOf,
  checkLog,
  entriesOf,
  finished,
  followUntil,
  hasWaited,
  ofType,
  parseLog,
  saidBy,
} from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, type RunningDaemon, startProject } from '../support/project.ts';

/** Agents that hand over, delegate and ask, while the daemon is killed. */
let project: Project;

describe('the team of the example', () => {
  const folder = fileURLToPath(new URL('../../examples/team', import.meta.url));
  const PHASES = [
    'chat → plan',
    'plan → execute',
    'execute → verification',
    'verification → execute',
    'execute → verification',
    'verification → chores',
    'chores → reflection',
  ];
  const HANDOFFS = ['planner → dev', 'dev → qa', 'qa → dev', 'dev → qa', 'qa → planner'];
  const step = ({ from, to }: { from: string; to: string }) => `${from} → ${to}`;

  /** Every agent has followed its script: the planner has reviewed the result. */
  const isOver = (entries: readonly Entry[]) =>
    finished(8)(entries) && saidBy(entries, 'planner').some(([words]) => /^Done:/.test(String(words)));

  function expectTheWholeStory(entries: readonly Entry[]) {
    expect(ofType(entries, 'phase-entered').map(step)).toEqual(PHASES);
    expect(ofType(entries, 'handoff').map(step)).toEqual(HANDOFFS);
    expect(saidBy(entries, 'planner').map(([, names]) => names)).toEqual([
      ['ask'],
      ['set_phase', 'delegate', 'delegate'],
      ['handoff'],
      [],
    ]);
    expect(saidBy(entries, 'dev').map(([, names]) => names)).toEqual([[], ['handoff'], ['handoff']]);
    expect(saidBy(entries, 'qa').map(([, names]) => names)).toEqual([
      [],
      ['handoff'],
      ['set_phase', 'set_phase', 'handoff'],
    ]);
    for (const { results } of callsOf(entries)) expect(results.length).toBe(1);
  }

  it('the example team plans, builds, checks, repairs, checks again and reviews', async () => {
    project = untilTestEnds(await openProject({ nats: {}, folder }));
    const daemon = await project.up();
    expect(daemon.ready.agents).toEqual(['dev', 'planner', 'qa']);
    const client = await project.connect();
    const asked = await project.parley('say', 'links', 'Please build a link shortener', '--json');
    expect(asked.json()).toEqual([expect.objectContaining({ agents: ['planner'] })]);
    await followUntil(client, 'links', (entries) => hasWaited(entries, 'planner'));
    expect((await client.request('conversation', { conversation: 'links' })).agents.planner?.status).toBe(
      'waiting',
    );
    const told = await project.parley('say', 'links', 'yes, it must', '--wait');
    expect([told.code, told.stderr]).toEqual([0, expect.not.stringContaining('ended')]);
    expect(told.stdout).toContain('[qa] Changing the target under way');
    expect(told.stdout).toContain('Done: short links that survive a move of their target.');

    const entries = await entriesOf(client, 'links');
    expect(isOver(entries)).toBe(true);
    expectTheWholeStory(entries);
    const shown = (await project.parley('show', 'links')).stdout;
    expect(shown).toContain('phase verification → execute by Tester');
    expect(shown).toContain('qa hands over to dev: An unknown code answers 500');
    expect(shown).toContain('planner asks qa: Which two checks');

    // The planner continues by a handoff, and is shown what it missed.
    const last = ofType(entries, 'message').at(-1);
    const at = String(last?.index);
    const where = ['--agent', 'planner', '--at', at, '--config', project.config, '--json'];
    const [view] = (await project.parley('explain', 'links', ...where)).json();
    const contents: string[] = view.messages.map(({ content }: { content: string | null }) => content ?? '');
    expect(contents.at(-1)).toMatch(/^\[Tester\]: Verified/);
    expect(contents.at(-2)).toBe(NEW_INTERACTION_MARKER);
    expect(contents.at(-3)?.split('\n')[0]).toBe(AWAY_MARKER);
    expect(contents.at(-3)).toContain('[Tester]: hands over to dev: An unknown code answers 500');
    expect(view.report.requestHash).toBe(last?.requestHash);
    const { stdout: body } = await project.parley('explain', 'links', ...where.slice(0, -1), '--body');
    expect(createHash('sha256').update(body).digest('hex')).toBe(last?.requestHash);
    expect(await daemon.stop()).toBe(0);
    expect(checkLog(await project.logFile('links'))).toEqual([]);
  });

  itLong(
    'the example team produces the same log when the daemon is killed repeatedly',
    {
      timeout: 180_000,
    },
    async () => {
      project = untilTestEnds(await openProject({ nats: {}, folder }));
      let daemon = await project.up();
      const client = await project.connect();
      /** Kills the daemon as soon as the log has this. */
      const killOnce = async (condition: (entries: readonly Entry[]) => boolean) => {
        await followUntil(client, 'links', condition);
        await daemon.kill9();
        daemon = await project.up();
      };
      await client.post({
        conversation: 'links',
        publisher: 'ann',
        content: 'Please build a link shortener',
      });
      await killOnce((entries) => hasWaited(entries, 'planner'));
      await client.post({ conversation: 'links', publisher: 'ann', content: 'yes, it must' });
      await killOnce((entries) => ofType(entries, 'delegation-requested').length === 2);
      await killOnce((entries) => ofType(entries, 'delegation-answered').length === 2);
      await killOnce((entries) => ofType(entries, 'handoff').length === 2);
      await killOnce((entries) => ofType(entries, 'handoff').length === 4);
      const entries = await followUntil(client, 'links', isOver);
      expectTheWholeStory(entries);
      expect(await daemon.stop()).toBe(0);
      expect(checkLog(await project.logFile('links'))).toEqual([]);
    },
  );
});

describe('two concurrent delegations, one of which asks the person', () => {
  const agents = {
    lead: '---\nname: Lead\ntools: [delegate]\n---\nYou lead.',
    dev: '---\nname: Dev\n---\nYou build.',
    qa: '---\nname: Quinn\ntools: [ask]\n---\nYou check.',
  };
  const script = `
rules:
  - when: { agent: lead, last: ship it }
    reply:
      text: I ask both.
      delayMs: 5
      tool_calls:
        - { name: delegate, arguments: { to: dev, request: How long does it take? } }
        - { name: delegate, arguments: { to: qa, request: What could go wrong? } }
  - when: { agent: lead, tool: delegate }
    reply: { text: 'Both have answered. The last one said: {{last}}', delayMs: 40 }
  - when: { agent: dev, last: How long }
    reply: { text: 'One day of work, if nobody asks me anything else meanwhile.', delayMs: 20 }
  - when: { agent: qa, last: What could go wrong }
    reply: { text: I must know more., tool_calls: [ { name: ask, arguments: { question: Are there backups? } } ] }
  - when: { agent: qa, tool: ask }
    reply: { text: 'With backups ({{last}}) only the time could go wrong.', delayMs: 100 }
`;
  /** The same with a developer who never finishes its answer. */
  const hanging = script.replace('delayMs: 20', 'delayMs: 3600000');
  const backups = { publisher: 'ann', content: 'yes, nightly', id: 'the-answer' };

  let daemon: RunningDaemon;
  let client: ParleyClient;

  async function begin(text = script): Promise<void> {
    project = untilTestEnds(await startProject({ nats: {}, agents, script: text }));
    ({ daemon, client } = project);
    await client.post({ conversation: 'demo', publisher: 'ann', content: 'ship it' });
  }

  async function expectOneAnswerEach(): Promise<Entry[]> {
    await followUntil(client, 'demo', finished(3));
    expect(await daemon.stop()).toBe(0);
    const text = await project.logFile('demo');
    expect(checkLog(text)).toEqual([]);
    const entries = parseLog(text);
    const words = 'With backups (yes, nightly) only the time could go wrong.';
    expect(saidBy(entries, 'lead')).toEqual([
      ['I ask both.', ['delegate', 'delegate']],
      [`Both have answered. The last one said: ${words}`, []],
    ]);
    expect(saidBy(entries, 'dev')).toEqual([
      ['One day of work, if nobody asks me anything else meanwhile.', []],
    ]);
    expect(saidBy(entries, 'qa')).toEqual([
      ['I must know more.', ['ask']],
      [words, []],
    ]);
    expect(
      callsOf(entries).map(({ name, results }) => [name, results.map(({ content }) => content)]),
    ).toEqual([
      ['delegate', ['One day of work, if nobody asks me anything else meanwhile.']],
      ['delegate', [words]],
      ['ask', ['yes, nightly']],
    ]);
    expect(ofType(entries, 'delegation-answered').map(({ late }) => late)).toEqual([false, false]);
    const posts = ofType(entries, 'message').filter(({ role }) => role === 'user');
    expect(posts.map(({ content }) => content)).toEqual(['ship it', 'yes, nightly']);
    return entries;
  }

  itLong(
    'two delegations finish once, even if the daemon is killed after the question and after the answer',
    async () => {
      await begin(hanging);
      await followUntil(client, 'demo', (entries) => hasWaited(entries, 'qa'));
      await daemon.kill9();
      await writeFile(join(project.config, 'script.yaml'), script);
      daemon = await project.up();
      const open = await client.request('conversation', { conversation: 'demo' });
      expect([open.agents.lead?.status, open.agents.qa?.status]).toEqual(['waiting', 'waiting']);
      expect(await client.post({ conversation: 'demo', ...backups })).toMatchObject({ agents: ['qa'] });
      await daemon.kill9();
      daemon = await project.up();
      // A client that lost the acknowledgement sends the same answer again.
      expect(await client.post({ conversation: 'demo', ...backups })).toMatchObject({ duplicate: true });
      await expectOneAnswerEach();
    },
  );

  itLong('an answer that was posted while no daemon ran is processed at the next start', async () => {
    await begin();
    await followUntil(client, 'demo', (entries) => hasWaited(entries, 'qa'));
    await daemon.kill9();
    const program = await connectToNats({ servers: project.nats.url });
    project.defer(() => program.close());
    const { publisher, ...body } = backups;
    await program.jetstream().publish(`parley.in.${publisher}.demo`, JSON.stringify(body));
    daemon = await project.up();
    const entries = await expectOneAnswerEach();
    const wakes = ofType(entries, 'turn-started').filter(({ agent, resumed }) => agent === 'lead' && resumed);
    expect(wakes.length).toBe(1); // the restart repeated nothing of the waiting turn
  });

  itLong('the asking agent continues after a kill at the moment when the last answer arrives', async () => {
    await begin();
    await followUntil(client, 'demo', (entries) => hasWaited(entries, 'qa'));
    await client.post({ conversation: 'demo', ...backups });
    await followUntil(client, 'demo', (entries) => ofType(entries, 'delegation-answered').length === 2);
    await daemon.kill9();
    daemon = await project.up();
    await expectOneAnswerEach();
  });
});
