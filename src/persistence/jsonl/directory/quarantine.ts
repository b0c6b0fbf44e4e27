import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { makeDirectory, orNullIfMissing, writeNewFile } from '../log/durable.ts';

/** Keeps a copy of what was refused, durably, once per content; answers its path. */
export async function keepAside(directory: string, name: string, content: Buffer): Promise<string> {
  await makeDirectory(directory);
  const kept = `${name}-${crc32(content).toString(16).padStart(8, '0')}`;
  const existing = await orNullIfMissing(readFile(join(directory, kept)));
  return existing?.equals(content) ? join(directory, kept) : writeNewFile(directory, kept, content);
}
