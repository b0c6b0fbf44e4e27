import { mayHaveRunSince } from '../../conversation/index.ts';
import { createIdSource, type Log, messageOf } from '../../kernel/index.ts';
import type { BackupFacts, ConversationStore } from '../../persistence/index.ts';
/** Appends RESTORED-1 to each log with outstanding work. It can be repeated. Returns the number of calls. */
export async function holdCalls(
  store: ConversationStore,
  onFailure: (conversation: string, error: unknown) => void = (_, error) => {
    throw error;
  },
): Promise<number> {
  const newId = createIdSource();
  let calls = 0;
  for (const id of (await store.openMarks()) ?? (await store.conversations())) {
    try {
      calls += await holdCallsOf(store, id, newId);
    } catch (error) {
      onFailure(id, error);
    }
  }
  return calls;
}

async function holdCallsOf(store: ConversationStore, id: string, newId: () => string): Promise<number> {
  const { log, entries } = await store.open(id);
  try {
    const starts = mayHaveRunSince(entries, { newId, createdAt: new Date().toISOString() });
    if (starts.length > 0) await log.append(entries.length, starts);
    return starts.length;
  } finally {
    await log.close();
  }
}

/** The first start on a backup, after the decision on posts that the copy lacks. From then on these logs are like any other. */
export async function beginFromBackup(store: ConversationStore, facts: BackupFacts, log: Log): Promise<void> {
  // A damaged log is not recovered either; the others continue.
  const onFailure = (conversation: string, error: unknown) =>
    log.error({ conversation, error: messageOf(error) }, 'a conversation of the backup cannot be opened');
  const calls = store.shared === null ? await holdCalls(store, onFailure) : undefined; // else `parley migrate` did
  const outstanding = (await store.openMarks())?.length;
  await store.backupMark.remove();
  log.warn(
    { ...facts, ...(calls !== undefined && { calls }), outstanding },
    'these logs are a backup: outstanding work continues; a person decides on risky calls that may have run since it was made',
  );
}
