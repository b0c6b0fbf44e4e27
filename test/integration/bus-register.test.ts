import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { reserveSubjects } from '../../src/bus/nats/index.ts';
import type { ParleyError } from '../../src/kernel/index.ts';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { recordingLog, startBroker } from '../unit/bus/support.ts';

/** Without it, two daemons on one server and prefix would both answer every post. */
describe('the registration of a daemon', { timeout: 60_000 }, () => {
  const broker = perTest(() => startBroker());
  afterEach(() => void vi.useRealTimers());

  /** Starts this many registrations with this delay between them. Returns the codes of those that were refused. */
  async function registerTogether(count: number, apartMs: number): Promise<string[]> {
    const buses = await Promise.all(Array.from({ length: count }, () => broker.bus()));
    const outcomes = await Promise.all(
      buses.map(async (bus, place) => {
        await pause(place * apartMs);
        try {
          await bus.register();
          return 'registered';
        } catch (error) {
          await bus.close(); // as a daemon that does not start
          return (error as ParleyError).code;
        }
      }),
    );
    await Promise.all(buses.map((bus) => bus.close()));
    return outcomes.filter((outcome) => outcome !== 'registered');
  }

  it('a registration without another daemon waits for no answer, and has nothing to report', async () => {
    const { bus, lines } = await broker.recording();
    vi.useFakeTimers({ toFake: ['setTimeout'] }); // a wait for answers would never end
    await bus.register();
    expect(lines).toEqual([]);
  });

  it('a registration is refused while another daemon serves, with its name, place and the remedy', async () => {
    await (await broker.bus()).register();
    const second = await broker.bus();
    await expect(second.register()).rejects.toMatchObject({
      code: 'DAEMON_ALREADY_SERVING',
      message: expect.stringMatching(
        new RegExp(`process ${process.pid} on .* serves parley\\.> on nats://127`),
      ),
      hint: expect.stringContaining('subjectPrefix'),
    });
  });

  itLong('a registration is refused by a daemon that answers requests as well', async () => {
    const first = await broker.bus();
    await first.register();
    await first.serve(['agents'], async () => ({ ok: true, body: {} }));
    await expect((await broker.bus()).register()).rejects.toMatchObject({ code: 'DAEMON_ALREADY_SERVING' });
    expect((await broker.plain.request('parley.api.agents')).json()).toEqual({});
  });

  it('a registration with shared logs succeeds beside other shared logs, and not beside logs of one daemon', async () => {
    await (await broker.bus({ store: 'jetstream' })).register();
    await (await broker.bus({ store: 'jetstream' })).register();
    await expect((await broker.bus()).register()).rejects.toMatchObject({
      code: 'DAEMON_ALREADY_SERVING',
      message: expect.stringContaining('store jetstream'),
    });
  });

  itLong(
    'a registration is refused beside a daemon with logs of its own, even if its own logs are shared',
    async () => {
      await (await broker.bus()).register();
      await expect((await broker.bus({ store: 'jetstream' })).register()).rejects.toMatchObject({
        code: 'DAEMON_ALREADY_SERVING',
      });
    },
  );

  it('a registration is refused during a migration, and so is another migration, which learns the holder', async () => {
    const { log } = recordingLog();
    const held = await reserveSubjects(broker.plain, createSubjects(), log);
    const refused = {
      code: 'MIGRATION_RUNNING',
      message: expect.stringContaining(`\`parley migrate\` (process ${process.pid} on`),
      hint: expect.stringContaining('wait until it has ended'),
    };
    const daemon = await broker.bus();
    await expect(daemon.register()).rejects.toMatchObject(refused);
    await daemon.close(); // as one that does not start
    await expect(reserveSubjects(broker.plain, createSubjects(), log)).rejects.toMatchObject(refused);
    await held.release();
    await (await reserveSubjects(broker.plain, createSubjects(), log)).release();
  });

  it('a registration succeeds once the other daemon has ended', async () => {
    const first = await broker.bus();
    await first.register();
    await first.close();
    await (await broker.bus()).register();
  });

  it('a registration succeeds beside a daemon of another prefix, and beside a service that only has the same name', async () => {
    await (await broker.bus({ subjects: createSubjects('other') })).register();
    await (await broker.bus({ subjects: createSubjects('par.ley') })).register();
    await broker.plain.services.add({ name: 'parley', version: '9.9.9' });
    await (await broker.bus()).register();
  });

  it('a registration is refused for a prefix whose streams have the names of another prefix', async () => {
    await (await broker.bus({ subjects: createSubjects('par.ley') })).register();
    await expect(broker.bus({ subjects: createSubjects('par_ley') })).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
    });
  });

  const moments = [
    [8, 0],
    [2, 0],
    [4, 60],
    [4, 150],
  ] as const;
  it.each(moments.slice(0, hasLongTests ? 4 : 1))(
    'exactly one of %i registrations that begin %i ms apart succeeds',
    async (count, apartMs) => {
      for (let round = 0; round < 2; round++) {
        expect(await registerTogether(count, apartMs)).toEqual(
          Array(count - 1).fill('DAEMON_ALREADY_SERVING'),
        );
      }
    },
  );

  it('a registration that may not search for others continues with a warning', async () => {
    const denied = await startBroker(
      'authorization { users: [{ user: a, password: b, permissions: { publish: { deny: ["$SRV.>"] } } }] }\nno_auth_user: a',
    );
    const { log, lines } = recordingLog();
    await (await denied.bus({ log })).register();
    await denied.stop();
    expect(lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('no daemon answered the search'),
    );
  });
});
