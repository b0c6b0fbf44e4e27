import {
  type Command,
  type Conversation,
  type FilePart,
  filesOf,
  type Part,
  publisherOf,
} from '../../../conversation/index.ts';
import { ParleyError, refusal } from '../../../kernel/index.ts';
import { type RoomContext, requireRoom, storedFile } from '../../tools/file-room.ts';
import type { Item } from './decider.ts';

/** A post, a message of a history or a caller's result names files by their hashes alone. What they are is what is stored of them (PARTS-3). */

function filesIn(command: Command): readonly FilePart[] {
  if (command.type === 'post') return filesOf(command.post);
  if (command.type === 'seed') return command.messages.flatMap(filesOf);
  return command.type === 'answer-calls' ? command.results.flatMap(({ files = [] }) => files) : [];
}

/** A post that the log has already needs no file. */
export function needsFiles({ command }: Item, conversation: Conversation): boolean {
  if (filesIn(command).length === 0) return false;
  if (command.type !== 'post') return true;
  return !conversation.hasPost(publisherOf(command.post.author.id), command.post.id);
}

const REFUSED = new Set(['MISSING_BLOB', 'BLOB_QUOTA']);

/** The items with what is stored of their files. One whose files are not all stored, or too large together, is refused. */
export async function withFacts(
  items: readonly Item[],
  { id, conversation }: { readonly id: string; readonly conversation: Conversation },
  daemon: RoomContext,
): Promise<Item[]> {
  const complete: Item[] = [];
  const accepted: FilePart[] = [];
  for (const item of items) {
    if (!needsFiles(item, conversation)) complete.push(item);
    else {
      try {
        const command = await withStored(item.command, daemon);
        const files = filesIn(command);
        await requireRoom(id, [...accepted, ...files], daemon);
        accepted.push(...files);
        complete.push({ ...item, command });
      } catch (error) {
        if (!(error instanceof ParleyError && REFUSED.has(error.code))) throw error;
        item.resolve({ kind: 'refused', refusal: refusal(error.code, error.message, error.hint) });
      }
    }
  }
  return complete;
}

async function withStored(command: Command, daemon: RoomContext): Promise<Command> {
  const stored = (file: FilePart) => storedFile(file, daemon);
  const complete = async <T extends { readonly parts?: readonly Part[] | undefined }>(
    message: T,
  ): Promise<T> => {
    const parts = message.parts?.map((part) => (part.type === 'file' ? stored(part) : part));
    return parts ? { ...message, parts: await Promise.all(parts) } : message;
  };
  if (command.type === 'post') return { ...command, post: await complete(command.post) };
  if (command.type === 'seed')
    return { ...command, messages: await Promise.all(command.messages.map(complete)) };
  if (command.type !== 'answer-calls') return command;
  const results = command.results.map(async ({ files, ...result }) => ({
    ...result,
    ...(files && { files: await Promise.all(files.map(stored)) }),
  }));
  return { ...command, results: await Promise.all(results) };
}
