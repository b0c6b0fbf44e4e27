import { describe, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { perTest } from '../support/lifetime.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { openBus, recordingLog, startBroker } from '../unit/bus/support.ts';

const broker = perTest(() => startBroker());

describe('the streams', () => {
  const manager = () => broker.plain.jetstreamManager();

  it('the streams are created as the contract specifies', async () => {
    await broker.bus();
    const { config } = await (await manager()).streams.info('PARLEY_IN');
    expect(config).toMatchObject({
      subjects: ['parley.in.*.*'],
      retention: 'limits',
      discard: 'new',
      storage: 'file',
      max_bytes: -1, // With a limit in bytes, servers before 2.10.5 drop the oldest messages for new ones.
      max_msgs: 1_000_000,
      max_age: 0,
      duplicate_window: 100_000_000,
      num_replicas: 1,
      allow_rollup_hdrs: false,
    });
    const dead = (await (await manager()).streams.info('PARLEY_DEAD')).config;
    expect(dead).toMatchObject({ subjects: ['parley.dead.*.*'], discard: 'old', max_bytes: 64 * 1024 ** 2 });
  });

  it("streams with other settings are corrected, and an operator's limit of posts is kept", async () => {
    const { log, lines } = recordingLog();
    await (await manager()).streams.add({
      name: 'PARLEY_IN',
      subjects: ['other.>'],
      discard: 'old' as never,
      max_age: 1_000_000_000,
      max_bytes: 5_000_000,
      max_msgs: 5_000,
    });
    await broker.bus({ log });
    const { config } = await (await manager()).streams.info('PARLEY_IN');
    const repaired = {
      subjects: ['parley.in.*.*'],
      discard: 'new',
      max_age: 0,
      duplicate_window: 100_000_000,
    };
    expect(config).toMatchObject({ ...repaired, max_bytes: -1, max_msgs: 5_000 });
    expect(lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/ingress\.maxBytes/));
  });

  it('streams that cannot be corrected are refused with field, value and expectation', async () => {
    await (await manager()).streams.add({
      name: 'PARLEY_IN',
      subjects: ['parley.in.*.*'],
      retention: 'workqueue' as never,
    });
    await expect(broker.bus()).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
      message: expect.stringMatching(/retention is "workqueue", must be "limits"/),
      hint: expect.any(String),
    });
  });

  it('streams of a prefix that differs only in case are refused and unchanged', async () => {
    await broker.bus({ subjects: createSubjects('PARLEY') });
    await expect(broker.bus({ subjects: createSubjects('parley') })).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
      message: expect.stringMatching(/stream PARLEY_\w+ belongs to the subject prefix PARLEY, not to parley/),
      hint: expect.stringContaining('subjectPrefix'),
    });
    const { config } = await (await manager()).streams.info('PARLEY_DEAD');
    expect(config.subjects).toEqual(['PARLEY.dead.*.*']);
  });

  it('streams are refused if another stream has their subjects', async () => {
    await (await manager()).streams.add({ name: 'MINE', subjects: ['parley.>'] });
    await expect(broker.bus()).rejects.toMatchObject({ code: 'STREAM_CONFIG_CONFLICT' });
  });

  it('a server without JetStream is reported', async () => {
    const without = await startNatsServer({ plain: true });
    try {
      await expect(openBus(without.url)).rejects.toMatchObject({
        code: 'JETSTREAM_UNAVAILABLE',
        hint: expect.stringMatching(/-js/),
      });
    } finally {
      await without.stop();
    }
  });

  it('a server without enough storage is reported', async () => {
    const small = await startNatsServer({ config: 'jetstream { max_file: 10MB }' });
    try {
      await expect(openBus(small.url)).rejects.toMatchObject({ code: 'BROKER_OUT_OF_SPACE' });
    } finally {
      await small.stop();
    }
  });
});
