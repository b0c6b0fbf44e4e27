import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory, and what is missing above it, for its owner only. Node's own recursive `mkdir` never returns on file systems that
 * answer ENOENT for a directory that exists, such as /proc.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await isDirectory(path))) return;
    if (code !== 'ENOENT' || (await isDirectory(dirname(path)))) throw error;
    await makeDirectory(dirname(path));
    await makeDirectory(path);
  }
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found?.isDirectory() ?? false;
}
