import { BlobReader } from './blobs.ts';
import type { ConversationStore, IngressPosition, MigrationTarget, StoreArchive } from './port.ts';
import { migrationUnfinished } from './rules.ts';
import type { Documents, StoredContent } from './storage.ts';
import { auditTrailOf, deletionsIn, outputKey, readBackup } from './store.ts';

/** A store as the source or the target of a migration or a backup. */

export function archiveOf(name: string, content: StoredContent): StoreArchive {
  const { documents, audit } = content;
  return {
    name,
    conversations: () => content.conversations(),
    entries: async (conversation) => (await content.log(conversation)).entries,
    appendEnds: async (conversation) => (await content.log(conversation)).ends,
    audit: async (conversation) => auditTrailOf(await audit.read(conversation)).records,
    outputs: (conversation) => documents.keys(`output.${conversation}.`),
    output: async (conversation, entryId) =>
      (await documents.get(outputKey(conversation, entryId))) as string | null,
    definitions: () => documents.keys('definition.'),
    definition: async (hash) => (await documents.get(`definition.${hash}`)) as string | null,
    blobs: new BlobReader(content),
    deletions: () => deletionsIn(documents),
    ingressPosition: async () => (await documents.get('ingress')) as IngressPosition | null,
    backup: () => readBackup(documents),
    migration: () => readMigration(documents),
  };
}

/** `target`: its name in errors. */
export function migrationTarget(
  target: string,
  store: ConversationStore,
  archive: StoreArchive,
  documents: Documents,
): MigrationTarget {
  return {
    store,
    archive,
    begin: (from) =>
      documents.change('migration', (stored) => {
        const known = sourceIn(stored) ?? from;
        if (known !== from) throw migrationUnfinished(target, known);
        return { from };
      }),
    end: () => documents.remove('migration'),
  };
}

async function readMigration(documents: Pick<Documents, 'get'>): Promise<string | null> {
  return sourceIn(await documents.get('migration'));
}

/** Damaged content counts as a mark. */
function sourceIn(stored: unknown): string | null {
  if (stored === null) return null;
  const { from = 'an unknown place' } = Object(stored) as { readonly from?: unknown };
  return String(from);
}

export async function refuseUnfinishedMigration(
  target: string,
  documents: Pick<Documents, 'get'>,
): Promise<void> {
  const from = await readMigration(documents);
  if (from !== null) throw migrationUnfinished(target, from);
}
