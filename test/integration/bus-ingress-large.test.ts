import { describe, expect } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { bytes, collecting, startBroker, until } from '../unit/bus/support.ts';

const MIB = 1_024 * 1_024;

/** Posts of every size, on a server with a large payload limit. */
describe('reading posts', () => {
  const broker = perTest(() => startBroker(`max_payload: ${16 * MIB}`));

  itLong(
    'reading continues over more bytes, and over a larger post, than are requested at once',
    async () => {
      const sizes = [1, 3, 3, 3, 3, 12, 12, 0, 3].map((mib) => mib * MIB + 10);
      const { bus: daemon, lines } = await broker.recording();
      const stream = broker.plain.jetstream();
      await daemon.post('somebody', 'demo', bytes('first')); // creates the stream
      for (const size of sizes)
        await stream.publish('parley.in.somebody.demo', new Uint8Array(size), { timeout: 30_000 });
      const seen = await collecting(daemon);
      await until('all came', () => seen.deliveries.length === sizes.length + 1);
      expect(seen.deliveries.map(({ body }) => body.length)).toEqual([5, ...sizes]);
      expect(lines.filter(({ level }) => level !== 'info')).toEqual([]);
    },
  );
});
