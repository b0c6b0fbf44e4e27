import { connect, type NatsConnection } from 'nats';
import type { Outage } from '../src/chaos/actors/daemon.ts';
import { takeoversIn } from '../src/chaos/checks/takeovers.ts';
import type { Entry } from '../src/conversation/index.ts';
import { openSite, type RunningDaemon, type Site, scriptedSettings } from '../test/support/daemon.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { report, rounded } from './support/report.ts';

/**
 * Daemons that share the work of one server, as processes of their own, settings as shipped.
 *
 * - `sharing-turns`: whole turns a second, from post to durable end, in so many conversations at once, each of which posts
 *   again when it was answered; three daemons against one. The model answers at once, so where all share two processors
 *   no ratio above 1 can be expected: what is seen is what sharing costs.
 * - `sharing-takeover`: turns under way in so many conversations; one daemon is killed, or frozen. For each conversation
 *   that it worked on, the time until the next claim. `load`: so many other conversations post again as soon as they are
 *   answered, before, during and after the outage.
 *
 *     npx tsx bench/sharing.ts [conversations] [turnsEach] [underWay] [load]
 */

const [conversations = '1000', turnsEach = '3', underWay = '300', load = '200'] = process.argv.slice(2);
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

interface Crowd {
  readonly daemons: readonly RunningDaemon[];
  readonly logs: Logs;
  /** Resolves when the post is in the stream. */
  post(conversation: string): Promise<unknown>;
}

async function withDaemons(
  count: number,
  delayMs: number,
  work: (crowd: Crowd) => Promise<void>,
): Promise<void> {
  const server = await startNatsServer();
  const nats = await connect({ servers: server.url });
  const sites: Site[] = [];
  try {
    const daemons: RunningDaemon[] = [];
    for (let place = 0; place < count; place++) {
      const site = await openSite({
        nats: server.url,
        settings: scriptedSettings({ publishers: { default: { postsPerMinute: null } } }),
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
    await server.stop();
  }
}

async function turnsPerSecond(count: number): Promise<number> {
  let rate = Number.NaN;
  await withDaemons(count, 0, async ({ logs, post }) => {
    const turn = async (conversation: string) => {
      const ended = logs.next(conversation, 'turn-ended');
      await post(conversation);
      await ended;
    };
    await Promise.all(callers.slice(0, 50).map(turn)); // so that the first seconds of the processes do not count
    const started = performance.now();
    await Promise.all(
      callers.map(async (conversation) => {
        for (let number = 0; number < Number(turnsEach); number++) await turn(conversation);
      }),
    );
    rate = (callers.length * Number(turnsEach) * 1_000) / (performance.now() - started);
  });
  return rate;
}

/** Posts in so many conversations, again and again, until it is stopped; resolves with the turns that ended. */
function keepPosting({ logs, post }: Crowd, count: number): () => Promise<number> {
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

async function takeovers(how: Outage['how'], others: number): Promise<void> {
  await withDaemons(3, LONG_MS, async (crowd) => {
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
      how,
      load: others,
      loadTurnsPerSecond: Math.round(loadTurns / loadSeconds),
      conversations: count ?? 0,
      medianSeconds: rounded((medianMs ?? Number.NaN) / 1_000, 1),
      p99Seconds: rounded((p99Ms ?? Number.NaN) / 1_000, 1),
      mostSeconds: rounded((mostMs ?? Number.NaN) / 1_000, 1),
      wanted: 'p99 within 15 s',
    });
  });
}

if (Number(turnsEach) > 0) {
  const one = await turnsPerSecond(1);
  const three = await turnsPerSecond(3);
  report('sharing-turns', {
    conversations: callers.length,
    turns: callers.length * Number(turnsEach),
    ratio: rounded(three / one),
    onePerSecond: Math.round(one),
    threePerSecond: Math.round(three),
  });
}
for (const others of [0, Number(load)]) {
  await takeovers('killed', others);
  await takeovers('frozen', others);
}
