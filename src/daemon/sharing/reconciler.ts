import { messageOf, sleep } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import type { Log } from '../runtime.ts';
import type { Workers } from '../workers.ts';
import type { Members } from './members.ts';
import type { Router } from './router.ts';
import type { Claimant } from './self.ts';
import { isMoved } from './tenure.ts';

/**
 * Sees to it that somebody works on whatever owes something.
 *
 * C1 Only what every last append says is looked at; a log is read where its claimant is gone, or has not got it open.
 * C2 Of those who notice together one is meant to be first, so that they do not all read the same logs; the others look
 *    again a silence later. Whoever is first, the log takes one claim (L3).
 * C3 What cannot be found out now, since this daemon hears nobody, is looked at again a silence later.
 */

export const EVERY_MS = 60_000;
/** Logs that are read at the same time. */
const AT_ONCE = 8;

export interface ReconcilerParts {
  readonly daemon: string;
  readonly logs: SharedLogs;
  readonly workers: Workers;
  readonly members: Members;
  readonly router: Router;
  readonly silenceMs: number;
  readonly log: Log;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #stopping = new AbortController();
  /** Appends that say nothing of what they owe, and owe nothing: they need not be read again. */
  readonly #atRest = new Map<string, number>();
  #running: Promise<void> = Promise.resolve();
  #everySoOften: Promise<void> = Promise.resolve();
  #lookingAgain: Promise<void> | null = null;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Resolves when what is this daemon's to take up has been. */
  async start(): Promise<void> {
    await this.pass(true, false);
    this.#everySoOften = this.#keepLooking();
  }

  /** A daemon is not there any more. */
  gone(handedOver: boolean): void {
    void this.pass(true, handedOver);
    void this.#later(handedOver);
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
  }

  /** `isFirst`: only what is this daemon's to be first at (C2). Does not reject. */
  pass(isFirst: boolean, handedOver: boolean): Promise<void> {
    this.#running = this.#running.then(async () => {
      if (this.#stopping.signal.aborted) return;
      try {
        await this.#look(isFirst, handedOver);
      } catch (error) {
        this.#parts.log.warn(
          { error: messageOf(error) },
          'what is owed could not be looked up; trying again',
        );
      }
    });
    return this.#running;
  }

  /** C3: once, however many could not be asked. */
  #again(handedOver: boolean): void {
    this.#lookingAgain ??= sleep(this.#parts.silenceMs, this.#stopping.signal).then(() => {
      this.#lookingAgain = null;
      return this.pass(false, handedOver);
    });
  }

  async #later(handedOver: boolean): Promise<void> {
    await sleep(this.#parts.silenceMs, this.#stopping.signal);
    await this.pass(false, handedOver);
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping;
    await sleep(this.#parts.silenceMs, signal);
    while (!signal.aborted) {
      await this.pass(false, false);
      await sleep(EVERY_MS * (0.75 + Math.random() / 2), signal);
    }
  }

  async #look(isFirst: boolean, handedOver: boolean): Promise<void> {
    const all = await this.#parts.logs.all();
    const owing = [...all].filter(([id, newest]) => this.#mayOwe(id, newest));
    const byOwner = new Map<string, string[]>();
    for (const [id, { standing }] of owing) {
      const owner = standing?.claim?.daemon ?? '';
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), id]);
    }
    const orphans: string[] = [];
    for (const [owner, ids] of byOwner) {
      const { held, isSaid } = await this.#heldBy(owner, ids);
      if (owner !== this.#parts.daemon && held.length > 0 && !isSaid) this.#again(handedOver); // C3
      for (const id of ids.filter((one) => !held.includes(one))) {
        const claim = all.get(id)?.standing?.claim;
        if (claim && isSaid) this.#parts.router.isFree(id, claim);
        orphans.push(id);
      }
    }
    const wanted = isFirst ? orphans.filter((id) => this.#isMine(id)) : orphans;
    const next = wanted.values();
    const work = async () => {
      for (const id of next)
        if (!this.#stopping.signal.aborted) await this.#takeUp(id, handedOver, all.get(id));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  #mayOwe(id: string, { standing, sequence }: NewestAppend): boolean {
    return standing ? standing.owes : this.#atRest.get(id) !== sequence;
  }

  /** Which of these that daemon has open, and whether it says so itself; all of them while that cannot be known. */
  async #heldBy(
    owner: string,
    ids: readonly string[],
  ): Promise<{ readonly held: readonly string[]; readonly isSaid: boolean }> {
    const { daemon, workers, members, router } = this.#parts;
    if (owner === daemon) return { held: ids.filter((id) => workers.holds(id)), isSaid: false };
    if (owner === '' || members.isSilent(owner)) return { held: [], isSaid: false };
    const heard = await router.ask(owner, 'holds', { conversations: ids });
    if (heard.kind !== 'answered') return { held: members.isSilent(owner) ? [] : ids, isSaid: false };
    return { held: (heard.body as { readonly held?: readonly string[] }).held ?? [], isSaid: true };
  }

  /** C2: the same for everybody who knows of the same daemons. */
  #isMine(conversation: string): boolean {
    const { daemon, members } = this.#parts;
    const all = [daemon, ...members.others];
    const weight = (one: string) => hash(`${one} ${conversation}`);
    return all.every((other) => other === daemon || weight(other) < weight(daemon));
  }

  async #takeUp(conversation: string, handedOver: boolean, newest?: NewestAppend): Promise<void> {
    const { workers, log, daemon } = this.#parts;
    try {
      const worker = await workers.current(conversation);
      if (worker.isOurs) return;
      if (worker.owes) {
        log.info({ conversation }, 'taking over a conversation');
        await workers.submit(conversation, { type: 'claim', daemon, handedOver });
      } else if (newest) this.#atRest.set(conversation, newest.sequence);
    } catch (error) {
      if (isMoved(error)) return;
      log.error({ conversation, error: messageOf(error) }, 'this conversation cannot be taken over');
    }
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
