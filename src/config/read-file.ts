import { readFile } from 'node:fs/promises';
import { messageOf } from '../kernel/index.ts';
import type { Problems } from './problems.ts';

/** The text of a file, or null if there is none. */
export async function readIfThere(file: string, problems: Problems): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (!isMissing(error)) {
      problems.add({ source: file, key: '', seen: messageOf(error), expected: 'a readable file' });
    }
    return null;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
