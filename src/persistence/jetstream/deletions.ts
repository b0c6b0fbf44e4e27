import type { Deletion, IngressPosition } from '../port.ts';
import type { Documents } from './documents.ts';

/** Keys of documents, before the conversation: up to where its posts are void, and what is being removed. */
export const DELETED = 'deleted.';
export const DELETING = 'deleting.';

export async function deletionsIn(documents: Documents): Promise<Deletion[]> {
  const found: Deletion[] = [];
  for (const conversation of (await documents.keys(DELETED)).sort()) {
    const position = (await documents.get(DELETED + conversation)) as IngressPosition | null;
    if (position !== null) found.push({ conversation, ...position });
  }
  return found;
}
