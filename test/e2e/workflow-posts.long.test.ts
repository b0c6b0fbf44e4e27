import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import type { CrashPoint } from '../../src/daemon/index.ts';
import { perTest } from '../support/lifetime.ts';
import { checkLog, followUntil, ofType } from '../support/log.ts';
import { openProject } from '../support/project.ts';

/** A post with a workflow, on a server of its own: rights, `parley run`, and kills between its steps. */

const POINTS: readonly CrashPoint[] = [
  'before-append',
  'after-append',
  'before-model-call',
  'after-model-call',
  'before-answer',
];
const talk = `
id: talk
start: consult
nodes:
  consult: { agent: lead, brief: Talk., outcomes: { done: end } }
`;
const script = `
rules:
  - when: { agent: lead, mode: run }
    reply:
      text: 'It is a clock.'
      tool_calls: [ { name: complete_node, arguments: { outcome: done, summary: A clock. } } ]
  - reply: { text: 'Noted.' }
`;

describe('a post with a workflow', () => {
  const env: Record<string, string> = {};

  const project = perTest(() =>
    openProject({
      nats: {},
      env,
      settings: { publishers: { desk: { workflows: ['talk'] } } },
      agents: { lead: '---\nname: Lead\n---\nYou lead.' },
      files: { 'workflows/talk.yaml': talk },
      script,
    }),
  );

  const isOver = (entries: readonly Entry[]) => {
    const end = ofType(entries, 'run-ended').at(-1)?.index ?? Number.POSITIVE_INFINITY;
    return ofType(entries, 'turn-ended').some(({ index }) => index > end);
  };

  it.each(POINTS)('starts one run with its input when the daemon is killed at %s', async (point) => {
    env.PARLEY_CRASH_POINTS = `${point}:1`;
    const first = await project.up('--allow-crash-points');
    const post = { content: 'a clock', workflow: 'talk', id: 'begin' };
    const client = await project.connect();
    const body = { ...post, conversation: 'demo', publisher: 'desk' };
    const [exitCode] = await Promise.all([first.exited, client.post(body).catch(() => undefined)]);
    expect(exitCode).toBeNull();
    delete env.PARLEY_CRASH_POINTS;
    const second = await project.up();
    const again = await client.post(body);
    const entries = await followUntil(client, 'demo', isOver);
    expect(ofType(entries, 'run-started')).toHaveLength(1);
    expect(ofType(entries, 'run-ended')).toMatchObject([{ outcome: 'done' }]);
    const inputs = ofType(entries, 'message').filter(({ role }) => role === 'user');
    expect(inputs).toMatchObject([{ id: 'begin', workflow: 'talk', index: again.index }]);
    await second.stop();
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });

  it('parley run starts it, waits for its end, and needs an operator or the row of the publisher', async () => {
    await project.up();
    const run = (...more: string[]) => project.parley('run', 'talk', 'a clock', ...more);
    const desk = await run('--publisher', 'desk', '--conversation', 'one', '--wait');
    expect(desk).toMatchObject({ code: 0, stdout: expect.stringContaining('It is a clock.') });
    expect(desk.stderr).toContain('the run of talk ended: done (A clock.)');
    const ann = await run('--publisher', 'ann', '--conversation', 'two', '--wait');
    expect(ann).toMatchObject({ code: 1, stdout: '' });
    expect(ann.stderr).toContain('ann may not start the workflow talk');
    const operator = await run('--publisher', 'ann', '--conversation', 'two', '--operator', '--wait');
    expect(operator).toMatchObject({ code: 0, stdout: expect.stringContaining('It is a clock.') });
    const unknown = await project.parley('run', 'none', 'a clock', '--operator');
    expect(unknown.stderr).toMatch(/there is no workflow none[\s\S]*workflows: talk/);
  });
});
