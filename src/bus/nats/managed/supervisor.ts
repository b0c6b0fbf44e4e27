import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FULL_DISK_BYTES, messageOf, ParleyError, syncDirectory } from '../../../kernel/index.ts';
import {
  findServerProcess,
  isLockFree,
  isServerProcess,
  prepareDirectory,
  pruneRotatedLogs,
  signalProcess,
  takeLock,
} from './directory.ts';
import { type ManagedLog, systemHost } from './host.ts';
import { bringUp, canSyncAlways, type RunningServer, type ServerContext, urlOf } from './launch.ts';

/**
 * Keeps a server running until `stop()`.
 *
 * SUPERVISOR-1 A free lock means that the server has died, whether or not it was a child of this process.
 * SUPERVISOR-2 A dead server is restarted on the same port with the same credentials, without a limit and with increasing
 *    pauses. Each attempt is logged.
 * SUPERVISOR-3 After `stop()` no server is started; a start in progress is ended first.
 * SUPERVISOR-4 For a server that cannot sync each message, this process syncs the files and logs that.
 * SUPERVISOR-5 A server whose disk was full is restarted when there is free space: after a failed write, 2.9.10 answers no
 *    JetStream request any more, and 2.15.1 refuses every post.
 */

type State =
  | { readonly kind: 'watching'; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'restarting'; readonly done: Promise<void> }
  | { readonly kind: 'stopping'; readonly done: Promise<void> };

const WATCH_MS = 250;
const PRUNE_EVERY = 240; // polls: a minute
const SYNC_EVERY_MS = 1_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** Bytes. Between `FULL_DISK_BYTES` and this, the state of the disk does not change (hysteresis). */
const ROOM_FROM = 4 * 1_024 * 1_024;
/** After this time a restart counts as successful. */
const SETTLED_MS = 30_000;

/** The pause before the next restart after this number of failures. */
export function restartPause(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 20), LONGEST_PAUSE_MS);
}

export class ManagedServer {
  readonly #context: ServerContext;
  /** The controller of the context's signal. */
  readonly #stopping: AbortController;
  #server: RunningServer;
  #state: State;
  #syncLoop: SyncLoop | null = null;
  #upSince = performance.now();
  #failures = 0;
  #restarts = 0;
  #polls = 0;
  #wasFull = false;

  constructor(context: ServerContext, server: RunningServer, stopping: AbortController) {
    this.#context = context;
    this.#stopping = stopping;
    this.#server = server;
    this.#state = this.#watch();
    this.#adopt(server);
  }

  /** `nats://127.0.0.1:<port>`, without credentials; constant for this directory. */
  get url(): string {
    return urlOf(this.#server.endpoint);
  }
  /** Path of the file with the seed of its only user's nkey. */
  get nkey(): string {
    return this.#server.credentials.nkey;
  }
  /** The version of the running server. This and the next properties can change with a restart. */
  get version(): string {
    return this.#server.version;
  }
  /** Another process had started it. */
  get adopted(): boolean {
    return this.#server.adopted;
  }
  get pid(): number {
    return this.#server.pid;
  }

  /** Ends the server; resolves when its directory is free. Calls share one promise. */
  stop(): Promise<void> {
    if (this.#state.kind === 'stopping') return this.#state.done;
    this.#stopping.abort();
    const done = this.#end(this.#state);
    this.#state = { kind: 'stopping', done };
    return done;
  }

  #adopt(server: RunningServer): void {
    this.#server = server;
    this.#upSince = performance.now();
    void server.exited?.then(() => this.#poll()); // sooner than the next poll of the lock
    void this.#syncLoop?.stop();
    const { files, log } = this.#context;
    this.#syncLoop = canSyncAlways(server.version)
      ? null
      : startSyncLoop({ store: files.store, log, everyMs: SYNC_EVERY_MS });
  }

  #watch(): State {
    return { kind: 'watching', timer: setTimeout(() => void this.#poll(), WATCH_MS).unref() };
  }

  async #poll(): Promise<void> {
    const before = this.#state;
    if (before.kind !== 'watching') return;
    clearTimeout(before.timer);
    const { files, log } = this.#context;
    const isDead = await isLockFree(files.lock).catch((error: unknown) => {
      log('warn', `cannot monitor the nats-server: ${messageOf(error)}`);
      return false;
    });
    // A failure is repeated at a later poll.
    if (++this.#polls % PRUNE_EVERY === 0) await pruneRotatedLogs(files).catch(() => undefined);
    const hasRoomAgain = await this.#hasRoomAgain();
    if (this.#state !== before) return; // stopped, or another poll was faster
    if (!isDead && !hasRoomAgain) this.#state = this.#watch();
    else this.#state = { kind: 'restarting', done: this.#restart(isDead) };
  }

  /** True once after the disk was full. */
  async #hasRoomAgain(): Promise<boolean> {
    const { files, host } = this.#context;
    const free = await host.freeBytes(files.directory).catch(() => null);
    const isBack = this.#wasFull && free !== null && free >= ROOM_FROM;
    if (isBack) this.#wasFull = false;
    else if (free !== null && free < FULL_DISK_BYTES) this.#wasFull = true;
    return isBack;
  }

  async #restart(isDead: boolean): Promise<void> {
    const { log, signal } = this.#context;
    const { pid } = this.#server;
    if (performance.now() - this.#upSince > SETTLED_MS) this.#failures = 0;
    const reason = isDead ? 'died' : 'had a full disk, which has free space again';
    log('warn', `the nats-server (process ${pid}) ${reason}; restarting it`, { pid });
    if (!isDead)
      await endServer(this.#context).catch((error: unknown) => log('warn', messageOf(error), { pid }));
    while (!signal.aborted) {
      try {
        await sleep(restartPause(this.#failures++), undefined, { signal, ref: false });
        this.#adopt(await bringUp(this.#context));
        break;
      } catch (error) {
        if (!signal.aborted) log('warn', `the nats-server cannot be restarted: ${messageOf(error)}`);
      }
    }
    if (signal.aborted) return;
    this.#state = this.#watch();
    const fields = { pid: this.#server.pid, restarts: ++this.#restarts };
    log('info', `the nats-server is running again (process ${fields.pid})`, fields);
  }

  async #end(before: State): Promise<void> {
    if (before.kind === 'watching') clearTimeout(before.timer);
    if (before.kind === 'restarting') await before.done;
    try {
      await endServer(this.#context);
    } finally {
      await this.#syncLoop?.stop();
    }
    this.#context.log('info', 'the nats-server is stopped', { pid: this.#server.pid });
  }
}

const PAUSE_MS = 25;

/** From SIGTERM to SIGKILL, and from there to giving up. */
const END_PATIENCE = { gracefulMs: 5_000, forcedMs: 5_000 };

/**
 * Ends the server of the directory, first gracefully, then by SIGKILL; resolves when its lock is free. Only a process that was
 * just verified to be this server gets a signal. Throws `NATS_SERVER_STUCK`.
 */
export async function endServer(context: ServerContext, patience = END_PATIENCE): Promise<void> {
  const { files, host, log } = context;
  const started = performance.now();
  let target: number | null = null;
  let forced = false;
  for (;;) {
    const lock = await takeLock(files.lock);
    if (lock) {
      await rm(files.record, { force: true });
      await rm(files.pidFile, { force: true });
      return lock.release();
    }
    const elapsed = performance.now() - started;
    if (target === null) {
      target = await findServerProcess(files, host, log);
      if (target !== null) signalProcess(target, 'SIGTERM');
    } else if (!forced && elapsed > patience.gracefulMs) {
      forced = true;
      if (!(await isServerProcess(target, files.configuration, host))) continue;
      log('warn', `the nats-server (process ${target}) did not stop in time; killing it`, { pid: target });
      signalProcess(target, 'SIGKILL');
    }
    if (elapsed > patience.gracefulMs + patience.forcedMs) throw stuck(context, target);
    await sleep(PAUSE_MS);
  }
}

function stuck(context: ServerContext, pid: number | null): ParleyError {
  const { directory, lock } = context.files;
  const who = pid === null ? 'its process is not known' : `process ${pid}`;
  return new ParleyError(
    'NATS_SERVER_STUCK',
    `the nats-server of ${directory} does not stop (${who}); its directory stays locked`,
    { hint: `find the process that holds ${lock} (lsof ${lock}) and end it` },
  );
}

export interface ManagedServerOptions
  extends Pick<ServerContext, 'log' | 'binary' | 'version'>,
    Partial<Pick<ServerContext, 'startTimeoutMs' | 'host'>> {
  /** The server's own directory; created if it is missing. */
  readonly directory: string;
}

const START_TIMEOUT_MS = 15_000;

/**
 * Adopts the server that runs on this directory, or starts a new one.
 * Throws `ParleyError`: `NATS_DIRECTORY_UNWRITABLE`, `NATS_DIRECTORY_IN_USE`, `NATS_PORT_IN_USE`,
 * `NATS_SERVER_UNUSABLE`, `NATS_SERVER_FAILED`, `NATS_SERVER_NOT_READY`, `NATS_NO_FREE_PORT`.
 */
export async function startManagedServer({
  directory,
  version,
  ...options
}: ManagedServerOptions): Promise<ManagedServer> {
  const stopping = new AbortController();
  const context: ServerContext = {
    host: systemHost(),
    startTimeoutMs: START_TIMEOUT_MS,
    ...options,
    files: await prepareDirectory(directory),
    signal: stopping.signal,
  };
  const server = await bringUp({ ...context, version });
  logServer(context.log, server);
  return new ManagedServer(context, server, stopping);
}

function logServer(log: ManagedLog, { endpoint, pid, version, adopted }: RunningServer): void {
  const isAlways = canSyncAlways(version);
  const verb = adopted ? 'adopted the running' : 'started a';
  const durability = isAlways ? 'always' : 'periodic';
  const fields = { pid, version, adopted, durability };
  log('info', `${verb} nats-server ${version} at ${urlOf(endpoint)} (process ${pid})`, fields);
  if (isAlways) log('info', 'every acknowledged message is on disk (sync_interval: always)');
  else
    log(
      'warn',
      `nats-server ${version} cannot sync each message: its files are synced about once a second while this ` +
        'daemon runs. A killed process loses nothing; a power loss can lose the last two seconds of acknowledged messages, ' +
        'or the last two minutes if no daemon was running. Use nats-server 2.10 or newer to avoid this.',
    );
}

/**
 * Syncs the files of a server that cannot do so itself (before 2.10).
 *
 * SYNC-LOOP-1 The contents of the store at the start of a pass are on disk at its end: files first, then their folders.
 * SYNC-LOOP-2 Unchanged files are not synced again: an idle server costs no disk access.
 * SYNC-LOOP-3 A failed pass is logged once and retried; nothing counts as synced.
 */
interface SyncLoop {
  pass(): Promise<void>;
  /** Runs a last pass. Never rejects. */
  stop(): Promise<void>;
}

interface SyncLoopOptions {
  readonly store: string;
  readonly log: ManagedLog;
  readonly everyMs: number;
  /** Replaced in tests; the default also syncs files. */
  readonly sync?: (path: string) => Promise<void>;
}

export function startSyncLoop({ store, log, everyMs, sync = syncDirectory }: SyncLoopOptions): SyncLoop {
  let synced = new Map<string, string>();
  let failing = false;
  let last = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;

  const passOnce = async (): Promise<void> => {
    try {
      synced = await syncChanged(store, synced, sync);
      failing = false;
    } catch (error) {
      if (!failing) log('warn', `cannot sync ${store}: ${messageOf(error)}`);
      failing = true;
    }
  };
  const pass = (): Promise<void> => {
    last = last.then(passOnce); // the current pass may have read older contents (SYNC-LOOP-1)
    return last;
  };
  const schedule = (): void => {
    timer = setTimeout(() => void pass().then(() => timer && schedule()), everyMs).unref();
  };
  schedule();
  return {
    pass,
    stop: () => {
      if (timer) clearTimeout(timer);
      timer = null;
      return pass();
    },
  };
}

/** Returns the synced state of each path. */
async function syncChanged(
  store: string,
  synced: ReadonlyMap<string, string>,
  sync: (path: string) => Promise<void>,
): Promise<Map<string, string>> {
  const files: [string, string][] = [];
  const folders: [string, string][] = [];
  for (const name of ['.', ...(await readdir(store, { recursive: true }).catch(unlessGone<string[]>([])))]) {
    const path = join(store, name);
    const facts = await stat(path, { bigint: true }).catch(unlessGone(null));
    // The size too, because two writes can have the same mtime.
    if (facts)
      (facts.isDirectory() ? folders : files).push([path, `${facts.mtimeNs}/${facts.size}/${facts.ino}`]);
  }
  const now = new Map<string, string>();
  for (const [path, state] of [...files, ...folders]) {
    if (synced.get(path) !== state) await sync(path).catch(unlessGone(undefined));
    now.set(path, state);
  }
  return now;
}

/** The server may remove files during a pass. */
function unlessGone<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return instead;
    throw error;
  };
}
