import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { type CliOutcome, runCli } from '../support/cli.ts';
import { perTest } from '../support/lifetime.ts';
import { openProject } from '../support/project.ts';
import { postOnStream } from '../support/stream-post.ts';

describe('old posts of the ingress stream', () => {
  const project = perTest(() => openProject({ nats: {} }));
  const { nats } = project;

  const directory = (name: string) => join(project.root, name);
  const at = (name: string, ...args: string[]): Promise<CliOutcome> =>
    runCli([...args, '--data', directory(name)], { workingDirectory: project.root });
  const up = (name: string, ...args: string[]) => project.up('--data', directory(name), ...args);
  const listed = async (name: string) => (await at(name, 'ls', '--json')).json().map(({ id }) => id);
  const say = (conversation: string) => postOnStream(nats.url, conversation, 'hello');
  async function withStreams<T>(act: (streams: Streams) => Promise<T>): Promise<T> {
    const connection = await openNats({ url: nats.url });
    try {
      return await act((await connection.jetstreamManager()).streams);
    } finally {
      await connection.close();
    }
  }
  type Streams = Awaited<ReturnType<Awaited<ReturnType<typeof openNats>>['jetstreamManager']>>['streams'];
  async function publish(...conversations: string[]): Promise<void> {
    const connection = await openNats({ url: nats.url });
    for (const conversation of conversations)
      await connection.jetstream().publish(`parley.in.alice.${conversation}`, 'hello');
    await connection.close();
  }
  /** As after an update from a version without the record, or without the rights to it. */
  const loseRecord = () => withStreams((streams) => streams.delete('PARLEY_SETTLED'));
  /** As a server that lost its files, and on which another program made the stream again. */
  const recreateStream = () =>
    withStreams(async (streams) => {
      const { config } = await streams.info('PARLEY_IN');
      await streams.delete('PARLEY_IN');
      await streams.add(config);
    });
  const letter = async (name: string, sequence: number) =>
    (await at(name, 'dead', 'show', `${sequence}`, '--json')).json()[0];

  async function answered(...conversations: string[]): Promise<void> {
    const daemon = await up('a');
    await publish(...conversations);
    await expect.poll(() => listed('a')).toEqual(expect.arrayContaining(conversations));
    expect(await daemon.stop()).toBe(0);
  }

  it('a data directory that does not know the stream stops with OLD_POSTS, and answers them with --replay', async () => {
    await answered('one', 'two');
    await loseRecord();
    await expect(up('b')).rejects.toThrow(/OLD_POSTS.*has old posts \(2, stored from 20/);
    await expect(up('b')).rejects.toThrow('up --skip-until 2 ');

    const replayed = await up('b', '--replay');
    await expect.poll(() => listed('b')).toEqual(['one', 'two']);
    expect(await replayed.stop()).toBe(0);
    expect(await (await up('b')).stop()).toBe(0);
  }, 120_000);

  it('posts that --skip-until skips are one dead letter of each publisher, and are never answered without --replay', async () => {
    await answered('one', 'two');
    await loseRecord();
    await publish('three');

    const skipping = await up('b', '--skip-until', '2');
    await say('newest');
    expect(await listed('b')).toEqual(['newest', 'three']);
    expect(await letter('b', 1)).toMatchObject({
      code: 'SKIPPED',
      publisher: 'alice',
      refused: { count: 2, runs: [[1, 2]] },
    });
    expect((await at('b', 'dead', 'retry', '1')).stderr).toContain('up --replay');
    expect(await skipping.stop()).toBe(0);

    await rm(join(directory('b'), 'ingress.json'));
    const again = await up('b');
    await say('newest');
    expect(await listed('b')).toEqual(['newest', 'three']);
    expect(await again.stop()).toBe(0);

    const replayed = await up('b', '--replay');
    await expect.poll(() => listed('b')).toEqual(['newest', 'one', 'three', 'two']);
    expect(await replayed.stop()).toBe(0);
  }, 120_000);

  it('--skip-until takes a time and now', async () => {
    await answered('one');
    const between = new Date().toISOString();
    await publish('two');
    await loseRecord();

    const timed = await up('b', '--skip-until', between);
    await say('newest');
    expect(await listed('b')).toEqual(['newest', 'two']);
    expect(await timed.stop()).toBe(0);

    await loseRecord();
    const latest = await up('d', '--skip-until', 'now');
    await say('last');
    expect(await listed('d')).toEqual(['last']);
    expect(await letter('d', 2)).toMatchObject({ publisher: 'alice', refused: { count: 2, runs: [[1, 2]] } });
    expect(await latest.stop()).toBe(0);
    expect((await at('d', 'up', '--skip-until', 'soon')).stderr).toContain('Give a sequence');
  }, 120_000);

  it('a stream that was created again with posts stops a data directory that knew the earlier one', async () => {
    await answered('one');
    await recreateStream();
    await publish('two', 'three');
    await expect(up('a')).rejects.toThrow('has old posts (2,');
    const daemon = await up('a', '--replay');
    await expect.poll(() => listed('a')).toEqual(['one', 'three', 'two']);
    expect(await daemon.stop()).toBe(0);
  }, 120_000);

  it('posts that arrive while no daemon runs are answered, also if the first daemon never settled one', async () => {
    await (await up('a')).kill9();
    await loseRecord();
    await publish('one');
    const daemon = await up('a');
    await expect.poll(() => listed('a')).toEqual(['one']);
    expect(await daemon.stop()).toBe(0);

    await recreateStream();
    const second = await up('a'); // empty
    await second.kill9();
    await publish('two');
    const third = await up('a');
    await expect.poll(() => listed('a')).toEqual(['one', 'two']);
    expect(await third.stop()).toBe(0);
  }, 120_000);

  it('a stream that is created again under a running daemon is known at its next start', async () => {
    const daemon = await up('a');
    await say('one');
    await recreateStream();
    const created = await withStreams(async (streams) => (await streams.info('PARLEY_IN')).created);
    const position = () => readFile(join(directory('a'), 'ingress.json'), 'utf8');
    await expect.poll(position, { timeout: 60_000 }).toContain(created);
    expect(daemon.stderr()).toContain('another one than before');
    await daemon.kill9();
    await loseRecord();
    await publish('two');
    const second = await up('a');
    await expect.poll(() => listed('a')).toEqual(['one', 'two']);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('a restored copy of a data directory reads what it lacks, or skips it with --skip-until', async () => {
    await answered('one');
    for (const copy of ['b', 'c']) await cp(directory('a'), directory(copy), { recursive: true });
    await answered('two');

    const reading = await up('c');
    await expect.poll(() => listed('c')).toEqual(['one', 'two']);
    expect(await reading.stop()).toBe(0);

    const skipping = await up('b', '--skip-until', '2');
    await say('newest');
    expect(await listed('b')).toEqual(['newest', 'one']);
    expect(await skipping.stop()).toBe(0);
  }, 120_000);

  it('posts to a server that was restored from an older backup are answered, although their sequences were used before', async () => {
    await answered('one');
    const store = join(nats.directory, 'store');
    const backup = join(nats.directory, 'backup');
    await nats.kill9();
    await cp(store, backup, { recursive: true });
    await nats.restart();
    await answered('two', 'three');
    await nats.kill9();
    await rm(store, { recursive: true });
    await cp(backup, store, { recursive: true });
    await nats.restart();
    await publish('four', 'five', 'six');

    const daemon = await up('a');
    await expect.poll(() => listed('a')).toEqual(['five', 'four', 'one', 'six', 'three', 'two']);
    expect(await daemon.stop()).toBe(0);
  }, 120_000);

  it('daemons with --store jetstream stop with OLD_POSTS only if the record is gone', async () => {
    await answered('one');
    await loseRecord();
    await expect(up('b', '--store', 'jetstream')).rejects.toThrow('has old posts (1,');
    const first = await up('b', '--store', 'jetstream', '--skip-until', 'now');
    await say('two');
    expect(await listed('b')).toEqual(['two']);
    const second = await up('c', '--store', 'jetstream');
    await first.kill9();
    await publish('three');
    await expect.poll(() => listed('c'), { timeout: 60_000 }).toEqual(['three', 'two']);
    expect(await second.stop()).toBe(0);
  }, 180_000);
});
