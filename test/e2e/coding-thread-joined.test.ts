import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  CODING_AGENT,
  editTask,
  finishThread,
  killDaemon,
  moments,
  THREAD_SETTINGS,
  threadFaults,
  threadModel,
  threadTeam,
} from '../support/acp/thread.ts';
import { launcher, strangersEnvironment } from '../support/cli.ts';
import { shared, sharedFolder } from '../support/lifetime.ts';
import { startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** The thread with a coding agent that joined over NATS, with `kill -9` of each of the three processes at each step. */

const folder = sharedFolder();
const DEV = `---
name: Dev
runtime: bus
absent: wait
tools: [handoff, permit_edit, permit_execute, permit_other]
---
PERSONA OF DEV`;

const project = shared(() =>
  startProject({
    nats: {},
    model: threadModel(editTask),
    agents: threadTeam(DEV),
    settings: { ...THREAD_SETTINGS, agents: { silenceMs: 2_000, heartbeatMs: 500 } },
  }),
);
const agent = moments(folder);
let { client } = project;

async function joined(): Promise<ChildProcess> {
  const command = `${process.execPath} ${CODING_AGENT}`;
  const args = ['join', 'dev', '--command', command, '--cwd', folder, '--nats', project.nats.url];
  const child = spawn(process.execPath, [launcher, ...args], {
    env: { ...strangersEnvironment(), ACP_STATE: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout as NodeJS.ReadableStream, 'data'); // it says that it runs
  return child;
}

const dev = shared(async () => {
  const running = { child: await joined() };
  return {
    running,
    async close() {
      running.child.kill('SIGINT');
      await once(running.child, 'exit');
    },
  };
});

/** As whatever supervises it does. */
async function killJoined(): Promise<void> {
  dev.running.child.kill('SIGKILL');
  await once(dev.running.child, 'exit');
  dev.running.child = await joined();
}

const VICTIMS = {
  async daemon() {
    client = await killDaemon(project);
  },
  'joined process': killJoined,
  agent: async (pid: number) => void process.kill(pid, 'SIGKILL'),
};
const MOMENTS = ['before-asking', 'allowed', 'written'];
const cases = Object.entries(VICTIMS).flatMap(([name, kill]) =>
  MOMENTS.map((at) => [name, at, kill] as const),
);
const inShort = cases.filter(([victim, at]) => victim === 'joined process' && at === 'allowed');

describe('a thread with a coding agent that joined', () => {
  it.each(hasLongTests ? cases : inShort)(
    'with kill -9 of the %s at the moment `%s`: nothing is lost or applied twice, each permission is answered once',
    async (name, at, kill) => {
      const conversation = `${name}-${at}`.replaceAll(' ', '-');
      const file = `${conversation}.txt`;
      agent.hold(at, file);
      await client.post({ conversation, content: `please make ${file}`, publisher: 'alice' });
      const reached = new AbortController();
      const answering = finishThread(client, conversation, reached.signal);
      const pid = await agent.reached(at, file);
      reached.abort();
      await answering;
      await kill(pid);
      agent.release(at, file);
      const entries = await finishThread(client, conversation);
      expect(threadFaults(entries, at !== 'written')).toEqual([]);
      expect(agent.edits(file)).toBe(1);
    },
    60_000,
  );
});
