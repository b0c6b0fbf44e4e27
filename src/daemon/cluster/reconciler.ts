import { messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import { isComplete } from '../conversations/projections.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log } from '../runtime.ts';
import type { PeerMonitor } from './peer-monitor.ts';
import type { Router } from './router.ts';
import type { Claimant } from './self.ts';

/**
 * Sees to it that somebody works on whatever owes something.
 *
 * RECONCILER-1 Only what every last append says is looked at; a log is read where its claimant is gone, or has not got it open.
 * RECONCILER-2 Of those who notice together one is meant to be first, so that they do not all read the same logs; the others look
 *    again a little later: that one may be gone, too. Whoever is first, the log takes one claim (L3).
 * RECONCILER-3 What could not be looked at, because the server did not answer, is looked at again soon, and not in a minute; what
 *    belongs to a daemon that cannot be asked now, as soon as one would be believed to be silent.
 */

export const EVERY_MS = 60_000;
/** Of a silence: how long whoever is meant to be first has for it (RECONCILER-2). */
const HEAD_START = 1 / 4;
/** Of a silence: what is known of the others may be believed by then, after a short outage (RECONCILER-3). */
const BELIEVED_IN = 1 / 4;
/** After a look that the server kept from its end (RECONCILER-3). */
const AGAIN_MS = 1_000;
/** Logs that are read at the same time: each takes some round trips, and those are long while a server is busy. */
const AT_ONCE = 32;
/** Names that one message holds. */
const MOST_NAMES = 2_000;

export interface ReconcilerParts {
  readonly daemon: string;
  readonly logs: SharedLogs;
  readonly workers: Workers;
  readonly members: PeerMonitor;
  readonly router: Router;
  readonly silenceMs: number;
  readonly log: Log;
}

/** `isFirst`: only what is this daemon's to be first at (RECONCILER-2). */
interface Look {
  readonly isFirst: boolean;
  readonly handedOver: boolean;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #stopping = new AbortController();
  /** Appends that say nothing of what they owe, and owe nothing: they need not be read again. */
  readonly #atRest = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  #everySoOften: Promise<void> = Promise.resolve();
  #listing: Promise<void> | null = null;
  /** Looks that are made again, by the milliseconds that they wait. */
  readonly #again = new Map<number, Look>();

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Resolves when what is this daemon's to take up has been. */
  async start(): Promise<void> {
    await this.pass({ isFirst: true, handedOver: false });
    this.#everySoOften = this.#keepLooking();
  }

  /** A daemon is not there any more. */
  gone(handedOver: boolean): void {
    void this.pass({ isFirst: true, handedOver });
    this.#lookAgain({ isFirst: false, handedOver }, this.#parts.silenceMs * HEAD_START); // RECONCILER-2, and for what failed
  }

  /** Another daemon has let go of a conversation that owes something. */
  async released(conversation: string, claim: Claimant): Promise<void> {
    this.#parts.router.isFree(conversation, claim);
    await this.#takeUp(conversation, true);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#everySoOften;
    await this.#running;
    await this.#listing;
  }

  /** Does not reject. */
  pass(look: Look): Promise<void> {
    this.#running = this.#running.then(async () => {
      if (this.#stopping.signal.aborted) return;
      try {
        if (!(await this.#look(look))) this.#lookAgain(look, AGAIN_MS);
      } catch (error) {
        this.#parts.log.warn(
          { error: messageOf(error) },
          'what is owed could not be looked up; trying again',
        );
        this.#lookAgain(look, AGAIN_MS);
      }
    });
    return this.#running;
  }

  /** RECONCILER-3: one for all that wait as long. */
  #lookAgain(look: Look, afterMs: number): void {
    const waiting = this.#again.get(afterMs);
    this.#again.set(afterMs, {
      isFirst: look.isFirst && (waiting?.isFirst ?? true),
      handedOver: look.handedOver && (waiting?.handedOver ?? true),
    });
    if (waiting) return;
    void sleep(afterMs, this.#stopping.signal).then(() => {
      const again = this.#again.get(afterMs);
      this.#again.delete(afterMs);
      return again && this.pass(again);
    });
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(this.#parts.silenceMs, signal);
    while (!signal.aborted) {
      await this.pass({ isFirst: false, handedOver: false });
      await sleep(EVERY_MS * (0.75 + Math.random() / 2), signal);
    }
  }

  /** False: not all of it could be taken up. */
  async #look({ isFirst, handedOver }: Look): Promise<boolean> {
    const all = await this.#parts.logs.all();
    const owing = [...all].filter(([id, newest]) => this.#mayOwe(id, newest)).map(([id]) => id);
    const orphans: string[] = [];
    // All at once: one that is frozen takes its time, and is no reason to leave lying what another left.
    const asking = [...byOwnerOf(owing, all)].map(async ([owner, ids]) => {
      return { owner, ids, ...(await this.#heldBy(owner, ids)) };
    });
    for (const { owner, ids, held, isSaid } of await Promise.all(asking)) {
      const isUnknown = owner !== this.#parts.daemon && held.length > 0 && !isSaid;
      if (isUnknown) this.#lookAgain({ isFirst: false, handedOver }, this.#parts.silenceMs * BELIEVED_IN); // RECONCILER-3
      for (const id of ids.filter((one) => !held.includes(one))) {
        const claim = all.get(id)?.status?.claim;
        if (claim && isSaid) this.#parts.router.isFree(id, claim);
        orphans.push(id);
      }
    }
    // From the end where the one that is meant to be first has not been yet (RECONCILER-2).
    const wanted = isFirst ? orphans.filter((id) => this.#isMine(id)) : orphans.reverse();
    if (wanted.length < orphans.length)
      this.#lookAgain({ isFirst: false, handedOver }, this.#parts.silenceMs * HEAD_START); // RECONCILER-2
    const next = wanted.values();
    let isWhole = true;
    const work = async () => {
      for (const id of next) {
        if (this.#stopping.signal.aborted) return;
        if (!(await this.#takeUp(id, handedOver, all.get(id)))) isWhole = false;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    // Not waited for: many logs may have to be read, and another daemon may be gone meanwhile.
    this.#listing ??= this.#mendRows(all, isFirst).finally(() => {
      this.#listing = null;
    });
    return isWhole;
  }

  #mendRows(all: ReadonlyMap<string, NewestAppend>, isFirst: boolean): Promise<void> {
    const unheldOf = async (lagging: readonly string[]) => {
      const mine = isFirst ? lagging.filter((id) => this.#isMine(id)) : lagging;
      const held = await Promise.all(
        [...byOwnerOf(mine, all)].map(async ([owner, ids]) => (await this.#heldBy(owner, ids)).held),
      );
      const known = new Set(held.flat());
      return mine.filter((id) => !known.has(id));
    };
    return repairRows(this.#parts, all, unheldOf, this.#stopping.signal);
  }

  #mayOwe(id: string, { status, sequence }: NewestAppend): boolean {
    return status ? status.hasOutstandingWork : this.#atRest.get(id) !== sequence;
  }

  /** Which of these that daemon has open, and whether it says so itself; all of them while that cannot be known. */
  async #heldBy(
    owner: string,
    ids: readonly string[],
  ): Promise<{ readonly held: readonly string[]; readonly isSaid: boolean }> {
    const { daemon, workers, members, router } = this.#parts;
    if (owner === daemon) return { held: ids.filter((id) => workers.holds(id)), isSaid: false };
    if (owner === '' || members.isSilent(owner)) return { held: [], isSaid: false };
    const held: string[] = [];
    for (let from = 0; from < ids.length; from += MOST_NAMES) {
      const conversations = ids.slice(from, from + MOST_NAMES);
      const heard = await router.ask(owner, 'holds', { conversations });
      if (heard.kind !== 'answered') return { held: members.isSilent(owner) ? [] : ids, isSaid: false };
      held.push(...heard.body.held);
    }
    return { held, isSaid: true };
  }

  /** RECONCILER-2: the same for everybody who hears the same daemons. */
  #isMine(conversation: string): boolean {
    const { daemon, members } = this.#parts;
    const all = [daemon, ...members.awake];
    const weight = (one: string) => hash(`${one} ${conversation}`);
    return all.every((other) => other === daemon || weight(other) < weight(daemon));
  }

  /** False: the server did not answer. */
  async #takeUp(conversation: string, handedOver: boolean, newest?: NewestAppend): Promise<boolean> {
    const { workers, log, daemon } = this.#parts;
    try {
      if (newest) this.#parts.router.seen(conversation, newest);
      const worker = await workers.current(conversation);
      if (worker.isOurs) return true;
      if (worker.hasOutstandingWork) {
        log.info({ conversation }, 'taking over a conversation');
        await workers.submit(conversation, { type: 'claim', daemon, handedOver });
      } else if (newest) this.#atRest.set(conversation, newest.sequence);
      return true;
    } catch (error) {
      if (isMoved(error)) return this.#hasMoved(conversation, newest);
      log.error({ conversation, error: messageOf(error) }, 'this conversation cannot be taken over');
      return !(error instanceof ParleyError && UNANSWERED.has(error.code));
    }
  }

  /** False: refused as moved, yet its claim is the one that was seen; the claimant ceased to count as silent meanwhile. */
  async #hasMoved(conversation: string, seen?: NewestAppend): Promise<boolean> {
    if (!seen) return true;
    const now = await this.#parts.logs.newest(conversation).catch(() => seen);
    const [before, claim] = [seen.status?.claim, now?.status?.claim];
    return claim?.daemon !== before?.daemon || claim?.epoch !== before?.epoch;
  }
}

/** Those that each has claimed last. */
function byOwnerOf(
  ids: readonly string[],
  all: ReadonlyMap<string, NewestAppend>,
): ReadonlyMap<string, readonly string[]> {
  const byOwner = new Map<string, string[]>();
  for (const id of ids) {
    const owner = all.get(id)?.status?.claim?.daemon ?? '';
    const its = byOwner.get(owner);
    if (its) its.push(id);
    else byOwner.set(owner, [id]);
  }
  return byOwner;
}

/** What waiting mends. */
const UNANSWERED: ReadonlySet<string> = new Set(['STORE_UNAVAILABLE', 'LOG_UNAVAILABLE']);

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}

/**
 * Sees to it that the list of conversations says what the logs do.
 *
 * RECONCILER-V-1 Whoever works on a conversation saves its row when it lets it go, and one that was killed has not: what nobody has
 *    open, and has a log of another length than its row, is listed anew; so is a row that an older version wrote.
 * RECONCILER-V-2 A row without a log is that of a conversation that was deleted while somebody who had it open could not know.
 */
interface Parts {
  readonly logs: SharedLogs;
  readonly workers: Workers;
  readonly log: Log;
}

export async function repairRows(
  { logs, workers, log }: Parts,
  /** Read before the rows are. */
  all: ReadonlyMap<string, NewestAppend>,
  /** Of these, those that nobody has open and this daemon is to look after. */
  unheldOf: (lagging: readonly string[]) => Promise<readonly string[]>,
  stopping: AbortSignal,
): Promise<void> {
  try {
    const stored = await workers.storedRows();
    const lengths = new Map(stored.map((row) => [row.id, isComplete(row) ? row.length : null]));
    const lagging = [...all].filter(([id, { length }]) => length !== null && lengths.get(id) !== length);
    for (const id of await unheldOf(lagging.map(([id]) => id))) {
      if (stopping.aborted) return;
      await workers.listAnew(id);
    }
    for (const id of lengths.keys()) {
      if (!stopping.aborted && !all.has(id) && (await logs.newest(id)) === null) await logs.forgetRow(id); // RECONCILER-V-2
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'the list of conversations could not be brought up to date');
  }
}
