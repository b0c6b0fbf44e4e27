import type { PeerRequestOf, Peers } from '../../bus/index.ts';
import type { Config } from '../../config/index.ts';
import { remember, sha256Of } from '../../kernel/index.ts';

/**
 * The failure detector for the other daemons on this server and prefix. A wrong conclusion does no harm: the log refuses
 * a daemon that takes over wrongly.
 *
 * PEER-MONITOR-1  Each daemon sends heartbeats. A peer without a heartbeat for the failure timeout is declared gone until
 *                 its next heartbeat.
 * PEER-MONITOR-2  Daemon ids are never reused: a peer that announces that it leaves is gone for good. A peer that the
 *                 server does not know may be reconnecting: its next heartbeat makes it alive again.
 * PEER-MONITOR-3  Without our own heartbeat we draw no conclusion about peers: our connection or the server is down.
 *                 After an outage longer than half the failure timeout we draw none for a while, because peers may
 *                 reconnect later than we do. After any outage, "the server does not know it" counts only when all have
 *                 had time to reconnect.
 * PEER-MONITOR-4  When a peer is silent for half the failure timeout, the server is asked whether it is connected. If
 *                 not, the peer is declared gone (PEER-MONITOR-1).
 * PEER-MONITOR-5  After this daemon was frozen, it declares no peer gone for 5/8 of the failure timeout. If its connection
 *                 turns out to be lost (servers drop frozen clients), that time begins when it has reconnected.
 */

/** Heartbeats in one failure timeout, at least. */
const HEARTBEATS_PER_TIMEOUT = 4;
/** Also with a long failure timeout: an unanswered request counts only after a later own heartbeat (PEER-MONITOR-3). */
const MAX_HEARTBEAT_MS = 1_000;
/** The part of the failure timeout that all daemons get to reconnect, added to the length of a long outage (PEER-MONITOR-3). */
const RECONNECT_PART = 1 / 4;
/** The part of the failure timeout after a resume: more than the half after which a missing own heartbeat is noticed (PEER-MONITOR-5). */
const RESUME_PART = 5 / 8;
const MAX_REMEMBERED = 1_000;

export interface PeerMonitorOptions {
  readonly daemon: string;
  readonly peers: Peers;
  readonly failureTimeoutMs: number;
  readonly fingerprint: ConfigFingerprint;
  /** A peer's configuration differs in these parts; none: no longer. Called when the parts change, not for each heartbeat. */
  readonly onConfigDifference: (daemon: string, differs: readonly string[]) => void;
  /** A peer is gone; `handedOver`: it announced that it leaves. */
  readonly onGone: (daemon: string, handedOver: boolean) => void;
  /** The connection works again after an outage or a freeze. */
  readonly onBack: () => void;
}

export class PeerMonitor {
  readonly #options: PeerMonitorOptions;
  /** By peer: the time of its newest heartbeat, by the monotonic clock. */
  readonly #lastHeartbeatAt = new Map<string, number>();
  /** Until then the peer counts as failed. Infinity: until its next heartbeat (PEER-MONITOR-1). */
  readonly #failedUntil = new Map<string, number>();
  readonly #departed = new Set<string>();
  /** By peer: callers that wait for its answer, notified when it fails. */
  readonly #failureListeners = new Map<string, Set<() => void>>();
  /** By peer, the reported differences. */
  readonly #reportedDifferences = new Map<string, string>();
  #fingerprint: ConfigFingerprint;
  #ownHeartbeatAt = performance.now();
  #lostAt: number | null = null;
  /** A missing heartbeat counts from then on (PEER-MONITOR-3). */
  #trustTimeoutsFrom = 0;
  /** Until then a lost connection may still be unnoticed (PEER-MONITOR-5). */
  #resumingUntil = 0;
  #hasResumed = false;
  /** "The server does not know it" counts from then on (PEER-MONITOR-3). */
  #trustServerFrom = 0;
  readonly #beingAsked = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PeerMonitorOptions) {
    this.#options = options;
    this.#fingerprint = options.fingerprint;
  }

  start(): void {
    this.#ownHeartbeatAt = performance.now();
    this.#options.peers.onLost(() => this.#connectionLost());
    this.#sendHeartbeat(true);
    this.#timer = setInterval(
      () => this.#tick(),
      Math.min(MAX_HEARTBEAT_MS, this.#options.failureTimeoutMs / HEARTBEATS_PER_TIMEOUT),
    );
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** After a reload. Peers learn of it at once. */
  reconfigured(fingerprint: ConfigFingerprint): void {
    this.#fingerprint = fingerprint;
    this.#sendHeartbeat(false);
  }

  /** The other daemons that count as alive. */
  get others(): string[] {
    return [...this.#lastHeartbeatAt.keys()].filter((daemon) => !this.isFailed(daemon));
  }

  /** Daemons that count as failed until their next heartbeat, and are not known to be gone. */
  get suspected(): string[] {
    return [...this.#lastHeartbeatAt.keys()].filter((daemon) => this.isFailed(daemon));
  }

  /** Those of `others` with a heartbeat in the last half of the failure timeout: the rest may be gone or frozen. */
  get responsive(): string[] {
    const silent = this.#silentFor(this.#options.failureTimeoutMs / 2);
    return this.others.filter((daemon) => !silent.includes(daemon));
  }

  noteHeartbeat(daemon: string, isNew: boolean, fingerprint?: unknown): void {
    if (daemon === this.#options.daemon) this.#noteOwnHeartbeat();
    if (daemon === this.#options.daemon || this.#departed.has(daemon)) return;
    this.#compareConfig(daemon, fingerprint);
    this.#lastHeartbeatAt.set(daemon, performance.now());
    this.#failedUntil.delete(daemon);
    if (isNew) this.#sendHeartbeat(false); // the new daemon learns of this one at once
  }

  /** The peer is gone or counts as failed: a request to it is useless. */
  isFailed(daemon: string): boolean {
    if (this.#departed.has(daemon)) return true;
    return performance.now() < (this.#failedUntil.get(daemon) ?? 0);
  }

  /** Calls `tell` when that peer fails. Returns how to unsubscribe. */
  onFailure(daemon: string, tell: () => void): () => void {
    const asking = this.#failureListeners.get(daemon) ?? new Set();
    this.#failureListeners.set(daemon, asking.add(tell));
    return () => {
      asking.delete(tell);
      if (asking.size === 0 && this.#failureListeners.get(daemon) === asking)
        this.#failureListeners.delete(daemon);
    };
  }

  /** A request at `askedAt` (monotonic clock) got no answer, or the peer was not connected (PEER-MONITOR-2). */
  suspect(daemon: string, askedAt: number, why: 'no-responder' | 'silent'): void {
    // `no-responder` is the server's own answer; a missing answer may be the fault of our connection.
    const isTrusted =
      why === 'no-responder' ? this.#trustsServer : this.#trustsTimeouts && this.#ownHeartbeatAt > askedAt;
    if (isTrusted)
      this.#markFailed(
        daemon,
        why === 'no-responder' ? Number.POSITIVE_INFINITY : this.#options.failureTimeoutMs,
      );
  }

  /** The peer announced that it leaves (PEER-MONITOR-2). */
  noteLeft(daemon: string): void {
    if (this.#departed.has(daemon)) return;
    if (this.#departed.size >= MAX_REMEMBERED) this.#departed.clear();
    this.#departed.add(daemon);
    this.#lastHeartbeatAt.delete(daemon);
    this.#notifyFailure(daemon);
    this.#options.onGone(daemon, true);
  }

  /** This daemon was frozen for that time (PEER-MONITOR-5). */
  resumed(frozenMs: number): void {
    this.#ownHeartbeatAt = Math.min(performance.now(), this.#ownHeartbeatAt + frozenMs);
    this.#hasResumed = true;
    this.#suspendConclusions();
  }

  #suspendConclusions(): void {
    this.#resumingUntil = performance.now() + this.#options.failureTimeoutMs * RESUME_PART;
    this.#trustTimeoutsFrom = Math.max(this.#trustTimeoutsFrom, this.#resumingUntil);
    this.#trustServerFrom = Math.max(this.#trustServerFrom, this.#resumingUntil);
    this.#failedUntil.clear();
  }

  get #trustsTimeouts(): boolean {
    return this.#receivesOwnHeartbeat && performance.now() >= this.#trustTimeoutsFrom;
  }

  get #trustsServer(): boolean {
    return this.#receivesOwnHeartbeat && performance.now() >= this.#trustServerFrom;
  }

  get #receivesOwnHeartbeat(): boolean {
    return performance.now() - this.#ownHeartbeatAt <= this.#options.failureTimeoutMs / 2;
  }

  #noteOwnHeartbeat(): void {
    const now = performance.now();
    const isBack = now - this.#ownHeartbeatAt > this.#options.failureTimeoutMs / 2;
    const awayMs = now - (this.#lostAt ?? this.#ownHeartbeatAt);
    const wasThawing = (this.#lostAt ?? now) < this.#resumingUntil;
    const isOver = isBack || this.#hasResumed;
    this.#ownHeartbeatAt = now;
    this.#lostAt = null;
    this.#hasResumed = false;
    if (isBack) this.#reconnected(awayMs);
    if (isBack && wasThawing) this.#suspendConclusions();
    if (isOver) this.#options.onBack();
  }

  #reconnected(awayMs: number): void {
    const { failureTimeoutMs } = this.#options;
    const now = performance.now();
    const isShort = awayMs <= failureTimeoutMs / 2;
    const later = now + Math.min(failureTimeoutMs, awayMs + failureTimeoutMs * RECONNECT_PART);
    this.#trustServerFrom = Math.max(
      this.#trustServerFrom,
      isShort ? now + failureTimeoutMs * RECONNECT_PART : later,
    );
    if (isShort) return;
    this.#trustTimeoutsFrom = Math.max(this.#trustTimeoutsFrom, later);
    this.#failedUntil.clear();
  }

  #connectionLost(): void {
    this.#lostAt ??= this.#ownHeartbeatAt; // a dead connection is noticed late
    this.#ownHeartbeatAt = Number.NEGATIVE_INFINITY;
  }

  #markFailed(daemon: string, forMs: number): void {
    remember(this.#failedUntil, daemon, performance.now() + forMs, MAX_REMEMBERED);
    this.#notifyFailure(daemon);
  }

  #notifyFailure(daemon: string): void {
    for (const listener of this.#failureListeners.get(daemon) ?? []) listener();
  }

  #tick(): void {
    this.#sendHeartbeat(false);
    const { failureTimeoutMs } = this.#options;
    if (this.#trustsTimeouts)
      for (const daemon of this.#silentFor(failureTimeoutMs)) this.#declareGone(daemon);
    if (this.#trustsServer)
      for (const daemon of this.#silentFor(failureTimeoutMs / 2)) void this.#probe(daemon);
  }

  #silentFor(milliseconds: number): string[] {
    const then = performance.now() - milliseconds;
    return [...this.#lastHeartbeatAt].flatMap(([daemon, lastAt]) => (lastAt <= then ? [daemon] : []));
  }

  #declareGone(daemon: string): void {
    this.#lastHeartbeatAt.delete(daemon);
    this.#markFailed(daemon, Number.POSITIVE_INFINITY);
    this.#options.onGone(daemon, false);
  }

  async #probe(daemon: string): Promise<void> {
    if (this.#beingAsked.has(daemon)) return;
    this.#beingAsked.add(daemon);
    const { peers, failureTimeoutMs } = this.#options;
    const { kind } = await peers.ask(daemon, 'probe', {}, failureTimeoutMs / 2);
    this.#beingAsked.delete(daemon);
    const isSilent = this.#silentFor(failureTimeoutMs / 2).includes(daemon);
    if (kind === 'no-responder' && isSilent && this.#trustsServer) this.#declareGone(daemon);
  }

  #compareConfig(daemon: string, fingerprint: unknown): void {
    const differs = differencesOf(this.#fingerprint, fingerprint);
    if ((this.#reportedDifferences.get(daemon) ?? '') === differs.join()) return;
    remember(this.#reportedDifferences, daemon, differs.join(), MAX_REMEMBERED);
    this.#options.onConfigDifference(daemon, differs);
  }

  #sendHeartbeat(isNew: boolean): void {
    const { peers, daemon } = this.#options;
    peers.tellAll('alive', {
      daemon,
      isNew,
      fingerprint: this.#fingerprint,
    } satisfies PeerRequestOf<'alive'>);
  }
}

/**
 * One hash for each part of the configuration that must be equal in all daemons that share the work. It covers nothing
 * that belongs to one machine (paths, addresses, keys).
 */
export type ConfigFingerprint = Readonly<Record<string, string>>;

export function fingerprintOf(config: Config): ConfigFingerprint {
  const { agents, models, phases, workflows, prompts, tools } = config;
  const { limits, approvals, publishers, ingress, sharing } = config;
  return {
    agents: digest([config.defaultAgent, ...agents.map(({ file: _, ...agent }) => agent)]),
    models: digest(
      Object.entries(models).map(([name, { provider, model, parameters }]) => [
        name,
        provider,
        model,
        parameters,
      ]),
    ),
    phases: digest(phases),
    workflows: digest(workflows),
    prompts: digest(prompts),
    tools: digest([Object.keys(tools.mcpServers).sort(), tools.filesDigest, tools.risk, tools.policy]),
    limits: digest([limits, approvals, publishers, ingress, sharing]),
  };
}

/** The parts that differ; none if `other` is no fingerprint (an older daemon sends none). */
function differencesOf(own: ConfigFingerprint, other: unknown): string[] {
  if (typeof other !== 'object' || other === null) return [];
  return Object.keys(own).filter((part) => Reflect.get(other, part) !== own[part]);
}

function digest(part: unknown): string {
  return sha256Of(JSON.stringify(part)).slice(0, 12);
}
