import { appendFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { errorWith } from '../support/error-with.ts';
import { newFolder, untilTestEnds } from '../support/lifetime.ts';
import { record } from './tool-records.contract.ts';

it('a torn last line of the audit log is skipped, and the next record begins on a new line', async () => {
  const directory = await newFolder();
  const store = untilTestEnds(await openFileStore(directory));
  await store.toolRecords.append('demo', [record(0)]);
  await appendFile(join(directory, 'conversations', 'demo', 'audit.jsonl'), '{"type":"ToolCallComp');
  expect(await store.toolRecords.read('demo')).toMatchObject({ records: [record(0)], unreadable: [2] });
  await store.toolRecords.append('demo', [record(1)]);
  const after = { records: [record(0), record(1)], unreadable: [2] };
  expect(await store.toolRecords.read('demo')).toMatchObject(after);
});

it('an output that is a link is not read', async () => {
  const directory = await newFolder();
  const store = untilTestEnds(await openFileStore(directory));
  await store.toolRecords.saveOutput('demo', 'kept', 'text');
  const outputs = join(directory, 'conversations', 'demo', 'outputs');
  await symlink('kept.json', join(outputs, 'link.json'));
  expect(await store.toolRecords.readOutput('demo', 'kept')).toBe('text');
  await expect(store.toolRecords.readOutput('demo', 'link')).rejects.toMatchObject(
    errorWith('OUTPUT_UNREADABLE', 'it is a link'),
  );
});
