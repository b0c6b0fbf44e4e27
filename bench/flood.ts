import { readFile } from 'node:fs/promises';
import { type NatsConnection, openNats } from '../src/bus/nats/index.ts';
import { readConnectionFile } from '../src/client/index.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject, type Project, type RunningDaemon, scriptedSettings } from '../test/support/project.ts';
import { quantile } from './samples.ts';
import { median, report, rounded } from './support/report.ts';
import { startTalker } from './support/talker.ts';

/**
 * A flood of posts of one publisher into a daemon of its own, while another publisher talks in another conversation.
 *
 * Posts are sent as fast as the stream acknowledges them, or with `--core` as fast as the server reads them, into
 * `conversations` conversations. The rate is not limited unless `postsPerMinute` is given (`shipped`: by the shipped
 * configuration). Then nothing is sent until each of them is answered or refused: an accepted post is never dropped.
 *
 * - `acceptedPerSecond`, `dealtWithPerSecond`: what was sent, and what was answered or refused in all.
 * - `idleAfterS`: from the end of the flood until its last post is answered or refused.
 * - `peakMb`, `restMb`: the daemon's resident memory at its highest, and before; of several, of the largest.
 * - `quiet…`: the other publisher's latency from post to answer, before the flood and until it is dealt with; `ratio` is of
 *   the medians. A process of its own measures it, which the flood does not keep busy.
 *
 *     npx tsx bench/flood.ts [seconds] [conversations] [postsPerMinute] [--bytes N] [--core true] [--jetstream DAEMONS]
 *         [--flooders N]
 *
 * `--flooders`: publishers that flood at the same time, each on a connection of its own and into conversations of its own.
 * `--bytes`: of each post, 200 unless given. `--jetstream 3`: three daemons that share the logs of one server.
 * `--jetstream 0`: no daemon; the latency is from post to acknowledgement.
 */

const given = process.argv.slice(2);
const shared = take('--jetstream');
const bytes = Number(take('--bytes') ?? 200);
const isCore = take('--core') !== undefined;
const flooderCount = Number(take('--flooders') ?? 1);
const [secondCount = '20', conversationCount = '50', rate] = given;
const seconds = Number(secondCount);
const conversations = Number(conversationCount);
/** Posts on their way to the stream at once. */
const AT_ONCE = 200;
/** Of posts that are sent without waiting for acknowledgements: bytes between two looks whether the server has read them. */
const CORE_BYTES = 1_000_000;
/** Without any post answered or refused. */
const LONGEST_PAUSE_MS = 60_000;

function take(option: string): string | undefined {
  const at = given.indexOf(option);
  return at < 0 ? undefined : given.splice(at, 2)[1];
}

const server = shared === undefined ? null : await startNatsServer();
const sites: Project[] = [];

async function startDaemon(): Promise<RunningDaemon> {
  const site = await openProject({
    settings: scriptedSettings(
      rate === 'shipped'
        ? {}
        : {
            publishers: {
              default: { postsPerMinute: rate === undefined ? null : Number(rate), openConversations: null },
            },
          },
    ),
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    files: { 'script.yaml': { rules: [{ reply: { text: 'Noted.' } }] } },
    ...(server && { nats: server.url }),
  });
  sites.push(site);
  return site.up(...(server ? ['--store', 'jetstream'] : []));
}

async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
}

/** Follows every log and counts the posts of the flood that were answered or refused. */
function watchAnswers(nats: NatsConnection) {
  const waiting = new Set<string>();
  const counts = { answered: 0, refused: 0, letters: 0 };
  nats.subscribe('parley.log.*', {
    callback: (_, message) => {
      const conversation = message.subject.split('.').at(-1) ?? '';
      if (!conversation.startsWith('flood-')) return;
      for (const entry of (message.json() as { entries: Record<string, never>[] }).entries) {
        if (entry.type === 'message' && entry.role === 'user') waiting.add(`${conversation} ${entry.index}`);
        const dealtWith: number[] =
          entry.trigger ?? (entry.type === 'message-delivered' ? entry.entries : undefined) ?? [];
        for (const index of dealtWith) if (waiting.delete(`${conversation} ${index}`)) counts.answered += 1;
      }
    },
  });
  nats.subscribe('parley.dead.>', {
    callback: (_, message) => {
      counts.letters += 1;
      counts.refused += (message.json() as { refused?: { count: number } }).refused?.count ?? 1;
    },
  });
  return counts;
}

async function send(nats: NatsConnection, flooder: string): Promise<number> {
  const began = performance.now();
  const isOver = () => performance.now() - began >= seconds * 1_000;
  const content = 'x'.repeat(bytes);
  let sent = 0;
  const next = (): [string, string] => {
    sent += 1;
    return [
      `parley.in.${flooder}.flood-${flooder}-${sent % conversations}`,
      JSON.stringify({ id: `${flooder}-${sent}`, content }),
    ];
  };
  if (isCore) {
    while (!isOver()) {
      for (let left = CORE_BYTES; left > 0; left -= bytes + 100) nats.publish(...next());
      await nats.flush();
    }
    return sent;
  }
  const stream = nats.jetstream();
  let lost = 0;
  const one = async () => {
    while (!isOver()) await stream.publish(...next(), { timeout: 60_000 }).catch(() => lost++);
  };
  await Promise.all(Array.from({ length: bytes > 100_000 ? 20 : AT_ONCE }, one));
  return sent - lost;
}

/** Resolves when all of them are answered or refused, or none was for a while. */
async function dealtWith(counts: { answered: number; refused: number }, sent: number): Promise<void> {
  let [known, since] = [0, performance.now()];
  while (known < sent && performance.now() - since < LONGEST_PAUSE_MS) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = counts.answered + counts.refused;
    if (now !== known) [known, since] = [now, performance.now()];
  }
  if (known >= sent) return;
  console.error(`${sent - known} posts were neither answered nor refused`);
  process.exitCode = 1;
}

try {
  const daemons: RunningDaemon[] = [];
  for (let place = 0; place < Number(shared ?? 1); place++) daemons.push(await startDaemon());
  const isAlone = daemons.length === 0;
  const residentMb = async () => Math.max(0, ...(await Promise.all(daemons.map(({ pid }) => memoryOf(pid)))));
  const address = isAlone && server ? { url: server.url } : await readConnectionFile(sites[0]?.data ?? '');
  if (!address) throw new Error('the daemon left no address');
  const nats = await openNats(address);
  const streams = (await nats.jetstreamManager()).streams;
  if (isAlone) await streams.add({ name: 'PARLEY_IN', subjects: ['parley.in.*.*'] });
  const counts = watchAnswers(nats);

  const talker = await startTalker(address, isAlone);
  await talker.talk(5);
  const before = await talker.talk(20);
  const restMb = await residentMb();
  let [peakMb, mostPosts, mostBytes] = [restMb, 0, 0];
  const watching = setInterval(async () => {
    peakMb = Math.max(peakMb, await residentMb().catch(() => 0));
    const info = await streams.info('PARLEY_IN').catch(() => null);
    mostPosts = Math.max(mostPosts, info?.state.messages ?? 0);
    mostBytes = Math.max(mostBytes, info?.state.bytes ?? 0);
  }, 250);

  const talking = talker.talk(Number.POSITIVE_INFINITY);
  const names = Array.from({ length: flooderCount }, (_, place) => `flooder${place}`);
  const flooders = await Promise.all(names.map(async (name) => ({ name, nats: await openNats(address) })));
  const began = performance.now();
  const counted = await Promise.all(flooders.map(({ name, nats }) => send(nats, name)));
  const sent = counted.reduce((sum, count) => sum + count, 0);
  const floodMs = performance.now() - began;
  if (!isAlone) await dealtWith(counts, sent);
  const allMs = performance.now() - began;
  talker.enough();
  const during = await talking;
  talker.close();
  clearInterval(watching);
  report('flood', {
    ...(shared !== undefined && { daemons: daemons.length }),
    ...(isCore && { core: true }),
    ...(flooderCount > 1 && { flooders: flooderCount }),
    conversations,
    bytes,
    seconds: rounded(floodMs / 1_000, 1),
    accepted: sent,
    acceptedPerSecond: Math.round(sent / (floodMs / 1_000)),
    dealtWithPerSecond: Math.round((counts.answered + counts.refused) / (allMs / 1_000)),
    refused: counts.refused,
    letters: counts.letters,
    idleAfterS: rounded((allMs - floodMs) / 1_000, 1),
    restMb: Math.round(restMb),
    peakMb: Math.round(peakMb),
    streamMostPosts: mostPosts,
    streamMostMb: Math.round(mostBytes / 1_048_576),
    quietBeforeMs: rounded(median(before), 1),
    quietDuringMs: rounded(median(during), 1),
    quiet99Ms: rounded(quantile(during, 0.99), 1),
    quietMostMs: rounded(Math.max(...during), 1),
    quietSamples: during.length,
    ratio: rounded(median(during) / median(before), 1),
  });
  for (const flooder of flooders) await flooder.nats.close();
  await nats.close();
  for (const daemon of daemons) await daemon.stop();
} finally {
  for (const site of sites) await site.close();
  await server?.stop();
}
