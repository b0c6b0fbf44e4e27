import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { untilTestEnds } from '../support/lifetime.ts';
import { entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { openProject, type Project } from '../support/project.ts';

const agent = (keys: string) => `---\nname: Critic\ndescription: checks\nruntime: bus\n${keys}---\nCheck.`;

describe.each(['file', 'jetstream'] as const)(
  'an agent whose program is not connected, with the %s store',
  (store) => {
    let project: Project;
    const start = async (keys: string) => {
      const agents = { pm: '---\nname: PM\n---\nAnswer.', critic: agent(keys) };
      const script = [{ reply: { text: 'Noted.' } }];
      project = untilTestEnds(await openProject({ nats: {}, agents, script }));
      return project.up('--store', store);
    };
    const waiting = async () => {
      const status = await (await project.connect()).request('status', {});
      return [status.agents, status.waiting.first.map(({ since: _, ...one }) => one)];
    };
    const WAITS = [
      [{ agent: 'critic', connected: false, absent: 'wait' }],
      [
        {
          conversation: 'c',
          title: '@critic look',
          agent: 'critic',
          status: 'waiting',
          for: 'program',
          of: 'critic',
        },
      ],
    ];

    it('with absent: wait its turn waits visibly, also over a restart of the daemon, until the program connects', async () => {
      const daemon = await start('absent: wait\n');
      await project.parley('say', 'c', '@critic look');
      await expect.poll(waiting).toEqual(WAITS);
      expect((await project.parley('ls')).stdout).toMatch(
        /^c .* critic waiting +the program of critic \(\d+s\) /m,
      );
      const agents = (await project.parley('agents', '--json')).json();
      expect(agents[0]).toMatchObject({ slug: 'critic', status: 'waiting', connected: false });
      expect((await project.parley('agents')).stdout).toMatch(/^critic .* waiting, not connected /m);
      await daemon.kill9();
      await project.up('--store', store);
      await expect.poll(waiting).toEqual(WAITS);
      const program = await project.connect();
      await program.agent('critic', () => 'Looks fine.');
      const entries = await followUntil(await project.connect(), 'c', turnsEnded(1));
      expect(entries.filter((entry) => entry.type === 'message').map(({ content }) => content)).toEqual([
        '@critic look',
        'Looks fine.',
      ]);
      await expect.poll(waiting).toEqual([[{ agent: 'critic', connected: true, absent: 'wait' }], []]);
    }, 60_000);

    it('with absentSeconds its turn fails after that time', async () => {
      await start('absent: wait\nabsentSeconds: 2\n');
      const begun = performance.now();
      await project.parley('say', 'c', '@critic look');
      await followUntil(await project.connect(), 'c', turnsEnded(1));
      expect(performance.now() - begun).toBeGreaterThan(2_000);
      const entries = await entriesOf(await project.connect(), 'c');
      expect(JSON.stringify(entries)).toContain('AGENT_NOT_CONNECTED');
    }, 30_000);

    it('a restart of the daemon does not restart its wait', async () => {
      const daemon = await start('absent: wait\nabsentSeconds: 20\n');
      const begun = performance.now();
      await project.parley('say', 'c', '@critic look');
      await expect.poll(waiting).toEqual(WAITS);
      await sleep(10_000);
      await daemon.kill9();
      await project.up('--store', store);
      await followUntil(await project.connect(), 'c', turnsEnded(1));
      expect(performance.now() - begun).toBeLessThan(29_000); // 10 s, a start, and 10 s; restarted, it would take more than 30 s
    }, 90_000);
  },
);
