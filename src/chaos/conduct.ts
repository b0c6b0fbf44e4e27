import { sleep } from '../kernel/index.ts';
import { FAULT_KINDS, type Fault, type FaultKind, LANES, type Schedule } from './schedule.ts';
import type { Stage } from './stage.ts';

/**
 * Carries out a schedule.
 *
 * K1 The faults of a lane are done one after the other, each undone before the next.
 * K2 When this resolves, everything is whole again, whatever failed meanwhile.
 */

export interface Done {
  /** How many of each kind. */
  readonly counts: Readonly<Partial<Record<FaultKind, number>>>;
  /** Faults that were not done: why, once each. */
  readonly skipped: readonly string[];
}

type Act = (stage: Stage, fault: Fault, signal: AbortSignal, keepBusy: () => void) => Promise<void>;

/** For a start. Where the server or the disk is broken it comes to none. */
const READY_PATIENCE_MS = 15_000;

/** `keepBusy`: gives the daemon something to do, where the schedule says that posts are paced by its crashes. */
export async function conduct(
  schedule: Schedule,
  stage: Stage,
  signal: AbortSignal,
  keepBusy: () => void,
): Promise<Done> {
  const startedAt = performance.now();
  const counts: Partial<Record<FaultKind, number>> = {};
  const skipped = new Set<string>();
  const play = async (faults: readonly Fault[]) => {
    for (const fault of faults) {
      await sleep(Math.max(0, startedAt + fault.atMs - performance.now()), signal);
      if (signal.aborted) return;
      if (fault.kind === 'disk-full' && stage.disk.kind === 'played')
        skipped.add(`disk-full on a real disk: ${stage.disk.why}; the store played one`);
      if (performance.now() - startedAt > schedule.seconds * 1_000) {
        skipped.add('some of the last: those before them took longer than planned');
        return;
      }
      if (fault.onceReady) await stage.daemon.settled(READY_PATIENCE_MS, signal);
      counts[fault.kind] = (counts[fault.kind] ?? 0) + 1;
      await ACTS[fault.kind](stage, fault, signal, keepBusy); // K1
    }
  };
  try {
    const lanes = LANES.map((lane) => schedule.faults.filter(({ kind }) => FAULT_KINDS[kind] === lane));
    await Promise.all(lanes.map(play));
  } finally {
    await heal(stage); // K2
  }
  return { counts, skipped: [...skipped] };
}

async function heal({ server, daemon, model, tools, disk, proxies }: Stage): Promise<void> {
  await disk.free();
  model.heal();
  tools.heal();
  daemon.thaw();
  server.thaw();
  proxies.daemon.heal();
  proxies.publishers.heal();
  await server.start();
}

/** Begins something, lets it last, and ends it. */
function lasting(
  begin: (stage: Stage, fault: Fault) => unknown,
  end: (stage: Stage, fault: Fault) => unknown,
): Act {
  return async (stage, fault, signal) => {
    await begin(stage, fault);
    try {
      await sleep(fault.lastsMs, signal);
    } finally {
      await end(stage, fault);
    }
  };
}

const restarted = (by: 'SIGKILL' | 'SIGTERM'): Act =>
  lasting(
    ({ server }) => server.end(by),
    ({ server }) => server.start(),
  );

const model = (how: Parameters<Stage['model']['misbehave']>[0]): Act =>
  lasting(
    (stage) => stage.model.misbehave(how),
    (stage) => stage.model.heal(),
  );

const tools = (how: Parameters<Stage['tools']['misbehave']>[0]): Act =>
  lasting(
    (stage) => stage.tools.misbehave(how),
    (stage) => stage.tools.heal(),
  );

const network = (how: 'cut' | 'stall' | 'slow'): Act =>
  lasting(
    ({ proxies }, { between = 'daemon', delayMs = 0 }) =>
      how === 'slow' ? proxies[between].slow(delayMs) : proxies[between][how](),
    ({ proxies }, { between = 'daemon' }) => proxies[between].heal(),
  );

/** Every kind has its act: a new one does not compile without. */
const ACTS: Readonly<Record<FaultKind, Act>> = {
  'daemon-kill': async ({ daemon }, { lastsMs }) => daemon.kill(lastsMs),
  'daemon-stop': async ({ daemon }, { lastsMs }) => daemon.stop(lastsMs),
  'daemon-freeze': lasting(
    ({ daemon }) => daemon.freeze(),
    ({ daemon }) => daemon.thaw(),
  ),
  'daemon-crash': async ({ daemon }, { point, lastsMs }, _signal, keepBusy) =>
    point && daemon.crashAt(point.name, point.nth, lastsMs, keepBusy),
  'server-kill': restarted('SIGKILL'),
  'server-stop': restarted('SIGTERM'),
  'server-freeze': lasting(
    ({ server }) => server.freeze(),
    ({ server }) => server.thaw(),
  ),
  'network-cut': network('cut'),
  'network-stall': network('stall'),
  'network-slow': network('slow'),
  'disk-full': lasting(
    ({ disk }) => disk.fill(),
    ({ disk }) => disk.free(),
  ),
  'model-hang': model('hang'),
  'model-error': model('error'),
  'model-busy': model('busy'),
  'model-drop': model('drop'),
  'tools-slow': tools('slow'),
  'tools-drop': tools('drop'),
};
