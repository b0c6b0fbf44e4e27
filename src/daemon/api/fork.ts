import type { RequestOf } from '../../bus/index.ts';
import type { Author, Command, Entry } from '../../conversation/index.ts';
import { batchesOf, ParleyError } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import type { Workers } from '../conversations/workers.ts';

interface Parts {
  readonly workers: Pick<Workers, 'existing' | 'submit'>;
  readonly store: Pick<ConversationStore, 'toolRecords'>;
  /** Bytes of one append. */
  readonly room: number;
}

/**
 * Copies a conversation and completes the copy (`conversation/decide/fork.ts`). Large outputs are copied first, so that
 * no entry names one that is missing. The audit log is not copied: no tool ran here.
 */
export async function forkConversation(
  { conversation: from, as, at: asked }: RequestOf<'fork'>,
  by: Author,
  { workers, store, room }: Parts,
): Promise<void> {
  if (as === from)
    throw new ParleyError('BAD_REQUEST', 'the copy needs another id than the conversation (`as`, or --as)');
  const entries = (await workers.existing(from)).entries();
  const at = asked ?? entries.length - 1;
  if (at >= entries.length) {
    throw new ParleyError(
      'NO_SUCH_ENTRY',
      `conversation ${from} has no entry ${at}; it has entries 0 to ${entries.length - 1}`,
      {
        hint: '`parley show` lists the entries by index',
      },
    );
  }
  for (const batch of batchesOf(entries.slice(0, at + 1), room / 2)) {
    const copies = await Promise.all(batch.map((entry) => withOutput(entry, from, as, store)));
    await submit(workers, as, { type: 'copy', entries: copies, from });
  }
  await submit(workers, as, { type: 'fork', from, at, by });
}

async function submit(workers: Parts['workers'], id: string, command: Command): Promise<void> {
  const reply = await workers.submit(id, command);
  if (reply.kind !== 'refused') return;
  const { code, message, hint } = reply.refusal;
  throw new ParleyError(code, `${id}: ${message}`, { hint });
}

async function withOutput(
  entry: Entry,
  from: string,
  as: string,
  { toolRecords }: Parts['store'],
): Promise<Entry> {
  if ((entry.type !== 'message' && entry.type !== 'note') || entry.fullOutputPath === undefined) return entry;
  const output = await toolRecords.readOutput(from, entry.id);
  if (output !== null) await toolRecords.saveOutput(as, entry.id, output);
  return { ...entry, fullOutputPath: entry.fullOutputPath.replace(`/${from}/`, `/${as}/`) };
}
