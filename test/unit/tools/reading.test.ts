import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { content, failed, openTools, type TestTools } from './support.ts';

const AROUND = /\n\[there is more: continue with (from|offset): (\d+)\]$/;

/** Reads the whole file page by page, as a model does by following the notes. */
async function readAll(toolbox: TestTools, path: string): Promise<string> {
  let text = '';
  let next: Record<string, number> = {};
  for (let pages = 0; pages < 100; pages += 1) {
    const page = content(await toolbox.run('fs_read', { path, ...next }));
    expect(Buffer.byteLength(page)).toBeLessThanOrEqual(51_200);
    const note = AROUND.exec(page);
    if (!note) return text + page;
    // The line feed before the note belongs to the page if the page consists of whole lines.
    text += page.slice(0, note.index) + (note[1] === 'from' ? '\n' : '');
    next = { [note[1]!]: Number(note[2]) };
  }
  throw new Error('the pages never end');
}

describe('fs_read', () => {
  it.each([
    ['an empty file', ''],
    ['no line feed at the end', 'a\nb'],
    ['line ends of all kinds', '\r\na\rb\n\n'],
    ['a byte order mark', '\ufeffx\n'],
    ['all of Unicode', 'ü🐘\u2028\ufffd\u{10ffff}\n'],
    ['escape sequences', '\u001b[31mred\u001b[0m\n'],
  ])('fs_read returns a small file unchanged: %s', async (_, text) => {
    const { run } = await openTools({ files: { 'project/a': text } });
    expect(content(await run('fs_read', { path: '@project/a' }))).toBe(text);
  });

  it('fs_read returns the requested lines and explains how to continue', async () => {
    const { run } = await openTools({ files: { 'project/a': 'one\ntwo\nthree\nfour' } });
    const path = '@project/a';
    expect(content(await run('fs_read', { path, from: 2, lines: 2 }))).toBe(
      'two\nthree\n[there is more: continue with from: 4]',
    );
    expect(content(await run('fs_read', { path, from: 4 }))).toBe('four');
    expect(content(await run('fs_read', { path, from: 4, lines: 1 }))).toBe('four');
    expect(content(await run('fs_read', { path, offset: 4, lines: 1 }))).toBe(
      'two\n[there is more: continue with offset: 8]',
    );
  });

  it('fs_read reports a position after the end of the file', async () => {
    const { run } = await openTools({
      files: { 'project/a': 'one\ntwo\n', 'project/b': 'one', 'project/c': '' },
    });
    const past = (given: object) => run('fs_read', given as Record<string, unknown>);
    expect(await past({ path: '@project/a', from: 3 })).toEqual(failed('PAST_THE_END', 'has 2 lines'));
    expect(await past({ path: '@project/a', from: 9 })).toEqual(failed('PAST_THE_END', 'has 2 lines'));
    expect(await past({ path: '@project/b', from: 2 })).toEqual(failed('PAST_THE_END', 'has 1 line'));
    expect(await past({ path: '@project/c', from: 2 })).toEqual(failed('PAST_THE_END', 'has 0 lines'));
    expect(await past({ path: '@project/a', offset: 8 })).toEqual(failed('PAST_THE_END', 'has 8 bytes'));
    expect(await past({ path: '@project/a', offset: 8, from: 1 })).toEqual(
      failed('INVALID_ARGUMENTS', 'either'),
    );
  });

  it('fs_read returns a large file in pages whose notes lead to all of it', async () => {
    const toolbox = await openTools();
    const short = Array.from({ length: 5_000 }, (_, line) => `line ${line}`).join('\n');
    const broad = Array.from({ length: 300 }, (_, line) => `${line} ${'ü'.repeat(500)}\n`).join('');
    const single = `{"output":"${'🐘x'.repeat(40_000)}"}`;
    for (const [name, text] of Object.entries({ short, broad, single })) {
      await toolbox.file(`project/${name}`, text);
      expect(await readAll(toolbox, `@project/${name}`), name).toBe(text);
    }
    expect(content(await toolbox.run('fs_read', { path: '@project/short' })).split('\n')).toHaveLength(2_001);
  });

  it('fs_read reads a large output of its own conversation, whatever it contains', async () => {
    const toolbox = await openTools();
    const text = JSON.stringify({ content: '\0ü\u001b[31m'.repeat(9_000) });
    await toolbox.file('outputs/work/12.json', text);
    await toolbox.file('outputs/work/13.json', '\0raw');
    const path = '@state/logs/tool-results/work/12.json';
    expect(await readAll(toolbox, path)).toBe(text);
    expect(content(await toolbox.run('fs_read', { path: path.replace('12', '13') }))).toBe('\0raw');
    expect(await toolbox.run('fs_read', { path: path.replace('12', '14') })).toEqual(
      failed('NOT_FOUND', 'no stored output'),
    );
  });

  it('fs_read refuses binary files, and reports single bytes that are not text', async () => {
    const { run } = await openTools({
      files: {
        'project/image': Buffer.from([0x89, 0x50, 0, 1]),
        'project/latin': Buffer.from('caf\xe9\n', 'latin1'),
      },
    });
    expect(await run('fs_read', { path: '@project/image' })).toEqual(failed('BINARY_FILE', '4 bytes'));
    expect(content(await run('fs_read', { path: '@project/latin' }))).toBe(
      'caf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]',
    );
  });

  it.each([
    ['a.png', '\x89PNG\r\n\x1a\n\0'],
    ['a.jpg', '\xff\xd8\xff\0'],
    ['a.gif', 'GIF89a'],
    ['a.webp', 'RIFF\n\0\0\0WEBPVP8 '],
    ['a.pdf', '%PDF-1.7 without a null byte'],
    ['a.txt', '\x89PNG\r\n\x1a\n\0'], // the name does not count
  ])('fs_read gives %s as a file, by its first bytes %j', async (name, start) => {
    const { run, file } = await openTools();
    const bytes = Buffer.from(start, 'latin1');
    await file(`project/pictures/${name}`, bytes);
    const path = `@project/pictures/${name}`;
    expect(await run('fs_read', { path })).toEqual({
      kind: 'completed',
      content: `[file 1: ${path}, ${bytes.length} B]`,
      files: [{ bytes, name }],
    });
  });

  it('fs_read and attach refuse a file that is larger than a message may have', async () => {
    const { run, file } = await openTools({ maxFileBytes: 9 });
    await file('project/a.gif', 'GIF89a too large');
    for (const name of ['fs_read', 'attach'])
      expect(await run(name, { path: '@project/a.gif' })).toEqual(
        failed('TOO_LARGE', '"@project/a.gif": 16 B are more than the 9 B'),
      );
  });

  it('fs_read reports a missing file, a folder, and a path below a file', async () => {
    const { run } = await openTools({ files: { 'project/a/b': 'x' } });
    expect(await run('fs_read', { path: '@project/a' })).toEqual(
      failed('NOT_A_FILE', '@project/a is a folder'),
    );
    expect(await run('fs_read', { path: '@project/c' })).toEqual(failed('NOT_FOUND', '@project/c does not'));
    expect(await run('fs_read', { path: '@project/a/b/c' })).toEqual(failed('NOT_FOUND', 'does not exist'));
    expect(await run('fs_list', { path: '@project/a/b' })).toEqual(failed('NOT_A_FOLDER', ''));
    expect(await run('fs_list', { path: '@project/c' })).toEqual(failed('NOT_FOUND', ''));
  });
});

describe('fs_list', () => {
  it('fs_list shows folders, files with their size, and links, and names cannot forge lines', async () => {
    const { project, run } = await openTools({
      files: { 'project/a.txt': 'four', 'project/b\n[9 more, not listed]': '' },
    });
    await mkdir(join(project, 'c'));
    await symlink('/etc/passwd', join(project, 'd'));
    await writeFile(Buffer.concat([Buffer.from(`${project}/`), Buffer.from([0xff])]), '');
    expect(content(await run('fs_list', { path: '@project' }))).toBe(
      'a.txt  4 bytes\n"b\\n[9 more, not listed]"  0 bytes\nc/\nd -> /etc/passwd\n\ufffd',
    );
    expect(content(await run('fs_list', { path: '@project/c' }))).toBe('[@project/c is empty]');
  });

  it('fs_list shows a thousand names and the number of the rest', async () => {
    const { project, run } = await openTools();
    for (let n = 0; n < 1_003; n += 1) await writeFile(join(project, `f${String(n).padStart(4, '0')}`), '');
    const lines = content(await run('fs_list', { path: '@project' })).split('\n');
    expect([lines.length, lines[999], lines[1_000]]).toEqual([
      1_001,
      'f0999  0 bytes',
      '[3 more, not listed]',
    ]);
  });
});

describe('fs_search', () => {
  const search = async ({ run }: TestTools, given: Record<string, unknown>) =>
    content(await run('fs_search', given));

  it('fs_search finds a literal text in files of all depths, in order', async () => {
    const toolbox = await openTools();
    await toolbox.file('project/b/c/d.ts', 'x\n  a.b(c)*\r\n');
    await toolbox.file('project/a.ts', 'axb\nA.B(C)*\nlast a.b(c)*');
    const first = '@project/a.ts:3: last a.b(c)*';
    expect(await search(toolbox, { query: 'a.b(c)*' })).toBe(`${first}\n@project/b/c/d.ts:2: a.b(c)*`);
    expect(await search(toolbox, { query: 'a.b(C)*', ignoreCase: true, path: '@project/a.ts' })).toBe(
      `@project/a.ts:2: A.B(C)*\n${first}`,
    );
    expect(await search(toolbox, { query: 'axb', path: '@project/b' })).toBe('no hits in 1 files');
  });

  it('fs_search leaves out binary files, links, .git and node_modules, and reports what else it left out', async () => {
    const toolbox = await openTools();
    await toolbox.file('project/.git/a', 'needle');
    await toolbox.file('project/node_modules/a/b', 'needle');
    await toolbox.file('project/binary', 'needle\0');
    await toolbox.file('project/large', Buffer.alloc(4 * 1024 * 1024 + 1, 'needle'));
    await symlink(toolbox.directory, join(toolbox.project, 'out'));
    await symlink('.', join(toolbox.project, 'round'));
    expect(await search(toolbox, { query: 'needle' })).toBe(
      'no hits in 2 files\n[1 larger than 4194304 bytes left out]',
    );
    expect(await search(toolbox, { query: 'needle', path: '@project/node_modules' })).toContain(
      'a/b:1: needle',
    );
  });

  it('fs_search returns at most 200 hits, each short and on one line', async () => {
    const toolbox = await openTools();
    await toolbox.file('project/a', `${'ü'.repeat(5_000)}needle\u001b[31m${'🐘'.repeat(5_000)}\n`.repeat(30));
    await toolbox.file('project/b', 'needle\n'.repeat(300));
    const lines = (await search(toolbox, { query: 'needle', path: '@project/b' })).split('\n');
    expect(lines).toHaveLength(201);
    expect(lines.at(-1)).toContain('[there are more hits');
    const broad = await search(toolbox, { query: 'needle', path: '@project/a' });
    expect(broad).toMatch(/^(@project\/a:\d+: …ü+needle \[31m(🐘|\ufffd)+…\n?){30}$/u);
    expect(Buffer.byteLength(await search(toolbox, { query: 'e' }))).toBeLessThan(51_200);
  });

  it('fs_search reports what it could not read', async () => {
    const toolbox = await openTools();
    if (process.getuid?.() === 0) return; // That user may read every file.
    await chmod(await toolbox.file('project/a', 'needle'), 0);
    expect(await search(toolbox, { query: 'needle' })).toContain('[1 that could not be read left out]');
    expect(await toolbox.run('fs_read', { path: '@project/a' })).toEqual(failed('NOT_PERMITTED', ''));
  });

  it.each([['two\nlines'], [''], ['x'.repeat(1_001)]])(
    'fs_search accepts one line of text, not %j',
    async (query) => {
      const { run, tools } = await openTools();
      expect(tools.check('fs_search', { query })).toContain('fs_search: query');
      expect(await run('fs_search', { query })).toEqual(failed('INVALID_ARGUMENTS', 'query'));
    },
  );
});
