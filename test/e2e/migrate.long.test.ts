import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'nats';
import { describe, expect, it } from 'vitest';
import type { SettledRecord } from '../../src/bus/settled.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { blobOf, entryWith, putBlob, textOf } from '../contract/blobs.contract.ts';
import { batch, entry, row } from '../contract/samples.ts';
import { launcher, runCli, strangersEnvironment } from '../support/cli.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { perTest } from '../support/lifetime.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { openProject } from '../support/project.ts';
import { postOnStream } from '../support/stream-post.ts';

const LIFE = '2026-11-22T00:26:45.217Z';

describe('migrating all conversations', () => {
  const project = perTest(() => openProject({ nats: {} }));
  const { nats } = project;

  const at = (data: string, ...args: string[]) => runCli([...args, '--data', data]);
  const migrate = (...args: string[]) => project.parley('migrate', '--nats', nats.url, ...args);
  const toStreams = (...args: string[]) =>
    migrate('--from', 'file', '--to', 'jetstream', '--data', project.data, ...args);

  it('a migration lets daemons continue in streams, and in files again, at the same position', async () => {
    const first = await project.up();
    expect((await project.parley('say', 'demo', 'hello', '--as', 'alice', '--wait')).code).toBe(0);
    expect((await toStreams()).stderr).toMatch(/in use by process[\s\S]*stop that daemon first/);
    expect(await first.stop()).toBe(0);
    const shown = await project.parley('export', 'demo', '--format', 'jsonl');
    const before = await filesOf(project.data);

    const moved = await toStreams('--json');
    expect(moved.json()).toMatchObject([{ conversations: 1, to: 'jetstream:PARLEY_LOG' }]);
    expect(await filesOf(project.data)).toEqual(before);

    const second = await project.up('--store', 'jetstream');
    const back = join(project.root, 'back');
    expect((await migrate('--from', 'jetstream', '--to', `file:${back}`)).stderr).toContain(
      'another daemon (process',
    );
    expect((await project.parley('say', 'demo', 'again', '--as', 'alice', '--wait')).code).toBe(0);
    expect(await second.stop()).toBe(0);
    expect((await toStreams()).stderr).toContain('is not empty: it contains conversation demo');

    expect((await migrate('--from', 'jetstream', '--to', `file:${back}`)).stdout).toContain(
      'read back, and the same',
    );
    const exported = await at(back, 'export', 'demo', '--format', 'jsonl');
    const linesOf = ({ stdout }: { stdout: string }, isDefinition: boolean) =>
      stdout.split('\n').filter((line) => line.startsWith('{"type":"definition"') === isDefinition);
    const [entriesBefore, entriesAfter] = [shown, exported].map((one) =>
      linesOf(one, false).join('\n').trimEnd(),
    );
    expect(entriesAfter?.startsWith(entriesBefore ?? '-')).toBe(true);
    expect(linesOf(shown, true).length).toBeGreaterThan(5);
    expect(linesOf(exported, true)).toEqual(expect.arrayContaining(linesOf(shown, true)));
    expect(exported.stdout).toContain('again');
    expect((await at(back, 'fsck')).code).toBe(0);
    const third = await project.up('--data', back);
    expect((await at(back, 'say', 'demo', 'and again', '--wait')).code).toBe(0);
    expect(await third.stop()).toBe(0);
  }, 300_000); // some fifteen processes, one after the other

  it('daemons continue on another server than the one where a conversation was last claimed', async () => {
    const there = await startNatsServer();
    try {
      const first = await project.up('--store', 'jetstream');
      expect((await project.parley('say', 'demo', 'hello', '--as', 'alice', '--wait')).code).toBe(0);
      expect(await first.stop()).toBe(0);
      const files = `file:${join(project.root, 'files')}`;
      expect((await migrate('--from', 'jetstream', '--to', files)).code).toBe(0);
      const on = ['--nats', there.url];
      expect((await migrate('--from', files, '--to', 'jetstream', ...on)).code).toBe(0);
      const second = await project.up('--store', 'jetstream', ...on);
      const said = await project.parley('say', 'demo', 'again', '--as', 'alice', '--wait', ...on);
      expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/\S/) });
      expect(await second.stop()).toBe(0);
    } finally {
      await there.stop();
    }
  }, 300_000);

  it('posts that were migrated are not reported as settled elsewhere, though their daemon was killed', async () => {
    const first = await project.up();
    await postOnStream(nats.url, 'demo', 'hello');
    await settled(nats.url);
    await first.kill9();
    await rm(join(project.data, 'ingress.json'), { force: true }); // the kill came before it was saved
    expect((await toStreams()).code).toBe(0);

    const second = await project.up('--store', 'jetstream');
    expect((await project.parley('say', 'demo', 'again', '--as', 'alice', '--wait')).code).toBe(0);
    expect(second.stderr()).not.toContain('settled with another');
    const shown = await project.parley('show', 'demo', '--json');
    expect(shown.json().filter(({ type }) => type === 'turn-started')).toHaveLength(2); // each answered once
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('posts that were migrated into files are not reported as settled elsewhere either', async () => {
    const first = await project.up('--store', 'jetstream');
    await postOnStream(nats.url, 'demo', 'hello');
    await first.kill9();
    const store = await openTestStore(nats.url);
    const before = { stream: (await store.ingressPosition())?.stream ?? LIFE, sequence: 0 };
    await store.close();
    const back = join(project.root, 'back');
    expect((await migrate('--from', 'jetstream', '--to', `file:${back}`)).code).toBe(0);
    await writeFile(join(back, 'ingress.json'), JSON.stringify(before)); // the kill came before it was saved
    const second = await project.up('--data', back);
    expect((await at(back, 'say', 'demo', 'again', '--as', 'alice', '--wait')).code).toBe(0);
    expect(second.stderr()).not.toContain('settled with another');
    const shown = await at(back, 'show', 'demo', '--json');
    expect(shown.json().filter(({ type }) => type === 'turn-started')).toHaveLength(2);
    expect(await second.stop()).toBe(0);
  }, 120_000);

  it('a migration leaves the record of settled posts to another store that wrote it', async () => {
    const first = await project.up();
    await postOnStream(nats.url, 'demo', 'hello');
    const record = await settled(nats.url);
    expect(await first.stop()).toBe(0);
    await writeFile(join(project.data, 'conversations', 'identity.json'), '{"id":"another"}\n');
    expect((await toStreams()).code).toBe(0);
    expect((await settled(nats.url)).by).toEqual(record.by);
  }, 120_000);

  it('a migration copies records, large outputs, deletions and the ingress position, both ways', async () => {
    const source = await openFileStore(project.data);
    await furnish(source);
    await source.close();
    expect((await toStreams()).code).toBe(0);
    expect((await toStreams()).stdout).toContain('read back, and the same'); // MIGRATE-8
    const back = join(project.root, 'back');
    expect((await migrate('--from', 'jetstream', '--to', `file:${back}`)).code).toBe(0);
    const stores: Record<string, ConversationStore> = {
      streams: await openTestStore(nats.url),
      files: await openFileStore(back),
    };
    for (const [name, store] of Object.entries(stores)) {
      await expectFurnished(store, name);
      await store.close();
    }
  });

  it('daemons refuse a migration that was interrupted, and it can be repeated', async () => {
    const source = await openFileStore(project.data);
    await furnishMany(source);
    await source.close();
    const before = await filesOf(project.data);

    await endInTheMiddle(
      ['--from', `file:${project.data}`, '--to', 'jetstream'],
      async () => (await copiedInto(nats.url)) >= 10,
    );
    await expect(project.up('--store', 'jetstream')).rejects.toThrow(/MIGRATION_UNFINISHED|not all of them/);
    const again = await toStreams('--json');
    expect(again.json()).toMatchObject([{ conversations: 42, entries: 40 * 42 + 4 }]);
    expect(await filesOf(project.data)).toEqual(before);
    const streams = await openTestStore(nats.url);
    await expectFurnished(streams, 'streams');
    await expectFiles(streams);
    await streams.close();
  });

  it('daemons refuse an interrupted migration into files, too', async () => {
    const store = await openTestStore(nats.url);
    await furnishMany(store);
    await store.close();
    const back = join(project.root, 'back');
    const there = async () => (await readdir(join(back, 'conversations')).catch(() => [])).length >= 15;
    await endInTheMiddle(['--from', 'jetstream', '--to', `file:${back}`], there);
    await expect(project.up('--data', back)).rejects.toThrow(/not all of them/);
    expect((await at(back, 'fsck')).stderr).toContain('not all of them are there yet');
    expect((await at(back, 'export', 'c1')).stderr).toContain('not all of them');
    expect((await migrate('--from', 'jetstream', '--to', `file:${back}`)).code).toBe(0);
    expect((await at(back, 'fsck')).stdout).not.toContain(' file: ');
    const files = await openFileStore(back);
    await expectFurnished(files, 'files');
    await expectFiles(files);
    await files.close();
  });

  it('a migration refuses what it cannot copy before it writes anything', async () => {
    expect((await migrate('--from', 'file', '--to', 'file:x')).code).toBe(2);
    expect((await migrate('--from', 'disk', '--to', 'jetstream')).code).toBe(2);
    expect((await project.parley('migrate', '--from', 'file', '--to', 'jetstream')).stderr).toContain(
      '--nats URL',
    );
    expect((await toStreams()).stderr).toContain('is no data directory');
    expect((await migrate('--from', 'jetstream', '--to', 'file')).stderr).toContain('there is no stream');
    const twice = await migrate(
      '--from',
      'jetstream',
      '--to',
      `file:${project.data}`,
      '--data',
      project.data,
    );
    expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('--data has no effect here')]);
    const source = await openFileStore(project.data);
    await furnish(source);
    await source.close();
    await writeFile(join(project.data, 'ingress.json'), '{"stream":');
    expect((await toStreams()).stderr).toContain('ingress.json cannot be read');
    await rm(join(project.data, 'ingress.json'));

    const own = await openTestStore(nats.url);
    const { log } = await own.open('own');
    await log.append(0, [entry(0)]);
    await log.close();
    await own.close();
    expect((await toStreams()).stderr).toContain('it contains conversation own');
    const after = await openTestStore(nats.url);
    expect(await after.conversations()).toEqual(['own']);
    await after.close();

    const other = join(project.root, 'other');
    await cp(project.data, other, { recursive: true });
    await writeFile(join(other, 'migration.json'), '{"from":"jetstream:X_LOG"}\n');
    expect(
      (await project.parley('migrate', '--nats', nats.url, '--from', `file:${other}`, '--to', 'jetstream'))
        .stderr,
    ).toContain('from jetstream:X_LOG');
  });

  async function endInTheMiddle(args: string[], isThere: () => Promise<boolean>): Promise<void> {
    const command = [launcher, 'migrate', '--nats', nats.url, ...args];
    const child = spawn(process.execPath, command, { env: strangersEnvironment(), stdio: 'ignore' });
    const ended = once(child, 'exit');
    while (!(await isThere()) && child.exitCode === null) await new Promise((go) => setTimeout(go, 2));
    child.kill('SIGKILL');
    const [, signal] = await ended;
    expect(signal).toBe('SIGKILL'); // otherwise it was done before
  }
});

async function furnishMany(store: ConversationStore): Promise<void> {
  for (let at = 0; at < 40; at++) {
    const { log } = await store.open(`c${at}`);
    await log.append(0, batch(0, 40, 'x'.repeat(2_000)));
    for (const [after, text] of [OWN_FILE(at), SHARED_FILE].entries())
      await log.append(40 + after, [entryWith(40 + after, (await putBlob(store, text)).part)]);
    await log.close();
  }
  await furnish(store);
}

/** Files that `furnishMany` has put into conversations: one of its own in each, and one that all name. */
const OWN_FILE = (at: number) => `${at} `.repeat(2_000);
const SHARED_FILE = 'in each conversation';

/** Every file is whole, and belongs to each conversation that names it. */
async function expectFiles(store: ConversationStore): Promise<void> {
  for (let at = 0; at < 40; at++)
    for (const text of [OWN_FILE(at), SHARED_FILE]) {
      const { sha256 } = blobOf(text).facts;
      expect(await store.blobs.isIn(`c${at}`, sha256)).toBe(true);
      expect(await textOf(store, sha256)).toBe(text);
    }
  for (let at = 0; at < 39; at++) await store.delete(`c${at}`);
  expect(await textOf(store, blobOf(SHARED_FILE).facts.sha256)).toBe(SHARED_FILE);
  expect(await store.delete('c39')).toMatchObject({ files: 2 });
}

async function furnish(store: ConversationStore): Promise<void> {
  const record = (position: number, result: string) =>
    ({
      type: 'ToolCallCompleted',
      call: { entry: 2, position },
      tool: 'shell',
      at: '2026-11-22T00:26:46.000Z',
      result,
    }) as const;
  await store.delete('gone', { stream: LIFE, sequence: 7 });
  await store.delete('busy', { stream: LIFE, sequence: 3 });
  for (const id of ['busy', 'quiet']) {
    const { log } = await store.open(id);
    await log.append(0, [entry(0), entry(1, 'grüße \u2028 and "more"')]);
    await log.close();
    await store.saveRow(row(id, 2));
  }
  const records = [record(0, 'short'), record(1, 'l'.repeat(2_000_000)), record(2, 'after')];
  for (const one of records) await store.toolRecords.append('busy', [one]);
  await store.toolRecords.saveOutput('busy', 'result-1', 'ö'.repeat(1_500_000));
  await store.toolRecords.saveOutput('busy', 'empty', '');
  await store.saveIngressPosition({ stream: LIFE, sequence: 11 });
}

async function expectFurnished(store: ConversationStore, name: string): Promise<void> {
  expect(await store.deletedUpTo('gone'), name).toEqual({ stream: LIFE, sequence: 7 });
  expect(await store.deletedUpTo('busy'), name).toEqual({ stream: LIFE, sequence: 3 });
  expect(await store.deletedUpTo('quiet'), name).toBeNull();
  expect(await store.ingressPosition(), name).toEqual({ stream: LIFE, sequence: 11 });
  const { log, entries } = await store.open('busy');
  await log.close();
  expect(
    entries.map((one) => ('content' in one ? one.content : '')),
    name,
  ).toEqual(['message 0', 'grüße \u2028 and "more"']);
  const results = (await store.toolRecords.read('busy')).records.map(({ result }) => result?.length);
  expect(results, name).toEqual([5, 2_000_000, 5]);
  expect((await store.toolRecords.readOutput('busy', 'result-1'))?.length, name).toBe(1_500_000);
  expect(await store.toolRecords.readOutput('busy', 'empty'), name).toBe('');
  expect(
    (await store.rows()).map(({ id }) => id),
    name,
  ).toContain('quiet');
  expect(await store.openMarks(), name).not.toBeNull();
}

/** The record of settled posts, once it has one. */
async function settled(url: string): Promise<SettledRecord> {
  const connection = await connect({ servers: url });
  try {
    const manager = await connection.jetstreamManager();
    const query = { last_by_subj: 'parley.settled' };
    const read = () => manager.streams.getMessage('PARLEY_SETTLED', query).catch(() => null);
    await expect.poll(read).not.toBeNull();
    return (await read())?.json() as SettledRecord;
  } finally {
    await connection.close();
  }
}

/** Conversations that exist in the target so far. */
async function copiedInto(url: string): Promise<number> {
  const store = await openTestStore(url, { isMigrating: true }).catch(() => null);
  const count = (await store?.conversations())?.length ?? 0;
  await store?.close();
  return count;
}

/** Every file below a directory except the lock, with its modification time and content. */
async function filesOf(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(directory, { recursive: true })).sort()) {
    const path = join(directory, name);
    const facts = await stat(path);
    if (facts.isFile() && name !== 'LOCK') found[name] = `${facts.mtimeMs} ${await readFile(path, 'utf8')}`;
  }
  return found;
}
