import { linkedAbort, sleep } from '../kernel/index.ts';
import type { ServerActor } from './actors/nats-server.ts';
import type { Environment } from './environment.ts';
import { type Fault, type FaultKind, laneOf, type Schedule } from './schedule.ts';

/**
 * Carries out a schedule.
 *
 * RUNNER-1 The faults of a lane are done one after the other, each undone before the next.
 * RUNNER-2 When this resolves, everything is whole again, whatever failed meanwhile.
 */

export interface RunOutcome {
  /** How many of each kind. */
  readonly counts: Readonly<Partial<Record<FaultKind, number>>>;
  /** Faults that were not done: why, once each. */
  readonly skipped: readonly string[];
}

type Act = (
  environment: Environment,
  fault: Fault,
  signal: AbortSignal,
  keepBusy: () => void,
) => Promise<void>;

/** For a start. Where the server or the disk is broken it comes to none. */
const READY_PATIENCE_MS = 15_000;

/** `keepBusy`: gives the daemon something to do, where the schedule says that posts are paced by its crashes. */
export async function runScenario(
  schedule: Schedule,
  environment: Environment,
  signal: AbortSignal,
  keepBusy: () => void,
): Promise<RunOutcome> {
  const startedAt = performance.now();
  const counts: Partial<Record<FaultKind, number>> = {};
  const skipped = new Set<string>();
  const play = async (faults: readonly Fault[]) => {
    for (const fault of faults) {
      await sleep(Math.max(0, startedAt + fault.atMs - performance.now()), signal);
      if (signal.aborted) return;
      if (fault.kind === 'disk-full' && environment.disk.kind === 'played')
        skipped.add(`disk-full on a real disk: ${environment.disk.why}; the store played one`);
      if (performance.now() - startedAt > schedule.seconds * 1_000) {
        skipped.add('some of the last: those before them took longer than planned');
        return;
      }
      if (fault.onceReady) {
        await daemonOf(environment, fault).settled(READY_PATIENCE_MS, signal);
        await sleep(fault.worksMs ?? 0, signal);
      }
      if (laneOf(fault).startsWith('daemon')) await anotherIsWell(environment, fault, signal);
      counts[fault.kind] = (counts[fault.kind] ?? 0) + 1;
      await ACTS[fault.kind](environment, fault, signal, keepBusy); // RUNNER-1
    }
  };
  try {
    const lanes = new Map<string, Fault[]>();
    for (const fault of schedule.faults)
      lanes.set(laneOf(fault), [...(lanes.get(laneOf(fault)) ?? []), fault]);
    await Promise.all([...lanes.values()].map(play));
  } finally {
    await heal(environment); // RUNNER-2
  }
  return { counts, skipped: [...skipped] };
}

async function heal({ servers, daemons, model, tools, disk, proxies }: Environment): Promise<void> {
  await disk.free();
  model.heal();
  tools.heal();
  for (const daemon of daemons) daemon.thaw();
  for (const server of servers) server.thaw();
  for (const proxy of proxies.daemons) proxy.heal();
  proxies.publishers.heal();
  await Promise.all(servers.map((server) => server.start()));
}

/** Of those to which it may be done, the one to which it is done. */
function oneOf<T>(all: readonly T[], what: string, place = 0): T {
  const one = all[place];
  if (one === undefined) throw new RangeError(`there is no ${what} ${place}`);
  return one;
}

const daemonOf = ({ daemons }: Environment, fault: Fault) => oneOf(daemons, 'daemon', fault.daemon);

function wayOf({ proxies }: Environment, fault: Fault) {
  return fault.between === 'publishers' ? proxies.publishers : oneOf(proxies.daemons, 'daemon', fault.daemon);
}

/** Where several share the work: one that could go on with what this fault will interrupt. */
async function anotherIsWell(environment: Environment, fault: Fault, signal: AbortSignal): Promise<void> {
  const others = environment.daemons.filter((daemon) => daemon !== daemonOf(environment, fault));
  if (others.length === 0) return;
  const enough = linkedAbort(signal);
  await Promise.race(others.map((other) => other.settled(READY_PATIENCE_MS, enough.signal)));
  enough.abort();
  enough.unlink();
}

/** Begins something, lets it last, and ends it. */
function lasting(
  begin: (environment: Environment, fault: Fault) => unknown,
  end: (environment: Environment, fault: Fault) => unknown,
): Act {
  return async (environment, fault, signal) => {
    await begin(environment, fault);
    try {
      await sleep(fault.lastsMs, signal);
    } finally {
      await end(environment, fault);
    }
  };
}

/** On the leader where the fault says so, and there is one. */
const onServer =
  (begin: (server: ServerActor) => unknown, end: (server: ServerActor) => unknown): Act =>
  async (environment, fault, signal, keepBusy) => {
    const leader = fault.leader ? await environment.leader() : null;
    const server = leader ?? oneOf(environment.servers, 'server', fault.server);
    await lasting(
      () => begin(server),
      () => end(server),
    )(environment, fault, signal, keepBusy);
  };

const restarted = (by: 'SIGKILL' | 'SIGTERM'): Act =>
  onServer(
    (server) => server.end(by),
    (server) => server.start(),
  );

const model = (how: Parameters<Environment['model']['misbehave']>[0]): Act =>
  lasting(
    (environment) => environment.model.misbehave(how),
    (environment) => environment.model.heal(),
  );

const tools = (how: Parameters<Environment['tools']['misbehave']>[0]): Act =>
  lasting(
    (environment) => environment.tools.misbehave(how),
    (environment) => environment.tools.heal(),
  );

const network = (how: 'cut' | 'stall' | 'slow'): Act =>
  lasting(
    (environment, fault) =>
      how === 'slow' ? wayOf(environment, fault).slow(fault.delayMs ?? 0) : wayOf(environment, fault)[how](),
    (environment, fault) => wayOf(environment, fault).heal(),
  );

/** Every kind has its act: a new one does not compile without. */
const ACTS: Readonly<Record<FaultKind, Act>> = {
  'daemon-kill': async (environment, fault) => daemonOf(environment, fault).kill(fault.lastsMs),
  'daemon-stop': async (environment, fault) => daemonOf(environment, fault).stop(fault.lastsMs),
  'daemon-freeze': lasting(
    (environment, fault) => daemonOf(environment, fault).freeze(),
    (environment, fault) => daemonOf(environment, fault).thaw(),
  ),
  'daemon-crash': async (environment, fault, _signal, keepBusy) =>
    fault.point &&
    daemonOf(environment, fault).crashAt(fault.point.name, fault.point.nth, fault.lastsMs, keepBusy),
  'server-kill': restarted('SIGKILL'),
  'server-stop': restarted('SIGTERM'),
  'server-freeze': onServer(
    (server) => server.freeze(),
    (server) => server.thaw(),
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
