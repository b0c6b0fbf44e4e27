import { describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../../src/client/index.ts';
import type { Acknowledged } from '../../chaos/actors/publishers.ts';
import { waitUntilIdle } from '../../chaos/observe.ts';

/** A run is checked only after all work is finished. */
describe('waiting for the end of all work', () => {
  const acknowledged = [
    { post: { id: 'm1', conversation: 'demo' }, index: null },
  ] as unknown as Acknowledged[];
  const entry = (index: number, id: string) => ({
    index,
    id,
    type: 'note',
    createdAt: '2026-11-22T12:00:00Z',
  });

  function clientThatShows(logs: object[][]) {
    let looks = 0;
    const request = async (_: string, { from }: { from: number }) => {
      const log = logs[Math.min(looks, logs.length - 1)] ?? [];
      looks += 1;
      return { length: log.length, entries: log.slice(from) };
    };
    return { client: { request } as unknown as ParleyClient, looks: () => looks };
  }

  it('the wait continues while an acknowledged post is in no log', async () => {
    const { client, looks } = clientThatShows([
      [entry(0, 'm0')],
      [entry(0, 'm0')],
      [entry(0, 'm0'), entry(1, 'm1')],
    ]);
    const { logs, outstanding } = await waitUntilIdle(client, acknowledged, 60_000);
    expect([logs.get('demo')?.length, outstanding, looks()]).toEqual([2, [], 3]);
  });

  it('the wait gives up if no entry is added for long enough, so that lost posts are reported', async () => {
    const { client } = clientThatShows([[entry(0, 'm0')]]);
    const { logs } = await waitUntilIdle(client, acknowledged, 500);
    expect(logs.get('demo')?.length).toBe(1);
  });
});
