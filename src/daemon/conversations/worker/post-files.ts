import {
  type Command,
  type Conversation,
  type FilePart,
  filesOf,
  type Part,
  publisherOf,
} from '../../../conversation/index.ts';
import { ParleyError, refusal } from '../../../kernel/index.ts';
import { type RoomContext, requireRoom } from '../../tools/file-room.ts';
import type { Item } from './decider.ts';

/** A post names files by their hashes alone. What they are is what is stored of them (PARTS-3). */

type PostCommand = Extract<Command, { type: 'post' }>;

/** A post that the log has already needs no file. */
export function needsFiles({ command }: Item, conversation: Conversation): boolean {
  if (command.type !== 'post' || filesOf(command.post).length === 0) return false;
  return !conversation.hasPost(publisherOf(command.post.author.id), command.post.id);
}

const REFUSED = new Set(['MISSING_BLOB', 'BLOB_QUOTA']);

/** The items with what is stored of the files of posts. A post whose files are not all stored, or too large together, is refused. */
export async function withFacts(
  items: readonly Item[],
  { id, conversation }: { readonly id: string; readonly conversation: Conversation },
  daemon: RoomContext,
): Promise<Item[]> {
  const complete: Item[] = [];
  const accepted: FilePart[] = [];
  for (const item of items) {
    if (item.command.type !== 'post' || !needsFiles(item, conversation)) complete.push(item);
    else {
      try {
        const command = await withStored(item.command, daemon);
        const files = filesOf(command.post);
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

async function withStored(command: PostCommand, { store }: RoomContext): Promise<PostCommand> {
  const parts: Part[] = [];
  for (const part of command.post.parts ?? []) {
    const facts = part.type === 'file' ? await store.blobs.facts(part.sha256) : null;
    if (part.type === 'text') parts.push(part);
    else if (facts === null) throw missingFile(part.sha256);
    else parts.push({ type: 'file', ...facts, ...(part.name && { name: part.name }) });
  }
  return { ...command, post: { ...command.post, parts } };
}

function missingFile(sha256: string): ParleyError {
  return new ParleyError('MISSING_BLOB', `the file ${sha256} is not stored`, {
    hint: 'upload it first (PUT /api/blobs, `parley say --file`, or upload() of the client), then post the message again',
  });
}
