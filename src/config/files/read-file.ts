import { readFile } from 'node:fs/promises';
import { decodeUtf8, messageOf } from '../../kernel/index.ts';
import type { Problems } from '../problems/problems.ts';

/** The text of a file, or null if there is none. */
export async function readIfThere(file: string, problems: Problems): Promise<string | null> {
  try {
    const text = decodeUtf8(await readFile(file));
    if (text === null) {
      const hint = 'save the file as UTF-8';
      problems.add({
        source: file,
        key: '',
        seen: 'bytes that are not UTF-8',
        expected: 'a text in UTF-8',
        hint,
      });
    }
    return text;
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
