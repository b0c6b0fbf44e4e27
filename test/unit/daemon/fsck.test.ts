import { appendFile, mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { rowOf, stateOf } from '../../../src/daemon/conversations/projections.ts';
import { type FsckReport, fsck } from '../../../src/daemon/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { putBlob } from '../../contract/blobs.contract.ts';
import { errorWith } from '../../support/error-with.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { Log } from '../agents/support.ts';

const data = folderPerTest();

/** What is found is inspected again after a while. Nothing else changes these files, so it may be a short one. */
beforeEach(shortenWaits);

function talk(): Entry[] {
  const log = new Log();
  log.answer('pm', log.start('pm', log.person('one')), 'two');
  return [...log.entries];
}

/** A data directory as a daemon leaves it. */
async function keep(entries: readonly Entry[], id = 'work', projected = true): Promise<void> {
  const store = await openFileStore(data);
  const { log } = await store.open(id);
  await log.append(0, entries);
  if (projected) {
    const state = stateOf(entries);
    await store.saveRow(rowOf(id, state, entries));
    await store.saveState(id, { id, ...state });
  }
  await store.initialiseMarks();
  await log.close();
  await store.close();
}

const file = (name: string, id = 'work') => join(data, 'conversations', id, name);
const run = (repair = false, conversation?: string) =>
  fsck({ dataDirectory: data, repair, ...(conversation && { conversation }) });

describe('fsck of a data directory', () => {
  const kinds = (reports: readonly FsckReport[]) =>
    reports.flatMap(({ findings }) =>
      findings.map(({ kind, repaired }) => (repaired ? `${kind}, repaired` : kind)),
    );

  it('finds nothing in the files of a stopped daemon, and changes nothing', async () => {
    await keep(talk());
    const before = await readFile(file('log.jsonl'));
    expect(await run()).toEqual([{ conversation: 'work', findings: [] }]);
    expect(await readFile(file('log.jsonl'))).toEqual(before);
  });

  it('names the entry that breaks a law, and no repair edits it (L2)', async () => {
    const entries = talk().map((entry) =>
      entry.type === 'turn-ended' ? { ...entry, lastProcessedMessageIndex: 1 } : entry,
    );
    await keep(entries);
    const before = await readFile(file('log.jsonl'));
    expect((await run(true))[0]?.findings).toEqual([
      {
        kind: 'law',
        index: 3,
        text: 'entry 3: the cursor of pm is 1, and should be 4',
        repair: null,
        repaired: false,
      },
    ]);
    expect(await readFile(file('log.jsonl'))).toEqual(before);
  });

  it('finds a torn tail; a repair cuts it off and keeps it', async () => {
    await keep(talk());
    await appendFile(file('log.jsonl'), '{"index":4,"id":"half');
    expect(kinds(await run())).toEqual(['torn-tail']);
    expect(kinds(await run(true))).toEqual(['torn-tail, repaired']);
    expect(
      (await readdir(join(data, 'conversations', 'work'))).some((name) => name.startsWith('log.torn-')),
    ).toBe(true);
    expect(kinds(await run())).toEqual([]);
  });

  it('a repair of a log that lost its only append is offered once, and the list agrees', async () => {
    await keep(talk());
    const text = await readFile(file('log.jsonl'));
    await writeFile(file('log.jsonl'), text.subarray(0, -5));
    const reports = await run();
    expect(kinds(reports)).toEqual(['torn-tail', 'row', 'state']);
    expect(reports[0]?.findings[0]?.text).not.toContain('acknowledged');
    expect(kinds(await run(true))).toEqual(['torn-tail, repaired', 'row, repaired', 'state, repaired']);
    expect(kinds(await run())).toEqual([]);
    const index = JSON.parse(await readFile(join(data, 'conversations', 'index.json'), 'utf8'));
    expect(index.rows).toMatchObject([{ id: 'work', length: 0, title: null }]);
  });

  it('a log without entries whose row and state name some is reported, and repaired once', async () => {
    await keep(talk());
    await writeFile(file('log.jsonl'), '');
    expect(kinds(await run())).toEqual(['row', 'state']);
    expect(kinds(await run(true))).toEqual(['row, repaired', 'state, repaired']);
    expect(kinds(await run())).toEqual([]);
    const index = JSON.parse(await readFile(join(data, 'conversations', 'index.json'), 'utf8'));
    expect(index.rows).toMatchObject([{ id: 'work', length: 0 }]);
  });

  it('finds damage in the middle by its line; a repair leaves the log as it is, and repairs the others', async () => {
    await keep(talk());
    await keep(talk(), 'other');
    const text = await readFile(file('log.jsonl'), 'utf8');
    await writeFile(file('log.jsonl'), text.replace('"two"', '"too"'));
    await writeFile(file('state.json', 'other'), '{');
    const reports = await run(true);
    expect(kinds(reports)).toEqual(['state, repaired', 'damage']);
    expect(reports[1]?.findings[0]?.text).toContain('is damaged at line 3');
    expect(await readFile(file('log.jsonl'), 'utf8')).toBe(text.replace('"two"', '"too"'));
  });

  it('accepts projections that lag; those that contradict the log are rewritten (L1)', async () => {
    const entries = talk();
    await keep(entries);
    const lagging = { id: 'work', ...stateOf(entries.slice(0, 2)) };
    await writeFile(file('state.json'), JSON.stringify(lagging));
    expect(kinds(await run())).toEqual([]);
    await writeFile(file('state.json'), JSON.stringify({ ...lagging, phase: 'execute' }));
    await writeFile(join(data, 'conversations', 'index.json'), JSON.stringify({ rows: [row(entries, 9)] }));
    expect((await run())[0]?.findings.map(({ text }) => text)).toEqual([
      'its row in index.json names 9 entries; the log has 4',
      'state.json does not follow from the first 2 entries of the log',
    ]);
    expect(kinds(await run(true))).toEqual(['row, repaired', 'state, repaired']);
    expect(kinds(await run())).toEqual([]);
  });

  const row = (entries: readonly Entry[], length: number) => ({
    ...rowOf('work', stateOf(entries), entries),
    length,
  });

  it('finds a log with an outstanding turn that is not marked; a repair marks it for the next start', async () => {
    await keep(talk().slice(0, 2));
    expect(kinds(await run())).toEqual(['mark']);
    expect(kinds(await run(true))).toEqual(['mark, repaired']);
    expect(await readdir(join(data, 'open'))).toContain('work');
    await rm(join(data, 'open'), { recursive: true });
    expect(kinds(await run())).toEqual([]); // without marks every log is read
  });

  it('finds a call that will get no result; a repair appends an error result (L13)', async () => {
    const log = new Log();
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'shell', arguments: '{}' } }];
    const author = { kind: 'agent', id: 'pm', name: 'Pm' };
    log.add({ type: 'message', role: 'assistant', author, content: null, tool_calls } as never);
    await keep(log.entries);
    expect(kinds(await run(true))).toEqual(['stray-call, repaired']);
    expect(kinds(await run())).toEqual([]);
    expect(await readFile(file('log.jsonl'), 'utf8')).toContain('NO_RESULT');
  });

  it('finds a missing output file, and audit records that are missing in the log', async () => {
    const path = '@state/logs/tool-results/work/out-1.json';
    await keep(talk().map((entry) => (entry.index === 2 ? { ...entry, fullOutputPath: path } : entry)));
    const record = { type: 'ToolCallStarted', call: { entry: 9, position: 0 }, tool: 'shell', at: '' };
    await writeFile(
      file('audit.jsonl'),
      `${JSON.stringify(record)}\nno json\n${JSON.stringify(record).slice(3)}`,
    );
    const texts = (await run())[0]?.findings.map(({ text }) => text) ?? [];
    expect(texts).toEqual([
      'audit record 0 (ToolCallStarted of c9_0): the log has no such call',
      'line 2 of audit.jsonl is not a record',
      `entry 2: its full output is missing (${path})`,
    ]);
  });

  it('checks beside a running daemon, and repairs only without one', async () => {
    await keep(talk());
    const store = await openFileStore(data);
    try {
      expect(kinds(await run())).toEqual([]);
      await expect(run(true)).rejects.toMatchObject(
        errorWith('DATA_DIRECTORY_IN_USE', '', 'stop that daemon'),
      );
    } finally {
      await store.close();
    }
  });

  it('refuses a directory that is no data directory as wrong usage, and an unknown conversation as not found', async () => {
    await expect(run(true)).rejects.toMatchObject(
      errorWith('USAGE_NO_DATA', '', 'in JetStream have no files: move them with `parley migrate`'),
    );
    expect(await readdir(data)).toEqual([]);
    await keep(talk());
    await expect(run(false, 'nobody')).rejects.toMatchObject(
      errorWith('NOT_FOUND', 'there is no conversation nobody'),
    );
  });
});

/** Data directories changed by a person or a broken disk: each fault is reported, and hides no other. */
describe('fsck of files that no daemon writes', () => {
  beforeEach(() => keepLog(talk(), 'sound'));
  const keepLog = (entries: readonly Entry[], id?: string) => keep(entries, id, false);
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
    await keepLog([...talk(), entry as unknown as Entry]);
    const reports = await run();
    expect(reports.map(({ conversation }) => conversation)).toEqual(['sound', 'work']);
    expect(texts(reports)[0]).toMatch(text);
    expect(reports[0]?.findings).toEqual([]);
  });

  it('accepts an entry type of a newer minor version', async () => {
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const entry = { index: 4, id: 'new', createdAt: '', type: 'hologram', author, more: [1] };
    await keepLog([...talk(), entry as unknown as Entry]);
    expect(texts(await run())).toEqual([]);
  });

  it('names each file that it cannot read, and continues', async () => {
    await keepLog(talk());
    await keepLog(talk(), 'folder');
    await keepLog(talk(), 'link');
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
    await keepLog(talk());
    await writeFile(file('audit.jsonl'), 'null\n5\n[]\n{"type":"ToolCallStarted","call":null}\nhalf');
    expect(texts(await run())).toEqual(
      [1, 2, 3, 4].map((line) => `work audit: line ${line} of audit.jsonl is not a record`),
    );
  });

  it('reports a listed conversation without a log that was not deleted; a repair removes it from the list', async () => {
    vi.unstubAllGlobals(); // the store saves its list after a while
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
    await keepLog([...log.entries]);
    expect(texts(await run())).toEqual([]);
  });

  it('refuses data of another version, names it, and changes nothing', async () => {
    const format = join(data, 'conversations', 'format.json');
    await writeFile(format, '{"format":3,"writtenBy":"parleyd 3.0.0"}');
    await expect(run()).rejects.toMatchObject(errorWith('DATA_FORMAT_UNKNOWN', 'parleyd 3.0.0'));
  });
});

const MOVED = '.deleted-cix+7-20260101T000000000Z';

describe('fsck of the remains of deleted conversations', () => {
  beforeEach(() => keep(talk(), 'kept'));
  const place = (...names: string[]) => join(data, 'conversations', ...names);
  const tombstones = (...ids: string[]) =>
    writeFile(
      join(data, 'deleted.json'),
      JSON.stringify({ deleted: ids.map((id) => ({ id, stream: 's', sequence: 3 })) }),
    );
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
    vi.unstubAllGlobals(); // the deletion ends during the wait
    await mkdir(place(MOVED));
    const looking = run();
    setTimeout(() => void rm(place(MOVED), { recursive: true }), 100);
    expect(found(await looking)).toEqual([]);
  });
});

describe('fsck of files in messages', () => {
  const DAY_AGO = '2026-01-01T00:00:00.000Z';
  const content = (sha256: string) => join(data, 'blobs', sha256.slice(0, 2), sha256);
  const record = (sha256: string) => join(data, 'blobs', 'records', `${sha256}.json`);
  const found = (reports: readonly FsckReport[]) =>
    reports.flatMap(({ conversation, findings }) =>
      findings.map(
        ({ kind, index, text, repaired }) => `${conversation} ${kind} ${index} ${repaired}: ${text}`,
      ),
    );
  /** The hash of a file that these conversations name in their first entry; none: no log does. */
  async function keepFile(text: string, ...conversations: string[]): Promise<string> {
    const store = await openFileStore(data);
    const { part, facts } = await putBlob(store, text);
    await store.initialiseMarks();
    await store.close();
    for (const id of conversations) {
      const [first, ...rest] = talk();
      await keep([{ ...first, parts: [{ type: 'text', text: 'one' }, part] } as Entry, ...rest], id);
    }
    return facts.sha256;
  }
  async function change(path: string, change: (document: Record<string, unknown>) => object): Promise<void> {
    await writeFile(path, JSON.stringify(change(JSON.parse(await readFile(path, 'utf8')))));
  }
  const age = (sha256: string) => change(record(sha256), (known) => ({ ...known, storedAt: DAY_AGO }));

  it('finds nothing where records and logs agree, also with a file that no log names yet', async () => {
    await keepFile('both', 'one', 'two');
    await keepFile('to be posted');
    expect(await run()).toEqual(['one', 'two'].map((conversation) => ({ conversation, findings: [] })));
  });

  it('names the entry of each conversation whose file is missing', async () => {
    const sha256 = await keepFile('both', 'one', 'two');
    await rm(content(sha256));
    const texts = ['one', 'two'].map((id) => `${id} file 0 false: entry 0: its file ${sha256} is missing`);
    expect(found(await run(true))).toEqual(texts);
    await rm(record(sha256));
    expect(found(await run(true))).toEqual(texts);
  });

  it.each(['wrong size!', 'BOTH'])('finds content with another size or hash: %s', async (text) => {
    const sha256 = await keepFile('both', 'one');
    await writeFile(content(sha256), text);
    expect(found(await run(true))).toEqual([
      expect.stringContaining(
        `one file 0 false: entry 0: its file ${sha256} cannot be read: the stored file`,
      ),
    ]);
  });

  it('finds an entry that says another size than the file has', async () => {
    const sha256 = await keepFile('both');
    const [first, ...rest] = talk();
    const part = { type: 'file', sha256, mediaType: 'image/png', size: 99 };
    await keep([{ ...first, parts: [{ type: 'text', text: 'one' }, part] } as Entry, ...rest], 'one');
    expect(found(await run())).toEqual([
      `one file 0 false: entry 0: its file ${sha256} has 4 bytes, and the entry says 99`,
    ]);
  });

  it('finds a damaged record, and leaves it', async () => {
    const sha256 = await keepFile('both', 'one');
    await writeFile(record(sha256), '{');
    expect(found(await run())).toEqual([expect.stringContaining(`its file ${sha256} cannot be read: `)]);
  });

  it('finds a record that is lost; a repair writes it again from log and content', async () => {
    const sha256 = await keepFile('both', 'one', 'two');
    const before = JSON.parse(await readFile(record(sha256), 'utf8'));
    await rm(record(sha256));
    expect(found(await run(true))).toEqual(
      ['one', 'two'].map(
        (id) => `${id} file 0 true: entry 0: its file ${sha256} has no record: the next sweep would erase it`,
      ),
    );
    expect(JSON.parse(await readFile(record(sha256), 'utf8'))).toEqual({
      ...before,
      storedAt: expect.any(String),
      in: Object.fromEntries(Object.keys(before.in).map((log) => [log, expect.any(String)])),
    });
    expect(found(await run())).toEqual([]);
  });

  it('finds a record that lacks a claim, whose repair keeps the file from a deletion', async () => {
    const sha256 = await keepFile('both', 'one', 'two');
    await change(record(sha256), (known) => ({ ...known, in: {} }));
    expect(found(await run())).toContain(
      `one file 0 false: entry 0: its file ${sha256} is not recorded as one of this conversation: a deletion elsewhere would erase it`,
    );
    expect(found(await run(true)).every((text) => text.includes(' true: '))).toBe(true);
    expect(found(await run())).toEqual([]);
    const store = await openFileStore(data);
    expect(await store.delete('two')).toMatchObject({ files: 0 });
    expect(await store.delete('one')).toMatchObject({ files: 1 });
    await store.close();
  });

  it('finds files that no log names and that are older than a day; a repair erases them', async () => {
    const kept = await keepFile('kept', 'one');
    const unclaimed = await keepFile('an upload');
    const claimed = await keepFile('claimed');
    const stray = 'e'.repeat(64);
    await Promise.all([kept, unclaimed, claimed].map(age));
    await change(record(claimed), (known) => ({ ...known, in: { 'one.0': DAY_AGO } }));
    await mkdir(join(data, 'blobs', 'ee'));
    await writeFile(content(stray), 'without a record');
    await utimes(content(stray), new Date(DAY_AGO), new Date(DAY_AGO));
    const texts = [claimed, stray, unclaimed].map(
      (sha256) => `null file null false: no log names the file ${sha256}, which was stored at ${DAY_AGO}`,
    );
    expect(found(await run()).sort()).toEqual(texts.sort());
    expect(found(await run(false, 'one'))).toEqual([]);
    expect(found(await run(true)).sort()).toEqual(texts.map((text) => text.replace('false', 'true')).sort());
    expect(found(await run())).toEqual([]);
    expect(await readFile(content(kept), 'utf8')).toBe('kept');
  });

  it.each([
    ['a log is damaged', (text: string) => `no entry\n${text}`],
    ['a log has a torn tail', (text: string) => text.slice(0, 50)],
  ])('calls no file an orphan while %s, and erases none', async (_, spoil) => {
    const sha256 = await keepFile('both', 'one');
    await age(sha256);
    const log = file('log.jsonl', 'one');
    await writeFile(log, spoil(await readFile(log, 'utf8')));
    expect((await run(true)).flatMap(({ findings }) => findings.map(({ kind }) => kind))).not.toContain(
      'file',
    );
    expect(await readFile(content(sha256), 'utf8')).toBe('both');
  });

  it('finds a deletion that did not finish; a repair finishes it', async () => {
    const sha256 = await keepFile('both', 'one');
    await mkdir(join(data, 'deleting'));
    await writeFile(join(data, 'deleting', 'one.json'), JSON.stringify({ log: 0, lives: [] }));
    expect(found(await run())).toEqual([
      'one deleted null false: deleting/one.json remains from a deleted conversation',
    ]);
    await run(true);
    expect(await readdir(join(data, 'deleting'))).toEqual([]);
    expect(await readdir(join(data, 'blobs', sha256.slice(0, 2)))).toEqual([]);
    expect(found(await run())).toEqual([]);
  });
});
