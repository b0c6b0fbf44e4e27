import type { JetStreamManager } from 'nats';
import { describe, expect, it } from 'vitest';
import { DeadLetterShare } from '../../../src/bus/nats/ingress/dead-letters.ts';
import { recordingLog } from './support.ts';

function share(maxBytes: number) {
  const purges: unknown[] = [];
  const manager = {
    streams: {
      info: async () => ({ config: { max_bytes: maxBytes } }),
      purge: async (_: string, options: unknown) => ({ purged: purges.push(options) }),
    },
  } as unknown as JetStreamManager;
  return { of: new DeadLetterShare({ manager, stream: 'DEAD', log: recordingLog().log }), purges };
}

describe('the share of a publisher in the dead-letter stream', () => {
  it("the share is enforced after each 4 MiB of a publisher's letters, and keeps the newest that fit a quarter of the stream", async () => {
    const { of, purges } = share(64 * 1_024 ** 2);
    for (let letter = 0; letter < 31; letter++) await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toEqual([]);
    await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toEqual([{ filter: 'parley.dead.mallory.*', keep: 96 }]);
    await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toHaveLength(1);
  });

  it('the share counts the letters of each publisher separately', async () => {
    const { of, purges } = share(64 * 1_024 ** 2);
    for (let letter = 0; letter < 31; letter++) {
      await of.stored('parley.dead.alice.*', 131_072);
      await of.stored('parley.dead.bob.*', 131_072);
    }
    expect(purges).toEqual([]);
  });

  it('the share is not enforced in a stream without a limit in bytes', async () => {
    const { of, purges } = share(-1);
    await of.stored('parley.dead.mallory.*', 8 * 1_024 ** 2);
    expect(purges).toEqual([]);
  });
});
