import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { migrationUnfinished } from '../rules.ts';
import { orNullIfMissing, refuseFile, replaceFile, syncDirectory } from './durable.ts';
import { storePaths } from './paths.ts';

/** `migration.json`: the directory holds a part of what is being moved into it. */

/** From where; null: nothing is under way. A file that cannot be read means that something is. */
export async function readMigration(root: string): Promise<string | null> {
  await refuseFile(root);
  const text = await orNullIfMissing(readFile(storePaths(root).migration, 'utf8'));
  if (text === null) return null;
  try {
    return String((JSON.parse(text) as { from: unknown }).from);
  } catch {
    return 'an unknown place';
  }
}

export async function writeMigration(root: string, from: string): Promise<void> {
  await replaceFile(storePaths(root).migration, `${JSON.stringify({ from })}\n`, { durable: true });
}

export async function removeMigration(root: string): Promise<void> {
  const path = storePaths(root).migration;
  await rm(path, { force: true });
  await syncDirectory(dirname(path));
}

export async function refuseUnfinishedMigration(root: string): Promise<void> {
  const from = await readMigration(root);
  if (from !== null) throw migrationUnfinished(root, from);
}
