import { connect, type NatsConnection } from 'nats';
import { createSubjects } from '../src/bus/index.ts';
import { afterLeaderElection, enforceReplicas } from '../src/bus/nats/index.ts';
import type { ConversationStore } from '../src/persistence/index.ts';
import { openTestStore } from '../test/support/jetstream-store.ts';
import { median, sampleEntry } from './samples.ts';
import { interleave, report, rounded } from './support/report.ts';
import { type BenchServers, startOne, startThree } from './support/servers.ts';

/**
 * Appends to many conversations side by side, each waiting for its own before the next, against bare JetStream
 * publishes of the same bytes by as many callers: no expectation, no headers, no faults. Both on the same servers, in turns: one
 * store on one server, then three stores with connections of their own, as of three daemons, on one server and on a cluster of three,
 * where each stream has three replicas. Prints the median ratio of appends per second; higher is better.
 * `cpuRatio`: the processor time of this process for an append against a publish, which the load of the machine disturbs least.
 *
 *     npx tsx bench/jetstream.ts [conversations] [appends each] [rounds]
 */

const [conversations = '64', each = '20', rounds = '21'] = process.argv.slice(2);
const callers = Array.from({ length: Number(conversations) }, (_, number) => `c${number}`);
const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Adds the processor time of the work to `spent`. */
async function spending(spent: { ms: number }, work: () => Promise<number>): Promise<number> {
  const before = process.cpuUsage();
  const result = await work();
  const { user, system } = process.cpuUsage(before);
  spent.ms += (user + system) / 1_000;
  return result;
}

async function rate(work: (caller: string, number: number) => Promise<void>): Promise<number> {
  const started = performance.now();
  await Promise.all(callers.map(work));
  return (callers.length * Number(each) * 1_000) / (performance.now() - started);
}

async function measure(servers: BenchServers, count: number): Promise<void> {
  const clients: NatsConnection[] = [];
  const stores: ConversationStore[] = [];
  try {
    for (let daemon = 0; daemon < count; daemon++) {
      const client = await connect({ servers: servers.url(daemon).split(','), noRandomize: true });
      clients.push(client);
      stores.push(await afterLeaderElection(client, () => openTestStore(servers.url(daemon))));
    }
    const [client] = clients;
    if (!client) throw new RangeError('no daemon');
    const { streams } = await client.jetstreamManager();
    await streams.add({ name: 'BARE', subjects: ['bare.*.*'], num_replicas: servers.replicas });
    await enforceReplicas(client, createSubjects(), servers.replicas, SILENT);
    const spent = { bare: { ms: 0 }, store: { ms: 0 } };
    const rates = await interleave(
      {
        bare: (round) =>
          spending(spent.bare, () =>
            rate((caller, number) => publish(clients[number % count], `bare.${caller}.${round}`)),
          ),
        store: (round) => spending(spent.store, () => append(stores, round)),
      },
      Number(rounds),
      1,
    );
    report('jetstream', {
      text: `${servers.kind}, ${client.info?.version}, ${count === 1 ? 'one daemon' : `${count} daemons`}`,
      conversations: callers.length,
      ratio: rounded(median(rates.store.map((rate, round) => rate / (rates.bare[round] ?? Number.NaN)))),
      wanted: '>= 0.8',
      cpuRatio: rounded(spent.store.ms / spent.bare.ms),
      barePerSecond: Math.round(median(rates.bare)),
      storePerSecond: Math.round(median(rates.store)),
    });
  } finally {
    for (const store of stores) await store.close();
    for (const client of clients) await client.close();
  }
}

async function publish(client: NatsConnection | undefined, subject: string): Promise<void> {
  const jetstream = client?.jetstream();
  for (let index = 0; index < Number(each); index += 1)
    await jetstream?.publish(subject, JSON.stringify({ entries: [sampleEntry(index)] }));
}

async function append(stores: readonly ConversationStore[], round: number): Promise<number> {
  const logs = await Promise.all(
    callers.map(
      async (caller, number) => (await stores[number % stores.length]?.open(`${caller}-${round}`))?.log,
    ),
  );
  const measured = await rate(async (_, number) => {
    for (let index = 0; index < Number(each); index += 1)
      await logs[number]?.append(index, [sampleEntry(index)]);
  });
  for (const log of logs) await log?.close();
  return measured;
}

for (const [start, count] of [
  [startOne, 1],
  [startOne, 3],
  [startThree, 3],
] as const) {
  const servers = await start();
  try {
    if (servers) await measure(servers, count);
  } finally {
    await servers?.stop();
  }
}
