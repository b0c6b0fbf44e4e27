import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { rowOf, stateOf } from '../../../src/daemon/conversations/projections.ts';
import { type FsckReport, fsck } from '../../../src/daemon/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { Log } from '../agents/support.ts';

/** Data directories changed by a person or a broken disk: each fault is reported, and hides no other. */
describe('fsck of files that no daemon writes', () => {
  const data = folderPerTest();
  beforeEach(async () => {
    await keep(talk(), 'sound');
  });

  function talk(): Entry[] {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    return [...log.entries];
  }

  async function keep(entries: readonly Entry[], id = 'work'): Promise<void> {
    const store = await openFileStore(data);
    const { log } = await store.open(id);
    await log.append(0, entries);
    await store.initialiseMarks();
    await log.close();
    await store.close();
  }

  const file = (name: string, id = 'work') => join(data, 'conversations', id, name);
  const run = (repair = false) => fsck({ dataDirectory: data, repair });
  const texts = (reports: readonly FsckReport[]) =>
    reports.flatMap(({ conversation, findings }) =>
      findings.map(({ kind, text }) => `${conversation} ${kind}: ${text}`),
    );

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['a kind that its fields do not fit', { type: 'message', content: 5 }, /entry 4 is invalid: /],
    [
      'calls that are none',
      { type: 'message', role: 'assistant', content: null, tool_calls: 5 },
      /tool_calls/,
    ],
    ['a cursor that is none', { type: 'turn-ended', turnId: 't', agent: 'pm' }, /entry 4 is invalid: /],
    ['an author without a kind', { type: 'hologram', author: {} }, /author: invalid/],
    [
      'a summary of more than there can be',
      { type: 'summary', agent: 'pm', entries: [[0, 2 ** 52]], fromIndex: 0, toIndex: 2 ** 52, content: 's' },
      /entry 4: the summary names ranges that are not ascending and before it/,
    ],
  ])('names the entry that has %s, and checks the others', async (_, fields, text) => {
    const entry = {
      index: 4,
      id: 'odd',
      createdAt: '',
      author: { kind: 'agent', id: 'pm', name: 'Pm' },
      ...fields,
    };
    await keep([...talk(), entry as unknown as Entry]);
    const reports = await run();
    expect(reports.map(({ conversation }) => conversation)).toEqual(['sound', 'work']);
    expect(texts(reports)[0]).toMatch(text);
    expect(reports[0]?.findings).toEqual([]);
  });

  it('accepts an entry type of a newer minor version', async () => {
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const entry = { index: 4, id: 'new', createdAt: '', type: 'hologram', author, more: [1] };
    await keep([...talk(), entry as unknown as Entry]);
    expect(texts(await run())).toEqual([]);
  });

  it('names each file that it cannot read, and continues', async () => {
    await keep(talk());
    await keep(talk(), 'folder');
    await keep(talk(), 'link');
    await mkdir(file('audit.jsonl'));
    await writeFile(file('outputs'), '');
    for (const id of ['folder', 'link']) await rm(file('log.jsonl', id));
    await mkdir(file('log.jsonl', 'folder'));
    await symlink('nowhere', file('log.jsonl', 'link'));
    await rm(join(data, 'open'), { recursive: true });
    await writeFile(join(data, 'open'), '');
    expect(texts(await run())).toEqual([
      expect.stringMatching(/^folder damage: .*log\.jsonl cannot be read: it is no plain file/),
      expect.stringMatching(/^link damage: .*log\.jsonl/),
      expect.stringMatching(/^sound unreadable: open\/ cannot be read: /),
      expect.stringMatching(/^work unreadable: audit\.jsonl cannot be read: /),
      expect.stringMatching(/^work unreadable: open\/ cannot be read: /),
      expect.stringMatching(/^work unreadable: outputs\/ cannot be read: /),
    ]);
  });

  it('accepts only valid records of the audit log', async () => {
    await keep(talk());
    await writeFile(file('audit.jsonl'), 'null\n5\n[]\n{"type":"ToolCallStarted","call":null}\nhalf');
    expect(texts(await run())).toEqual(
      [1, 2, 3, 4].map((line) => `work audit: line ${line} of audit.jsonl is not a record`),
    );
  });

  it('reports a listed conversation without a log that was not deleted; a repair removes it from the list', async () => {
    const row = { ...rowOf('gone', stateOf(talk()), talk()) };
    const index = join(data, 'conversations', 'index.json');
    await writeFile(index, JSON.stringify({ rows: [row] }));
    expect(texts(await run())).toEqual(['gone row: its row in index.json names 4 entries; the log has 0']);
    expect((await run(true))[0]?.findings).toMatchObject([{ kind: 'row', repaired: true }]);
    expect(JSON.parse(await readFile(index, 'utf8'))).toEqual({ rows: [] });
    await writeFile(index, JSON.stringify({ rows: [row] }));
    const deleted = { deleted: [{ id: 'gone', stream: 's', sequence: 3 }] };
    await writeFile(join(data, 'deleted.json'), JSON.stringify(deleted));
    expect(texts(await run())).toEqual([
      'gone deleted: its row in conversations/index.json remains from a deleted conversation',
    ]);
  });

  it('accepts lower post sequences in a restored log, since its daemon has another stream', async () => {
    const log = new Log();
    for (const ingressSequence of [7, 2]) {
      log.answer('pm', log.start('pm', log.person('one')), 'two');
      Object.assign(log.entries.at(-4) ?? {}, { ingressSequence });
    }
    await keep([...log.entries]);
    expect(texts(await run())).toEqual([]);
  });

  it('refuses data of another version, names it, and changes nothing', async () => {
    const format = join(data, 'conversations', 'format.json');
    await writeFile(format, '{"format":3,"writtenBy":"parleyd 3.0.0"}');
    await expect(run()).rejects.toMatchObject({
      code: 'DATA_FORMAT_UNKNOWN',
      message: expect.stringContaining('parleyd 3.0.0'),
    });
  });
});
