import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import {
  type AgentHandler,
  type Entry,
  type ParleyClient,
  readConnectionFile,
} from '../../src/client/index.ts';
import { gate } from '../support/gate.ts';
import { endChild, shared } from '../support/lifetime.ts';
import { checkLog, followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, providerSettings, startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** Remote agents, beside a real daemon and its managed server. */

const example = (path: string) => fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
const hasPython = spawnSync('python3', ['--version']).status === 0;

const AGENTS = {
  pm: '---\nname: Pam\n---\nPERSONA OF PAM',
  critic: '---\nname: Carl\nruntime: bus\ntools: [set_phase, delegate, handoff]\n---\nPERSONA OF CARL',
};

const project = shared(() => startProject({ model: () => ({ text: 'Pam says yes.' }), agents: AGENTS }));
const { provider, client, daemon } = project;

let program: ParleyClient | null = null;

/** A process that is the critic until the test ends. */
async function critic(handler: AgentHandler): Promise<void> {
  program = await project.connect();
  await program.agent('critic', handler);
}
afterEach(async () => {
  await program?.close();
  program = null;
});

async function converse(conversation: string, content: string, turns = 1): Promise<Entry[]> {
  await client.post({ conversation, content, publisher: 'alice' });
  return followUntil(client, conversation, turnsEnded(turns));
}

function saidBy(slug: string, entries: readonly Entry[]): (string | null)[] {
  return entries.flatMap((entry) =>
    entry.type === 'message' && entry.role === 'assistant' && entry.agentId === slug ? [entry.content] : [],
  );
}

/** A process that is the critic. Resolves once it reports that it is connected. */
async function startProgram(command: string, args: readonly string[]): Promise<() => Promise<void>> {
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => endChild(child, 'SIGTERM');
  project.defer(end);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${command} ended with ${code} before it was there`);
  });
  await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended]);
  ended.catch(() => {});
  return end;
}

describe('a daemon with remote agents', () => {
  it('a message to a remote agent that is not connected is answered in the conversation', async () => {
    const entries = await converse('nobody', '@critic hello');
    expect(saidBy('critic', entries).join()).toContain('LLM_ERROR {"code":"AGENT_NOT_CONNECTED"');
  });

  it('`agents` shows whether a remote agent is connected, without starting a turn', async () => {
    const statusOf = async (slug: string) =>
      (await client.request('agents', {})).agents.find((agent) => agent.slug === slug)?.status;
    expect([await statusOf('critic'), await statusOf('pm')]).toEqual(['not connected', 'idle']);
    const doctor = await project.parley('doctor', '--config', project.config);
    expect(doctor.stdout).toContain('agent critic (runtime: bus): not connected');
    let turns = 0;
    await critic(() => {
      turns += 1;
      return 'a turn';
    });
    expect(await statusOf('critic')).toBe('idle');
    expect(turns).toBe(0);
    await program?.close();
    expect(await statusOf('critic')).toBe('not connected');
  });

  it('an agent that ignores invalid offers counts as connected', async () => {
    const old = await openNats((await readConnectionFile(project.data)) ?? { url: '' });
    old.subscribe('parley.agent.critic.turn', { callback: () => {} });
    await old.flush();
    const { agents } = await client.request('agents', {});
    expect(agents.find(({ slug }) => slug === 'critic')?.status).toBe('idle');
    await old.close();
  });

  it('the daemon runs the tools that a remote agent calls, and keeps its answer and session', async () => {
    const sessions: (string | undefined)[] = [];
    await critic(async (turn) => {
      sessions.push(turn.sessionId);
      expect(turn.messages[0]?.content).toContain('PERSONA OF CARL');
      expect(turn.tools.map((tool) => tool.function.name)).toContain('set_phase');
      const [result] = await turn.callTools([
        { name: 'set_phase', arguments: { phase: 'plan', reason: 'it is time' } },
      ]);
      return { content: `It said: ${result?.content}`, sessionId: 'session-7' };
    });
    const entries = await converse('tools', '@critic set the phase');
    expect(saidBy('critic', entries)).toEqual([null, 'It said: The phase is now plan.']);
    expect(checkLog(await project.logFile('tools'))).toEqual([]);
    await converse('tools', '@critic again', 2);
    expect(sessions).toEqual([undefined, 'session-7']);
  });

  it('a remote agent delegates to an agent of the daemon, and continues with the answer', async () => {
    await critic(async (turn) => {
      const [result] = await turn.callTools([
        { name: 'delegate', arguments: { to: 'pm', request: 'Is it good?' } },
      ]);
      return `Pam was asked: ${result?.content}`;
    });
    await client.post({ conversation: 'delegation', content: '@critic ask Pam', publisher: 'alice' });
    const entries = await followUntil(client, 'delegation', (so) => saidBy('critic', so).length === 2);
    expect(saidBy('critic', entries).at(-1)).toBe('Pam was asked: Pam says yes.');
  });

  it('a remote agent is notified when its tool call ended its turn', async () => {
    let failure: unknown;
    await critic(async (turn) => {
      await turn
        .callTools([{ name: 'handoff', arguments: { to: 'pm', summary: 'your turn' } }])
        .catch((error: unknown) => {
          failure = error;
        });
      return 'not to be heard';
    });
    const entries = await converse('handoff', '@critic hand over', 2);
    expect(saidBy('critic', entries)).toEqual([null]);
    expect(saidBy('pm', entries)).toEqual(['Pam says yes.']);
    await expect.poll(() => failure).toMatchObject({ code: 'TURN_OVER' });
  });

  it('a remote agent is stopped when a person requests it, and its text is kept', async () => {
    let aborted = false;
    await critic(async (turn) => {
      while (!turn.signal.aborted) {
        turn.write('and ');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      aborted = true;
      return 'never';
    });
    await client.post({ conversation: 'stop', content: '@critic think', publisher: 'alice' });
    for await (const event of client.follow('stop')) if (event.kind === 'live') break;
    await client.request('stop', { conversation: 'stop' });
    const entries = await followUntil(client, 'stop', turnsEnded(1));
    expect(saidBy('critic', entries).join()).toMatch(/^(and )+$/);
    await expect.poll(() => aborted).toBe(true);
  });

  it('a remote agent that was killed is offered its turn again, with the results so far', async () => {
    const asked: number[] = [];
    const { open: reached, passed: waiting } = gate();
    await critic(async (turn) => {
      asked.push(turn.messages.length);
      if (asked.length > 1) return `taken up with ${turn.messages.at(-1)?.content}`;
      await turn.callTools([{ name: 'set_phase', arguments: { phase: 'plan', reason: 'so' } }]);
      reached();
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve));
      return 'of the first offer';
    });
    await client.post({ conversation: 'killed', content: '@critic work', publisher: 'alice' });
    await waiting;
    await daemon.kill9();
    await project.up();
    const entries = await followUntil(client, 'killed', turnsEnded(1));
    expect(checkLog(await project.logFile('killed'))).toEqual([]);
    expect(saidBy('critic', entries)).toEqual([null, 'taken up with The phase is now plan.']);
  });
});

describe('the example agents', () => {
  itLong('the example in TypeScript works as an agent', async () => {
    const program = ['--import', 'tsx', example('remote-agent/agent.ts'), 'critic', project.data];
    const end = await startProgram(process.execPath, program);
    const entries = await converse('typescript', '@critic is this short enough?');
    expect(saidBy('critic', entries)).toEqual(['Let me see. You used 5 words; that is short enough.']);
    await end();
  });

  it.runIf(hasLongTests && hasPython)(
    'the examples in Python for an agent and a publisher use each server that the daemon names',
    async () => {
      const data = join(project.root, 'several');
      await mkdir(data);
      const address = JSON.parse(await readFile(join(project.data, 'connection.json'), 'utf8'));
      const urls = ['nats://127.0.0.1:1', address.url]; // the first one is down
      await writeFile(join(data, 'connection.json'), JSON.stringify({ ...address, url: urls[0], urls }));
      const end = await startProgram('python3', [example('remote-agent-python/agent.py'), 'critic', data]);
      const post = spawnSync('node', [example('post/post.mjs'), 'several', '@critic is this short?'], {
        env: { ...process.env, PARLEY_DATA: data },
        encoding: 'utf8',
      });
      expect(post.stdout).toContain('Let me see. 4 words, 4 different ones.');
      await end();
    },
  );

  it.skipIf(!hasPython || !hasLongTests)(
    'the example in Python survives a restart of the daemon, and reports it',
    async () => {
      const own = await openProject({ settings: providerSettings(provider.url), agents: AGENTS });
      const child = spawn('python3', [example('remote-agent-python/agent.py'), 'critic', own.data], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      const exited = once(child, 'exit');
      let said = '';
      child.stderr.on('data', (data: Buffer) => {
        said += data.toString();
      });
      const connections = () => said.split('parley: connected to').length - 1;
      try {
        await expect.poll(() => said).toContain('no daemon has left its address');
        for (const round of [1, 2]) {
          const running = await own.up();
          await expect.poll(connections).toBe(round);
          const answer = await own.parley('say', `round-${round}`, '@critic is this short?', '--wait');
          expect(answer.stdout).toContain('Let me see. 4 words, 4 different ones.');
          expect(await running.stop()).toBe(0);
          await expect.poll(() => said.split('trying again').length - 1).toBeGreaterThan(round);
        }
        expect(child.exitCode).toBe(null);
      } finally {
        child.kill('SIGTERM');
        await exited;
        await own.close();
      }
    },
  );
});
