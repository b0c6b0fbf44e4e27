import { setTimeout as pause } from 'node:timers/promises';
import { ParleyError } from '../../../src/kernel/index.ts';
import { launcher as OWN_LAUNCHER } from '../../support/cli.ts';
import { type Child, startChild } from './child.ts';

export interface DaemonActorOptions {
  readonly config: string;
  readonly data: string;
  readonly natsUrl: string;
  /** Where it stores its logs; default: files. */
  readonly store?: 'file' | 'jetstream';
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The command line; default: the one of this package. */
  readonly launcher?: string;
  /** The timeout of its first start; default: one minute. */
  readonly startPatienceMs?: number;
}

/**
 * A time in which a daemon could not work and had not announced it, in milliseconds of the clock that dates
 * entries.
 */
export interface Outage {
  /** Its id in shared logs. A restarted daemon has another one. */
  readonly daemon: string;
  readonly how: 'killed' | 'frozen';
  readonly from: number;
  /** Null: for good. */
  until: number | null;
}

/** A time in which a daemon was ready for work, as in `Outage`. */
export interface Life {
  readonly daemon: string;
  readonly from: number;
  /** Null: it continues. */
  until: number | null;
}

const RESTART_MS = 200;
/** Enough for the work of one batch of posts. */
const BUSY_MS = 2_000;
/** Longer than the grace period in the run's configuration. */
const STOP_TIMEOUT_MS = 15_000;
const START_TIMEOUT_MS = 60_000;
/** The exit code of a daemon that refuses its options or its configuration. */
const USAGE_EXIT_CODE = 2;

/**
 * A daemon started by the command line and restarted as by a service manager.
 *
 * ACTORS-DAEMON-1 Each intended end is announced here first: any other end of a ready daemon is a finding.
 */
export class DaemonActor {
  /** Number of starts. */
  starts = 0;
  /** Crash points at which it ended itself, in order. */
  readonly crashes: string[] = [];
  /** The last output of each unexpected end (ACTORS-DAEMON-1). */
  readonly findings: string[] = [];
  readonly outages: Outage[] = [];
  readonly lives: Life[] = [];
  readonly #options: DaemonActorOptions;
  #child: Child | null = null;
  #wanted = false;
  #downUntil = 0;
  #isExpected = true;
  #isReady = false;
  /** The id of the running daemon in shared logs. */
  #daemon: string | null = null;
  /** The end of the last one. */
  #said = '';
  /** It ended with the exit code for wrong usage or configuration, so a restart is useless. */
  #isRefused = false;
  #armed: string | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: DaemonActorOptions) {
    this.#options = options;
  }

  get data(): string {
    return this.#options.data;
  }

  /** Process id; 0 while none runs. */
  get pid(): number {
    return this.#child?.isAlive ? this.#child.pid : 0;
  }

  /** Starts it, and restarts it whenever it ends, until `rest`. Resolves when it is ready for the first time. */
  async start(): Promise<void> {
    this.#wanted = true;
    this.#running = this.#keep();
    const patienceMs = this.#options.startPatienceMs ?? START_TIMEOUT_MS;
    const until = performance.now() + patienceMs;
    while (!this.#isReady) {
      if (this.#isRefused) throw startError('refused to start', this.#said);
      if (performance.now() > until)
        throw startError(`was not ready within ${patienceMs / 1_000} s`, this.#said);
      await pause(50);
    }
  }

  /** It can work now. */
  get isWell(): boolean {
    return (
      this.#isReady &&
      this.#child?.isAlive === true &&
      !this.outages.some(({ until, how }) => how === 'frozen' && until === null)
    );
  }

  /** Resolves when it is ready, or after this time. */
  async waitUntilReady(patienceMs: number, signal: AbortSignal): Promise<void> {
    const until = performance.now() + patienceMs;
    while (!this.isWell && performance.now() < until && !signal.aborted) await pause(20);
  }

  /** SIGKILL. It stays down for this time. */
  kill(downMs: number): Promise<void> {
    return this.#end('SIGKILL', downMs);
  }

  /** SIGTERM. Resolves when it has ended. */
  stop(downMs: number): Promise<void> {
    return this.#end('SIGTERM', downMs);
  }

  freeze(): void {
    this.#child?.signal('SIGSTOP');
    this.#isOut('frozen');
  }

  thaw(): void {
    for (const outage of this.outages) if (outage.how === 'frozen') outage.until ??= Date.now();
    this.#child?.signal('SIGCONT');
  }

  /**
   * Restarts it with a crash point and waits for the crash, up to a limit. `keepBusy` is called when it is ready
   * and then repeatedly, as a daemon without work reaches no crash point.
   */
  async crashAt(point: string, nth: number, patienceMs: number, keepBusy: () => void): Promise<void> {
    const until = performance.now() + patienceMs;
    const before = this.crashes.length;
    this.#armed = `${point}:${nth}`;
    await this.#end('SIGKILL', 0);
    for (let busyUntil = 0; this.crashes.length === before && performance.now() < until; await pause(20)) {
      if (!this.#isReady || !this.#child?.isAlive || performance.now() < busyUntil) continue;
      busyUntil = performance.now() + BUSY_MS;
      keepBusy();
    }
  }

  /** SIGTERM, for good. Returns the exit code, null if it had to be killed. */
  async stopForGood(): Promise<number | null> {
    this.#wanted = false;
    await this.#end('SIGTERM', 0);
    await this.#running;
    return this.#child ? this.#child.exited : 0;
  }

  async #keep(): Promise<void> {
    while (this.#wanted) {
      await pause(Math.max(0, this.#downUntil - performance.now()));
      if (!this.#wanted) return;
      const point = this.#armed;
      this.#armed = null;
      this.#child = this.#launch(point);
      const code = await this.#child.exited;
      if (code === null) this.#isOut('killed');
      this.#daemon = null;
      for (const life of this.lives) life.until ??= Date.now();
      this.#said = this.#child.lastOutput();
      this.#isRefused = code === USAGE_EXIT_CODE;
      if (this.#isExpected) continue;
      if (point !== null && code === null) this.crashes.push(point.split(':')[0] ?? point);
      else if (this.#isReady || code === null) this.#find(`exit code ${code}`, this.#child);
      // One that never became ready (no server, a full disk) is restarted, as a service manager does.
      this.#downUntil = performance.now() + RESTART_MS;
    }
  }

  #launch(point: string | null): Child {
    this.starts += 1;
    this.#isExpected = false;
    this.#isReady = false;
    const {
      config,
      data,
      natsUrl,
      store = 'file',
      workingDirectory,
      launcher = OWN_LAUNCHER,
    } = this.#options;
    const own = ['--config', config, '--data', data, '--nats', natsUrl, '--store', store, '--http', 'off'];
    const args = [launcher, 'up', '--json', ...own, '--allow-crash-points'];
    const env = { ...this.#options.env, ...(point === null ? {} : { PARLEY_CRASH_POINTS: point }) };
    const child = startChild({ command: process.execPath, args, env, workingDirectory });
    child.said(/"event":"ready"/).then(
      (line) => {
        this.#isReady = true;
        this.#daemon = JSON.parse(line).daemon ?? null;
        if (this.#daemon !== null) this.lives.push({ daemon: this.#daemon, from: Date.now(), until: null });
      },
      () => undefined, // reported by its end
    );
    return child;
  }

  async #end(signal: NodeJS.Signals, downMs: number): Promise<void> {
    this.#downUntil = performance.now() + downMs;
    this.#isExpected = true;
    const ending = this.#child;
    if (!ending?.isAlive) return;
    ending.signal('SIGCONT'); // a frozen one gets no SIGTERM
    ending.signal(signal);
    const tooLong = setTimeout(() => {
      this.#find(`no end within ${STOP_TIMEOUT_MS} ms of ${signal}`, ending);
      ending.signal('SIGKILL');
    }, STOP_TIMEOUT_MS);
    await ending.exited;
    clearTimeout(tooLong);
  }

  #isOut(how: Outage['how']): void {
    if (this.#daemon !== null)
      this.outages.push({ daemon: this.#daemon, how, from: Date.now(), until: null });
  }

  #find(what: string, child: Child): void {
    this.findings.push(`${what}: ${child.lastOutput().slice(-2_000)}`);
  }
}

function startError(what: string, said: string): ParleyError {
  const message = `the daemon ${what}: ${said.slice(-2_000)}`;
  return new ParleyError('CHAOS_NOT_READY', message, {
    hint: 'does `parley up` start here? `parley doctor` says what is missing',
  });
}
