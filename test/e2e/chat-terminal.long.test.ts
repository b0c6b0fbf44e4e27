import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { launcher } from '../support/cli.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { openProject, type Project } from '../support/project.ts';
import { hasPython, openTerminal, type Terminal } from '../support/terminal.ts';

/** A chat in a real terminal, while its daemon is killed and started again. */

const LONG =
  'This answer has enough words for several lines of a narrow terminal, and it takes some time to arrive.';
const SCRIPT = [
  { when: { last: 'slow' }, reply: { text: LONG, delayMs: 150 } },
  { reply: { text: 'Answer to {{last}}' } },
];
const PATIENCE = { timeout: 60_000 };

let project: Project;

async function openChat(...args: readonly string[]): Promise<Terminal> {
  const terminal = openTerminal([launcher, 'chat', 'demo', '--data', project.data, ...args]);
  project.defer(() => terminal.end());
  terminal.tell({ columns: 40 });
  await expect.poll(terminal.screen, PATIENCE).toContain('\u001b[?2004h');
  return terminal;
}

const messagesOf = async () =>
  ((await project.parley('show', 'demo', '--json')).json() as Entry[]).filter(
    (entry) => entry.type === 'message' && entry.author.kind === 'person',
  );

describe.runIf(hasPython)('a chat in a terminal', { timeout: 180_000 }, () => {
  it('a chat survives kill -9 of the daemon in an answer: messages are posted once, in order, after the restart', async () => {
    const agents = { lead: '---\nname: Lead\ndescription: leads\n---\nYou lead.' };
    project = untilTestEnds(await openProject({ agents, script: SCRIPT }));
    const daemon = await project.up();
    const { screen, tell } = await openChat();
    tell({ type: 'slow\r' });
    await expect.poll(screen, PATIENCE).toContain('several lines');
    await daemon.kill9();
    await expect.poll(screen, PATIENCE).toContain('the daemon does not answer');
    tell({ type: 'first\rsecond\r' });
    await expect.poll(() => screen().match(/· kept/g), PATIENCE).toHaveLength(2);
    await project.up();
    await expect.poll(screen, PATIENCE).toContain('Answer to second');
    expect(screen().match(/the daemon answers again/g)).toHaveLength(1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
    const text = screen().replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, '');
    expect(text.replaceAll(/\s+/g, ' ')).toContain(`Lead: ${LONG}`);
    for (const line of text.split(/\r?\n/))
      if (line.startsWith('  ')) expect(line.length).toBeLessThanOrEqual(40);
    expect((await messagesOf()).map((entry) => 'content' in entry && entry.content)).toEqual([
      'slow',
      'first',
      'second',
    ]);
    tell({ type: '\u0004' });
    await expect.poll(screen, PATIENCE).toContain('exit 0');
  });

  it('the command that a chat prints for an unsent message posts it', async () => {
    project = untilTestEnds(await openProject());
    const daemon = await project.up();
    const { screen, tell } = await openChat('--publisher', 'ann');
    tell({ type: '/agents\r' }); // it is answered when the chat has read who there is
    await expect.poll(screen, PATIENCE).toContain('idle');
    await daemon.stop();
    await expect.poll(screen, PATIENCE).toContain('the daemon does not answer');
    tell({ type: 'later\r' });
    await expect.poll(screen, PATIENCE).toContain('· kept');
    tell({ type: '\u0004' });
    await expect.poll(screen, PATIENCE).toContain('exit 1');
    const [, id = ''] = /say demo later --id (\S+) --publisher ann --data/.exec(screen()) ?? [];
    await project.up();
    for (const _ of [1, 2]) await project.parley('say', 'demo', 'later', '--id', id, '--publisher', 'ann');
    expect(await messagesOf()).toMatchObject([{ id, content: 'later', author: { id: 'ann' } }]);
  });
});
