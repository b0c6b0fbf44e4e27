import { messageOf } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import { isComplete } from '../conversations/projections.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log } from '../runtime.ts';

/**
 * Sees to it that the list of conversations says what the logs do.
 *
 * V1 Whoever works on a conversation saves its row when it lets it go, and one that was killed has not: what nobody has
 *    open, and has a log of another length than its row, is listed anew; so is a row that an older version wrote.
 * V2 A row without a log is that of a conversation that was deleted while somebody who had it open could not know.
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
      if (!stopping.aborted && !all.has(id) && (await logs.newest(id)) === null) await logs.forgetRow(id); // V2
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'the list of conversations could not be brought up to date');
  }
}
