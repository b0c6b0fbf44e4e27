import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import { withDirectory } from './support.ts';

const BYTES = Buffer.from('a line\n');

describe('the file of a log', () => {
  it('a closed file writes and syncs nothing, although another file may have its descriptor now', () =>
    withDirectory(async (directory) => {
      const other = join(directory, 'other');
      const file = await nodeLogFiles.create(join(directory, 'log.jsonl'));
      await file.close();
      const reused = openSync(other, 'w'); // the system gives it the descriptor that has become free
      try {
        await expect(file.write(BYTES, 0)).rejects.toThrow('out of range');
        await expect(file.sync()).rejects.toThrow('out of range');
        expect(await readFile(other, 'utf8')).toBe('');
      } finally {
        closeSync(reused);
      }
    }));
});
