import { randomUUID } from 'node:crypto';
import type { Documents } from './documents.ts';
import type { MigrationTarget, StoreArchive } from './offline-port.ts';
import type { ConversationStore, IngressPosition } from './port.ts';
import { migrationRunning, migrationUnfinished } from './rules.ts';
import type { StoredContent } from './storage.ts';
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
    deletions: () => deletionsIn(documents),
    ingressPosition: async () => (await documents.get('ingress')) as IngressPosition | null,
    backup: () => readBackup(documents),
    migration: async () => (await readMigration(documents))?.from ?? null,
  };
}

/** Marks a target while conversations are moved into it. `run` identifies one run. */
interface MigrationMark {
  readonly from: string;
  readonly run: string;
}

/**
 * `target`: its name in errors. A run replaces the mark only if that is still as it was last read, so of two runs only one succeeds,
 * and a suspended run does not overwrite the mark of a later one.
 */
export function migrationTarget(
  target: string,
  store: ConversationStore,
  archive: StoreArchive,
  documents: Documents,
): MigrationTarget {
  const run = randomUUID();
  let seen: string | null = null;
  return {
    store,
    archive: {
      ...archive,
      async migration() {
        const mark = await readMigration(documents);
        seen = mark?.run ?? null;
        return mark?.from ?? null;
      },
    },
    begin: (from) =>
      documents.change('migration', (stored) => {
        const known = markIn(stored);
        if (known !== null && known.from !== from) throw migrationUnfinished(target, known.from);
        if (known?.run === run) return null;
        if ((known?.run ?? null) !== seen) throw migrationRunning(target);
        return { from, run };
      }),
    async end() {
      if ((await readMigration(documents))?.run !== run) throw migrationRunning(target);
      await documents.remove('migration');
    },
  };
}

async function readMigration(documents: Pick<Documents, 'get'>): Promise<MigrationMark | null> {
  return markIn(await documents.get('migration'));
}

/** Damaged content counts as a mark. */
function markIn(stored: unknown): MigrationMark | null {
  if (stored === null) return null;
  const { from = 'an unknown place', run = '' } = Object(stored) as Partial<MigrationMark>;
  return { from: String(from), run: String(run) };
}

export async function refuseUnfinishedMigration(
  target: string,
  documents: Pick<Documents, 'get'>,
): Promise<void> {
  const mark = await readMigration(documents);
  if (mark !== null) throw migrationUnfinished(target, mark.from);
}
