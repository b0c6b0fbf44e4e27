import { connect, type NatsConnection } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ask } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { NOTING, sharedProject } from '../support/project.ts';

/** More than one publisher may post in a minute by the shipped limits: 1,200. */
const FLOOD = 1_500;

describe('a publisher that posts as fast as it can, with the shipped limits', () => {
  let flooder: NatsConnection;
  const project = sharedProject(NOTING);
  const { nats, client } = project;
  beforeEach(async () => {
    flooder = await connect({ servers: nats.url });
  });
  afterEach(async () => {
    await flooder.close();
  });

  it('is refused beyond its rate, and another one is answered meanwhile', async () => {
    const codes = new Set<string>();
    let refused = 0;
    flooder.subscribe('parley.dead.flooder.*', {
      callback: (_, message) => {
        const letter = message.json() as { code: string; refused?: { count: number } };
        codes.add(letter.code);
        refused += letter.refused?.count ?? 1;
      },
    });
    for (let count = 0; count < FLOOD; count++) {
      const post = JSON.stringify({ id: `f${count}`, content: 'x' });
      flooder.publish(`parley.in.flooder.flood-${count % 10}`, post);
    }
    await flooder.flush();
    await ask(client, 'quiet', 'Hello');
    await expect.poll(() => refused, { timeout: 60_000 }).toBeGreaterThan(20);
    expect([...codes]).toEqual(['RATE_LIMITED']);
    expect(refused).toBeLessThanOrEqual(FLOOD - 1_200);
  });

  itLong('is refused by size, once for each 16 KiB of its rate', async () => {
    const refused: string[] = [];
    flooder.subscribe('parley.dead.pourer.*', {
      callback: (_, message) => void refused.push((message.json() as { code: string }).code),
    });
    await flooder.flush();
    const stream = flooder.jetstream();
    const long = JSON.stringify({ content: 'x'.repeat(62 * 16_384 - 100) });
    // 62 units each: the twentieth goes beyond 1,200, or a later one if the server needs time. Short posts would not.
    for (let count = 0; count < 400 && refused.length === 0; count++)
      await stream.publish('parley.in.pourer.long', long);
    await expect.poll(() => refused, { timeout: 60_000 }).toContain('RATE_LIMITED');
  });
});
