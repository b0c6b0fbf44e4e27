import {
  type Heard,
  type PeerAnswerOf,
  type PeerRequestOf,
  type Peers,
  type PeerVerb,
  readPeerAnswer,
} from '../../bus/index.ts';
import { type Log, messageOf, remember } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Claimant } from './claims.ts';
import type { PeerMonitor } from './peer-monitor.ts';
/** Which daemon works on a conversation: this one, or the claimant. */
export type OwnerLocation =
  | { readonly kind: 'here' }
  | { readonly kind: 'elsewhere'; readonly claim: Claimant };

/** `invalid`: the peer answered, but one of the two daemons cannot read the message of the other. */
export type Answered<V extends PeerVerb> =
  | Heard<PeerAnswerOf<V>>
  | { readonly kind: 'invalid'; readonly reason: string };

export interface RouterParts {
  readonly logs: SharedLogs;
  readonly workers: Workers;
  readonly monitor: PeerMonitor;
  readonly peers: Peers;
  readonly log: Log;
}

const MAX_REMEMBERED = 10_000;
/** Logged once for each time that a peer begins to count as failed. */
export const NO_ANSWER = 'another daemon does not answer; others may take over its conversations';
const TOO_LARGE = 'a request to another daemon, or its answer, exceeds a message';
const INVALID = 'the answer of another daemon is invalid; do all daemons have the same version?';
const HERE: OwnerLocation = { kind: 'here' };

/**
 * Finds the daemon that works on a conversation.
 *
 * ROUTER-1  The last claimant owns the conversation while it answers and has it open. Otherwise it may be claimed here.
 * ROUTER-2  A wrong answer only costs time: the log refuses appends of a daemon that is not the owner.
 * ROUTER-3  A conversation of a claimant that is alive is claimed only after the claimant has answered that it does not
 *           work on it.
 * ROUTER-4  A log whose newest append names no claimant was copied from another store: no daemon works on it, whatever
 *           claims it contains.
 */
export class Router {
  readonly #daemon: string;
  readonly #parts: RouterParts;
  /** By conversation: a claim whose daemon has answered that it does not work on it (ROUTER-3). */
  readonly #released = new Map<string, Claimant>();
  /** Conversations whose newest append named no claimant when it was last read (ROUTER-4). */
  readonly #unclaimed = new Set<string>();
  /** For one request to a peer. */
  readonly timeoutMs: number;

  constructor(daemon: string, parts: RouterParts, failureTimeoutMs: number) {
    this.#daemon = daemon;
    this.#parts = parts;
    this.timeoutMs = Math.min(5_000, failureTimeoutMs / 2);
  }

  async locate(conversation: string): Promise<OwnerLocation> {
    if (this.#parts.workers.holds(conversation)) return HERE;
    const newest = await this.#parts.logs.newest(conversation);
    const claim = newest?.status?.claim ?? null;
    this.noteNewest(conversation, newest);
    if (claim === null || this.mayTakeOver(conversation, claim)) return HERE;
    return { kind: 'elsewhere', claim };
  }

  noteNewest(conversation: string, newest: NewestAppend | null): void {
    if (newest === null || newest.status?.claim) this.#unclaimed.delete(conversation);
    else {
      if (this.#unclaimed.size >= MAX_REMEMBERED) this.#unclaimed.clear(); // costs another read
      this.#unclaimed.add(conversation);
    }
  }

  mayTakeOver(conversation: string, { daemon, epoch }: Claimant): boolean {
    if (this.#unclaimed.has(conversation)) return true;
    if (daemon === this.#daemon || this.#parts.monitor.isFailed(daemon)) return true;
    const free = this.#released.get(conversation);
    return free?.daemon === daemon && free.epoch === epoch;
  }

  noteReleased(conversation: string, claim: Claimant): void {
    remember(this.#released, conversation, claim, MAX_REMEMBERED); // one that is forgotten costs another request
  }

  /** Sends a request to a peer and notes a missing answer. Resolves at once when the peer fails meanwhile. */
  async ask<V extends PeerVerb>(
    daemon: string,
    verb: V,
    body: PeerRequestOf<V>,
    timeoutMs = this.timeoutMs,
  ): Promise<Answered<V>> {
    const askedAt = performance.now();
    let unsubscribe = () => {};
    const failure = new Promise<Heard>((resolve) => {
      unsubscribe = this.#parts.monitor.onFailure(daemon, () => resolve({ kind: 'silent' }));
    });
    const response = await Promise.race([this.#parts.peers.ask(daemon, verb, body, timeoutMs), failure]);
    unsubscribe();
    if (response.kind === 'too-large') {
      this.#parts.log.warn({ daemon, verb, reason: response.reason }, TOO_LARGE);
      return response;
    }
    if (response.kind !== 'answered') {
      const hadFailed = this.#parts.monitor.isFailed(daemon);
      this.#parts.monitor.suspect(daemon, askedAt, response.kind);
      if (!hadFailed && this.#parts.monitor.isFailed(daemon))
        this.#parts.log.warn({ daemon, verb, answer: response.kind }, NO_ANSWER);
      return response;
    }
    try {
      return { kind: 'answered', body: readPeerAnswer(verb, response.body) };
    } catch (error) {
      const reason = messageOf(error);
      this.#parts.log.warn({ daemon, verb, reason }, INVALID);
      return { kind: 'invalid', reason };
    }
  }
}
