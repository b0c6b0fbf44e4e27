import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BackupFacts, BackupMark } from '../../port.ts';
import { readOwnText, replaceFile, syncDirectory } from '../log/durable.ts';

/** `backup.json`: the directory is a backup on which no daemon has started. A file with invalid content counts as a mark. */
export function backupMarkAt(path: string): BackupMark {
  return {
    async get() {
      const hint =
        'let this user read the file; without it the directory counts as a store that is no backup';
      const text = await readOwnText(path, { code: 'BACKUP_UNREADABLE', hint });
      return text === null ? null : factsIn(text);
    },
    put: (facts) => replaceFile(path, `${JSON.stringify(facts)}\n`, { durable: true }),
    async remove() {
      await rm(path, { force: true });
      await syncDirectory(dirname(path));
    },
  };
}

function factsIn(text: string): BackupFacts {
  try {
    const { from, madeAt } = JSON.parse(text) as Partial<Record<keyof BackupFacts, unknown>>;
    return { from: String(from), madeAt: String(madeAt) };
  } catch {
    return { from: 'an unknown store', madeAt: 'an unknown time' };
  }
}
