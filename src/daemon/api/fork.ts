import { type PostedFile, partOf, type RequestOf } from '../../bus/index.ts';
import {
  type Author,
  type Command,
  type Entry,
  filesOf,
  outputPath,
  outputsBeside,
  partsOf,
  quotedHistory,
  type SeededMessage,
} from '../../conversation/index.ts';
import { asError, batchesOf, hasVisible, ParleyError, type Refusal, sizeOf } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import type { Workers } from '../conversations/workers.ts';
import { noEntry } from '../conversations/workers.ts';
import { BYTES_OF_ONE, type PublisherLimits } from '../ingress/publisher-limits.ts';

interface Parts {
  readonly workers: Pick<Workers, 'existing' | 'submit'>;
  readonly store: Pick<ConversationStore, 'toolRecords'>;
  /** Bytes of one append. */
  readonly room: number;
  /** Counts what is copied against the rate of the caller, and throws; null: the caller has none. */
  readonly count: ((bytes: number) => void) | null;
}

/**
 * Copies a conversation and completes the copy (`conversation/decide/fork.ts`). Large outputs are copied first, so that
 * no entry names one that is missing. The audit log is not copied: no tool ran here.
 */
export async function forkConversation(
  { conversation: from, as, at: asked }: RequestOf<'fork'>,
  by: Author,
  { workers, store, room, count }: Parts,
): Promise<void> {
  if (as === from)
    throw new ParleyError('BAD_REQUEST', 'the copy needs another id than the conversation (`as`, or --as)');
  const entries = (await workers.existing(from)).entries();
  const at = asked ?? entries.length - 1;
  if (at >= entries.length) throw noEntry(from, entries, at);
  const copied = entries.slice(0, at + 1);
  count?.(sizeOf(copied));
  for (const batch of batchesOf(copied, room / 2)) {
    const copies = await Promise.all(batch.map((entry) => withOutputs(entry, from, as, store)));
    await submit(workers, as, { type: 'copy', entries: copies, from });
  }
  await submit(workers, as, { type: 'fork', from, at, by });
}

async function submit(workers: Parts['workers'], id: string, command: Command): Promise<void> {
  const reply = await workers.submit(id, command);
  if (reply.kind !== 'refused') return;
  throw asError({ ...reply.refusal, message: `${id}: ${reply.refusal.message}` });
}

/** The stored outputs that it names are copied: its own one, and those of its reasoning and arguments (LARGE-2). */
async function withOutputs(
  entry: Entry,
  from: string,
  as: string,
  { toolRecords }: Parts['store'],
): Promise<Entry> {
  if (entry.type !== 'message' && entry.type !== 'note') return entry;
  const { fullOutputPath } = entry;
  const beside = entry.type === 'message' ? outputsBeside(entry) : [];
  for (const id of fullOutputPath === undefined ? beside : [entry.id, ...beside]) {
    const output = await toolRecords.readOutput(from, id);
    if (output !== null) await toolRecords.saveOutput(as, id, output);
  }
  return fullOutputPath === undefined ? entry : { ...entry, fullOutputPath: outputPath(as, entry.id) };
}

type Message = Readonly<Record<string, unknown>> & { readonly files?: readonly PostedFile[] | undefined };

/** The refusal of a history over the rate of its publisher. Histories have a count of their own, apart from posts. */
export function refusalOfHistory(
  messages: readonly Message[],
  limits: PublisherLimits,
  { publisher, now }: { readonly publisher: string; readonly now: number },
): Refusal | null {
  const bytes = sizeOf(messages) - BYTES_OF_ONE; // the post that follows counts as the first of them
  const waitMs = bytes > 0 ? limits.count({ publisher, bytes, takenAt: now }) : 0;
  return waitMs > 0 ? limits.tooFast(publisher, waitMs) : null;
}

/** A history as messages of its sender, in batches for one append each. Throws the first fault, with its index. */
export function seedsOf(messages: readonly Message[], by: Author, most: number): SeededMessage[][] {
  const made = quotedHistory(messages, by);
  if (!made.ok) throw invalid(`message ${made.at}: ${made.reason}`);
  const seeds = made.texts.map((content, at): SeededMessage => {
    const parts = partsOf(content, filesOf({ parts: messages[at]?.files?.map(partOf) }));
    return { content, ...(parts && { parts }) };
  });
  const isSaid = ({ content, parts }: SeededMessage) => hasVisible(content) || parts !== undefined;
  for (const [at, seed] of seeds.entries())
    if (isSaid(seed) && sizeOf(seed) > most) throw tooLarge(at, sizeOf(seed), most);
  return batchesOf(seeds.filter(isSaid), most);
}

function invalid(reason: string): ParleyError {
  return new ParleyError('BAD_REQUEST', `the history is not understood: ${reason}`, {
    hint: 'send messages in the form of chat completions',
  });
}

function tooLarge(at: number, bytes: number, most: number): ParleyError {
  return new ParleyError(
    'TOO_LARGE',
    `message ${at} of the history has ${bytes} bytes; ${Math.floor(most)} fit`,
    {
      hint: 'leave it out, or raise max_payload of the nats-server',
    },
  );
}
