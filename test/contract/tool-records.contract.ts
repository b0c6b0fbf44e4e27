import { describe, expect, it } from 'vitest';
import type { AuditRecord, ConversationStore } from '../../src/persistence/index.ts';
import { AWKWARD_IDS, entry } from './samples.ts';

export function record(position: number, more: Partial<AuditRecord> = {}): AuditRecord {
  const call = { entry: 3, position };
  return { type: 'ToolCallStarted', call, tool: 'shell', at: '2026-11-21T20:39:00.000Z', ...more };
}

/** The contract of every `ToolRecords`. */
export function describeToolRecords(current: () => ConversationStore, reopen: () => Promise<void>): void {
  describe('records of tool calls', () => {
    const positions = async (id: string) =>
      (await current().toolRecords.read(id)).records.map(({ call }) => call.position);

    it('records are read in the order of their appends, also of concurrent ones', async () => {
      expect((await current().toolRecords.read('demo')).records).toEqual([]);
      await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          current().toolRecords.append('demo', [record(2 * n), record(2 * n + 1)]),
        ),
      );
      await current().toolRecords.append('other', [record(99)]);
      const expected = Array.from({ length: 40 }, (_, n) => n);
      expect(await positions('demo')).toEqual(expected);
      await reopen();
      expect(await positions('demo')).toEqual(expected);
      expect(await positions('other')).toEqual([99]);
    });

    it('records are read in order although one of an append exceeds the size of a message', async () => {
      const large = record(1, { type: 'ToolCallCompleted', result: 'l'.repeat(2_000_000) });
      await current().toolRecords.append('demo', [record(0), large, record(2)]);
      expect(await positions('demo')).toEqual([0, 1, 2]);
    });

    it('records keep every field and every character of a result', async () => {
      const awkward = 'a\nb\r\n\0\u2028"\\\u001b[31m😀';
      const made = record(0, { type: 'ToolCallCompleted', arguments: awkward, result: awkward });
      await current().toolRecords.append('demo', [made]);
      await reopen();
      expect(await current().toolRecords.read('demo')).toMatchObject({ records: [made], unreadable: [] });
    });

    it('outputs are kept byte for byte', async () => {
      const large = `${'é😀\0\r\n\u001b[0m'.repeat(20_000)}no line break at the end`;
      expect(await current().toolRecords.readOutput('demo', 'o1')).toBeNull();
      await current().toolRecords.saveOutput('demo', 'o1', large);
      await current().toolRecords.saveOutput('demo', 'o2', '');
      await reopen();
      expect((await current().toolRecords.readOutput('demo', 'o1')) === large).toBe(true);
      expect(await current().toolRecords.readOutput('demo', 'o2')).toBe('');
      expect(await current().toolRecords.readOutput('other', 'o1')).toBeNull();
    });

    it.each(AWKWARD_IDS)('an output can be named %s', async (id) => {
      await current().toolRecords.saveOutput('demo', id, `output of ${id}`);
      expect(await current().toolRecords.readOutput('demo', id)).toBe(`output of ${id}`);
    });

    it.each(['', '.', '..', '../log', 'a/b', 'a\0b', 'é', 'a'.repeat(129)])(
      'an output cannot be named %j',
      async (id) => {
        const refused = { code: 'OUTPUT_ID_INVALID' };
        await expect((async () => current().toolRecords.saveOutput('demo', id, 'x'))()).rejects.toMatchObject(
          refused,
        );
        await expect((async () => current().toolRecords.readOutput('demo', id))()).rejects.toMatchObject(
          refused,
        );
      },
    );

    it('records and outputs are deleted with their conversation only', async () => {
      for (const id of ['gone', 'stays']) {
        const { log } = await current().open(id);
        await log.append(0, [entry(0)]);
        await log.close();
        await current().toolRecords.append(id, [record(0)]);
        await current().toolRecords.saveOutput(id, 'o1', 'large');
      }
      expect(await current().delete('gone')).toEqual({ records: 1, outputs: 1, files: 0 });
      expect(await current().delete('gone')).toEqual({ records: 0, outputs: 0, files: 0 });
      for (const round of ['now', 'after a reopening']) {
        expect(await positions('gone'), round).toEqual([]);
        expect(await current().toolRecords.readOutput('gone', 'o1'), round).toBeNull();
        expect(await positions('stays'), round).toEqual([0]);
        expect(await current().toolRecords.readOutput('stays', 'o1'), round).toBe('large');
        await reopen();
      }
    });
  });
}
