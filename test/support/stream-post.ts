import { randomUUID } from 'node:crypto';
import { openNats } from '../../src/bus/nats/index.ts';
import { connect } from '../../src/client/index.ts';
import { entriesOf } from './log.ts';
import { until } from './steps.ts';

/** Posts on `parley.in`, and waits until the daemon of this server has appended the post and ended a turn after it. */
export async function postOnStream(url: string, conversation: string, content: string): Promise<void> {
  const connection = await openNats({ url });
  const client = await connect({ url });
  const id = randomUUID();
  try {
    const body = JSON.stringify({ id, content });
    await connection.jetstream().publish(`parley.in.carol.${conversation}`, body);
    await until(async () => {
      const entries = await entriesOf(client, conversation).catch(() => []);
      const place = entries.findIndex((entry) => entry.id === id);
      return place >= 0 && entries.slice(place).some(({ type }) => type === 'turn-ended');
    });
  } finally {
    await client.close();
    await connection.close();
  }
}
