import type { StreamPosition } from '../../bus/index.ts';
import type { Runtime } from '../runtime.ts';
import { type Deleted, deleteConversation, isSpared, type KeepCheck, nothingDeleted } from './deletion.ts';
import type { OpenWorkers } from './open-workers.ts';
import { ConversationWorker } from './worker/worker.ts';

export interface WorkerDeletionParts {
  readonly runtime: Runtime;
  readonly open: OpenWorkers;
  /** The marked conversations (WORKERS-3). */
  readonly marked: Set<string>;
}

/** Deletes a conversation that may be in memory. Nothing else may open or close it meanwhile (WORKERS-1). */
export async function deleteWithWorker(
  id: string,
  parts: WorkerDeletionParts,
  asked: StreamPosition,
  keep?: KeepCheck,
): Promise<Deleted> {
  const { runtime, open, marked } = parts;
  const known = (await open.opening(id)?.catch(() => null)) ?? null;
  while (known?.settling) await known.settling;
  if (isSpared(known, asked)) return nothingDeleted(asked);
  let kept = keep?.(known?.state, asked) ?? null;
  const worker = kept === null ? await takeOut(id, parts, known) : null;
  if (worker !== known) kept ??= keep?.(worker?.state, asked) ?? null; // it was read again
  if (kept !== null) {
    if (worker !== known) await worker?.abandon();
    return { ...nothingDeleted(asked), existed: true, kept };
  }
  const deleted = await deleteConversation(id, runtime, asked, worker);
  marked.delete(id);
  return deleted;
}

/**
 * Removes the worker from memory. With shared logs, a log that other daemons may have appended to is read again: it may be
 * a later one.
 */
async function takeOut(
  id: string,
  { runtime, open }: WorkerDeletionParts,
  known: ConversationWorker | null,
): Promise<ConversationWorker | null> {
  open.delete(id);
  known?.retire();
  if (runtime.store.shared === null || known?.isOurs) return known;
  await known?.abandon();
  return ConversationWorker.open(id, runtime, false).catch(() => null); // a damaged log can be deleted
}
