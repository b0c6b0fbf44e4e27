import type { PeerRequestOf, Peers } from '../../bus/index.ts';
import { type ConfigFingerprint, differencesOf } from './config-fingerprint.ts';

/**
 * The other daemons on this server and prefix, as far as they have been heard of.
 *
 * PEER-MONITOR-1 Each says at short intervals that it is there; one that was not heard for a silence is gone until it is heard again.
 *    Nothing that follows from that can do harm: the log refuses a daemon that takes over wrongly.
 * PEER-MONITOR-2 Ids are never used twice: one that says that it leaves is gone for good. One that nobody answers for may only be
 *    connecting again: it is there as soon as it is heard.
 * PEER-MONITOR-3 Whoever does not hear itself hears nobody: its line is down, or the server is away. It concludes nothing from that.
 *    After a long outage it concludes nothing for a while: the others may come back later than it. A short one, half a
 *    silence at most, leaves whoever is there time enough to be heard before his silence is over; only that the server knows
 *    nobody means nothing until all have had the time to connect again.
 * PEER-MONITOR-4 Of one that is not heard for half a silence the server is asked whether it is connected: one that is not is gone for
 *    now, as in M1.
 * PEER-MONITOR-5 The time in which this daemon was frozen is no outage: whoever is there is heard as soon as this daemon runs. It
 *    concludes nothing until all have had the time for that, and a line that is down has shown that it is. Where the line turns
 *    out to be down (servers give up those who are frozen), that time begins when it is back: who knows since when it was.
 */

/** Times that a daemon is heard in one silence, at least. */
const BEATS = 4;
/** As often at least, however long a silence is: who asks in vain has heard itself since, or knows nothing (PEER-MONITOR-3). */
const LONGEST_BEAT_MS = 1_000;
/** Of a silence: in which all connect again; behind a long outage after as long as that was, a silence at most (PEER-MONITOR-3). */
const COMING_BACK = 1 / 4;
/** Of a silence: more than the half for which one that does not hear itself still believes that it does (PEER-MONITOR-5). */
const HEARD_AGAIN = 5 / 8;
const MOST_REMEMBERED = 1_000;

export interface PeerMonitorOptions {
  readonly daemon: string;
  readonly peers: Peers;
  readonly silenceMs: number;
  /** What this daemon was told (`likeness.ts`). */
  readonly likeness: ConfigFingerprint;
  /** Another one was told something else in these parts. Once for each. */
  readonly onUnlike: (daemon: string, differs: readonly string[]) => void;
  /** A daemon is not there any more; `handedOver`: it said so itself. */
  readonly onGone: (daemon: string, handedOver: boolean) => void;
  /** The line was down for a while, or the connection lost, and is there again. */
  readonly onBack: () => void;
}

export class PeerMonitor {
  readonly #options: PeerMonitorOptions;
  /** When each was last heard, on this process's own clock. */
  readonly #heardAt = new Map<string, number>();
  /** Not to be asked before then. Infinite: not before it is heard, however long it takes to take over what it has (PEER-MONITOR-1). */
  readonly #silentUntil = new Map<string, number>();
  readonly #gone = new Set<string>();
  /** Who waits for a daemon's answer, and is told when there will be none. */
  readonly #asking = new Map<string, Set<() => void>>();
  readonly #unlike = new Set<string>();
  /** When this daemon heard itself last, and when what it does not hear begins to mean something (PEER-MONITOR-3). */
  #heardItselfAt = performance.now();
  #lostAt: number | null = null;
  #sureFrom = 0;
  /** PEER-MONITOR-5: until then its line may turn out to be down. */
  #thawingUntil = 0;
  #isThawed = false;
  /** When it begins to mean something that the server knows nobody of that name (PEER-MONITOR-3). */
  #sureOfNobodyFrom = 0;
  /** Those of whom the server is being asked (PEER-MONITOR-4). */
  readonly #asked = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PeerMonitorOptions) {
    this.#options = options;
  }

  start(): void {
    this.#heardItselfAt = performance.now();
    this.#options.peers.onLost(() => this.#lost());
    this.#say(true);
    this.#timer = setInterval(() => this.#beat(), Math.min(LONGEST_BEAT_MS, this.#options.silenceMs / BEATS));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Everybody else who is there. */
  get others(): string[] {
    return [...this.#heardAt.keys()].filter((daemon) => !this.isSilent(daemon));
  }

  /** Of those the ones to count on: whoever was not heard for half a silence is perhaps gone, or frozen. */
  get awake(): string[] {
    const unheard = this.#unheardFor(this.#options.silenceMs / 2);
    return this.others.filter((daemon) => !unheard.includes(daemon));
  }

  heard(daemon: string, isNew: boolean, likeness?: unknown): void {
    if (daemon === this.#options.daemon) this.#heardItself();
    if (daemon === this.#options.daemon || this.#gone.has(daemon)) return;
    if (!this.#heardAt.has(daemon)) this.#compare(daemon, likeness);
    this.#heardAt.set(daemon, performance.now());
    this.#silentUntil.delete(daemon);
    if (isNew) this.#say(false); // so that the new one knows of this one at once
  }

  /** It need not be asked: it would not answer. */
  isSilent(daemon: string): boolean {
    if (this.#gone.has(daemon)) return true;
    return performance.now() < (this.#silentUntil.get(daemon) ?? 0);
  }

  /** Tells when that daemon turns out to be silent, until what this answers is called. */
  onSilence(daemon: string, tell: () => void): () => void {
    const asking = this.#asking.get(daemon) ?? new Set();
    this.#asking.set(daemon, asking.add(tell));
    return () => {
      asking.delete(tell);
      if (asking.size === 0 && this.#asking.get(daemon) === asking) this.#asking.delete(daemon);
    };
  }

  /** It was asked, and did not answer or was not connected (PEER-MONITOR-2); `askedAt` of this process's own clock. */
  suspect(daemon: string, askedAt: number, why: 'nobody' | 'silent'): void {
    // That there is nobody the server has said; a silence may be the line's.
    const isSure = why === 'nobody' ? this.#isSureOfNobody : this.#isSure && this.#heardItselfAt > askedAt;
    if (isSure)
      this.#takeForSilent(daemon, why === 'nobody' ? Number.POSITIVE_INFINITY : this.#options.silenceMs);
  }

  /** It says so itself (PEER-MONITOR-2). */
  left(daemon: string): void {
    if (this.#gone.has(daemon)) return;
    if (this.#gone.size >= MOST_REMEMBERED) this.#gone.clear();
    this.#gone.add(daemon);
    this.#heardAt.delete(daemon);
    this.#tellAsking(daemon);
    this.#options.onGone(daemon, true);
  }

  /** PEER-MONITOR-5 */
  thawed(frozenMs: number): void {
    this.#heardItselfAt = Math.min(performance.now(), this.#heardItselfAt + frozenMs);
    this.#isThawed = true;
    this.#thaw();
  }

  /** PEER-MONITOR-5 */
  #thaw(): void {
    this.#thawingUntil = performance.now() + this.#options.silenceMs * HEARD_AGAIN;
    this.#sureFrom = Math.max(this.#sureFrom, this.#thawingUntil);
    this.#sureOfNobodyFrom = Math.max(this.#sureOfNobodyFrom, this.#thawingUntil);
    this.#silentUntil.clear();
  }

  /** PEER-MONITOR-3 */
  get #isSure(): boolean {
    return this.#hearsItself && performance.now() >= this.#sureFrom;
  }

  /** PEER-MONITOR-3 */
  get #isSureOfNobody(): boolean {
    return this.#hearsItself && performance.now() >= this.#sureOfNobodyFrom;
  }

  get #hearsItself(): boolean {
    return performance.now() - this.#heardItselfAt <= this.#options.silenceMs / 2;
  }

  #heardItself(): void {
    const now = performance.now();
    const isBack = now - this.#heardItselfAt > this.#options.silenceMs / 2;
    const awayMs = now - (this.#lostAt ?? this.#heardItselfAt);
    const wasThawing = (this.#lostAt ?? now) < this.#thawingUntil;
    const isOver = isBack || this.#isThawed;
    this.#heardItselfAt = now;
    this.#lostAt = null;
    this.#isThawed = false;
    if (isBack) this.#backFrom(awayMs);
    if (isBack && wasThawing) this.#thaw();
    if (isOver) this.#options.onBack();
  }

  #backFrom(awayMs: number): void {
    const { silenceMs } = this.#options;
    const now = performance.now();
    const isShort = awayMs <= silenceMs / 2;
    const later = now + Math.min(silenceMs, awayMs + silenceMs * COMING_BACK);
    this.#sureOfNobodyFrom = Math.max(
      this.#sureOfNobodyFrom,
      isShort ? now + silenceMs * COMING_BACK : later,
    );
    if (isShort) return;
    this.#sureFrom = Math.max(this.#sureFrom, later);
    this.#silentUntil.clear();
  }

  #lost(): void {
    this.#lostAt ??= this.#heardItselfAt; // a line that carries nothing is found out late
    this.#heardItselfAt = Number.NEGATIVE_INFINITY;
  }

  #takeForSilent(daemon: string, forMs: number): void {
    if (this.#silentUntil.size >= MOST_REMEMBERED) this.#silentUntil.clear(); // it is asked again
    this.#silentUntil.set(daemon, performance.now() + forMs);
    this.#tellAsking(daemon);
  }

  #tellAsking(daemon: string): void {
    for (const tell of this.#asking.get(daemon) ?? []) tell();
  }

  #beat(): void {
    this.#say(false);
    const { silenceMs } = this.#options;
    if (this.#isSure) for (const daemon of this.#unheardFor(silenceMs)) this.#isGone(daemon); // PEER-MONITOR-1
    if (this.#isSureOfNobody) for (const daemon of this.#unheardFor(silenceMs / 2)) void this.#ask(daemon);
  }

  #unheardFor(milliseconds: number): string[] {
    const then = performance.now() - milliseconds;
    return [...this.#heardAt].flatMap(([daemon, heardAt]) => (heardAt <= then ? [daemon] : []));
  }

  #isGone(daemon: string): void {
    this.#heardAt.delete(daemon);
    this.#takeForSilent(daemon, Number.POSITIVE_INFINITY);
    this.#options.onGone(daemon, false);
  }

  /** PEER-MONITOR-4 */
  async #ask(daemon: string): Promise<void> {
    if (this.#asked.has(daemon)) return;
    this.#asked.add(daemon);
    const { peers, silenceMs } = this.#options;
    const { kind } = await peers.ask(daemon, 'there', {}, silenceMs / 2);
    this.#asked.delete(daemon);
    const isUnheard = this.#unheardFor(silenceMs / 2).includes(daemon);
    if (kind === 'nobody' && isUnheard && this.#isSureOfNobody) this.#isGone(daemon);
  }

  /** Once for each: one that was silent for a while comes back as it was. */
  #compare(daemon: string, likeness: unknown): void {
    const differs = differencesOf(this.#options.likeness, likeness);
    if (differs.length === 0 || this.#unlike.has(daemon)) return;
    if (this.#unlike.size >= MOST_REMEMBERED) this.#unlike.clear();
    this.#unlike.add(daemon);
    this.#options.onUnlike(daemon, differs);
  }

  #say(isNew: boolean): void {
    const { peers, daemon, likeness } = this.#options;
    peers.tellAll('alive', { daemon, isNew, likeness } satisfies PeerRequestOf<'alive'>);
  }
}
