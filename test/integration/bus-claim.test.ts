import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { reserveSubjects } from '../../src/bus/nats/index.ts';
import type { ParleyError } from '../../src/kernel/index.ts';
import { type Broker, recordingLog, startBroker } from '../unit/bus/support.ts';

/** Two daemons on one server and prefix would both answer every post. */
describe('a daemon that claims a server', { timeout: 60_000 }, () => {
  let broker: Broker;
  beforeEach(async () => {
    broker = await startBroker();
  });
  afterEach(() => broker.stop());

  /** Claims with so many, each so much after the one before; answers the codes of those that were refused. */
  async function claimTogether(count: number, apartMs: number): Promise<string[]> {
    const buses = await Promise.all(Array.from({ length: count }, () => broker.bus()));
    const outcomes = await Promise.all(
      buses.map(async (bus, place) => {
        await pause(place * apartMs);
        try {
          await bus.claim();
          return 'claimed';
        } catch (error) {
          await bus.close(); // as a daemon that does not start
          return (error as ParleyError).code;
        }
      }),
    );
    await Promise.all(buses.map((bus) => bus.close()));
    return outcomes.filter((outcome) => outcome !== 'claimed');
  }

  it('is refused while another serves, and told who, where and what to do', async () => {
    await (await broker.bus()).claim();
    const second = await broker.bus();
    await expect(second.claim()).rejects.toMatchObject({
      code: 'DAEMON_ALREADY_SERVING',
      message: expect.stringMatching(
        new RegExp(`process ${process.pid} on .* serves parley\\.> on nats://127`),
      ),
      hint: expect.stringContaining('subjectPrefix'),
    });
  });

  it('is refused by one that answers requests as well', async () => {
    const first = await broker.bus();
    await first.claim();
    await first.serve(['agents'], async () => ({ ok: true, body: {} }));
    await expect((await broker.bus()).claim()).rejects.toMatchObject({ code: 'DAEMON_ALREADY_SERVING' });
    expect((await broker.plain.request('parley.api.agents')).json()).toEqual({});
  });

  it('works beside others whose logs are shared, and beside none with logs of its own', async () => {
    await (await broker.bus({ store: 'jetstream' })).claim();
    await (await broker.bus({ store: 'jetstream' })).claim();
    await expect((await broker.bus()).claim()).rejects.toMatchObject({
      code: 'DAEMON_ALREADY_SERVING',
      message: expect.stringContaining('store jetstream'),
    });
  });

  it('is refused though its logs are shared, beside one with logs of its own', async () => {
    await (await broker.bus()).claim();
    await expect((await broker.bus({ store: 'jetstream' })).claim()).rejects.toMatchObject({
      code: 'DAEMON_ALREADY_SERVING',
    });
  });

  it('is refused during a migration, and so is another migration, which is told what holds it', async () => {
    const { log } = recordingLog();
    const held = await reserveSubjects(broker.plain, createSubjects(), log);
    const refused = {
      code: 'MIGRATION_RUNNING',
      message: expect.stringContaining(`\`parley migrate\` (process ${process.pid} on`),
      hint: expect.stringContaining('wait until it has ended'),
    };
    const daemon = await broker.bus();
    await expect(daemon.claim()).rejects.toMatchObject(refused);
    await daemon.close(); // as one that does not start
    await expect(reserveSubjects(broker.plain, createSubjects(), log)).rejects.toMatchObject(refused);
    await held.release();
    await (await reserveSubjects(broker.plain, createSubjects(), log)).release();
  });

  it('has it once the other is gone', async () => {
    const first = await broker.bus();
    await first.claim();
    await first.close();
    await (await broker.bus()).claim();
  });

  it('has it beside one of another prefix, and beside what only has the same name', async () => {
    await (await broker.bus({ subjects: createSubjects('other') })).claim();
    await (await broker.bus({ subjects: createSubjects('par.ley') })).claim();
    await broker.plain.services.add({ name: 'parley', version: '9.9.9' });
    await (await broker.bus()).claim();
  });

  it('is refused a prefix whose streams have the names of those of another', async () => {
    await (await broker.bus({ subjects: createSubjects('par.ley') })).claim();
    await expect(broker.bus({ subjects: createSubjects('par_ley') })).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
    });
  });

  it.each([
    [2, 0],
    [8, 0],
    [4, 60],
    [4, 150],
  ])('is the only one of %i that begin together, %i ms apart', async (count, apartMs) => {
    for (let round = 0; round < 2; round++) {
      expect(await claimTogether(count, apartMs)).toEqual(Array(count - 1).fill('DAEMON_ALREADY_SERVING'));
    }
  });

  it('goes on where it may not ask, and says so', async () => {
    const denied = await startBroker(
      'authorization { users: [{ user: a, password: b, permissions: { publish: { deny: ["$SRV.>"] } } }] }\nno_auth_user: a',
    );
    const { log, lines } = recordingLog();
    await (await denied.bus({ log })).claim();
    await denied.stop();
    expect(lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('the search for other daemons had no answer'),
    );
  });
});
