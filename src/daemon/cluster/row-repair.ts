import { messageOf } from '../../kernel/index.ts';
import type { NewestAppend, SharedLogs } from '../../persistence/index.ts';
import { isComplete } from '../conversations/projections.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log } from '../runtime.ts';

/**
 * Repairs the conversation list.
 *
 * ROW-REPAIR-1  A daemon saves the row of a conversation when it releases it; a killed daemon does not. So a row is
 *               written again if no daemon has the conversation open and its length differs from the log's, or if an
 *               older version wrote it.
 * ROW-REPAIR-2  A row without a log is removed: the conversation was deleted while another daemon had it open.
 */
interface RowRepairParts {
  readonly logs: SharedLogs;
  readonly workers: Workers;
  readonly log: Log;
}

export async function repairRows(
  { logs, workers, log }: RowRepairParts,
  /** Must be read before the rows. */
  all: ReadonlyMap<string, NewestAppend>,
  /** Of these, those that no daemon has open and that this daemon should repair. */
  unheldOf: (lagging: readonly string[]) => Promise<readonly string[]>,
  stopping: AbortSignal,
): Promise<void> {
  try {
    const stored = await workers.storedRows();
    const lengths = new Map(stored.map((row) => [row.id, isComplete(row) ? row.length : null]));
    const lagging = [...all].filter(([id, { length }]) => length !== null && lengths.get(id) !== length);
    for (const id of await unheldOf(lagging.map(([id]) => id))) {
      if (stopping.aborted) return;
      await workers.refreshRow(id);
    }
    for (const id of lengths.keys()) {
      if (!stopping.aborted && !all.has(id) && (await logs.newest(id)) === null) await logs.forgetRow(id); // ROW-REPAIR-2
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'the conversation list could not be repaired');
  }
}
