import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/client/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { agent, fakeDaemon, parley, person } from './support.ts';

const folder = folderPerTest();
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const fileOf = (text: string, name?: string) => ({
  ...{ type: 'file' as const, sha256: hashOf(text), mediaType: 'text/plain', size: text.length },
  ...(name && { name }),
});

describe('say --file', () => {
  const say = (daemon: ReturnType<typeof fakeDaemon>, ...words: string[]) =>
    parley(['say', 'c', ...words], { daemon, workingDirectory: folder });

  it('sends the files in their order, with the text or without one', async () => {
    const daemon = fakeDaemon();
    await writeFile(join(folder, 'a.txt'), 'one');
    await mkdir(join(folder, 'sub'));
    await writeFile(join(folder, 'sub', 'b.txt'), 'two');
    expect((await say(daemon, 'look', '--file', 'a.txt', '--file', join(folder, 'sub/b.txt'))).code).toBe(0);
    expect((await say(daemon, '--file', 'a.txt')).code).toBe(0);
    expect(daemon.posts).toMatchObject([
      { content: 'look', parts: [fileOf('one', 'a.txt'), fileOf('two', 'b.txt')] },
      { content: '', parts: [fileOf('one', 'a.txt')] },
    ]);
  });

  it.each([
    ['does not exist', 'none.txt', 'it does not exist'],
    ['is a directory', '.', 'it is a directory'],
    ['is no file', '/dev/null', 'it is no file'],
  ])('nothing is sent if one %s', async (_, path, why) => {
    const daemon = fakeDaemon();
    await writeFile(join(folder, 'a.txt'), 'one');
    const { code, err } = await say(daemon, 'look', '--file', 'a.txt', '--file', path);
    expect(code).toBe(2);
    expect(err).toContain(why);
    expect([daemon.posts, daemon.files.size]).toEqual([[], 0]);
  });

  it('without a text and without a file is wrong usage', async () => {
    const { code, err } = await say(fakeDaemon());
    expect(code).toBe(2);
    expect(err).toContain('the message is empty');
  });
});

describe('/file in a chat', () => {
  const chat = (daemon: ReturnType<typeof fakeDaemon>, ...lines: string[]) =>
    parley(['chat', 'c'], { daemon, workingDirectory: folder, stdin: `${lines.join('\n')}\n` });

  it('sends the file with the next message, and only with that one', async () => {
    const daemon = fakeDaemon();
    await writeFile(join(folder, 'a b.txt'), 'one');
    await writeFile(join(folder, 'c.txt'), 'two');
    const { out } = await chat(daemon, '/file a b.txt', '/file c.txt', 'look', 'more');
    expect(out).toMatch(/with the next message: \[file a b\.txt.*\] \[file c\.txt/);
    expect(daemon.posts.map(({ content, parts }) => [content, parts])).toEqual([
      ['look', [fileOf('one', 'a b.txt'), fileOf('two', 'c.txt')]],
      ['more', undefined],
    ]);
  });

  it('a file that cannot be sent is an error, and the chat continues', async () => {
    const daemon = fakeDaemon();
    const { code, err } = await chat(daemon, '/file none.txt', 'look');
    expect([code, err]).toEqual([1, expect.stringContaining('cannot send')]);
    expect(err).toContain('it does not exist');
    expect(daemon.posts).toMatchObject([{ content: 'look' }]);
  });

  it('a message that is refused leaves its file to the next one', async () => {
    const daemon = fakeDaemon();
    await writeFile(join(folder, 'a.txt'), 'one');
    const onPost = daemon.onPost;
    daemon.onPost = (message) => {
      if (message.content === 'look') throw new ParleyError('TOO_LARGE', 'too large');
      return onPost(message);
    };
    await chat(daemon, '/file a.txt', 'look', 'again');
    expect(daemon.posts.at(-1)).toMatchObject({ content: 'again', parts: [fileOf('one', 'a.txt')] });
  });
});

describe('the files of an entry', () => {
  const EVIL = fileOf('x', '../\u001b[31ma\u202egnp.txt');
  const LINE = /\[file .*a.*gnp\.txt: text\/plain, 1 B, @blob\/[0-9a-f]{12}\]/;

  it('are named in one line, safely, by show and tail', async () => {
    const daemon = fakeDaemon();
    daemon.log.push(
      person(0, 'look', { parts: [{ type: 'text', text: 'look' }, EVIL] }),
      agent(1, 'pm', 'here', { parts: [{ type: 'text', text: 'here' }, EVIL] }),
    );
    const { out } = await parley(['show', 'c'], { daemon });
    const lines = out.split('\n').filter((line) => LINE.test(line));
    expect(lines).toHaveLength(2);
    for (const hidden of ['\u001b[31m', '\u202e']) expect(out).not.toContain(hidden);
  });
});

describe('file', () => {
  const daemonWith = (...files: ReturnType<typeof fileOf>[]) => {
    const daemon = fakeDaemon();
    daemon.log.push(person(0, 'look', { parts: files }), person(1, 'no file'));
    for (const text of ['one', 'two']) daemon.files.set(hashOf(text), Buffer.from(text));
    return daemon;
  };
  const save = (daemon: ReturnType<typeof fakeDaemon>, ...argv: string[]) =>
    parley(['file', 'c', ...argv], { daemon, workingDirectory: folder });

  it('saves a file that the line of an entry names, under its name', async () => {
    const { code, out } = await save(
      daemonWith(fileOf('one', 'a.txt')),
      `@blob/${hashOf('one').slice(0, 12)}`,
    );
    expect([code, out]).toEqual([0, expect.stringContaining('a.txt')]);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('one');
  });

  it('prints it with --out -', async () => {
    const { out } = await save(daemonWith(fileOf('one', 'a.txt')), hashOf('one'), '--out', '-');
    expect(out).toBe('one');
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    ['../../up.txt', 'up.txt'],
    ['.bashrc', 'bashrc'],
    ['a\\b\u0007.txt', 'b.txt'],
    ['..', hashOf('one').slice(0, 12)],
  ])('a name cannot leave the folder, hide the file or write to the terminal: %j', async (name, saved) => {
    expect((await save(daemonWith(fileOf('one', name)), hashOf('one'))).code).toBe(0);
    expect(await readdir(folder)).toEqual([saved]);
  });

  it('replaces no file', async () => {
    await writeFile(join(folder, 'a.txt'), 'mine');
    const { code, err } = await save(daemonWith(fileOf('one', 'a.txt')), hashOf('one'));
    expect([code, err]).toEqual([2, expect.stringContaining('it exists')]);
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('mine');
  });

  it('keeps nothing of a file that does not arrive completely', async () => {
    const daemon = daemonWith(fileOf('one', 'a.txt'));
    daemon.client.download = async function* () {
      yield Buffer.from('o');
      throw new ParleyError('BLOB_DAMAGED', 'the bytes are damaged');
    };
    const { code, err } = await save(daemon, hashOf('one'));
    expect([code, err]).toEqual([1, expect.stringContaining('damaged')]);
    expect(await readdir(folder)).toEqual([]);
  });

  it.each([
    ['@blob/000000', 1, 'no message of c has the file 000000'],
    ['a.txt', 2, 'Name a file as entries do'],
  ])('%s is refused', async (hash, exit, why) => {
    const { code, err } = await save(daemonWith(fileOf('one', 'a.txt')), hash);
    expect([code, err]).toEqual([exit, expect.stringContaining(why)]);
  });
});
