import { connect, type NatsConnection } from 'nats';
import type { Entry } from '../src/conversation/index.ts';
import type { Outage } from '../test/chaos/actors/daemon.ts';
import { takeoversIn } from '../test/chaos/checks/takeovers.ts';
import { CLUSTER_SERVER } from '../test/support/cluster.ts';
import { openProject, type Project, type RunningDaemon, scriptedSettings } from '../test/support/project.ts';
import { cpuMs, load } from './support/processes.ts';
import { report, rounded } from './support/report.ts';
import { type BenchServers, startOne, startThree } from './support/servers.ts';

/**
 * Daemons that share the work of one server, and of a cluster of three with three replicas, as processes of their own, settings
 * as shipped.
 *
 * - `sharing-turns`: whole turns a second, from post to durable end, in so many conversations at once, each of which posts
 *   again when it was answered; three daemons against one. The model answers at once, so where all share two processors
 *   no ratio above 1 can be expected: what is seen is what sharing costs.
 * - `sharing-takeover`: turns under way in so many conversations; one daemon is killed, or frozen. For each conversation
 *   that it worked on, the time until the next claim. `others`: so many other conversations post again as soon as they are
 *   answered, before, during and after the outage.
 *
 * `turnsEach` or `underWay` 0: without that figure.
 *
 *     npx tsx bench/sharing.ts [conversations] [turnsEach] [underWay] [others]
 */

const [conversations = '1000', turnsEach = '3', underWay = '300', others = '200'] = process.argv.slice(2);
const callers = Array.from({ length: Number(conversations) }, (_, number) => `c${number}`);
/** Longer than any takeover: what is under way stays so. */
const LONG_MS = 120_000;

/** What every log holds, from the messages on their subjects. */
class Logs {
  readonly entries = new Map<string, Entry[]>();
  readonly #watching = new Map<string, (entry: Entry) => void>();

  constructor(nats: NatsConnection) {
    nats.subscribe('parley.log.*', {
      callback: (_, message) => {
        const conversation = message.subject.split('.').at(-1) ?? '';
        const known = this.entries.get(conversation) ?? [];
        this.entries.set(conversation, known);
        for (const entry of (message.json() as { entries: Entry[] }).entries) {
          known.push(entry);
          this.#watching.get(conversation)?.(entry);
        }
      },
    });
  }

  /** Resolves when an entry of this type is appended there. */
  next(conversation: string, type: Entry['type']): Promise<void> {
    return new Promise((resolve) => {
      this.#watching.set(conversation, (entry) => {
        if (entry.type === type) resolve();
      });
    });
  }
}

interface Fleet {
  readonly daemons: readonly RunningDaemon[];
  readonly logs: Logs;
  /** Resolves when the post is in the stream. */
  post(conversation: string): Promise<unknown>;
}

async function withDaemons(
  start: () => Promise<BenchServers | null>,
  count: number,
  delayMs: number,
  work: (crowd: Fleet) => Promise<void>,
): Promise<void> {
  const servers = await start();
  if (servers === null) return;
  const nats = await connect({ servers: servers.url(0).split(',') });
  const sites: Project[] = [];
  try {
    const daemons: RunningDaemon[] = [];
    for (let place = 0; place < count; place++) {
      const site = await openProject({
        nats: servers.url(place),
        settings: scriptedSettings({
          publishers: { default: { postsPerMinute: null } },
          jetstream: { replicas: servers.replicas },
        }),
        agents: { lead: '---\nname: Lead\n---\nYou lead.' },
        files: {
          'script.yaml': {
            rules: [
              { when: { last: '/^load/' }, reply: { text: 'Noted.' } },
              { reply: { text: 'Noted.', delayMs } },
            ],
          },
        },
      });
      sites.push(site);
      daemons.push(await site.up('--store', 'jetstream'));
    }
    const jetstream = nats.jetstream();
    const body = (conversation: string) =>
      JSON.stringify({ content: `${conversation.startsWith('load') ? 'load' : ''}${'x'.repeat(200)}` });
    await work({
      daemons,
      logs: new Logs(nats),
      post: (conversation) =>
        jetstream.publish(`parley.in.alice.${conversation}`, body(conversation), { timeout: 60_000 }),
    });
  } finally {
    for (const site of sites) await site.close();
    await nats.close();
    await servers.stop();
  }
}

/** `cpu`: the processor time of all daemons for one turn, in milliseconds. */
async function turnsOf(
  start: () => Promise<BenchServers | null>,
  count: number,
): Promise<{ readonly rate: number; readonly cpu: number }> {
  let [rate, cpu] = [Number.NaN, Number.NaN];
  await withDaemons(start, count, 0, async ({ daemons, logs, post }) => {
    const turn = async (conversation: string) => {
      const ended = logs.next(conversation, 'turn-ended');
      await post(conversation);
      await ended;
    };
    await Promise.all(callers.slice(0, 50).map(turn)); // so that the first seconds of the processes do not count
    const spent = () => daemons.reduce((sum, { pid }) => sum + cpuMs(pid), 0);
    const [started, before] = [performance.now(), spent()];
    await Promise.all(
      callers.map(async (conversation) => {
        for (let number = 0; number < Number(turnsEach); number++) await turn(conversation);
      }),
    );
    const turns = callers.length * Number(turnsEach);
    rate = (turns * 1_000) / (performance.now() - started);
    cpu = (spent() - before) / turns;
  });
  return { rate, cpu };
}

/** Posts in so many conversations, again and again, until it is stopped; resolves with the turns that ended. */
function keepPosting({ logs, post }: Fleet, count: number): () => Promise<number> {
  let turns = 0;
  let isOver = false;
  const callers = Array.from({ length: count }, async (_, number) => {
    while (!isOver) {
      const ended = logs.next(`load${number}`, 'turn-ended');
      await post(`load${number}`);
      await ended;
      turns++;
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(callers);
    return turns;
  };
}

async function takeovers(
  start: () => Promise<BenchServers | null>,
  how: Outage['how'],
  others: number,
): Promise<void> {
  await withDaemons(start, 3, LONG_MS, async (crowd) => {
    const { daemons, logs, post } = crowd;
    const loadFrom = performance.now();
    const stopPosting = keepPosting(crowd, others);
    const busy = callers.slice(0, Number(underWay));
    await Promise.all(
      busy.map(async (conversation) => {
        const begun = logs.next(conversation, 'turn-started');
        await post(conversation);
        await begun;
      }),
    );
    const [broken] = daemons;
    const daemon = broken?.ready.daemon;
    if (!broken || daemon === undefined) throw new Error('there is no daemon');
    const ownerOf = (entries: readonly Entry[] = []) =>
      entries.findLast((entry) => entry.type === 'claim')?.daemon;
    const its = busy.filter((conversation) => ownerOf(logs.entries.get(conversation)) === daemon);
    const claimed = Promise.all(its.map((conversation) => logs.next(conversation, 'claim')));
    const outage = { daemon, how, from: Date.now(), until: null };
    broken.signal(how === 'killed' ? 'SIGKILL' : 'SIGSTOP');
    await claimed;
    const loadSeconds = (performance.now() - loadFrom) / 1_000;
    if (how === 'frozen') broken.signal('SIGCONT');
    const loadTurns = await stopPosting();
    const lives = daemons.map(({ ready }) => ({ daemon: ready.daemon ?? '', from: 0, until: null }));
    const { count, medianMs, p99Ms, mostMs } = takeoversIn(logs.entries, { outages: [outage], lives }) ?? {};
    report('sharing-takeover', {
      text: nameOf(start),
      how,
      load: others,
      machineLoad: load(),
      loadTurnsPerSecond: Math.round(loadTurns / loadSeconds),
      conversations: count ?? 0,
      medianSeconds: rounded((medianMs ?? Number.NaN) / 1_000, 1),
      p99Seconds: rounded((p99Ms ?? Number.NaN) / 1_000, 1),
      mostSeconds: rounded((mostMs ?? Number.NaN) / 1_000, 1),
      wanted: 'p99 within 10 s',
    });
  });
}

const nameOf = (start: () => Promise<BenchServers | null>) =>
  start === startOne ? 'one server' : 'cluster of three';

for (const start of [startOne, startThree]) {
  if (start === startThree && CLUSTER_SERVER === null) break;
  if (Number(turnsEach) > 0) {
    const one = await turnsOf(start, 1);
    const three = await turnsOf(start, 3);
    report('sharing-turns', {
      text: nameOf(start),
      conversations: callers.length,
      turns: callers.length * Number(turnsEach),
      ratio: rounded(three.rate / one.rate),
      onePerSecond: Math.round(one.rate),
      threePerSecond: Math.round(three.rate),
      cpuRatio: rounded(three.cpu / one.cpu),
      oneCpuMs: rounded(one.cpu, 2),
      threeCpuMs: rounded(three.cpu, 2),
      load: load(),
    });
  }
  for (const count of Number(underWay) > 0 ? [0, Number(others)] : []) {
    await takeovers(start, 'killed', count);
    if (start === startOne) await takeovers(start, 'frozen', count);
  }
}
