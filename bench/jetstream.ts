import { connect } from 'nats';
import { openTestStore } from '../test/support/jetstream-store.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { median, sampleEntry } from './samples.ts';
import { interleave, report, rounded } from './support/report.ts';

/**
 * Appends to many conversations side by side, each waiting for its own before the next, against bare JetStream
 * publishes of the same bytes by as many callers: no expectation, no headers, no faults. Both on one server of their
 * own, in turns. Prints the median ratio of appends per second; higher is better.
 *
 *     npx tsx bench/jetstream.ts [conversations] [appends each] [rounds]
 */

const [conversations = '64', each = '20', rounds = '21'] = process.argv.slice(2);
const callers = Array.from({ length: Number(conversations) }, (_, number) => `c${number}`);

async function rate(work: (caller: string) => Promise<void>): Promise<number> {
  const started = performance.now();
  await Promise.all(callers.map(work));
  return (callers.length * Number(each) * 1_000) / (performance.now() - started);
}

const server = await startNatsServer();
const client = await connect({ servers: server.url });
const store = await openTestStore(server.url);
try {
  const { streams } = await client.jetstreamManager();
  await streams.add({ name: 'BARE', subjects: ['bare.*.*'] });
  const jetstream = client.jetstream();
  const rates = await interleave(
    {
      bare: (round) =>
        rate(async (caller) => {
          for (let index = 0; index < Number(each); index += 1) {
            const body = JSON.stringify({ entries: [sampleEntry(index)] });
            await jetstream.publish(`bare.${caller}.${round}`, body);
          }
        }),
      store: async (round) => {
        const logs = new Map(
          await Promise.all(
            callers.map(async (caller) => [caller, (await store.open(`${caller}-${round}`)).log] as const),
          ),
        );
        const measured = await rate(async (caller) => {
          for (let index = 0; index < Number(each); index += 1)
            await logs.get(caller)?.append(index, [sampleEntry(index)]);
        });
        for (const log of logs.values()) await log.close();
        return measured;
      },
    },
    Number(rounds),
    1,
  );
  report('jetstream', {
    conversations: callers.length,
    ratio: rounded(median(rates.store.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN)))),
    wanted: '>= 0.6',
    barePerSecond: Math.round(median(rates.bare)),
    storePerSecond: Math.round(median(rates.store)),
  });
} finally {
  await store.close();
  await client.close();
  await server.stop();
}
