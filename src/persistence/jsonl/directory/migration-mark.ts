import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type MigrationMark, type MigrationRun, markIn } from '../../migration-run.ts';
import { migrationUnfinished } from '../../rules.ts';
import { orNullIfMissing, refuseFile, replaceFile, syncDirectory } from '../log/durable.ts';
import { storePaths } from './paths.ts';

/** `migration.json`: a migration into this directory is unfinished. */

/** Null: no migration is unfinished. A file with invalid content counts as a mark. */
export async function readMigration(root: string): Promise<MigrationMark | null> {
  await refuseFile(root);
  const text = await orNullIfMissing(readFile(storePaths(root).migration, 'utf8'));
  if (text === null) return null;
  try {
    return markIn(JSON.parse(text));
  } catch {
    return markIn(null); // not JSON: a mark of an unknown source
  }
}

/** The caller holds the lock, so no other process replaces the mark between the read and the write. */
export async function writeMigration(root: string, run: MigrationRun, from: string): Promise<void> {
  const mark = run.markFor(await readMigration(root), from);
  if (mark === null) return;
  await replaceFile(storePaths(root).migration, `${JSON.stringify(mark)}\n`, { durable: true });
}

export async function removeMigration(root: string, run: MigrationRun): Promise<void> {
  run.requireOwn(await readMigration(root));
  const path = storePaths(root).migration;
  await rm(path, { force: true });
  await syncDirectory(dirname(path));
}

export async function refuseUnfinishedMigration(root: string): Promise<void> {
  const mark = await readMigration(root);
  if (mark !== null) throw migrationUnfinished(root, mark.from);
}
