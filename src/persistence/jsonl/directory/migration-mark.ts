import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type MigrationMark, type MigrationRun, markIn } from '../../migration-run.ts';
import { migrationUnfinished } from '../../rules.ts';
import { orNullIfMissing, refuseFile, replaceFile, syncDirectory } from '../log/durable.ts';
import { storePaths } from './paths.ts';

/** `migration.json`: the directory holds a part of what is being moved into it. */

/** Null: nothing is under way. A file that cannot be read means that something is. */
export async function readMigration(root: string): Promise<MigrationMark | null> {
  await refuseFile(root);
  const text = await orNullIfMissing(readFile(storePaths(root).migration, 'utf8'));
  if (text === null) return null;
  try {
    return markIn(JSON.parse(text));
  } catch {
    return markIn(null);
  }
}

/** The caller has the lock of the directory: nobody else replaces the mark between the look and the write. */
export async function writeMigration(root: string, run: MigrationRun, from: string): Promise<void> {
  const mark = run.next(await readMigration(root), from);
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
