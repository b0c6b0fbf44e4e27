import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { WhatIfTexts } from '../../src/persistence/index.ts';
import { openWhatIfFiles } from '../../src/persistence/jsonl/index.ts';
import { createMemoryWhatIfs } from '../../src/persistence/memory/index.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'parley-what-if-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe.each<[string, () => WhatIfTexts]>([
  ['files', () => openWhatIfFiles(root)],
  ['memory', createMemoryWhatIfs],
])('the contract of results of what-ifs: %s', (_, create) => {
  it('a text replaces the previous one, and is listed under its conversation alone', async () => {
    const texts = create();
    await texts.put('demo', 'one', 'first', { durable: false });
    await texts.put('demo', 'one', 'second', { durable: true });
    await texts.put('demo', 'two', 'other', { durable: true });
    await texts.put('Demo', 'one', 'of another conversation', { durable: true });
    expect(await texts.get('demo', 'one')).toBe('second');
    expect(await texts.get('Demo', 'one')).toBe('of another conversation');
    expect(await texts.get('demo', 'three')).toBeNull();
    expect(await texts.list('demo')).toEqual(['one', 'two']);
    expect(await texts.list('none')).toEqual([]);
    expect(await texts.conversations()).toEqual(['Demo', 'demo']);
  });

  it('a removal deletes all texts of one conversation, and can be repeated', async () => {
    const texts = create();
    await texts.put('demo', 'one', 'x', { durable: true });
    await texts.put('other', 'one', 'y', { durable: true });
    await texts.remove('demo');
    await texts.remove('demo');
    expect(await texts.list('demo')).toEqual([]);
    expect(await texts.get('demo', 'one')).toBeNull();
    expect(await texts.conversations()).toEqual(['other']);
  });

  it('writes and a removal at the same time take effect in the order of their calls', async () => {
    const texts = create();
    const writes = Array.from({ length: 20 }, (_, n) =>
      texts.put('demo', 'one', `${n} ${'x'.repeat(10_000)}`, { durable: n % 2 === 0 }),
    );
    await Promise.all(writes);
    expect(await texts.get('demo', 'one')).toMatch(/^19 /);
    await Promise.all([texts.put('demo', 'two', 'late', { durable: false }), texts.remove('demo')]);
    expect(await texts.list('demo')).toEqual([]);
  });
});

describe('files of what-ifs', () => {
  const put = (id: string, text = 'x') => openWhatIfFiles(root).put('Demo', id, text, { durable: true });

  it('only the owner can read the files (WHAT-IF-FILES-2)', async () => {
    await put('one');
    expect((await stat(join(root, 'what-if', 'demo+1', 'one.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(root, 'what-if', 'demo+1'))).mode & 0o777).toBe(0o700);
    expect(await readdir(join(root, 'what-if', 'demo+1'))).toEqual(['one.json']);
  });

  it('the store neither reads nor writes nor removes a file through a link (WHAT-IF-FILES-2)', async () => {
    const secret = join(root, 'secret');
    await writeFile(secret, 'secret');
    await put('one');
    const path = join(root, 'what-if', 'demo+1', 'one.json');
    await rm(path);
    await symlink(secret, path);
    await expect(openWhatIfFiles(root).get('Demo', 'one')).rejects.toMatchObject({
      code: 'WHAT_IF_UNREADABLE',
    });
    await put('one', 'mine');
    expect([await readFile(secret, 'utf8'), (await lstat(path)).isSymbolicLink()]).toEqual(['secret', false]);

    const elsewhere = join(root, 'elsewhere');
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, 'kept.json'), 'kept');
    await openWhatIfFiles(root).remove('Demo');
    await symlink(elsewhere, join(root, 'what-if', 'demo+1'));
    await expect(put('two')).rejects.toMatchObject({ code: 'WHAT_IF_UNWRITABLE' });
    expect(await readdir(elsewhere)).toEqual(['kept.json']);
    await openWhatIfFiles(root).remove('Demo');
    expect(await readdir(elsewhere)).toEqual(['kept.json']);
  });

  it.each(['../x', 'A', '', 'a.json', '.x', 'x'.repeat(65)])(
    'the id %j is refused as a file name',
    async (id) => {
      await expect(put(id)).rejects.toMatchObject({ code: 'INVALID_NAME' });
      expect(await readdir(root)).toEqual([]);
    },
  );

  it('other files in the folder are not listed', async () => {
    await put('one');
    await writeFile(join(root, 'what-if', 'demo+1', 'two.json.tmp'), 'left by a crash');
    await writeFile(join(root, 'what-if', 'stray'), '');
    await chmod(join(root, 'what-if', 'stray'), 0o600);
    expect(await openWhatIfFiles(root).list('Demo')).toEqual(['one']);
  });
});
