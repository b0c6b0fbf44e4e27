import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { sleep } from '../../src/kernel/index.ts';
import { promptsOf } from '../support/acp/prompts.ts';
import { shared, sharedFolder } from '../support/lifetime.ts';
import { checkLog, followUntil, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { startProject } from '../support/project.ts';
import { until } from '../support/steps.ts';

/** Coding agents that the daemon runs, as real processes beside a real daemon and its managed server. */

const PROGRAM = join(import.meta.dirname, '../support/acp/agent.mjs');
const state = sharedFolder();
const KEY = 'key-4711-of-the-agent';
const agentFile = (name: string, flags: readonly string[] = []) =>
  `---
name: ${name}
runtime: acp
command: ${JSON.stringify([process.execPath, PROGRAM, ...flags])}
env: { ACP_STATE: ${JSON.stringify(state)}, ACP_KEY: ${KEY} }
tools: [recall, handoff]
---
PERSONA OF ${name}`;

const project = shared(() =>
  startProject({
    nats: {},
    model: () => ({ text: 'Pam has read it.' }),
    agents: {
      pm: '---\nname: Pam\n---\nPERSONA OF PAM',
      dev: agentFile('Dev'),
      odd: agentFile('Odd', ['--no-auth']),
      gone: '---\nname: Gone\nruntime: acp\ncommand: [no-such-agent]\n---\nYou are missing.',
    },
  }),
);
const { provider } = project;
let { client } = project;

async function killDaemon(): Promise<void> {
  await project.daemon.kill9();
  await project.up();
  client = await project.connect();
}

async function post(conversation: string, content: string, to: string): Promise<void> {
  await client.post({ conversation, content, to: [to], publisher: 'alice' });
}

/** Turns that are over: one that waits is not. */
const over = (count: number) => (entries: readonly Entry[]) =>
  entries.filter((entry) => entry.type === 'turn-ended' && entry.outcome !== 'waiting').length >= count;
/** Posts, and follows until so many turns are over. */
async function talk(conversation: string, content: string, to: string, count: number): Promise<Entry[]> {
  await post(conversation, content, to);
  return followUntil(client, conversation, over(count));
}
/** Posts, and follows until the agent asks for a permission. */
async function asked(conversation: string, content: string): Promise<void> {
  await post(conversation, content, 'dev');
  await followUntil(client, conversation, isAsking);
}
const approve = async (conversation: string) =>
  client.request('answer', { approvalId: await approvalOf(conversation), answer: 'approve' });
const isAsking = (entries: readonly Entry[]) => entries.some(({ type }) => type === 'approval-requested');

async function approvalOf(conversation: string): Promise<string> {
  const { approvals } = await client.request('approvals', { conversation });
  return approvals[0]?.approvalId ?? '';
}

async function edits(file: string): Promise<number> {
  const log = join(state, 'edits.log');
  if (!existsSync(log)) return 0;
  return (await readFile(log, 'utf8')).split('\n').filter((line) => line === file).length;
}

async function told(marker: string): Promise<string[]> {
  const lines = (await readFile(join(state, 'told.jsonl'), 'utf8')).trim().split('\n');
  const prompts = lines.map((line) => (JSON.parse(line) as { texts: string[] }).texts);
  return prompts.findLast((texts) => texts.some((text) => text.includes(marker))) ?? [];
}

describe('a coding agent in the team', () => {
  it('edits after a person approved it, reports what it did, and another agent reads that', async () => {
    await asked('c1', 'edit c1.txt hello');
    expect(await edits('c1.txt')).toBe(0);
    await approve('c1');
    const entries = await followUntil(client, 'c1', over(1));
    expect(await edits('c1.txt')).toBe(1);
    const answer = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant');
    expect(answer).toMatchObject({
      content: 'Done.',
      reported: [expect.objectContaining({ kind: 'edit', status: 'completed' })],
    });
    await talk('c1', 'please review', 'pm', 2);
    expect(String(provider.requests.at(-1)?.body)).toContain('Edit c1.txt');
    expect(checkLog(await project.logFile('c1'))).toEqual([]);
  });

  it.each([
    ['approve', 'I ran it.', 'approved this call: "mind the clock"]'],
    ['deny', 'I did not run it.', 'a person denied this: mind the clock'],
  ] as const)('what a person says with %s is told to it', async (answer, outcome, words) => {
    const conversation = `said-${answer}`;
    await asked(conversation, 'run date');
    const approvalId = await approvalOf(conversation);
    await client.request('answer', { approvalId, answer, reason: 'mind the clock' });
    const entries = await followUntil(client, conversation, over(1));
    const final = ofType(entries, 'message').at(-1);
    expect(final).toMatchObject({ content: expect.stringContaining(outcome) });
    expect(await told(words)).toEqual([expect.stringMatching(/^\[date: /)]);
  });

  it('is told once who it is, then only what it missed, also after kill -9 of the daemon', async () => {
    await talk('c2', 'first words', 'dev', 1);
    const opening = (await told('first words')).join();
    expect(opening).toContain('PERSONA OF Dev');
    expect(opening).not.toContain('permit_'); // Parley calls these for it.
    await talk('c2', 'something for Pam', 'pm', 2);
    await killDaemon();
    const entries = await talk('c2', 'second words', 'dev', 3);
    const texts = await told('second words');
    expect(texts.join('\n')).not.toContain('PERSONA OF Dev');
    expect(texts.join('\n')).not.toContain('first words');
    expect(texts.join('\n')).toContain('[Pam]: Pam has read it.');
    const answers = entries.filter((entry) => entry.type === 'message' && entry.author.id === 'dev');
    const views = await Promise.all(
      answers.map(({ index: at }) => client.request('view', { conversation: 'c2', agent: 'dev', at })),
    );
    const [first, second] = views.map(({ report, messages }) => ({
      ...report.told,
      texts: report.told?.messages.map((place) => messages[place]?.content),
    }));
    expect(first).toMatchObject({ session: 'new', texts: await told('first words') });
    expect(second).toMatchObject({ session: 'continued', texts });
  });

  it('a failure keeps what was done, and the session, which continues in a new process', async () => {
    await asked('c11', 'edit c11.txt hello && crash');
    await approve('c11');
    const failed = (await followUntil(client, 'c11', over(1))).findLast(({ type }) => type === 'message');
    expect(failed).toMatchObject({
      partType: 'error',
      content: expect.stringContaining('ended in the middle of a turn'),
      reported: [{ title: 'Edit c11.txt', status: 'completed' }],
    });
    const entries = await talk('c11', 'go on', 'dev', 2);
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    const sessions = answers.map(({ sessionId }) => sessionId);
    expect(sessions.length).toBe(3);
    expect(new Set(sessions).size).toBe(1);
    expect(checkLog(await project.logFile('c11'))).toEqual([]);
  });

  it('a stop keeps what was done, and the session, which the next turn continues', async () => {
    await post('c12', 'work build it', 'dev');
    await until(async () => (await told('work build it')).length > 0);
    await sleep(100); // its call follows
    await client.request('stop', { conversation: 'c12', agent: 'dev', publisher: 'alice' });
    const stopped = (await followUntil(client, 'c12', over(1))).findLast(({ type }) => type === 'message');
    expect(stopped).toMatchObject({ role: 'assistant', content: '', reported: [{ title: 'build it' }] });
    await client.request('resume', { conversation: 'c12', agent: 'dev', publisher: 'alice' });
    const entries = await talk('c12', 'hello', 'dev', 2);
    const sessions = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual([expect.any(String), sessions[0]?.sessionId]);
    expect(checkLog(await project.logFile('c12'))).toEqual([]);
  });

  it('is told its persona again after it was changed', async () => {
    await talk('c10', 'first words of c10', 'gone', 1);
    await talk('c10', 'second words of c10', 'dev', 2);
    const file = join(project.config, 'agents/dev.md');
    const text = await readFile(file, 'utf8');
    await writeFile(file, `${text}\nALWAYS ADD A TEST.`);
    expect((await project.parley('reload')).stdout).toContain('dev');
    await talk('c10', 'third words of c10', 'dev', 3);
    const texts = (await told('third words of c10')).join('\n');
    expect(texts).toContain('ALWAYS ADD A TEST.');
    expect(texts).not.toContain('second words');
    await writeFile(file, text);
    await project.parley('reload');
  });

  it('a permission that waits survives kill -9 of the daemon, and the edit happens once', async () => {
    await asked('c3', 'edit c3.txt hello');
    await killDaemon();
    expect(await edits('c3.txt')).toBe(0);
    await approve('c3');
    await followUntil(client, 'c3', (entries) => ofType(entries, 'approval-requested').length === 2);
    expect(await edits('c3.txt')).toBe(0); // the program that asked first has ended, so its session asks again
    await approve('c3');
    await followUntil(client, 'c3', over(1));
    expect(checkLog(await project.logFile('c3'))).toEqual([]);
    expect(await edits('c3.txt')).toBe(1);
  });

  it('an operator allows a command for the conversation: it is asked once, and each call is in the log', async () => {
    await asked('c9', 'run date && run date');
    const { stdout } = await project.parley('approvals', 'c9');
    expect(stdout).toContain('with --always also calls of permit_execute with command "date"');
    const id = await approvalOf('c9');
    expect((await project.parley('approve', id, '--always', '--operator')).stdout).toBe(`${id}: approve\n`);
    await followUntil(client, 'c9', over(1));
    await killDaemon();
    const entries = await talk('c9', 'run date', 'dev', 2);
    const [first, ...later] = ofType(entries, 'approval-answered');
    expect(first).toMatchObject({ answer: 'approve', always: true });
    expect(later).toMatchObject([{ grant: first?.index }, { grant: first?.index }]);
    expect(entries.at(-2)).toMatchObject({ content: 'I ran it.' });
    expect((await project.parley('show', 'c9')).stdout).toContain(`approve (always, entry ${first?.index})`);
    await post('c9', 'run uptime', 'dev');
    await followUntil(client, 'c9', (log) => ofType(log, 'approval-requested').length === 4);
    expect(checkLog(await project.logFile('c9'))).toEqual([]);
  });

  it('`explain --prompt` prints the blocks that the program got, byte for byte, also of what arrived during a turn', async () => {
    await asked('c8', 'edit c8.txt hello');
    await post('c8', 'and what else', 'dev');
    await followUntil(client, 'c8', (entries) =>
      entries.some(({ type }) => type === 'message' && entries.length > 5),
    );
    await approve('c8');
    await followUntil(client, 'c8', over(1));
    await talk('c8', 'the next turn', 'dev', 2);
    for (const conversation of ['c2', 'c3', 'c8']) {
      const { received, printed, sent } = await promptsOf(project, client, conversation, 'dev', state);
      expect(printed).toEqual(received);
      expect(new Set(sent)).toEqual(new Set([true]));
    }
    const { report } = await client.request('view', { conversation: 'c8', agent: 'dev' });
    expect(report.told?.prompt).toMatchObject({ sent: 'unknown' });
    const none = await project.parley('explain', 'c2', '--agent', 'pm', '--prompt');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toContain('no prompt of a coding agent is recorded up to here');
  });

  it('a crash in a turn is a visible failure, and the next turn works', async () => {
    await post('c4', 'crash', 'dev');
    const failed = await followUntil(client, 'c4', over(1));
    expect(JSON.stringify(failed)).toContain('ended in the middle of a turn (it says: the key is [secret])');
    expect(JSON.stringify(failed)).not.toContain(KEY); // CODING-AGENTS-2
    const entries = await talk('c4', 'again', 'dev', 2);
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
  });

  itLong(
    'a turn that fails leaves a prompt that `explain` prints, and its message is told again in the session',
    async () => {
      await talk('c13', 'hello', 'dev', 1);
      await talk('c13', 'crash', 'dev', 2);
      const { received, printed, sent } = await promptsOf(project, client, 'c13', 'dev', state);
      expect(printed).toEqual(received);
      expect(sent).toEqual([true, true]);
      await talk('c13', 'again', 'dev', 3);
      const again = await promptsOf(project, client, 'c13', 'dev', state);
      expect(again.printed).toEqual(again.received);
      expect(again.printed[2]).toMatch(/crash.*again/);
      expect(again.printed[2]).not.toContain('hello');
    },
  );

  it('what its own model calls used and cost is in its answer, and leaves the estimate of views alone', async () => {
    const entries = await talk('c7', 'cost 0.25', 'dev', 1);
    const answer = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant');
    const tokens = { inputTokens: 50_000, cachedInputTokens: 40_000, outputTokens: 700 };
    expect(answer).toMatchObject({ usage: { ...tokens, usd: 0.25, byAgent: true } });
    const { report } = await client.request('view', { conversation: 'c7', agent: 'dev' });
    expect(report.token_ratio).toBe(1);
    expect(report.cost.agent).toMatchObject({ usd: 0.25 });
  });

  it('an agent that is not signed in says so and what to do', async () => {
    const entries = await talk('c5', 'hello', 'odd', 1);
    expect(JSON.stringify(entries)).toMatch(
      /is not signed in\. Next step: sign in once as the user of this process/,
    );
  });

  it('a command that is missing is named, with what to do', async () => {
    const entries = await talk('c10', 'hello', 'gone', 1);
    expect(JSON.stringify(entries)).toMatch(
      /there is no program no-such-agent, or no folder .*Next step: install it, or name it by its whole path/,
    );
  });

  it('a stop cancels the prompt, and no text comes after it', async () => {
    await post('c6', 'late', 'dev');
    await followUntil(client, 'c6', (entries) => entries.some(({ type }) => type === 'turn-started'));
    await client.request('stop', { conversation: 'c6' });
    const entries = await followUntil(client, 'c6', over(1));
    expect(JSON.stringify(entries)).not.toContain('after the cancel');
    expect(entries.find(({ type }) => type === 'turn-ended')).toMatchObject({ outcome: 'aborted' });
  });
});
