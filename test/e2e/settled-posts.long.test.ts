import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { type CliOutcome, runCli } from '../support/cli.ts';
import { perTest } from '../support/lifetime.ts';
import { openProject, type RunningDaemon } from '../support/project.ts';
import { postOnStream } from '../support/stream-post.ts';

describe('posts that were settled in another store', () => {
  const project = perTest(() => openProject({ nats: {} }));
  const { nats } = project;

  const at = (data: string, ...args: string[]): Promise<CliOutcome> =>
    runCli([...args, '--data', data], { workingDirectory: project.root });
  const directory = (name: string) => join(project.root, name);
  const up = (name: string, ...args: string[]) => project.up('--data', directory(name), ...args);
  const say = (conversation: string, content: string) => postOnStream(nats.url, conversation, content);
  /** Conversations that a running daemon lists, by id. */
  async function listed(name: string): Promise<string[]> {
    const outcome = await at(directory(name), 'ls', '--json');
    return outcome.json().map(({ id }) => id);
  }
  const deadOf = async (name: string) => (await at(directory(name), 'dead', 'ls', '--json')).json();
  async function publish(conversation: string, content: string, times = 1): Promise<void> {
    const connection = await openNats({ url: nats.url });
    const one = () => connection.jetstream().publish(`parley.in.alice.${conversation}`, content);
    await Promise.all(Array.from({ length: times }, one));
    await connection.close();
  }
  /** Resolves when the daemon has answered a post that is newer than all others. */
  const caughtUp = () => say('newest', 'are you there?');
  /** A daemon that settled a post of an unreadable conversation and one after it, and was killed. */
  async function settleBehindStuck(): Promise<void> {
    const first = await up('a');
    await mkdir(join(directory('a'), 'conversations', 'stuck', 'log.jsonl'), { recursive: true });
    await publish('stuck', 'hello');
    await say('one', 'hello');
    await expect.poll(settled).toBe(2);
    await first.kill9();
  }
  const warning = (daemon: RunningDaemon) =>
    daemon
      .stderr()
      .split('\n')
      .filter((line) => line.includes('--replay'))
      .map((line) => JSON.parse(line));

  it('settled posts are not answered by a daemon with an empty data directory, which reports their number', async () => {
    const first = await up('a');
    await say('one', 'hello');
    await say('two', 'hello');
    expect(await first.stop()).toBe(0);

    const second = await up('b');
    await caughtUp();
    expect(await listed('b')).toEqual(['newest']);
    expect(warning(second)).toMatchObject([
      { level: 'warn', posts: 2, by: expect.stringContaining(directory('a')) },
    ]);
    expect(await second.stop()).toBe(0);
  });

  it('settled posts are not answered by any further daemon, and open ones are', async () => {
    const first = await up('a');
    await say('one', 'hello');
    expect(await first.stop()).toBe(0);
    await publish('waits', 'is anybody there?');

    const second = await up('b');
    await caughtUp();
    expect(await listed('b')).toEqual(['newest', 'waits']);
    expect(warning(second)).toMatchObject([{ posts: 1 }]);
    expect(await second.stop()).toBe(0);

    const third = await up('b'); // it has its own position now
    await say('newest', 'and now?');
    expect(await listed('b')).toEqual(['newest', 'waits']);
    expect(warning(third)).toEqual([]);
    expect(await third.stop()).toBe(0);

    const back = await up('a');
    await say('two', 'hello');
    expect(await listed('a')).toEqual(['one', 'two']);
    expect(warning(back)).toMatchObject([{ posts: 3, by: expect.stringContaining(directory('b')) }]);
    expect(await back.stop()).toBe(0);
  }, 120_000);

  it('settled posts are not answered after a change to the store jetstream and back, and the command to migrate is named', async () => {
    const files = await up('d');
    await say('one', 'hello');
    expect(await files.stop()).toBe(0);

    const streams = await up('d', '--store', 'jetstream');
    await caughtUp();
    expect(await listed('d')).toEqual(['newest']);
    expect(warning(streams)).toMatchObject([{ posts: 1, by: expect.stringContaining(directory('d')) }]);
    expect(streams.stderr()).toContain(
      `parley migrate --from file:${directory('d')} --to jetstream --nats ${nats.url}`,
    );
    expect(await streams.stop()).toBe(0);

    const again = await up('d');
    await say('three', 'hello');
    expect(await listed('d')).toEqual(['one', 'three']);
    expect(warning(again)).toMatchObject([{ posts: 1, by: expect.stringContaining('jetstream') }]);
    expect(again.stderr()).toContain(`parley migrate --from jetstream --to file:${directory('d')}`);
    expect(await again.stop()).toBe(0);

    const last = await up('d', '--store', 'jetstream');
    await say('newest', 'and now?');
    expect(await listed('d')).toEqual(['newest']);
    expect(warning(last)).toMatchObject([{ posts: 1, by: expect.stringContaining(directory('d')) }]);
    expect(await last.stop()).toBe(0);
  }, 120_000);

  it('settled posts are not answered after a migration, and no command is named', async () => {
    const files = await up('d');
    await say('one', 'hello');
    await files.kill9(); // its own position lags
    const moved = await at(
      directory('d'),
      ...['migrate', '--from', 'file', '--to', 'jetstream', '--nats', nats.url],
    );
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    const length = async () => (await at(directory('d'), 'show', 'one', '--json')).json().length;
    const streams = await up('d', '--store', 'jetstream');
    await caughtUp();
    expect(await listed('d')).toEqual(['newest', 'one']);
    const before = await length();
    expect(streams.stderr()).not.toContain('parley migrate');
    await say('one', 'again');
    expect(await length()).toBeGreaterThan(before);
    expect(await streams.stop()).toBe(0);
  }, 120_000);

  it('settled posts are answered once by a replay, and not by a store that has them', async () => {
    const first = await up('a');
    await say('one', 'hello');
    await say('two', 'hello');
    expect(await first.stop()).toBe(0);

    const second = await up('b', '--replay');
    await expect.poll(() => listed('b')).toEqual(['one', 'two']);
    await caughtUp();
    const shown = await at(directory('b'), 'show', 'one', '--json');
    expect(await second.stop()).toBe(0);

    const third = await up('b', '--replay');
    await say('newest', 'and now?');
    expect((await at(directory('b'), 'show', 'one', '--json')).stdout).toBe(shown.stdout);
    expect(await third.stop()).toBe(0);

    const streams = await up('c', '--store', 'jetstream', '--replay');
    await expect.poll(() => listed('c')).toEqual(['newest', 'one', 'two']);
    await expect(up('d', '--store', 'jetstream', '--replay')).rejects.toThrow(
      /REPLAY_REFUSED|stop the others/,
    );
    expect(await streams.stop()).toBe(0);
  }, 120_000);

  it('settled posts are known after a kill -9, and no post is lost between two data directories', async () => {
    const first = await up('a');
    for (const name of ['one', 'two', 'three']) await say(name, 'hello');
    await expect.poll(settled).toBe(3);
    const late = Array.from({ length: 30 }, (_, n) => `late-${n}`);
    await Promise.all(late.map((name) => publish(name, 'hello')));
    await first.kill9();
    const inFirst = await readdir(join(directory('a'), 'conversations'));

    const second = await up('b');
    await caughtUp();
    const inSecond = await listed('b');
    expect(inSecond).not.toEqual(expect.arrayContaining(['one']));
    expect(inSecond.filter((id) => ['one', 'two', 'three'].includes(id))).toEqual([]);
    expect(late.filter((name) => !inFirst.includes(name) && !inSecond.includes(name))).toEqual([]);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('settled posts do not hide one whose conversation is unreadable: another data directory answers only that one', async () => {
    await settleBehindStuck();

    const second = await up('b');
    await caughtUp();
    expect(await listed('b')).toEqual(['newest', 'stuck']);
    expect(warning(second)).toMatchObject([{ posts: 1 }]);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('settled posts are no conversation that `parley rm` finds while an older post waits', async () => {
    await settleBehindStuck();

    await mkdir(join(directory('b'), 'conversations', 'stuck', 'log.jsonl'), { recursive: true });
    const second = await up('b');
    await expect.poll(() => second.stderr()).toContain('could not be made durable');
    const removed = await at(directory('b'), 'rm', 'one', '--json');
    expect(removed.json()).toMatchObject([{ deleted: true, existed: false }]);
    expect(await readFile(join(directory('b'), 'deleted.json'), 'utf8')).toContain('"one"');
    await second.kill9();
  }, 120_000);

  it('settled posts are not replayed if their conversation was deleted before that', async () => {
    const first = await up('a');
    await publish('stuck', 'hello', 750); // as many as one publisher may have in flight
    await publish('forget', 'hello');
    await expect.poll(settled, { timeout: 60_000 }).toBe(751);
    expect(await first.stop()).toBe(0);
    expect(await (await up('b')).stop()).toBe(0);
    const damaged = join(directory('b'), 'conversations', 'stuck', 'log.jsonl');
    await mkdir(damaged, { recursive: true });

    const second = await up('b', '--replay');
    await expect.poll(() => second.stderr()).toContain('could not be made durable');
    const removed = await at(directory('b'), 'rm', 'forget');
    expect(removed, removed.stderr).toMatchObject({ code: 0 });
    await rm(damaged, { recursive: true });
    await caughtUp();
    expect(await listed('b')).toEqual(['newest', 'stuck']);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('settled posts include refused ones: after a kill -9, another data directory adds no second dead letter', async () => {
    const first = await up('a');
    await publish('one', '{"content":""}');
    await expect.poll(settled).toBe(1);
    await expect(up('b')).rejects.toThrow('DAEMON_ALREADY_SERVING'); // and it leaves the record unchanged
    expect(await settled()).toBe(1);
    await first.kill9();

    const second = await up('b');
    await caughtUp();
    expect((await at(directory('b'), 'dead', 'ls', '--json')).json()).toHaveLength(1);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('refused posts get no second dead letter when they are replayed', async () => {
    const first = await up('a');
    await publish('one', '{"content":""}', 3);
    await publish('two', '{"content":""}');
    await expect.poll(settled).toBe(4);
    expect(await first.stop()).toBe(0);
    for (const name of ['a', 'b']) {
      const again = await up(name, '--replay');
      await caughtUp();
      await publish('one', '{"content":""}');
      await expect.poll(async () => (await deadOf(name)).length).toBe(name === 'a' ? 5 : 6);
      const places = (await deadOf(name)).map(({ ingress }) => ingress.sequence);
      expect(new Set(places).size).toBe(places.length);
      expect(await again.stop()).toBe(0);
    }
  }, 120_000);

  it('settled posts of a deleted stream do not hide those of the new one', async () => {
    const first = await up('a');
    await say('one', 'hello');
    await say('two', 'hello');
    expect(await first.stop()).toBe(0);
    const connection = await openNats({ url: nats.url });
    await (await connection.jetstreamManager()).streams.delete('PARLEY_IN');
    await connection.close();

    const second = await up('b');
    await say('three', 'hello');
    expect(await listed('b')).toEqual(['three']);
    expect(warning(second)).toEqual([]);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  /** The position up to which the server records posts as settled. */
  async function settled(): Promise<number | null> {
    const connection = await openNats({ url: nats.url });
    try {
      const { streams } = await connection.jetstreamManager();
      const { data } = await streams.getMessage('PARLEY_SETTLED', { last_by_subj: 'parley.settled' });
      return JSON.parse(Buffer.from(data).toString()).settled.upTo;
    } catch {
      return null;
    } finally {
      await connection.close();
    }
  }
});
