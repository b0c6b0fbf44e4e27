import { join } from 'node:path';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject, providerSettings } from '../test/support/project.ts';
import { quantile } from './samples.ts';
import type { Measured, Window } from './support/poster.ts';
import { cpuMs, load, startHelper } from './support/processes.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';

/**
 * Live text: streams that each receive tokens from a model endpoint at a steady pace, through the daemon to one reader of
 * `parley.live`, against the floor (`support/floor.ts`), which publishes each token as it is. CPU of the daemon for a
 * token, the delay from the endpoint to the reader, bytes of the messages (protocol line, subject and payload). The
 * daemon merges tokens (`src/agents/calls/call.ts`), so its delays include that interval: at most 50 ms.
 *
 *     npx tsx bench/live.ts [streams] [tokens per second] [rounds]
 */

const [streams = '100', tokensPerSecond = '50', rounds = '3'] = process.argv.slice(2);
const SECONDS = 4;
const TOKENS = Number(tokensPerSecond) * SECONDS;

const nats = await startNatsServer();
const endpoint = await startHelper('endpoint.ts', String(1_000 / Number(tokensPerSecond)), String(TOKENS));
const site = await openProject({ nats: nats.url, settings: providerSettings(endpoint.started) });

try {
  const daemon = await site.up();
  const log = join(site.root, 'floor.jsonl');
  const floor = await startHelper('floor.ts', nats.url, endpoint.started, log, 'live');
  const poster = await startHelper('poster.ts', nats.url);

  const measure = async (prefix: string, pid: number) => {
    const window: Window = { prefix, conversations: Number(streams), ms: SECONDS * 500, live: true };
    const before = cpuMs(pid);
    const { tokens, delays, bytes }: Measured = await poster.ask(window);
    const expected = Number(streams) * TOKENS;
    if (tokens !== expected) throw new Error(`${prefix}: ${tokens} of ${expected} tokens arrived`);
    return {
      'cpu-us': ((cpuMs(pid) - before) / tokens) * 1_000,
      'p50-ms': quantile(delays, 0.5),
      'p99-ms': quantile(delays, 0.99),
      bytes: bytes / tokens,
    };
  };
  type Figures = Awaited<ReturnType<typeof measure>>;
  const figures = { parley: [] as Figures[], floor: [] as Figures[] };
  const run = async (prefix: keyof typeof figures, pid: number) => {
    figures[prefix].push(await measure(prefix, pid));
    return 0;
  };
  const sides = { floor: () => run('floor', floor.pid), parley: () => run('parley', daemon.pid) };
  await interleave(sides, Number(rounds), 1);
  const wanted = { 'cpu-us': '<= 1.15', 'p50-ms': '', 'p99-ms': '<= 1', bytes: '' };
  for (const name of ['cpu-us', 'p50-ms', 'p99-ms', 'bytes'] as const) {
    const [one, other] = [figures.parley, figures.floor].map((side) =>
      side.slice(1).map((figure) => figure[name]),
    ) as [number[], number[]];
    report(`live-${name}`, {
      ...{ conversations: streams, load: load(), ratio: ratioOf(one, other) },
      ...{ parley: rounded(median(one), 1), floor: rounded(median(other), 1), wanted: wanted[name] },
    });
  }
  await poster.close();
  await floor.close();
  await daemon.stop();
} finally {
  await endpoint.close();
  await site.close();
  await nats.stop();
}
