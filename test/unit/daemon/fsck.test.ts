import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { rowOf, stateOf } from '../../../src/daemon/conversations/projections.ts';
import { type FsckReport, fsck } from '../../../src/daemon/index.ts';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { Log } from '../agents/support.ts';

describe('fsck of a data directory', () => {
  const data = folderPerTest();

  function talk(): Entry[] {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    return [...log.entries];
  }

  /** A data directory as a daemon leaves it. */
  async function keep(entries: readonly Entry[], id = 'work'): Promise<void> {
    const store = await openFileStore(data);
    const { log } = await store.open(id);
    await log.append(0, entries);
    const state = stateOf(entries);
    await store.saveRow(rowOf(id, state, entries));
    await store.saveState(id, { id, ...state });
    await store.initialiseMarks();
    await log.close();
    await store.close();
  }

  const file = (name: string, id = 'work') => join(data, 'conversations', id, name);
  const run = (repair = false, conversation?: string) =>
    fsck({ dataDirectory: data, repair, ...(conversation && { conversation }) });
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
      await expect(run(true)).rejects.toMatchObject({
        code: 'DATA_DIRECTORY_IN_USE',
        hint: expect.stringContaining('stop that daemon'),
      });
    } finally {
      await store.close();
    }
  });

  it('refuses a directory that is no data directory as wrong usage, and an unknown conversation as not found', async () => {
    await expect(run(true)).rejects.toMatchObject({ code: 'USAGE_NO_DATA' });
    expect(await readdir(data)).toEqual([]);
    await keep(talk());
    await expect(run(false, 'nobody')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('there is no conversation nobody'),
    });
  });
});
