import {
  type Heard,
  type PeerAnswerOf,
  type PeerRequestOf,
  type Peers,
  type PeerVerb,
  readPeerAnswer,
} from '../../bus/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log } from '../runtime.ts';
import type { PeerMonitor } from './peer-monitor.ts';
import type { Claimant } from './self.ts';

/** Where a conversation is worked on. */
export type Place = { readonly kind: 'here' } | { readonly kind: 'there'; readonly claim: Claimant };

/** `invalid`: it answered, and this daemon cannot read the answer, or the other one not the question. */
export type Answered<V extends PeerVerb> =
  | Heard<PeerAnswerOf<V>>
  | { readonly kind: 'invalid'; readonly reason: string };

const MOST_FREE = 10_000;
const INVALID = 'the answer of another daemon is invalid; do all daemons have the same version?';
const HERE: Place = { kind: 'here' };

/**
 * Finds the daemon that works on a conversation.
 *
 * ROUTER-1 Whoever claimed it last works on it, as long as it answers and has it open. Else it may be claimed here.
 * ROUTER-2 A wrong answer costs time and nothing else: what is done in the wrong place is refused by the log.
 * ROUTER-3 Nobody claims what somebody may be working on: a claimant that answers has to have said that it is not, by then.
 * ROUTER-4 A log whose newest append names no claimant was put there by no daemon that shares (it was moved from another store):
 *    nobody works on it, whatever claims stand in it from where it was before.
 */
export class Router {
  readonly #daemon: string;
  readonly #logs: SharedLogs;
  readonly #workers: Workers;
  readonly #members: PeerMonitor;
  readonly #peers: Peers;
  readonly #log: Log;
  /** By conversation: the claim of one who answers, and who has said that it does not work there (ROUTER-3). */
  readonly #free = new Map<string, Claimant>();
  /** Conversations whose newest append named no claimant when it was last looked at (ROUTER-4). */
  readonly #unclaimed = new Set<string>();
  /** How long another daemon may take to answer. */
  readonly timeoutMs: number;

  constructor(
    daemon: string,
    parts: { logs: SharedLogs; workers: Workers; members: PeerMonitor; peers: Peers; log: Log },
    silenceMs: number,
  ) {
    this.#daemon = daemon;
    this.#logs = parts.logs;
    this.#workers = parts.workers;
    this.#members = parts.members;
    this.#peers = parts.peers;
    this.#log = parts.log;
    this.timeoutMs = Math.min(5_000, silenceMs / 2);
  }

  async place(conversation: string): Promise<Place> {
    if (this.#workers.holds(conversation)) return HERE;
    const newest = await this.#logs.newest(conversation);
    const claim = newest?.status?.claim ?? null;
    this.seen(conversation, newest);
    if (claim === null || this.mayTakeOver(conversation, claim)) return HERE;
    return { kind: 'there', claim };
  }

  /** R4. What the newest append says. */
  seen(conversation: string, newest: NewestAppend | null): void {
    if (newest === null || newest.status?.claim) this.#unclaimed.delete(conversation);
    else {
      if (this.#unclaimed.size >= MOST_FREE) this.#unclaimed.clear(); // who needs to know looks again
      this.#unclaimed.add(conversation);
    }
  }

  /** ROUTER-3, ROUTER-4 */
  mayTakeOver(conversation: string, { daemon, epoch }: Claimant): boolean {
    if (this.#unclaimed.has(conversation)) return true;
    if (daemon === this.#daemon || this.#members.isSilent(daemon)) return true;
    const free = this.#free.get(conversation);
    return free?.daemon === daemon && free.epoch === epoch;
  }

  /** That claimant has let go of the conversation. */
  isFree(conversation: string, claim: Claimant): void {
    if (this.#free.size >= MOST_FREE) this.#free.clear(); // who needs to know asks again
    this.#free.set(conversation, claim);
  }

  /**
   * Asks another daemon, and remembers when it does not answer. One that falls silent meanwhile is not waited for: what
   * follows would be done late by as long as it may take to answer.
   */
  async ask<V extends PeerVerb>(daemon: string, verb: V, body: PeerRequestOf<V>): Promise<Answered<V>> {
    const askedAt = performance.now();
    let unheard = () => {};
    const silence = new Promise<Heard>((resolve) => {
      unheard = this.#members.onSilence(daemon, () => resolve({ kind: 'silent' }));
    });
    const heard = await Promise.race([this.#peers.ask(daemon, verb, body, this.timeoutMs), silence]);
    unheard();
    if (heard.kind !== 'answered') {
      this.#members.suspect(daemon, askedAt, heard.kind);
      return heard;
    }
    try {
      return { kind: 'answered', body: readPeerAnswer(verb, heard.body) };
    } catch (error) {
      const reason = messageOf(error);
      this.#log.warn({ daemon, verb, reason }, INVALID);
      return { kind: 'invalid', reason };
    }
  }
}
