import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { record } from './tool-records.contract.ts';

it('a torn last line of the audit log is skipped, and the next record begins on a new line', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'parley-store-'));
  const store = await openFileStore(directory);
  try {
    await store.toolRecords.append('demo', [record(0)]);
    await appendFile(join(directory, 'conversations', 'demo', 'audit.jsonl'), '{"type":"ToolCallComp');
    expect(await store.toolRecords.read('demo')).toMatchObject({ records: [record(0)], unreadable: [2] });
    await store.toolRecords.append('demo', [record(1)]);
    const after = { records: [record(0), record(1)], unreadable: [2] };
    expect(await store.toolRecords.read('demo')).toMatchObject(after);
  } finally {
    await store.close();
    await rm(directory, { recursive: true, force: true });
  }
});
