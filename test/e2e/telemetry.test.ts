import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { untilTestEnds } from '../support/lifetime.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, type RunningDaemon } from '../support/project.ts';

/** Waits for the file `gate` once it has reported that it runs. */
const BLOCKING = 'touch started; until [ -e gate ]; do sleep 0.05; done; echo the-secret-word';

const callShell = (command: string) => ({ tool_calls: [{ name: 'shell', arguments: { command } }] });
const SCRIPT = [
  { when: { tool: 'shell' }, reply: { text: 'that is done' } },
  { when: { last: 'run it' }, reply: callShell(BLOCKING) },
  { reply: { text: 'noted' } },
];

describe('a daemon with PARLEY_TELEMETRY=console', { timeout: 60_000 }, () => {
  let project: Project;
  const open = async () => {
    project = untilTestEnds(
      await openProject({
        nats: {},
        env: { PARLEY_TELEMETRY: 'console' },
        settings: { tools: { risk: { shell: 'safe' } } },
        agents: { lead: '---\nname: Lead\ndescription: leads\ntools: [shell]\n---\nYou lead.' },
        script: SCRIPT,
      }),
    );
  };
  const types = (daemon: RunningDaemon): string[] => daemon.events().map(({ type }) => type);
  const say = async (content: string) => {
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content });
    return client;
  };

  afterEach(() => writeFile(join(project.root, 'gate'), '')); // A killed daemon does not stop its command, so let it end.

  itLong('telemetry reports turns and calls, and the recovery after a kill during a tool call', async () => {
    await open();
    const first = await project.up();
    await say('run it');
    const started = () => access(join(project.root, 'started')).then(() => true);
    await expect.poll(() => started().catch(() => false)).toBe(true);
    expect(types(first)).toEqual(['turn_started', 'view_built', 'model_call']);
    await first.kill9();

    const second = await project.up();
    await expect.poll(() => types(second)).toContain('conversation_repair_applied');
    await writeFile(join(project.root, 'gate'), '');
    const client = await project.connect();
    const entries = await followUntil(client, 'demo', turnsEnded(1));
    expect(await second.stop()).toBe(0);
    const events = second.events();
    const { turnId } = events[0];
    const ofTurn = { conversation: 'demo', agent: 'lead', turnId };
    const end = entries.find((entry) => entry.type === 'turn-ended');
    const answer = entries.findLast((entry) => entry.type === 'message' && entry.role === 'assistant');
    const requestHash = answer?.type === 'message' ? answer.requestHash : '';
    expect(events).toMatchObject([
      { ...ofTurn, type: 'turn_started', resumed: true },
      {
        type: 'conversation_repair_applied',
        conversation: 'demo',
        resumed: 1,
        repaired: 0,
        retried: 1,
        unknown: 0,
      },
      { ...ofTurn, type: 'tool_result_persisted', tool: 'shell', isPreview: false },
      { ...ofTurn, type: 'view_built', requestHash },
      { ...ofTurn, type: 'model_call', model: 'default', call: 2, outcome: 'answered', requestHash },
      {
        ...ofTurn,
        type: 'turn_ended',
        outcome: 'completed',
        index: end?.index,
        lastProcessedMessageIndex: end?.lastProcessedMessageIndex,
      },
    ]);
    for (const event of events) expect(event.ts).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const words = /the-secret-word|run it|that is done|touch|You lead/;
    expect(JSON.stringify([...first.events(), ...events])).not.toMatch(words);
  });

  it('the daemon continues if its stdout is closed', async () => {
    await open();
    const daemon = await project.up();
    daemon.closeStdout();
    const client = await say('hello');
    await followUntil(client, 'demo', turnsEnded(1));
    await say('still there?');
    await followUntil(client, 'demo', turnsEnded(2));
    expect(daemon.stderr()).toContain('telemetry ends');
    expect(await daemon.stop()).toBe(0);
  });

  it('a daemon whose log has no reader any more continues, and stops in order', async () => {
    await open();
    const daemon = await project.up();
    daemon.closeStderr();
    expect((await project.parley('reload')).code).toBe(0); // it logs
    await followUntil(await say('still there?'), 'demo', turnsEnded(1));
    expect(await daemon.stop()).toBe(0);
  });
});
