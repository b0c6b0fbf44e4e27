import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
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
import { shared, sharedFolder } from '../support/lifetime.ts';
import { followUntil } from '../support/log.ts';
import { startProject } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** A person, two LLM agents and a coding agent in one thread, with `kill -9` at each step. */

const state = sharedFolder();
const DEV = `---
name: Dev
runtime: acp
command: ${JSON.stringify([process.execPath, CODING_AGENT])}
env: { ACP_STATE: ${JSON.stringify(state)} }
tools: [handoff]
---
PERSONA OF DEV`;

const project = shared(() =>
  startProject({
    nats: {},
    model: threadModel(editTask),
    agents: threadTeam(DEV),
    settings: THREAD_SETTINGS,
  }),
);
const agent = moments(state);
let { client } = project;

const has = (type: Entry['type'], who?: string) => (entries: readonly Entry[]) =>
  entries.some(
    (entry) => entry.type === type && (who === undefined || ('agent' in entry && entry.agent === who)),
  );

/** Where the thread is when a process is killed: a moment of the edit, or a condition of the log. */
const STEPS: Readonly<Record<string, string | ReturnType<typeof has>>> = {
  'the post is kept': has('message'),
  'Pam begins': has('turn-started', 'pm'),
  'Dev has the floor': has('handoff'),
  'Dev begins': has('turn-started', 'dev'),
  'Dev was prompted': 'before-asking',
  'the approval waits': has('approval-requested'),
  'the edit is allowed': 'allowed',
  'the file is written': 'written',
  'Quinn begins': has('turn-started', 'qa'),
};
const IN_SHORT = new Set(['the edit is allowed']);
const steps = Object.entries(STEPS).filter(([name]) => hasLongTests || IN_SHORT.has(name));

const victims = hasLongTests ? (['daemon', 'agent'] as const) : (['agent'] as const);

describe('a thread with a coding agent', () => {
  it('is planned, edited with the approval of a named person, reviewed by the difference, and returned', async () => {
    await client.post({ conversation: 'calm', content: 'please make calm.txt', publisher: 'alice' });
    const entries = await finishThread(client, 'calm');
    expect(threadFaults(entries)).toEqual([]);
    expect(agent.edits('calm.txt')).toBe(1);
  });

  describe.each(victims)('with kill -9 of the %s', (victim) => {
    it.each(victim === 'daemon' ? steps : steps.filter(([, at]) => typeof at === 'string'))(
      'while %s: nothing is lost or applied twice, each permission is answered once',
      async (name, at) => {
        const conversation = `${victim}-${name}`.replaceAll(' ', '-').toLowerCase();
        const file = `${conversation}.txt`;
        if (typeof at === 'string') agent.hold(at, file);
        await client.post({ conversation, content: `please make ${file}`, publisher: 'alice' });
        const reached = new AbortController();
        if (name === 'the approval waits') reached.abort();
        const answering = finishThread(client, conversation, reached.signal);
        const pid = typeof at === 'string' ? await agent.reached(at, file) : 0;
        if (typeof at === 'function') await followUntil(client, conversation, at);
        reached.abort();
        await answering;
        if (victim === 'daemon') client = await killDaemon(project);
        else if (pid > 0) process.kill(pid, 'SIGKILL');
        if (typeof at === 'string') agent.release(at, file);
        const entries = await finishThread(client, conversation);
        expect(threadFaults(entries, at !== 'written')).toEqual([]);
        expect(agent.edits(file)).toBe(1);
      },
    );
  });
});
