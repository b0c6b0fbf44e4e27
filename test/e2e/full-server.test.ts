import { describe, expect, onTestFinished } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import type { TestNatsServer } from '../support/nats-server.ts';
import { type RunningDaemon, startProject } from '../support/project.ts';

/** SERVER-FAULTS-1 on a real nats-server of its operator. Some versions refuse when their disk is full, others fall silent. */
describe('a nats-server that stores nothing', { timeout: 120_000 }, () => {
  async function begin(maxFile?: string) {
    const script = [{ reply: { text: 'fine' } }];
    const options = { nats: maxFile === undefined ? {} : { maxFile }, script, http: true };
    const { nats, daemon } = untilTestEnds(await startProject(options, '--store', 'jetstream'));
    return { nats, daemon };
  }

  async function ask({ ready }: RunningDaemon, path: string, body?: object) {
    const answer = await fetch(`${ready.http}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, text: await answer.text() };
  }
  const post = (daemon: RunningDaemon, conversation: string, id: string) =>
    ask(daemon, `/api/conversations/${conversation}/messages`, { content: 'x'.repeat(4_096), id });
  const READING = [
    'conversations',
    'conversations/new/entries',
    'status',
    'agents',
    'dead-letters',
    'search?q=x',
  ];

  itLong('a silent server: every verb answers with the cause, and readiness returns by itself', async () => {
    const { nats, daemon } = await begin();
    expect(await post(daemon, 'demo', 'one')).toMatchObject({ status: 201 });
    await expect.poll(async () => (await ask(daemon, '/api/status')).text).toContain('"running":{"count":0');
    nats.freeze();
    for (const conversation of ['demo', 'new'])
      expect(await post(daemon, conversation, 'two')).toMatchObject({
        status: 504,
        text: expect.stringContaining('NATS_SILENT'),
      });
    expect(await ask(daemon, '/readyz')).toMatchObject({ status: 503 });
    const answers = await Promise.all(
      [...READING.map((path) => `/api/${path}`), '/metrics'].map((path) => ask(daemon, path)),
    );
    for (const { status, text } of answers)
      if (status !== 200) expect([status, text]).toEqual([504, expect.stringContaining('NATS_SILENT')]);
    expect(answers.some(({ status }) => status === 504)).toBe(true);
    expect(await ask(daemon, '/readyz')).toMatchObject({ status: 503 });

    nats.thaw();
    await expect.poll(async () => (await ask(daemon, '/readyz')).status).toBe(200);
    expect(await post(daemon, 'new', 'two')).toMatchObject({ status: 201 });
  });

  itLong('a full server: posts are refused with the cause, and readiness returns by itself', async () => {
    const { nats, daemon } = await begin('24MB');
    expect(await post(daemon, 'demo', 'one')).toMatchObject({ status: 201 });
    const free = await fill(nats);
    for (const conversation of ['demo', 'new'])
      expect(await post(daemon, conversation, 'two')).toMatchObject({
        status: 503,
        text: expect.stringMatching(/"detail":"[^"]*(resource|space|storage)[^"]*","code":"STORE_FULL"/),
      });
    expect(await ask(daemon, '/readyz')).toMatchObject({ status: 503 });
    expect(await ask(daemon, '/api/status')).toMatchObject({ status: 200 });
    await free();
    await expect.poll(async () => (await ask(daemon, '/readyz')).status).toBe(200);
    expect(await post(daemon, 'demo', 'two')).toMatchObject({ status: 201 });
  });

  /** Returns how to free the space. */
  async function fill({ url }: TestNatsServer): Promise<() => Promise<unknown>> {
    const connection = await openNats({ url });
    onTestFinished(() => connection.close());
    const manager = await connection.jetstreamManager();
    await manager.streams.add({ name: 'FILLER', subjects: ['filler'] });
    const jetstream = connection.jetstream();
    const mebibyte = Buffer.alloc(1_000_000);
    for (const chunk of [mebibyte, Buffer.alloc(10_000), Buffer.alloc(1)])
      for (let n = 0; n < 1_000; n++)
        if (!(await jetstream.publish('filler', chunk, { timeout: 1_500 }).catch(() => null))) break;
    return () => manager.streams.delete('FILLER');
  }
});
