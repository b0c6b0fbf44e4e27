import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Files, type FilesContext } from '../../../src/daemon/files/files.ts';
import { createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { bombOf, PNG, pngOf, WITH_SCRIPT } from '../../support/uploaded-files.ts';

const NO_LIMITS = { postsPerMinute: null, maxBytes: null, openConversations: null };
const MAX_BYTES = 100_000;

let data: string;
let store: FilesContext['store'];
let context: { -readonly [Key in keyof FilesContext]: FilesContext[Key] };
let files: Files;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'parley-files-'));
  onTestFinished(() => rm(data, { recursive: true }));
  store = createMemoryStore();
  let ids = 0;
  const team = {
    files: {
      ...{ maxBytes: MAX_BYTES, maxBytesPerConversation: MAX_BYTES, scan: null },
      environment: { PATH: String(process.env.PATH) },
    },
    publishers: { named: { alice: { ...NO_LIMITS, postsPerMinute: 10 } }, others: NO_LIMITS },
  };
  context = { store, team, now: () => 0, newId: () => `${ids++}` };
  files = await Files.open(context, data);
});

const spooled = () => readdir(join(data, 'incoming')).catch(() => []);

async function* pieces(...content: readonly (string | Uint8Array | Error)[]) {
  for (const piece of content) {
    if (piece instanceof Error) throw piece;
    yield Buffer.from(piece);
  }
}

const scanWith = (...command: string[]) => {
  context.team = { ...context.team, files: { ...context.team.files, scan: command } };
};

async function storedBytes(sha256: string): Promise<Buffer> {
  const read: Uint8Array[] = [];
  for await (const bytes of (await store.blobs.read(sha256)) ?? []) read.push(bytes);
  return Buffer.concat(read);
}

describe('a file that arrives', () => {
  it('is stored as it was sent, and its part says what it is', async () => {
    const part = await files.keep(pieces(PNG.subarray(0, 10), PNG.subarray(10)), { name: 'plan.png' });
    const sha256 = createHash('sha256').update(PNG).digest('hex');
    expect(part).toEqual({
      ...{ type: 'file', sha256, mediaType: 'image/png', size: PNG.length },
      ...{ width: 3, height: 2, name: 'plan.png' },
    });
    expect(await storedBytes(sha256)).toEqual(PNG);
    expect(await spooled()).toEqual([]);
  });

  it('keeps the name that it was given, with a path and control characters', async () => {
    const name = '../../etc/pass\u0007wd\u202e.png';
    expect(await files.keep(PNG, { name })).toMatchObject({ name });
  });

  it.each([
    ['is empty', pieces(), {}, errorWith('BLOB_EMPTY', 'empty')],
    [
      'is too large',
      pieces('x'.repeat(60_000), 'x'.repeat(60_000)),
      {},
      errorWith('BLOB_TOO_LARGE', '100 kB'),
    ],
    [
      'is shorter than announced',
      pieces('abc'),
      { size: 4 },
      errorWith('BLOB_INCOMPLETE', '3 bytes arrived of 4'),
    ],
    ['has another hash', pieces('abc'), { sha256: 'f'.repeat(64) }, errorWith('BLOB_WRONG_HASH', 'ba7816bf')],
    ['breaks off', pieces('abc', new Error('cut')), {}, { message: 'cut' }],
  ] as const)('nothing is kept of a file that %s', async (_, content, expected, error) => {
    await expect(files.keep(content, {}, expected)).rejects.toMatchObject(error);
    expect(await spooled()).toEqual([]);
    const sha256 = createHash('sha256').update('abc').digest('hex');
    expect(await store.blobs.facts(sha256)).toBeNull();
  });

  it('that announces more bytes than are allowed is refused before one is read', async () => {
    const unread = pieces(new Error('it was read'));
    await expect(files.keep(unread, {}, { size: 10_000_000_000 })).rejects.toMatchObject({
      code: 'BLOB_TOO_LARGE',
    });
  });

  it.each([
    ['too long a name', 'x'.repeat(256)],
    ['half of a character', 'x\ud800'],
  ])('with %s is refused', async (_, name) => {
    await expect(files.keep(PNG, { name })).rejects.toMatchObject({ code: 'INVALID_FIELD' });
  });

  it('of a daemon that was killed is removed at the next start', async () => {
    await mkdir(join(data, 'incoming'));
    await writeFile(join(data, 'incoming', 'parley-1'), 'half');
    await Files.open(context, data);
    expect(await spooled()).toEqual([]);
  });

  it('can be read by its owner alone while it arrives', async () => {
    const incoming = await files.begin({});
    await incoming.write(PNG);
    scanWith('sh', '-c', 'stat -c "%a %a $(stat -c %a "$(dirname "$0")")" "$0"; exit 1');
    await expect(incoming.finish({})).rejects.toMatchObject({ message: 'the file is refused: 600 600 700' });
    await incoming.close();
  });
});

describe('the type of a file', () => {
  it.each([
    ['a picture, whatever its name', PNG, 'a.txt', 'image/png'],
    ['HTML after a picture', Buffer.concat([PNG, Buffer.from(WITH_SCRIPT)]), 'a.html', 'image/png'],
    ['a PDF', '%PDF-1.7\n', 'a', 'application/pdf'],
    ['a text', 'été', 'a', 'text/plain'],
    ['a table', 'a,b\n1,2', 'a.CSV', 'text/csv'],
    ['HTML', WITH_SCRIPT, 'a.html', 'text/plain'],
    ['SVG', `<svg xmlns="http://www.w3.org/2000/svg">${WITH_SCRIPT}</svg>`, 'a.svg', 'text/plain'],
    ['SVG with its declaration', `<?xml version="1.0"?><svg>${WITH_SCRIPT}</svg>`, 'a.svg', 'text/plain'],
    ['half of a character', Buffer.from('é').subarray(0, 1), 'a.txt', 'application/octet-stream'],
    ['a text with NUL', 'a\0b', 'a.txt', 'application/octet-stream'],
    ['bytes', Buffer.from([1, 200, 3]), 'a.png', 'application/octet-stream'],
    ['a picture that was cut', PNG.subarray(0, 12), 'a.png', 'application/octet-stream'],
  ])('%s', async (_, content, name, mediaType) => {
    expect(await files.keep(Buffer.from(content), { name })).toMatchObject({ mediaType });
  });

  it('what a sender declares counts for harmless text alone', async () => {
    const typeOf = async (content: string, mediaType: string) =>
      (await files.keep(Buffer.from(content), { mediaType })).mediaType;
    expect(await typeOf('{}', 'application/json; charset=utf-8')).toBe('application/json');
    expect(await typeOf(WITH_SCRIPT, 'text/html')).toBe('text/plain');
    expect(await typeOf('\0', 'image/png')).toBe('application/octet-stream');
  });

  it('a picture is measured as it is shown', async () => {
    expect(await files.keep(pngOf(2_000_000_000, 7))).toMatchObject({ width: 2_000_000_000, height: 7 });
    expect(await files.keep(pngOf(0, 7))).not.toHaveProperty('width');
  });

  it.each([
    ['an archive', bombOf('word/document.xml'), /zip/],
    ['a compressed file', gzipSync(Buffer.alloc(50_000_000)), /gzip/],
  ])('%s that expands to much costs no memory', async (_, bomb, mediaType) => {
    const before = process.memoryUsage().rss;
    expect((await files.keep(bomb)).mediaType).toMatch(mediaType);
    expect(process.memoryUsage().rss - before).toBeLessThan(30_000_000);
  });
});

describe('the command that scans files', () => {
  it('gets the path and the name, and accepts by its exit code', async () => {
    const report = join(data, 'report');
    scanWith('sh', '-c', 'cat "$1" > "$0"; printf %s "$PARLEY_FILE_NAME" >> "$0"', report);
    await files.keep(Buffer.from('content of '), { name: 'a b; rm -rf.txt\0' });
    expect(await readFile(report, 'utf8')).toBe('content of a b; rm -rf.txt');
  });

  it('has an empty input, so that one which reads it ends', async () => {
    scanWith('sh', '-c', 'cat; test -s "$0"');
    expect(await files.keep(Buffer.from('content'))).toMatchObject({ size: 7 });
  }, 5_000);

  it('refuses with the first line that it prints, shown safely, and nothing is kept', async () => {
    scanWith('sh', '-c', "printf 'Eicar\\033[31m found\\nmore\\n'; exit 3");
    const part = files.keep(Buffer.from('abc'));
    await expect(part).rejects.toMatchObject(errorWith('BLOB_REFUSED', /Eicar\\u001b\[31m found$/i));
    expect(await store.blobs.facts(createHash('sha256').update('abc').digest('hex'))).toBeNull();
    expect(await spooled()).toEqual([]);
  });

  it.each([
    ['says nothing', ['false'], 'exit code 1'],
    ['does not exist', ['/nowhere/scan'], 'could not run'],
  ])('that %s accepts nothing', async (_, command, message) => {
    scanWith(...command);
    await expect(files.keep(PNG)).rejects.toMatchObject(errorWith('BLOB_REFUSED', message));
  });

  it('gets no variable of the daemon but those of the tools', async () => {
    process.env.PARLEY_TEST_SECRET = 's';
    onTestFinished(() => void delete process.env.PARLEY_TEST_SECRET);
    scanWith('sh', '-c', 'env | grep -c PARLEY_TEST_SECRET; exit 1');
    await expect(files.keep(PNG)).rejects.toMatchObject({ message: 'the file is refused: 0' });
  });
});

describe('the limits of publishers', () => {
  it('a file counts as a post for each 256 KiB, whether its size was known before or not (FILES-3)', async () => {
    context.team = { ...context.team, files: { ...context.team.files, maxBytes: 1_000_000 } };
    const send = (size?: number, publisher = 'alice') =>
      files.keep(pieces('x'.repeat(600_000)), { publisher }, { size });
    await send(600_000);
    await send();
    await send();
    await expect(send()).rejects.toMatchObject(errorWith('RATE_LIMITED', 'alice has sent more files'));
    await send(600_000, 'bob');
    context.now = () => 60_000;
    await send();
  });

  it('one publisher has at most 16 files on their way, and a tool is not counted', async () => {
    const open = await Promise.all(Array.from({ length: 16 }, () => files.begin({ publisher: 'bob' })));
    const more = files.begin({ publisher: 'bob' });
    await expect(more).rejects.toMatchObject(errorWith('TOO_MANY_UPLOADS', 'files of bob'));
    await files.begin({});
    await files.begin({ publisher: 'carl' });
    await open[0]?.close();
    await files.begin({ publisher: 'bob' });
    await files.close();
    expect(await spooled()).toEqual([]);
  });

  it('all publishers together have at most 64 files on their way', async () => {
    for (let at = 0; at < 64; at++) await files.begin({ publisher: `p${at}` });
    await expect(files.begin({ publisher: 'bob' })).rejects.toMatchObject({ code: 'TOO_MANY_UPLOADS' });
    await files.close();
  });
});

describe('a file of a conversation', () => {
  it('cannot be read by another conversation', async () => {
    const { sha256 } = await files.keep(PNG);
    await expect(files.find('c', sha256)).rejects.toMatchObject(errorWith('NOT_FOUND', sha256));
  });
});

it('an upload on a disk that cannot be written is refused with the next step', async () => {
  if (process.getuid?.() === 0) return; // root writes anywhere
  await chmod(data, 0o500);
  await expect(files.keep(PNG)).rejects.toMatchObject({ message: expect.stringContaining('EACCES') });
});
