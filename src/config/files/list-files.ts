import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../kernel/index.ts';
import type { Problems } from '../problems/problems.ts';
import { isMissing } from './read-file.ts';

/**
 * The names of a folder's files with that ending, in order; none if there is no such folder. Whatever else is there is
 * named in a notice, hidden files apart: a file that is silently not read looks like one that has no effect.
 */
export async function listFiles(
  folder: string,
  ending: string,
  problems: Problems,
  notices: string[],
): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const names: string[] = [];
    for (const entry of entries) {
      const { name } = entry;
      if (name.startsWith('.')) continue;
      if (entry.isDirectory()) {
        notices.push(`${join(folder, name)} is not read: move its files up into ${folder}`);
      } else if (name.endsWith(ending)) {
        names.push(name);
        if (entry.isSymbolicLink()) await requireTarget(join(folder, name), problems);
      } else {
        const wanted = `${name.replace(/\.[^.]*$/, '')}${ending}`;
        notices.push(`${join(folder, name)} is not read: rename it to ${wanted}, or move it elsewhere`);
      }
    }
    return names.sort();
  } catch (error) {
    if (!isMissing(error)) {
      problems.add({ source: folder, key: '', seen: messageOf(error), expected: 'a readable folder' });
    }
    return [];
  }
}

async function requireTarget(link: string, problems: Problems): Promise<void> {
  await access(link).catch((error: unknown) => {
    if (!isMissing(error)) return; // the reader reports it
    problems.add({ source: link, key: '', seen: 'a link that leads nowhere', expected: 'a readable file' });
  });
}
