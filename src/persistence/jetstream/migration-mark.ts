import { migrationUnfinished } from '../rules.ts';
import type { Documents } from './documents.ts';

/** The document that stands in the bucket while conversations are moved into the store. */
const KEY = 'migration';

/** From where; null: nothing is under way. */
export async function readMigration(documents: Documents): Promise<string | null> {
  const found = (await documents.get(KEY)) as { from?: unknown } | null;
  return found === null ? null : String(found.from);
}

export async function writeMigration(documents: Documents, from: string): Promise<void> {
  await documents.put(KEY, { from });
}

export async function removeMigration(documents: Documents): Promise<void> {
  await documents.remove(KEY);
}

export async function refuseUnfinishedMigration(documents: Documents, stream: string): Promise<void> {
  const from = await readMigration(documents);
  if (from !== null) throw migrationUnfinished(`stream ${stream}`, from);
}
