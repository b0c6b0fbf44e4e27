import { messageOf } from '../../kernel/index.ts';
import type { ConversationRow } from '../../persistence/index.ts';
import type { Runtime } from '../runtime.ts';
import { runningActivity } from './activity.ts';
import type { OpenWorkers } from './open-workers.ts';
import { isComplete, type ListedRow, listedRow, rowOf } from './projections.ts';

/** The rows of all conversations by id: the stored rows, updated from memory. `since`: the first day of `spent`; null: without it. */
export async function listConversations(
  runtime: Pick<Runtime, 'store' | 'remote' | 'retries'>,
  open: OpenWorkers,
  since: string | null = null,
): Promise<ListedRow[]> {
  const rows = new Map(
    (await runtime.store.rows()).map((row) => [
      row.id,
      since === null ? atRest(row) : listedRow(row, [], since),
    ]),
  );
  for (const worker of await open.all()) {
    // The memory of a conversation that another daemon owns or deleted is stale.
    if (worker.isOurs && worker.state.length > 0) {
      const { id, state } = worker;
      const entries = worker.entries();
      const current = runningActivity(state, entries, runtime);
      rows.set(id, listedRow(rowOf(id, state, entries), current, since));
    }
  }
  return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Of a stored row that has not changed, the same object: readers see at once that it is the same. */
const known = new WeakMap<ConversationRow, ListedRow>();

function atRest(row: ConversationRow): ListedRow {
  const before = known.get(row);
  if (before) return before;
  const listed = listedRow(row);
  known.set(row, listed);
  return listed;
}

/**
 * Rebuilds missing rows, and rows of an older version, from the logs (L1). Logs in mode run are opened too: the
 * configuration may lack what their run needs. `save` opens a conversation, saves its row and closes it.
 */
export async function rebuildRows(
  { store, shutdown, log }: Pick<Runtime, 'store' | 'shutdown' | 'log'>,
  save: (id: string) => Promise<void>,
): Promise<void> {
  const rows = await store.rows();
  const known = new Set(rows.filter((row) => isComplete(row) && row.mode !== 'run').map((row) => row.id));
  for (const id of await store.conversations()) {
    if (known.has(id) || shutdown.aborted) continue;
    await save(id).catch((error: unknown) =>
      log.error({ conversation: id, error: messageOf(error) }, 'a conversation cannot be listed'),
    );
  }
}
