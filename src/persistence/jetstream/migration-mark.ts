import { type MigrationMark, type MigrationRun, markIn } from '../migration-run.ts';
import type { BackupFacts, BackupMark } from '../port.ts';
import { migrationUnfinished } from '../rules.ts';
import type { Documents } from './documents.ts';

/** The document that is in the bucket while conversations are moved into the store. */
const KEY = 'migration';

/** Null: no migration is unfinished. */
export async function readMigration(documents: Documents): Promise<MigrationMark | null> {
  return markOf(await documents.get(KEY));
}

function markOf(stored: unknown): MigrationMark | null {
  return stored === null ? null : markIn(stored);
}

/** Compare-and-set. */
export async function writeMigration(documents: Documents, run: MigrationRun, from: string): Promise<void> {
  await documents.change(KEY, (known) => run.markFor(markOf(known), from));
}

export async function removeMigration(documents: Documents, run: MigrationRun): Promise<void> {
  run.requireOwn(await readMigration(documents));
  await documents.remove(KEY);
}

export async function refuseUnfinishedMigration(documents: Documents, stream: string): Promise<void> {
  const mark = await readMigration(documents);
  if (mark !== null) throw migrationUnfinished(`stream ${stream}`, mark.from);
}

/** The document of logs that were moved from a backup, until a daemon starts on them. */
const BACKUP = 'backup';

export function createBackupMark(documents: Documents): BackupMark {
  return {
    get: async () => (await documents.get(BACKUP)) as BackupFacts | null,
    put: (facts) => documents.put(BACKUP, facts),
    remove: () => documents.remove(BACKUP),
  };
}
