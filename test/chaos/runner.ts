import { linkedAbort, sleep } from '../../src/kernel/index.ts';
import type { ServerActor } from './actors/nats-server.ts';
import type { Environment } from './environment.ts';
import { type Fault, type FaultKind, laneOf, type Schedule } from './schedule.ts';

/**
 * Executes a schedule.
 *
 * RUNNER-1 The faults of a lane follow one another, each reverted before the next.
 * RUNNER-2 When this resolves, everything is restored, whatever failed meanwhile.
 */

export interface RunOutcome {
  /** How many of each kind. */
  readonly counts: Readonly<Partial<Record<FaultKind, number>>>;
  /** The reasons for skipped faults, once each. */
  readonly skipped: readonly string[];
}

type Act = (
  environment: Environment,
  fault: Fault,
  signal: AbortSignal,
  keepBusy: () => void,
) => Promise<void>;

/** The timeout of a start. It does not succeed while the server or the disk is broken. */
const READY_TIMEOUT_MS = 15_000;

/** `keepBusy`: gives the daemon work if the schedule paces posts by its crashes. */
export async function runSchedule(
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
      if (fault.kind === 'disk-full' && environment.disk.kind === 'simulated')
        skipped.add(`disk-full on a real disk: ${environment.disk.why}; the store simulated one`);
      if (performance.now() - startedAt > schedule.seconds * 1_000) {
        skipped.add('the last ones: earlier ones took longer than planned');
        return;
      }
      if (fault.onceReady) {
        await daemonOf(environment, fault).waitUntilReady(READY_TIMEOUT_MS, signal);
        await sleep(fault.worksMs ?? 0, signal);
      }
      if (laneOf(fault).startsWith('daemon')) await waitForHealthyPeer(environment, fault, signal);
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
    await restoreAll(environment); // RUNNER-2
  }
  return { counts, skipped: [...skipped] };
}

async function restoreAll({ servers, daemons, model, tools, disk, proxies }: Environment): Promise<void> {
  await disk.free();
  model.heal();
  tools.heal();
  for (const daemon of daemons) daemon.thaw();
  for (const server of servers) server.thaw();
  for (const proxy of proxies.daemons) proxy.heal();
  proxies.publishers.heal();
  await Promise.all(servers.map((server) => server.start()));
}

/** The target of a fault among the possible ones. */
function oneOf<T>(all: readonly T[], what: string, place = 0): T {
  const one = all[place];
  if (one === undefined) throw new RangeError(`there is no ${what} ${place}`);
  return one;
}

const daemonOf = ({ daemons }: Environment, fault: Fault) => oneOf(daemons, 'daemon', fault.daemon);

function proxyOf({ proxies }: Environment, fault: Fault) {
  return fault.between === 'publishers' ? proxies.publishers : oneOf(proxies.daemons, 'daemon', fault.daemon);
}

/** With several daemons: one that can continue the work that this fault interrupts. */
async function waitForHealthyPeer(
  environment: Environment,
  fault: Fault,
  signal: AbortSignal,
): Promise<void> {
  const others = environment.daemons.filter((daemon) => daemon !== daemonOf(environment, fault));
  if (others.length === 0) return;
  const enough = linkedAbort(signal);
  await Promise.race(others.map((other) => other.waitUntilReady(READY_TIMEOUT_MS, enough.signal)));
  enough.abort();
  enough.unlink();
}

/** Begins a fault, lets it last, and ends it. */
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

/** Targets the leader if the fault requires it and there is one. */
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
      how === 'slow'
        ? proxyOf(environment, fault).slow(fault.delayMs ?? 0)
        : proxyOf(environment, fault)[how](),
    (environment, fault) => proxyOf(environment, fault).heal(),
  );

/** Every kind has its act: a new kind does not compile without one. */
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
