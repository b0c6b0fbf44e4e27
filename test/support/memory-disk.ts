import type { MemoryDisk } from '../../src/persistence/memory/index.ts';

/** The names of the documents on a memory disk whose keys begin with `start`. */
export function namesOn(disk: MemoryDisk, start: string): string[] {
  return [...disk.documents.keys()].flatMap((key) =>
    key.startsWith(start) ? [key.slice(start.length)] : [],
  );
}
