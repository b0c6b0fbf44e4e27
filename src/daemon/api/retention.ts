import type { ApiAnswer, ApiRequest, Eraser } from '../../bus/index.ts';
import type { RetentionConfig } from '../../config/index.ts';
import type { ConversationState } from '../../conversation/index.ts';
import { isOverdue, type Log, messageOf } from '../../kernel/index.ts';
import type { Blobs } from '../../persistence/index.ts';
import type { KeepCheck } from '../conversations/deletion.ts';
import type { IngressProgress } from '../conversations/ingress-progress.ts';
import type { ListedRow } from '../conversations/projections.ts';

/**
 * Deletes what is older than `retention` of parley.yaml says.
 *
 * RETENTION-1  A conversation goes by the same request as with `parley rm`. Whether it may go is decided on its log, when
 *              nothing else can happen to it (`keptBecause`): the row only says which ones to ask for.
 * RETENTION-2  Where logs are shared, the daemon that works on a conversation, or did so last, deletes it; any other does
 *              where that one does not answer.
 * RETENTION-3  Once an hour, and at the start; at most MOST_AT_ONCE at a time, the next ones a minute later.
 * RETENTION-4  A clock that was set forward makes everything due. A daemon that runs deletes within the hour what becomes
 *              due, so the newest that is due is seldom a week beyond its age (`isOverdue`). If it is, nothing is deleted.
 * RETENTION-5  At the same times, uploads that no message named for a day are erased, and interrupted deletions finished
 *              (`Blobs.sweep`). A stop does not wait for the rest of it.
 */

const HOURLY_MS = 3_600_000;
const SOON_MS = 60_000;
const MOST_AT_ONCE = 200;
const UNNAMED_MS = 24 * HOURLY_MS;
const DOUBT =
  'retention: nothing is deleted, since the clock may be wrong: nothing became due in the last week, and something did before. Check the clock; `parley rm --older-than` deletes what is due';

export interface RetentionParts {
  readonly config: RetentionConfig;
  readonly eraser: Pick<Eraser, 'expireDeadLetters'>;
  readonly rows: () => Promise<readonly ListedRow[]>;
  readonly handle: (request: ApiRequest) => Promise<ApiAnswer>;
  /** RETENTION-5 */
  readonly blobs: Pick<Blobs, 'sweep'>;
  /** RETENTION-2 */
  readonly isOurs: (conversation: string) => Promise<boolean>;
  /** Until it is known which other daemons are there. */
  readonly firstAfterMs: number;
  readonly now: () => number;
  readonly log: Log;
}

export class Retention {
  readonly #parts: RetentionParts;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<unknown> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#next(this.#parts.firstAfterMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer ?? undefined);
    await this.#running;
  }

  #next(afterMs: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#running = this.tick().then(async (isWhole) => {
        if (isWhole && !this.#stopping.signal.aborted) await this.sweep();
        this.#next(isWhole ? HOURLY_MS : SOON_MS);
      });
    }, afterMs);
    this.#timer.unref();
  }

  async sweep(): Promise<void> {
    const { blobs, log, now } = this.#parts;
    try {
      const files = await blobs.sweep(new Date(now() - UNNAMED_MS).toISOString(), this.#stopping.signal);
      if (files > 0) log.info({ files }, 'retention: erased files that no message names');
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        'retention: files that no message names were not all erased; trying again in an hour',
      );
    }
  }

  /** False: there is more to delete. */
  async tick(): Promise<boolean> {
    const { log, config } = this.#parts;
    if (config.conversations === null && config.deadLetters === null) return true;
    try {
      const rows = await this.#parts.rows();
      const due = this.#dueOf(rows);
      if (await this.#isDoubtful(rows, due)) {
        log.warn({ clock: new Date(this.#parts.now()).toISOString() }, DOUBT);
        return true;
      }
      const deadLetters = await this.#expireLetters();
      const conversations = await this.#expireConversations(due);
      if (conversations + deadLetters > 0)
        log.info({ conversations, deadLetters }, 'retention: deleted what is older than parley.yaml allows');
      return conversations < MOST_AT_ONCE && deadLetters < MOST_AT_ONCE;
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'retention: not all could be deleted; trying again in an hour');
      return true;
    }
  }

  /** RETENTION-4. Where conversations stay for ever, the newest of all speaks for the dead letters. */
  async #isDoubtful(rows: readonly ListedRow[], due: readonly ListedRow[]): Promise<boolean> {
    const { config, now, isOurs } = this.#parts;
    if (config.conversations === null) {
      const age = config.deadLetters ?? 0;
      return rows.length > 0 && rows.every(({ updatedAt }) => isOverdue(updatedAt, age, now()));
    }
    for (let at = due.length - 1; at >= 0; at--) {
      const { id, updatedAt } = due[at] as ListedRow;
      if (!isOverdue(updatedAt, config.conversations, now())) return false;
      if (await isOurs(id)) return true;
    }
    return false;
  }

  #dueOf(rows: readonly ListedRow[]): readonly ListedRow[] {
    const { config, now } = this.#parts;
    if (config.conversations === null) return [];
    return expiredRows(rows, new Date(now() - config.conversations).toISOString());
  }

  async #expireLetters(): Promise<number> {
    const { config, eraser, now } = this.#parts;
    return config.deadLetters === null
      ? 0
      : eraser.expireDeadLetters(now() - config.deadLetters, MOST_AT_ONCE);
  }

  async #expireConversations(due: readonly ListedRow[]): Promise<number> {
    const { config, now, isOurs, handle } = this.#parts;
    const lastEntryBefore = new Date(now() - (config.conversations ?? 0)).toISOString();
    let conversations = 0;
    for (const { id } of due) {
      if (this.#stopping.signal.aborted || conversations === MOST_AT_ONCE) break;
      if (!(await isOurs(id))) continue;
      const body = { conversation: id, lastEntryBefore };
      const answer = await handle({ endpoint: 'delete', publisher: null, body });
      if (answer.ok && (answer.body as { deleted: boolean }).deleted) conversations += 1;
      else if (!answer.ok)
        this.#parts.log.warn({ conversation: id, code: answer.refusal.code }, 'retention: not deleted');
    }
    return conversations;
  }
}

/** Oldest first. Those in use are left out as far as the list knows. */
function expiredRows(rows: readonly ListedRow[], lastEntryBefore: string): readonly ListedRow[] {
  return rows
    .filter(({ updatedAt, waiting, stopped }) => {
      const isInUse = waiting.length + stopped.length > 0;
      return updatedAt !== '' && isBefore(updatedAt, lastEntryBefore) && !isInUse;
    })
    .sort((a, b) => Date.parse(a.updatedAt) - Date.parse(b.updatedAt));
}

/** Why a conversation stays; null: nothing has happened since, and nothing is under way. */
function keptBecause(state: ConversationState, lastEntryBefore: string): string | null {
  const { updatedAt, agents, run } = state;
  if (updatedAt === null) return null;
  if (!isBefore(updatedAt, lastEntryBefore)) return 'it has a newer entry';
  if (Object.values(agents).some(({ turn }) => turn !== null))
    return 'a turn runs, or waits for an approval or an answer';
  if (Object.values(agents).some(({ waiting }) => waiting.length > 0)) return 'posts wait for an agent';
  return run?.awaitsInput ? 'a run waits for its input' : null;
}

/** For a deletion by age: posts that wait to be read belong to the conversation, too. */
export function keepUnless(lastEntryBefore: string, progress: Pick<IngressProgress, 'isSettled'>): KeepCheck {
  return (state, asked) =>
    progress.isSettled(asked)
      ? state
        ? keptBecause(state, lastEntryBefore)
        : null
      : 'posts in the stream wait to be read';
}

function isBefore(at: string, limit: string): boolean {
  return Date.parse(at) < Date.parse(limit);
}
