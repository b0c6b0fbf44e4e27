import type { Peers } from '../../bus/index.ts';

/**
 * The other daemons on this server and prefix, as far as they have been heard of.
 *
 * M1 Each says at short intervals that it is there; one that was not heard for a silence is gone for now. Nothing that
 *    follows from that can do harm: who takes over wrongly is told so by the log.
 * M2 Ids are never used twice: one that says that it leaves is gone for good. One that nobody answers for may only be
 *    connecting again: it is there as soon as it is heard.
 * M3 A daemon that was frozen itself has heard nobody, and concludes nothing from that.
 */

/** Times that a daemon is heard in one silence. */
const BEATS = 4;
const MOST_REMEMBERED = 1_000;

export interface MembersOptions {
  readonly daemon: string;
  readonly peers: Peers;
  readonly silenceMs: number;
  /** A daemon is not there any more; `handedOver`: it said so itself. */
  readonly onGone: (daemon: string, handedOver: boolean) => void;
}

export class Members {
  readonly #options: MembersOptions;
  /** When each was last heard, on this process's own clock. */
  readonly #heardAt = new Map<string, number>();
  /** Not to be asked before then. */
  readonly #silentUntil = new Map<string, number>();
  readonly #gone = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
  }

  start(): void {
    this.#say(true);
    this.#timer = setInterval(() => this.#beat(), this.#options.silenceMs / BEATS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Everybody else who is there. */
  get others(): string[] {
    return [...this.#heardAt.keys()].filter((daemon) => !this.isSilent(daemon));
  }

  heard(daemon: string, isNew: boolean): void {
    if (daemon === this.#options.daemon || this.#gone.has(daemon)) return;
    this.#heardAt.set(daemon, performance.now());
    this.#silentUntil.delete(daemon);
    if (isNew) this.#say(false); // so that the new one knows of this one at once
  }

  /** It need not be asked: it would not answer. */
  isSilent(daemon: string): boolean {
    if (this.#gone.has(daemon)) return true;
    return performance.now() < (this.#silentUntil.get(daemon) ?? 0);
  }

  /** It was asked, and did not answer or was not connected (M2). */
  suspect(daemon: string): void {
    this.#silentUntil.set(daemon, performance.now() + this.#options.silenceMs);
  }

  /** It says so itself (M2). */
  left(daemon: string): void {
    if (this.#gone.has(daemon)) return;
    if (this.#gone.size >= MOST_REMEMBERED) this.#gone.clear();
    this.#gone.add(daemon);
    this.#heardAt.delete(daemon);
    this.#options.onGone(daemon, true);
  }

  /** M3 */
  thawed(): void {
    const now = performance.now();
    for (const daemon of this.#heardAt.keys()) this.#heardAt.set(daemon, now);
  }

  #beat(): void {
    this.#say(false);
    const longAgo = performance.now() - this.#options.silenceMs;
    for (const [daemon, heardAt] of this.#heardAt) {
      if (heardAt > longAgo) continue;
      this.#heardAt.delete(daemon); // M1
      this.suspect(daemon);
      this.#options.onGone(daemon, false);
    }
  }

  #say(isNew: boolean): void {
    const { peers, daemon } = this.#options;
    peers.tellAll('alive', { daemon, isNew });
  }
}
