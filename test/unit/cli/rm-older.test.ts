import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { fakeDaemon, start } from './support.ts';

const DAY = 86_400_000;
const row = (id: string, days: number) => {
  const none = { running: [], waiting: [], limited: [], stopped: [] };
  const updatedAt = new Date(Date.now() - days * DAY).toISOString();
  return {
    id,
    title: `About ${id}`,
    phase: 'chat',
    mode: 'agent',
    activeAgent: null,
    length: 2,
    updatedAt,
    ...none,
  };
};

/** `rm --older-than 90d` as a person at a terminal has it: two conversations are as old. */
function atTerminal(...more: string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const chunks: string[] = [];
  stdout.on('data', (data: Buffer) => chunks.push(data.toString()));
  const conversations = [row('one', 91), row('new', 89), row('two', 400)];
  const daemon = fakeDaemon({
    conversations: { conversations, next: null },
    delete: { deleted: true, existed: true },
  });
  const running = start(['rm', '--older-than', '90d', ...more], { daemon, io: { stdin, stdout } });
  return {
    running,
    type: (text: string) => stdin.write(text),
    screen: () => chunks.join(''),
    deleted: () =>
      daemon.requests.flatMap(({ endpoint, body }) =>
        endpoint === 'delete' ? (body as { conversation: string }).conversation : [],
      ),
  };
}
const QUESTION = 'Delete these 2? [y/N] ';

describe('the question of rm --older-than on a terminal', () => {
  it.each(['y\r', 'Yes\r'])('deletes what it listed after the answer %j', async (answer) => {
    const { running, type, screen, deleted } = atTerminal();
    await expect.poll(screen).toContain(QUESTION);
    expect(screen()).toMatch(/one +About one[\s\S]*two +About two/);
    expect(screen()).not.toContain('About new');
    expect(deleted()).toEqual([]);
    type(answer);
    expect((await running.done).code).toBe(0);
    expect(deleted()).toEqual(['one', 'two']);
  });

  it.each(['n\r', '\r', 'yesterday\r', '\u0003', '\u0004'])(
    'deletes nothing after the answer %j, and ends',
    async (answer) => {
      const { running, type, screen, deleted } = atTerminal();
      await expect.poll(screen).toContain(QUESTION);
      type(answer);
      const { code, err } = await running.done;
      expect([code, err]).toEqual([0, expect.stringContaining('nothing is deleted')]);
      expect(deleted()).toEqual([]);
    },
  );

  it('is not asked with --yes', async () => {
    const { running, screen, deleted } = atTerminal('--yes');
    expect((await running.done).code).toBe(0);
    expect(screen()).not.toContain('[y/N]');
    expect(deleted()).toEqual(['one', 'two']);
  });
});
