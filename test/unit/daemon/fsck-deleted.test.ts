import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { rowOf, stateOf } from '../../../src/daemon/conversations/projections.ts';
import { type FsckReport, fsck } from '../../../src/daemon/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { Log } from '../agents/support.ts';

const MOVED = '.deleted-cix+7-20260101T000000000Z';

describe('fsck of the remains of deleted conversations', () => {
  const data = folderPerTest();
  beforeEach(async () => {
    await keep('kept');
  });

  const talk = () => {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    return [...log.entries];
  };
  async function keep(id: string): Promise<void> {
    const store = await openFileStore(data);
    const { log } = await store.open(id);
    await log.append(0, talk());
    await store.saveRow(rowOf(id, stateOf(talk()), talk()));
    await store.initialiseMarks();
    await log.close();
    await store.close();
  }
  const place = (...names: string[]) => join(data, 'conversations', ...names);
  const tombstones = (...ids: string[]) =>
    writeFile(
      join(data, 'deleted.json'),
      JSON.stringify({ deleted: ids.map((id) => ({ id, stream: 's', sequence: 3 })) }),
    );
  const run = (repair = false, conversation?: string) =>
    fsck({ dataDirectory: data, repair, ...(conversation && { conversation }) });
  const found = (reports: readonly FsckReport[]) =>
    reports.flatMap(({ conversation, findings }) =>
      findings.map(({ kind, text, repaired }) => `${conversation} ${kind} ${repaired}: ${text}`),
    );
  const left = (path: string) => `${path} remains from a deleted conversation`;

  it('finds a folder that a deletion moved away and did not remove; a repair removes it', async () => {
    await mkdir(place(MOVED));
    await writeFile(place(MOVED, 'log.jsonl'), 'a text');
    const folder = left(`conversations/${MOVED}/`);
    expect(found(await run())).toEqual([`CIX deleted false: ${folder}`]);
    expect(found(await run(false, 'CIX'))).toEqual([`CIX deleted false: ${folder}`]);
    expect(await readdir(place(MOVED))).toEqual(['log.jsonl']); // looking changes nothing
    expect(found(await run(true))).toEqual([`CIX deleted true: ${folder}`]);
    expect(await readdir(place())).not.toContain(MOVED);
    expect(found(await run())).toEqual([]);
  });

  it('finds such a folder although its name contains no conversation id', async () => {
    await mkdir(place('.deleted-odd name'));
    expect(found(await run(true))).toEqual([
      `.deleted-odd name deleted true: ${left('conversations/.deleted-odd name/')}`,
    ]);
  });

  it('finds files and the row of a deleted conversation without a log; a repair removes them', async () => {
    const row = rowOf('kept', stateOf(talk()), talk());
    await writeFile(place('index.json'), JSON.stringify({ rows: [row, { ...row, id: 'gone' }] }));
    await mkdir(place('gone', 'outputs'), { recursive: true });
    await writeFile(place('gone', 'outputs', 'one.json'), 'a text');
    await writeFile(place('gone', 'audit.jsonl'), '');
    await tombstones('gone', 'other');
    const all = ['conversations/gone/audit.jsonl', 'conversations/gone/outputs'];
    const texts = [...all, 'its row in conversations/index.json'].map(left);
    expect(found(await run())).toEqual(texts.map((text) => `gone deleted false: ${text}`));
    expect(found(await run(true))).toEqual(texts.map((text) => `gone deleted true: ${text}`));
    expect(await readdir(place())).not.toContain('gone');
    expect(await readFile(place('index.json'), 'utf8')).not.toContain('gone');
    expect(JSON.parse(await readFile(join(data, 'deleted.json'), 'utf8')).deleted).toHaveLength(2);
    expect(await run()).toEqual([{ conversation: 'kept', findings: [] }]);
  });

  it('does not touch a conversation that began again after its deletion', async () => {
    await tombstones('kept', 'opened');
    await mkdir(place('opened'));
    await writeFile(place('opened', 'log.jsonl'), ''); // a post is about to begin it
    expect(await run(true)).toEqual([{ conversation: 'kept', findings: [] }]);
    expect(await readFile(place('kept', 'log.jsonl'), 'utf8')).toContain('two');
  });

  it('does not report a deletion in progress', async () => {
    await mkdir(place(MOVED));
    const looking = run();
    setTimeout(() => void rm(place(MOVED), { recursive: true }), 100);
    expect(found(await looking)).toEqual([]);
  });
});
