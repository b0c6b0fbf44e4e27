import { migrationUnfinished } from '../rules.ts';
import type { Documents } from './documents.ts';

/** The document that stands in the bucket while conversations are moved into the store. */
const KEY = 'migration';

/** From where; null: nothing is under way. */
export async function readMigration(documents: Documents): Promise<string | null> {
  const found = await documents.get(KEY);
  return found === null ? null : fromOf(found);
}

function fromOf(mark: unknown): string {
  return String((mark as { from?: unknown }).from);
}

/** Compare-and-set: of two moves that found the target empty, the one from another source is refused. */
export async function writeMigration(documents: Documents, stream: string, from: string): Promise<void> {
  await documents.change(KEY, (known) => {
    if (known === null) return { from };
    const other = fromOf(known);
    if (other !== from) throw migrationUnfinished(`stream ${stream}`, other);
    return null;
  });
}

export async function removeMigration(documents: Documents): Promise<void> {
  await documents.remove(KEY);
}

export async function refuseUnfinishedMigration(documents: Documents, stream: string): Promise<void> {
  const from = await readMigration(documents);
  if (from !== null) throw migrationUnfinished(`stream ${stream}`, from);
}
