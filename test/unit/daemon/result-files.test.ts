import { describe, expect, it } from 'vitest';
import type { FilePart } from '../../../src/conversation/index.ts';
import { keptFiles } from '../../../src/daemon/tools/run-tool.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import type { BlobFacts, Blobs } from '../../../src/persistence/index.ts';

function keeping(refuse: (at: number) => Error | null = () => null, known: BlobFacts[] = []) {
  const kept: unknown[] = [];
  const warnings: unknown[] = [];
  let at = 0;
  return {
    kept,
    warnings,
    team: { files: { maxBytesPerConversation: 100 } },
    store: { blobs: { of: async () => known } as unknown as Blobs },
    log: { warn: (fields: object) => void warnings.push(fields) },
    files: {
      keep: async (
        bytes: Uint8Array,
        { name, mediaType }: { name?: string | undefined; mediaType?: string | undefined },
      ) => {
        const error = refuse(at++);
        if (error) throw error;
        kept.push([name, mediaType]);
        const file: FilePart = {
          type: 'file',
          sha256: String(at).padStart(64, '0'),
          mediaType: 'a/b',
          size: bytes.length,
        };
        return file;
      },
    },
  };
}
const file = (name?: string) => ({ bytes: Buffer.from('1234'), name, mediaType: 'image/png' });

describe('the files of a result', () => {
  it('are kept in order, with their names and declared types', async () => {
    const daemon = keeping();
    const { files, notes } = await keptFiles('demo', [file('a.png'), file()], daemon);
    expect(daemon.kept).toEqual([
      ['a.png', 'image/png'],
      [undefined, 'image/png'],
    ]);
    expect(files.map(({ sha256, size }) => [sha256.at(-1), size])).toEqual([
      ['1', 4],
      ['2', 4],
    ]);
    expect(notes).toEqual([]);
  });

  it('a file that is refused is named with the reason, and the others are kept', async () => {
    const daemon = keeping((at) => (at === 0 ? new ParleyError('BLOB_QUOTA', 'the quota is used up') : null));
    const { files, notes } = await keptFiles('demo', [file('a\n]b.png'), file()], daemon);
    expect(files).toHaveLength(1);
    expect(notes).toEqual(['[file 1 a  b.png, 4 B: not kept: BLOB_QUOTA: the quota is used up]']);
    expect(daemon.warnings).toEqual([]);
  });

  it('a file that cannot be stored is named, and the error is only in the log of the daemon', async () => {
    const daemon = keeping(() => new Error('/var/lib/parley: no space left'));
    expect(await keptFiles('demo', [file()], daemon)).toEqual({
      files: [],
      notes: ['[file 1, 4 B: not kept: it could not be stored]'],
    });
    expect(daemon.warnings).toEqual([{ conversation: 'demo', error: '/var/lib/parley: no space left' }]);
  });

  it('files count against the quota of the conversation with those that it has, each hash once', async () => {
    const stored = (['9', '1'] as const).map((digit) => ({
      ...{ sha256: digit.padStart(64, '0'), mediaType: 'a/b', size: digit === '9' ? 89 : 4 },
    }));
    const { files, notes } = await keptFiles(
      'demo',
      [file(), file(), file()],
      keeping(() => null, stored),
    );
    expect(files.map(({ sha256 }) => sha256.at(-1))).toEqual(['1', '2']);
    expect(notes).toEqual([
      '[file 3, 4 B: not kept: BLOB_QUOTA: the files of this conversation would have 101 B; 100 B are allowed]',
    ]);
  });

  it('of more than 16 files the number of the others is named', async () => {
    const { files, notes } = await keptFiles(
      'demo',
      Array.from({ length: 20 }, () => file()),
      keeping(),
    );
    expect(files).toHaveLength(16);
    expect(notes).toEqual(['[4 more files: not kept: a result has at most 16]']);
  });

  it('a name is cut to the length that a post may have, and half a character is replaced', async () => {
    const daemon = keeping();
    await keptFiles('demo', [file(`${'x'.repeat(300)}`), file('a\ud800')], daemon);
    expect(daemon.kept).toEqual([
      ['x'.repeat(255), 'image/png'],
      ['a\ufffd', 'image/png'],
    ]);
  });
});
