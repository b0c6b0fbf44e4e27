import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ParleyClient } from '../src/client/index.ts';
import { Workers } from '../src/daemon/conversations/workers.ts';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { openProject, type Project } from '../test/support/project.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';
import { createRuntime } from './support/runtime.ts';
import { writeAtRest } from './support/turns.ts';

/**
 * Starting a daemon whose data directory holds many conversations at rest, against one that holds few.
 *
 * A byte in the middle of every log is changed: reading such a log leaves a note beside it. The start must succeed, list
 * every conversation and leave no note. Then one log is read on purpose and must leave its note, so the check can fail.
 *
 * - `startup`: the daemon as a process of its own with its managed nats-server, from the command to the ready line.
 * - `startup-store`: within one process, the daemon's own part that could grow: the store and the outstanding work.
 *
 *     npx tsx bench/startup.ts [conversations] [rounds]
 */

const [manyCount = '1000', roundCount = '9'] = process.argv.slice(2);
const many = Number(manyCount);
const few = 10;
/** A start that read every log would read some 50 KB for each. */
const ENTRIES = 100;

async function damageLogs(data: string): Promise<void> {
  const conversations = join(data, 'conversations');
  const ids = (await readdir(conversations, { withFileTypes: true })).filter((item) => item.isDirectory());
  for (const { name } of ids) {
    const path = join(conversations, name, 'log.jsonl');
    const bytes = await readFile(path);
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = bytes[middle] === 120 ? 121 : 120;
    await writeFile(path, bytes);
  }
}

/** Files beside the logs that are not there in a conversation at rest. */
async function notes(data: string): Promise<string[]> {
  const files = await readdir(join(data, 'conversations'), { recursive: true });
  return files.filter((file) => file.includes('/') && !/\/(log\.jsonl|state\.json)$/.test(file));
}

async function prepare(count: number): Promise<Project> {
  const site = await openProject();
  const store = await openFileStore(site.data);
  await writeAtRest(store, count, ENTRIES);
  await store.close();
  await damageLogs(site.data);
  return site;
}

/** How many conversations the list names, over all its pages. */
async function countListed(client: ParleyClient, after = ''): Promise<number> {
  const { conversations, next } = await client.request('conversations', { after });
  return conversations.length + (next === null ? 0 : await countListed(client, next));
}

async function startDaemon(site: Project, count: number): Promise<number> {
  const started = performance.now();
  const daemon = await site.up();
  const elapsed = performance.now() - started;
  const client = await site.connect();
  const listed = await countListed(client);
  await client.close();
  await daemon.stop();
  const found = await notes(site.data);
  if (listed !== count) throw new Error(`${listed} of ${count} conversations were listed`);
  if (found.length > 0) throw new Error(`a start has read logs: ${found.length} notes, such as ${found[0]}`);
  return elapsed;
}

async function startStore(site: Project): Promise<number> {
  const started = performance.now();
  const store = await openFileStore(site.data);
  const runtime = createRuntime(store);
  const workers = new Workers(runtime);
  await workers.recover();
  await workers.rebuildRows();
  await store.ingressPosition();
  const elapsed = performance.now() - started;
  await workers.drain();
  await store.close();
  return elapsed;
}

/** The proof can fail: reading a damaged log is refused and leaves a note. */
async function proveDamageIsSeen(site: Project): Promise<void> {
  const store = await openFileStore(site.data);
  const refused = await store.open('at-rest-00000').then(
    () => false,
    () => true,
  );
  await store.close();
  if (!refused || (await notes(site.data)).length === 0)
    throw new Error('reading a damaged log left no trace');
}

const sites: Project[] = [];
try {
  const short = await prepare(few);
  sites.push(short);
  const long = await prepare(many);
  sites.push(long);
  const rounds = Number(roundCount);
  const daemon = await interleave(
    { few: () => startDaemon(short, few), many: () => startDaemon(long, many) },
    rounds,
    1,
  );
  const store = await interleave(
    { few: () => startStore(short), many: () => startStore(long) },
    rounds * 5,
    3,
  );
  const left = [...(await notes(short.data)), ...(await notes(long.data))];
  if (left.length > 0) throw new Error(`a start has read logs: ${left[0]}`);
  await proveDamageIsSeen(long);
  for (const [name, measured] of [
    ['startup', daemon],
    ['startup-store', store],
  ] as const) {
    report(name, {
      conversations: `${many} : ${few}`,
      logsRead: 0,
      ratio: ratioOf(measured.many, measured.few),
      manyMs: rounded(median(measured.many), 1),
      fewMs: rounded(median(measured.few), 1),
    });
  }
} finally {
  for (const site of sites) await site.close();
}
