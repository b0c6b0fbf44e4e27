import { type FilePart, showBytes } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { BlobFacts, ConversationStore } from '../../persistence/index.ts';

export interface RoomContext {
  readonly store: Pick<ConversationStore, 'blobs'>;
  readonly team: { readonly files: { readonly maxBytesPerConversation: number } };
}

/** Throws `BLOB_QUOTA` if the conversation may not name these files, too. */
export async function requireRoom(
  conversation: string,
  files: readonly Pick<BlobFacts, 'sha256' | 'size'>[],
  { store, team }: RoomContext,
): Promise<void> {
  const most = team.files.maxBytesPerConversation;
  const known = await store.blobs.of(conversation);
  const sizes = new Map([...known, ...files].map(({ sha256, size }) => [sha256, size]));
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  if (sizes.size === known.length || bytes <= most) return;
  const message = `the files of this conversation would have ${showBytes(bytes)}; ${showBytes(most)} are allowed`;
  throw new ParleyError('BLOB_QUOTA', message, {
    hint: 'raise blobs.maxBytesPerConversation in parley.yaml',
  });
}

/** What is stored of a file, with its name (PARTS-3). Throws `MISSING_BLOB`. */
export async function storedFile({ sha256, name }: FilePart, { store }: RoomContext): Promise<FilePart> {
  const facts = await store.blobs.facts(sha256);
  if (facts) return { type: 'file', ...facts, ...(name && { name }) };
  throw new ParleyError(
    'MISSING_BLOB',
    `the file ${sha256} is not stored: upload it before a message names it`,
    {
      hint: 'upload it (PUT /api/blobs, `parley say --file`, or upload() of the client), then send the message again',
    },
  );
}
