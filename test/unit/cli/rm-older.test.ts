import { describe, expect, it } from 'vitest';
import { fakeDaemon, start, terminal } from './support.ts';

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

/** `rm --older-than 90d` at a terminal, with two conversations of that age. */
function atTerminal(...more: string[]) {
  return terminalWith([row('one', 91), row('new', 89), row('two', 400)], ...more);
}

function terminalWith(conversations: ReturnType<typeof row>[], ...more: string[]) {
  const { io, type, screen } = terminal();
  const daemon = fakeDaemon({
    conversations: { conversations, next: null },
    delete: { deleted: true, existed: true },
  });
  const running = start(['rm', '--older-than', '90d', ...more], { daemon, io });
  return {
    running,
    type,
    screen,
    deleted: () =>
      daemon.requests.flatMap(({ endpoint, body }) =>
        endpoint === 'delete' ? (body as { conversation: string }).conversation : [],
      ),
  };
}
const QUESTION = 'Delete these 2? [y/N] ';

describe('the question of rm --older-than on a terminal', () => {
  it.each(['y\r', 'Yes\r'])('rm --older-than deletes what it listed after the answer %j', async (answer) => {
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
    'rm --older-than deletes nothing and ends after the answer %j',
    async (answer) => {
      const { running, type, screen, deleted } = atTerminal();
      await expect.poll(screen).toContain(QUESTION);
      type(answer);
      const { code, err } = await running.done;
      expect([code, err]).toEqual([0, expect.stringContaining('nothing is deleted')]);
      expect(deleted()).toEqual([]);
    },
  );

  it('rm --older-than does not ask with --yes', async () => {
    const { running, screen, deleted } = atTerminal('--yes');
    expect((await running.done).code).toBe(0);
    expect(screen()).not.toContain('[y/N]');
    expect(deleted()).toEqual(['one', 'two']);
  });
});

describe('rm --older-than if the clock may have been set forward', () => {
  const jumped = () => [row('one', 98), row('two', 400), row('new', 1)];

  it('rm --older-than --yes deletes nothing after a clock jump, and says how to continue', async () => {
    const { running, deleted } = terminalWith(jumped(), '--yes');
    const { code, err } = await running.done;
    expect([code, deleted()]).toEqual([1, []]);
    expect(err).toMatch(
      /the clock may be wrong \(20.+Z\): nothing became due in the last week[\s\S]*parley rm ID/,
    );
  });

  it('rm --older-than reports a clock jump before it asks, and deletes after the answer', async () => {
    const { running, type, screen, deleted } = terminalWith(jumped());
    await expect.poll(screen).toContain(QUESTION);
    type('y\r');
    const { code, err } = await running.done;
    expect([code, err]).toEqual([0, expect.stringContaining('the clock may be wrong')]);
    expect(deleted()).toEqual(['one', 'two']);
  });

  it('rm --older-than --dry-run reports a clock jump', async () => {
    const { running, deleted } = terminalWith(jumped(), '--dry-run', '--yes');
    const { code, err } = await running.done;
    expect([code, err]).toEqual([0, expect.stringContaining('the clock may be wrong')]);
    expect(deleted()).toEqual([]);
  });
});
