import { readdir, readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect } from 'nats';
import { EMPTY_STATE, hasOutstandingWork } from '../src/conversation/index.ts';
import { rowOf } from '../src/daemon/conversations/projections.ts';
import { ConversationWorker } from '../src/daemon/conversations/worker/worker.ts';
import { appendHeaders } from '../src/persistence/jetstream/stream-log.ts';
import { openTestStore } from '../test/support/jetstream-store.ts';
import { startNatsServer, type TestNatsServer } from '../test/support/nats-server.ts';
import { exampleHistory } from './support/history.ts';
import { report, rounded, timed } from './support/report.ts';
import { openWorkplace, writeHistory } from './support/turns.ts';

/**
 * What docs/guides/several-daemons.md reckons with, on the jetstream store: bytes of the streams, whole turns a second of one daemon
 * (its model answers at once), memory of the daemon per open conversation and of the server per conversation, and how
 * long it takes to open one, to read the list, and to look whose each conversation is.
 *
 *     npx tsx bench/sizing.ts [conversations] [subjects]
 */

const [conversations = '200', subjects = '100000'] = process.argv.slice(2);
const CALLERS = 64;
const TURNS_EACH = 10;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
function heap(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Bytes that the server holds in memory, by the kernel's word. */
async function residentOf({ directory }: TestNatsServer): Promise<number> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!command.includes(`${directory}/nats.conf`)) continue;
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kilobytes) * 1_024;
  }
  return Number.NaN;
}

async function streamsAndMemory(entriesEach: number): Promise<void> {
  const server = await startNatsServer();
  const client = await connect({ servers: server.url });
  const store = await openTestStore(server.url);
  try {
    const { runtime } = openWorkplace(store);
    const history = exampleHistory(entriesEach, runtime.team.rules);
    const json = history.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
    const ids = Array.from({ length: Number(conversations) }, (_, at) => `c${at}`);
    for (const id of ids) {
      await writeHistory(store, id, history);
    }
    const before = heap();
    const workers: ConversationWorker[] = [];
    const opening = await timed(async () => {
      for (const id of ids) workers.push(await ConversationWorker.open(id, runtime, false));
    });
    const held = heap() - before;
    for (const [at, id] of ids.entries()) {
      const state = workers[at]?.state;
      if (!state || hasOutstandingWork(state)) throw new Error(`${id} has outstanding work`);
      await store.saveRow(rowOf(id, state, history));
      await store.saveState(id, { id, ...state });
    }
    const { streams } = await client.jetstreamManager();
    const log = (await streams.info('PARLEY_LOG')).state;
    const documents = (await streams.info('KV_PARLEY_STATE')).state;
    report('sizing-streams', {
      conversations: ids.length,
      entriesEach,
      jsonBytesPerEntry: Math.round(json / entriesEach),
      streamBytesPerEntry: Math.round(log.bytes / (ids.length * entriesEach)),
      entriesPerMessage: rounded((ids.length * entriesEach) / log.messages),
      documentBytesPerConversation: Math.round(documents.bytes / ids.length),
      heapBytesPerOpenConversation: Math.round(held / ids.length),
      millisecondsToOpen: rounded(opening / ids.length),
      heapBytesPerEntry: Math.round(held / (ids.length * entriesEach)),
    });
    if (workers.length === 0) throw new Error('nothing was held');
  } finally {
    await store.close();
    await client.close();
    await server.stop();
  }
}

async function turnsPerSecond(): Promise<void> {
  const server = await startNatsServer();
  const store = await openTestStore(server.url);
  try {
    const workplace = openWorkplace(store);
    const workers = await Promise.all(
      Array.from({ length: CALLERS }, (_, at) => workplace.open(`c${at}`, 40)),
    );
    const rates: number[] = [];
    for (let round = 0; round < 6; round++) {
      const started = performance.now();
      const cpu = process.cpuUsage();
      await Promise.all(
        workers.map(async (worker) => {
          for (let turn = 0; turn < TURNS_EACH; turn++) await workplace.turn(worker);
        }),
      );
      const seconds = (performance.now() - started) / 1_000;
      const used = process.cpuUsage(cpu);
      if (round > 0) rates.push((CALLERS * TURNS_EACH) / seconds);
      report('sizing-turns', {
        callers: CALLERS,
        turnsPerSecond: Math.round((CALLERS * TURNS_EACH) / seconds),
        cpuMillisecondsPerTurn: rounded((used.user + used.system) / 1_000 / (CALLERS * TURNS_EACH)),
      });
    }
  } finally {
    await store.close();
    await server.stop();
  }
}

async function serverMemory(): Promise<void> {
  const server = await startNatsServer();
  const client = await connect({ servers: server.url });
  try {
    const { streams } = await client.jetstreamManager();
    await streams.add({ name: 'MANY', subjects: ['many.*'] });
    const before = await residentOf(server);
    const count = Number(subjects);
    const jetstream = client.jetstream();
    const body = Buffer.alloc(700, 120);
    for (let from = 0; from < count; from += 1_000) {
      const page = Array.from({ length: 1_000 }, (_, at) =>
        jetstream.publish(`many.conversation-${from + at}`, body),
      );
      await Promise.all(page);
    }
    const after = await residentOf(server);
    await server.restart();
    const restarted = await residentOf(server);
    report('sizing-server', {
      subjects: count,
      serverBytesPerSubject: Math.round((after - before) / count),
      afterRestartBytesPerSubject: Math.round((restarted - before) / count),
    });
  } finally {
    await client.close();
    await server.stop();
  }
}

/** What a start reads, and every daemon each minute. */
async function looks(): Promise<void> {
  const server = await startNatsServer();
  const client = await connect({ servers: server.url });
  const store = await openTestStore(server.url);
  try {
    const jetstream = client.jetstream();
    const standing = { claim: { daemon: '01M81N4CE481FNXQTKD7T31JTC', epoch: 1 }, hasOutstandingWork: false };
    const row = { ...rowOf('', EMPTY_STATE, []), title: 'a title of some length', length: 2, tokens: 1_382 };
    const updatedAt = new Date().toISOString();
    let made = 0;
    for (const count of [Number(subjects) / 10, Number(subjects)]) {
      for (; made < count; made += 100) {
        const ids = Array.from({ length: 100 }, (_, at) => `conversation-${made + at}`);
        await Promise.all(
          ids.flatMap((id) => [
            jetstream.publish(`parley.log.${id}`, Buffer.alloc(700, 120), {
              headers: appendHeaders(`append-${id}`, 2, 0, standing),
            }),
            store.saveRow({ ...row, id, updatedAt }),
          ]),
        );
      }
      const found = await store.shared?.all();
      if (found?.size !== count) throw new Error(`${found?.size} of ${count} were found`);
      report('sizing-looks', {
        conversations: count,
        millisecondsToLook: Math.round(await timed(async () => store.shared?.all())),
        millisecondsToList: Math.round(await timed(() => store.rows())),
      });
    }
  } finally {
    await store.close();
    await client.close();
    await server.stop();
  }
}

await streamsAndMemory(20);
await streamsAndMemory(50);
await streamsAndMemory(200);
await turnsPerSecond();
await serverMemory();
await looks();
