import { describe, expect, it } from 'vitest';
import { readEvents } from '../support/event-source.ts';
import { entriesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { projectPerTest } from '../support/project.ts';

/** Readers of a live thread over HTTP, on a daemon in its own process. */
describe('server-sent events', () => {
  const project = projectPerTest({
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'One word after another: {{last}}', delayMs: 5 } }],
    http: true,
  });
  const { client, daemon } = project;

  const url = () => `${project.http}/api/conversations/demo/events`;
  const post = (content: string) =>
    client.post({ conversation: 'demo', publisher: 'alice', content, delivery: 'queue' });
  /** The whole log, when no turn runs any more. */
  async function wholeLog() {
    const isOver = async () =>
      (await client.request('agents', {})).agents.every(({ status }) => status === 'idle');
    await expect.poll(isOver, { timeout: 60_000 }).toBe(true);
    return entriesOf(client, 'demo');
  }
  const upTo = (length: number) => Array.from({ length }, (_, index) => index);

  it('the event stream misses and repeats nothing over many reconnections during posts', async () => {
    const posting = (async () => {
      for (let n = 0; n < 40; n++) await post(`message ${n}`);
    })();
    const seen: number[] = [];
    let lastId: string | null = null;
    let isOver = false;
    const done = posting.then(wholeLog).then((log) => {
      isOver = true;
      return log;
    });
    for (let connections = 0; !isOver || connections < 5; connections++) {
      const reader = await readEvents(url(), lastId === null ? {} : { 'last-event-id': lastId });
      await new Promise((resolve) => setTimeout(resolve, 15 * (connections % 4)));
      reader.close();
      await reader.ended;
      seen.push(...reader.indexes());
      lastId = reader.lastId() ?? lastId;
    }
    const log = await done;
    const last = await readEvents(url(), lastId === null ? {} : { 'last-event-id': lastId });
    await expect.poll(() => [...seen, ...last.indexes()].length).toBe(log.length);
    expect([...seen, ...last.indexes()]).toEqual(upTo(log.length));
    last.close();
  });

  itLong(
    'the event stream delivers everything to a hundred readers of a thread, in order, with live text',
    async () => {
      await post('first');
      const readers = await Promise.all(upTo(100).map(() => readEvents(url())));
      for (const reader of readers) await expect.poll(() => reader.indexes().length).toBeGreaterThan(0);
      for (let n = 0; n < 10; n++) await post(`message ${n}`);
      const log = await wholeLog();
      for (const reader of readers) {
        await expect.poll(() => reader.indexes()).toEqual(upTo(log.length));
        expect(reader.events.filter(({ event }) => event === 'entry').map(({ data }) => data)).toEqual(log);
        expect(reader.events.some(({ event }) => event === 'live')).toBe(true);
        reader.close();
      }
    },
  );

  itLong('the event stream ends after the last entry when the daemon stops', async () => {
    const reader = await readEvents(url());
    await post('hello');
    expect(await daemon.stop()).toBe(0);
    await reader.ended;
    expect(reader.events.at(-1)).toMatchObject({ event: 'end', data: { code: 'STOPPING' } });
    expect(reader.events.at(-2)).toMatchObject({ event: 'entry', data: { type: 'turn-ended' } });
  });
});
