import { showBytes } from '../../conversation/index.ts';
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
