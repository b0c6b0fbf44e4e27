import { readFile } from 'node:fs/promises';
import { type NatsConnection, openNats } from '../src/bus/nats/index.ts';
import { readConnectionFile } from '../src/client/index.ts';
import { openSite, type RunningDaemon, type Site, scriptedSettings } from '../test/support/daemon.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { median, report, rounded } from './support/report.ts';
import { startTalker } from './support/talker.ts';

/**
 * A flood of posts into a daemon of its own, while somebody else talks in a conversation of his own.
 *
 * Posts are sent as fast as the stream acknowledges them, into `conversations` conversations of one publisher, whose rate
 * is not limited unless `postsPerMinute` is given (`shipped`: as the shipped configuration limits it). Then nothing is sent until each of them is answered or refused: what
 * was acknowledged is never given up.
 *
 * - `acceptedPerSecond`, `answeredPerSecond`: what the stream took, and what agents dealt with in all.
 * - `peakMb`, `restMb`: the daemon's resident memory at its highest, and before; of several, of the largest.
 * - `ratio`: the quiet conversation's latency from post to answer until the flood is dealt with, against before. Medians, measured by
 *   a process of its own, which the flood does not keep busy.
 *
 *     npx tsx bench/flood.ts [seconds] [conversations] [postsPerMinute] [--bytes N] [--jetstream DAEMONS]
 *
 * `--bytes`: of each post, 200 unless given. `--jetstream 3`: three daemons that share the logs of one server.
 */

const given = process.argv.slice(2);
const shared = take('--jetstream');
const bytes = Number(take('--bytes') ?? 200);
const [secondCount = '20', conversationCount = '50', rate] = given;
const seconds = Number(secondCount);
const conversations = Number(conversationCount);
/** Posts on their way to the stream at once. */
const AT_ONCE = 200;
const LONGEST_WAIT_MS = 2_400_000;

function take(option: string): string | undefined {
  const at = given.indexOf(option);
  return at < 0 ? undefined : given.splice(at, 2)[1];
}

const server = shared === undefined ? null : await startNatsServer();
const sites: Site[] = [];

async function startDaemon(): Promise<RunningDaemon> {
  const site = await openSite({
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

/** Follows every log and knows which posts are not dealt with yet. */
function watchAnswers(nats: NatsConnection) {
  const owed = new Map<string, () => void>();
  const places = new Map<string, string>();
  let refused = 0;
  nats.subscribe('parley.log.*', {
    callback: (_, message) => {
      const conversation = message.subject.split('.').at(-1) ?? '';
      for (const entry of (message.json() as { entries: Record<string, never>[] }).entries) {
        if (entry.type === 'message' && entry.role === 'user')
          places.set(`${conversation} ${entry.index}`, entry.id ?? '');
        const dealtWith: number[] =
          entry.trigger ?? (entry.type === 'message-delivered' ? entry.entries : undefined) ?? [];
        for (const index of dealtWith) {
          const place = `${conversation} ${index}`;
          const id = places.get(place);
          places.delete(place);
          if (id !== undefined) owed.get(id)?.();
        }
      }
    },
  });
  nats.subscribe('parley.dead.>', {
    callback: (_, message) => {
      refused += 1;
      owed.get(JSON.parse((message.json() as { original: string }).original).id)?.();
    },
  });
  return {
    owed,
    refused: () => refused,
    wait: (id: string) =>
      new Promise<void>((resolve) => {
        owed.set(id, () => {
          owed.delete(id);
          resolve();
        });
      }),
  };
}

try {
  const daemons: RunningDaemon[] = [];
  for (let place = 0; place < Number(shared ?? 1); place++) daemons.push(await startDaemon());
  const residentMb = async () => Math.max(...(await Promise.all(daemons.map(({ pid }) => memoryOf(pid)))));
  const address = await readConnectionFile(sites[0]?.data ?? '');
  if (!address) throw new Error('the daemon left no address');
  const nats = await openNats(address);
  const stream = nats.jetstream();
  const answers = watchAnswers(nats);

  const talker = await startTalker(address);
  await talker.talk(5);
  const before = await talker.talk(20);
  const restMb = await residentMb();
  let peakMb = restMb;
  const memory = setInterval(async () => {
    peakMb = Math.max(peakMb, await residentMb().catch(() => 0));
  }, 250);

  const began = performance.now();
  let flooded = 0;
  const all: Promise<void>[] = [];
  const flood = Array.from({ length: AT_ONCE }, async () => {
    while (performance.now() - began < seconds * 1_000) {
      const id = `flood-${flooded++}`;
      all.push(answers.wait(id));
      await stream.publish(
        `parley.in.flooder.flood-${flooded % conversations}`,
        JSON.stringify({ id, content: 'x'.repeat(bytes) }),
        { timeout: 60_000 },
      );
    }
  });
  const talking = talker.talk(Number.POSITIVE_INFINITY);
  await Promise.all(flood);
  const floodMs = performance.now() - began;
  const timeout = setTimeout(() => {
    console.error(`${answers.owed.size} posts were not answered in time`);
    process.exitCode = 1;
    for (const daemon of daemons) daemon.signal('SIGTERM');
  }, LONGEST_WAIT_MS);
  await Promise.race([Promise.all(all), daemons[0]?.exited]);
  talker.enough();
  const during = await talking;
  talker.close();
  clearTimeout(timeout);
  clearInterval(memory);
  const allMs = performance.now() - began;
  report('flood', {
    ...(shared !== undefined && { daemons: daemons.length }),
    conversations,
    bytes,
    seconds: rounded(floodMs / 1_000, 1),
    accepted: flooded,
    acceptedPerSecond: Math.round(flooded / (floodMs / 1_000)),
    answeredPerSecond: Math.round((flooded - answers.owed.size) / (allMs / 1_000)),
    refused: answers.refused(),
    restMb: Math.round(restMb),
    peakMb: Math.round(peakMb),
    quietBeforeMs: rounded(median(before), 1),
    quietDuringMs: rounded(median(during), 1),
    quietMostMs: rounded(Math.max(...during), 1),
    quietSamples: during.length,
    ratio: rounded(median(during) / median(before), 1),
  });
  await nats.close();
  for (const daemon of daemons) await daemon.stop();
} finally {
  for (const site of sites) await site.close();
  await server?.stop();
}
