import { join } from 'node:path';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject, providerSettings } from '../test/support/project.ts';
import type { Measured, Window } from './support/poster.ts';
import { cpuMs, load, memoryMb, startHelper } from './support/processes.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';

/**
 * Whole turns through real processes: client -> NATS -> daemon -> log -> model over HTTP (streamed) -> log -> feed. The
 * floor (`support/floor.ts`) does the least that any program must do for the same turn. Both run in the same
 * run, on one nats-server, with one model endpoint and one client, in alternating windows. The daemon's CPU
 * includes all its threads.
 *
 *     npx tsx bench/e2e.ts [conversations, by comma] [rounds] [milliseconds of a window]
 */

const [counts = '1,16,64,256', roundCount = '5', windowMs = '2000'] = process.argv.slice(2);
const rounds = Number(roundCount);

interface Side {
  readonly prefix: string;
  readonly pid: number;
}

const nats = await startNatsServer();
const endpoint = await startHelper('endpoint.ts');
const site = await openProject({ nats: nats.url, settings: providerSettings(endpoint.started) });
try {
  const daemon = await site.up();
  const floor = await startHelper('floor.ts', nats.url, endpoint.started, join(site.root, 'floor.jsonl'));
  const poster = await startHelper('poster.ts', nats.url);

  const measure = async ({ prefix, pid }: Side, conversations: number) => {
    const window: Window = { prefix, conversations, ms: Number(windowMs) };
    const before = cpuMs(pid);
    const started = performance.now();
    const { latencies }: Measured = await poster.ask(window);
    const cpu = cpuMs(pid) - before;
    const turns = latencies.length + conversations; // and those that ended after the window
    return {
      p50: median(latencies),
      turnsPerSecond: (turns / (performance.now() - started)) * 1_000,
      cpuPerTurn: cpu / turns,
      memory: memoryMb(pid),
    };
  };

  for (const conversations of counts.split(',').map(Number)) {
    const sides = { parley: daemon.pid, floor: floor.pid };
    const figures = { parley: [] as Figures[], floor: [] as Figures[] };
    type Figures = Awaited<ReturnType<typeof measure>>;
    const run = async (prefix: keyof typeof sides) => {
      figures[prefix].push(await measure({ prefix, pid: sides[prefix] }, conversations));
      return 0;
    };
    await interleave({ floor: () => run('floor'), parley: () => run('parley') }, rounds, 1);
    const [ours, bare] = [figures.parley.slice(1), figures.floor.slice(1)]; // without the warm-up
    const of = (name: keyof Figures) => {
      const [one, other] = [ours.map((figure) => figure[name]), bare.map((figure) => figure[name])];
      return {
        ratio: ratioOf(one, other),
        parley: rounded(median(one), 2),
        floor: rounded(median(other), 2),
      };
    };
    const at = { conversations, load: load() };
    report('e2e-p50-ms', { ...at, ...of('p50'), ...(conversations === 1 && { wanted: '<= 1.4' }) });
    report('e2e-turns-per-s', {
      ...at,
      ...of('turnsPerSecond'),
      ...(conversations > 1 && { wanted: '>= 0.6' }),
    });
    report('e2e-cpu-ms', { ...at, ...of('cpuPerTurn'), ...(conversations === 256 && { wanted: '<= 1.7' }) });
    report('e2e-memory-mb', { ...at, ...of('memory'), ...(conversations === 256 && { wanted: '<= 1.3' }) });
  }
  await poster.close();
  await floor.close();
  await daemon.stop();
} finally {
  await endpoint.close();
  await site.close();
  await nats.stop();
}
