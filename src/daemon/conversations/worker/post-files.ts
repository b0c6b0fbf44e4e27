import { type Conversation, filesOf, type Part, publisherOf } from '../../../conversation/index.ts';
import { type Refusal, refusal } from '../../../kernel/index.ts';
import type { ConversationStore } from '../../../persistence/index.ts';
import type { Item } from './decider.ts';

/** A post names files by their hashes alone. What they are is what is stored of them (PARTS-3). */

/** A post that the log has already needs no file. */
export function needsFiles({ command }: Item, conversation: Conversation): boolean {
  if (command.type !== 'post' || filesOf(command.post).length === 0) return false;
  return !conversation.hasPost(publisherOf(command.post.author.id), command.post.id);
}

interface Limits {
  readonly store: Pick<ConversationStore, 'blobs'>;
  /** Bytes of all files of the conversation. */
  readonly mostBytes: number;
}

/** The items with what is stored of the files of posts. A post whose files are not all stored, or too large together, is refused. */
export async function withFacts(
  items: readonly Item[],
  conversation: Conversation,
  limits: Limits,
): Promise<Item[]> {
  const sizes = new Map(
    conversation.entries.flatMap((entry) =>
      entry.type === 'message' ? filesOf(entry).map(({ sha256, size }) => [sha256, size] as const) : [],
    ),
  );
  const complete: Item[] = [];
  for (const item of items) {
    const found = needsFiles(item, conversation) ? await factsOf(item, sizes, limits) : item;
    if ('code' in found) item.resolve({ kind: 'refused', refusal: found });
    else complete.push(found);
  }
  return complete;
}

/** `sizes`: of the files that the conversation has, by hash. */
async function factsOf(
  item: Item,
  sizes: Map<string, number>,
  { store, mostBytes }: Limits,
): Promise<Item | Refusal> {
  const { command } = item;
  if (command.type !== 'post') return item;
  const parts: Part[] = [];
  const own = new Map(sizes);
  for (const part of command.post.parts ?? []) {
    const facts = part.type === 'file' ? await store.blobs.facts(part.sha256) : null;
    if (part.type === 'text') parts.push(part);
    else if (facts === null) return missingFile(part.sha256);
    else {
      parts.push({ type: 'file', ...facts, ...(part.name && { name: part.name }) });
      own.set(facts.sha256, facts.size);
    }
  }
  const bytes = [...own.values()].reduce((sum, size) => sum + size, 0);
  if (own.size > sizes.size && bytes > mostBytes) return tooMuch(bytes, mostBytes);
  for (const [sha256, size] of own) sizes.set(sha256, size);
  return { ...item, command: { ...command, post: { ...command.post, parts } } };
}

function missingFile(sha256: string): Refusal {
  return refusal(
    'MISSING_BLOB',
    `the file ${sha256} is not stored`,
    'upload it first (PUT /api/blobs, `parley say --file`, or upload() of the client), then post the message again',
  );
}

function tooMuch(bytes: number, most: number): Refusal {
  return refusal(
    'BLOB_QUOTA',
    `the files of this conversation would have ${bytes} bytes; ${most} are allowed`,
    'begin another conversation, or raise blobs.maxBytesPerConversation in parley.yaml',
  );
}
