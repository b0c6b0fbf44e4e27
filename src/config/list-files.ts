import { readdir } from 'node:fs/promises';
import { messageOf } from '../kernel/index.ts';
import type { Problems } from './problems.ts';
import { isMissing } from './read-file.ts';

/** The names of a folder's files with that ending, in order; none if there is no such folder. Hidden files are left out. */
export async function listFiles(folder: string, ending: string, problems: Problems): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const files = entries.filter((entry) => !entry.isDirectory() && entry.name.endsWith(ending));
    return files.flatMap((entry) => (entry.name.startsWith('.') ? [] : [entry.name])).sort();
  } catch (error) {
    if (!isMissing(error)) {
      problems.add({ source: folder, key: '', seen: messageOf(error), expected: 'a readable folder' });
    }
    return [];
  }
}
