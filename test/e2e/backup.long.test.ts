import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import type { Entry, ParleyClient } from '../../src/client/index.ts';
import { openFileStore, readLogFile } from '../../src/persistence/jsonl/index.ts';
import { batch } from '../contract/samples.ts';
import {
  type BatchProject,
  becomes,
  nextQuestion,
  openBatchProject,
  openQuestions,
} from '../support/batch.ts';
import { type CliOutcome, launcher, runCli, strangersEnvironment } from '../support/cli.ts';
import { perTest, untilTestEnds } from '../support/lifetime.ts';
import { entriesOf, finished, ofType } from '../support/log.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject } from '../support/project.ts';
import { until } from '../support/steps.ts';

const POSTED = ['p0', 'p1', 'p2'];

describe.each(['file', 'jetstream'])('a backup while a daemon with --store %s works', (store) => {
  let project: BatchProject;
  let other: TestNatsServer;
  let third: TestNatsServer;
  let copy: string;
  beforeEach(async () => {
    [other, third] = [await startNatsServer(), await startNatsServer()];
    project = untilTestEnds(await openBatchProject());
    for (const server of [other, third]) project.defer(() => server.stop());
    copy = join(project.root, 'copy');
  });

  const at = (data: string, ...args: string[]): Promise<CliOutcome> =>
    runCli([...args, '--data', data], { workingDirectory: project.root });
  async function explained(...place: string[]): Promise<unknown[]> {
    const explain = ['explain', 'done', '--agent', 'pm', '--json', ...place];
    const found = await runCli(explain, { workingDirectory: project.root });
    expect(found, found.stderr).toMatchObject({ code: 0 });
    return found.json();
  }

  /** A conversation whose risky call is approved and waits until the safe one before it has run. */
  async function approvedEarly(client: ParleyClient, id: string): Promise<void> {
    project.steps.hold(`${id}.1`, 'before');
    await client.post({ conversation: id, publisher: 'alice', content: id });
    const { approvalId } = await nextQuestion(client, id);
    await client.request('answer', { approvalId, answer: 'approve', publisher: 'alice' });
  }

  /** Posts on `parley.in` that start no turn, until the returned function is called; it waits until they are in the logs. */
  function keepPosting(client: ParleyClient, url: string): () => Promise<void> {
    let isOver = false;
    const posting = (async () => {
      const connection = await openNats({ url });
      let posted = 0;
      for (; !isOver || posted < 30; posted++) {
        const conversation = POSTED[posted % POSTED.length] ?? '';
        const post = { id: `b${posted}`, content: `post ${posted}`, includeInContext: false };
        await connection.jetstream().publish(`parley.in.bob.${conversation}`, JSON.stringify(post));
        await delay(20);
      }
      await connection.close();
      await until(async () => {
        const logs = await Promise.all(POSTED.map((id) => entriesOf(client, id)));
        return logs.flat().filter(({ type }) => type === 'message').length === posted;
      });
    })();
    return () => {
      isOver = true;
      return posting;
    };
  }

  async function expectBeginnings(logs: ReadonlyMap<string, readonly Entry[]>): Promise<void> {
    for (const [id, entries] of logs) {
      const { entries: copied } = await readLogFile(join(copy, 'conversations', id, 'log.jsonl'));
      expect(copied, id).toEqual(entries.slice(0, copied.length));
    }
  }

  it('the copy is whole, and no risky call runs twice when it is started', async () => {
    const first = await project.up('--store', store);
    const client = await project.connect();
    await client.post({ conversation: 'done', publisher: 'alice', content: 'done' });
    const { approvalId } = await nextQuestion(client, 'done');
    await client.request('answer', { approvalId, answer: 'approve', publisher: 'alice' });
    const done = await becomes(client, 'done', finished(1));
    await client.post({ conversation: 'asking', publisher: 'alice', content: 'asking' });
    await nextQuestion(client, 'asking');
    await approvedEarly(client, 'early');
    const stopPosting = keepPosting(client, first.ready.nats);
    await until(async () => (await project.parley('ls', '--json')).json().length === 6);

    const backup = await project.parley('backup', copy, '--json');
    expect(backup, backup.stderr).toMatchObject({ code: 0 });
    expect(backup.json()).toMatchObject([{ to: copy, conversations: 6, missing: [] }]);
    await stopPosting();
    project.steps.release('early.1');
    await becomes(client, 'early', finished(1));
    expect(await project.steps.effects('early.2')).toBe(1);

    const answer = ofType(done, 'message').findLast(({ role }) => role === 'assistant')?.index ?? 0;
    const offline = ['--data', copy, '--config', project.config];
    expect(await explained('--at', `${answer}`, ...offline)).toEqual(
      await explained('--at', `${answer}`, '--nats', first.ready.nats),
    );
    expect((await at(copy, 'fsck', '--views')).stdout).toContain('6 conversations: sound');
    const ids = ['done', 'asking', 'early', ...POSTED];
    const logs = new Map<string, Entry[]>();
    for (const id of ids) logs.set(id, await entriesOf(client, id));
    await expectBeginnings(logs);
    await client.close();
    await first.stop();

    // On the same server: the posts that it lacks need a decision.
    await expect(project.up('--data', copy)).rejects.toThrow(/OLD_POSTS.*settled after this backup was made/);
    const elsewhere = join(project.root, 'elsewhere');
    await cp(copy, elsewhere, { recursive: true });
    const replayed = await project.up('--data', copy, '--replay');
    await until(async () =>
      (await lengthsIn(copy)).every((length, n) => length === logs.get(POSTED[n] ?? '')?.length),
    );
    await expectHeld(copy);
    expect(await replayed.stop()).toBe(0);
    expect((await at(copy, 'fsck')).code).toBe(0);
    expect(await (await project.up('--data', copy)).stop()).toBe(0); // no decision any more

    // On other servers, with either store.
    const on = ['--nats', other.url];
    const moved = await project.parley('migrate', '--from', `file:${elsewhere}`, '--to', 'jetstream', ...on);
    expect(moved, moved.stderr).toMatchObject({ code: 0 });
    const streams = await project.up('--store', 'jetstream', '--data', join(project.root, 'streams'), ...on);
    await expectHeld(join(project.root, 'streams'));
    expect(await streams.stop()).toBe(0);
    const files = await project.up('--data', elsewhere, '--nats', third.url);
    await expectHeld(elsewhere);
    expect(await files.stop()).toBe(0);
    expect((await at(elsewhere, 'fsck', '--views')).code).toBe(0);
  }, 300_000);

  const shown = async (data: string, id: string): Promise<Entry[]> =>
    (await at(data, 'show', id, '--json')).json();
  const lengthsIn = (data: string) => Promise.all(POSTED.map(async (id) => (await shown(data, id)).length));

  /** The question of `asking` is still open, and a person decides on the approved call of `early`. */
  async function expectHeld(data: string): Promise<void> {
    await until(async () => openQuestions(await shown(data, 'early')).length > 0);
    expect(openQuestions(await shown(data, 'early'))).toMatchObject([
      { mayHaveRun: true, call: { position: 1 } },
    ]);
    expect(openQuestions(await shown(data, 'asking'))).toMatchObject([{ mayHaveRun: false }]);
    expect(await project.steps.effects('early.2')).toBe(1);
  }
});

describe('the folder of a backup', () => {
  const project = perTest(() => openProject({ nats: {} }));
  beforeEach(async () => {
    const store = await openFileStore(project.data);
    for (let at = 0; at < 300; at++) {
      const { log } = await store.open(`c${at}`);
      await log.append(0, batch(0, 4));
      await log.close();
    }
    await store.close();
  });

  it('a backup that is killed is no backup, and the next one to the same folder is whole', async () => {
    const copy = join(project.root, 'copy');
    const partial = `${copy}.partial`;
    const args = [launcher, 'backup', copy, '--data', project.data];
    const child = spawn(process.execPath, args, { env: strangersEnvironment(), stdio: 'ignore' });
    const ended = once(child, 'exit');
    const isThere = async () => (await readdir(join(partial, 'conversations')).catch(() => [])).length > 20;
    while (!(await isThere()) && child.exitCode === null) await new Promise((go) => setTimeout(go, 2));
    child.kill('SIGKILL');
    expect((await ended)[1]).toBe('SIGKILL'); // otherwise it was done before
    expect(await readdir(project.root)).not.toContain('copy');
    await expect(project.up('--data', partial)).rejects.toThrow(/MIGRATION_UNFINISHED/);
    expect((await project.parley('backup', copy)).code).toBe(0);
    expect(await readdir(project.root)).not.toContain('copy.partial');
    const files = await readdir(copy);
    for (const name of ['LOCK', 'migration.json', 'connection.json', 'nats'])
      expect(files).not.toContain(name);
    expect(await readdir(join(copy, 'conversations'))).not.toContain('identity.json');
    for (const name of ['.', 'backup.json', 'conversations/c1/log.jsonl'])
      expect((await stat(join(copy, name))).mode & 0o077, name).toBe(0);
  }, 120_000);

  it('a conversation that is damaged is named and does not prevent the copy of the others', async () => {
    const log = join(project.data, 'conversations', 'c7', 'log.jsonl');
    await writeFile(log, (await readFile(log, 'utf8')).replace('message 1', 'message x'));
    const backup = await project.parley('backup', 'copy');
    expect([backup.code, backup.stdout]).toEqual([
      1,
      expect.stringMatching(/299 conversations[\s\S]*missing c7: .*damaged at line 2/),
    ]);
    expect((await runCli(['fsck', '--data', join(project.root, 'copy')])).stdout).toContain(
      '299 conversations: sound',
    );
  }, 120_000);

  it('a folder that is in use, is a link or cannot be written is refused, and nothing is left', async () => {
    await mkdir(join(project.root, 'full', 'x'), { recursive: true });
    await symlink(project.root, join(project.root, 'link'));
    await symlink(project.root, join(project.root, 'new.partial'));
    await writeFile(join(project.root, 'file'), '');
    const said = async (to: string) => (await project.parley('backup', to)).stderr;
    expect(await said('full')).toContain('it is not empty');
    expect(await said('link')).toContain('it is a link');
    expect(await said('new')).toContain('it is a link');
    expect(await said('file')).toContain('cannot become a backup');
    for (const inside of ['data/inside', 'link/data/inside'])
      expect(await said(inside)).toContain('it is in the data directory');
    expect(await said('file/below')).toContain('cannot become a backup: ENOTDIR');
    expect(
      (await runCli(['backup', 'x', '--data', 'none'], { workingDirectory: project.root })).stderr,
    ).toContain('no data directory');
    expect((await readdir(project.root)).sort()).toEqual([
      'config',
      'data',
      'file',
      'full',
      'link',
      'new.partial',
    ]);
  }, 120_000);
});

it('an imported conversation continues, and its export can be imported with the same result', async () => {
  const project = untilTestEnds(await openProject({ nats: {} }));
  const file = join(project.root, 'messages.json');
  await writeFile(file, JSON.stringify([{ role: 'user', content: 'long ago' }]));
  expect((await project.parley('import', file, '--conversation', 'old')).code).toBe(0);
  expect((await project.parley('import', file, '--conversation', 'old')).stdout).toContain('already');
  expect((await project.parley('import', 'nowhere.json', '--conversation', 'x')).code).toBe(2);
  expect((await project.parley('fsck', '--dry-run')).code).toBe(2);
  const daemon = await project.up();
  expect((await project.parley('say', 'old', 'and now?', '--wait')).code).toBe(0);
  expect((await project.parley('fsck', '--repair')).stderr).toContain('is in use by process');
  expect((await project.parley('fsck')).code).toBe(0); // beside a running daemon
  expect(await daemon.stop()).toBe(0);
  const exported = await project.parley('export', 'old');
  expect(exported.json()[0]).toMatchObject([
    { content: 'long ago' },
    { content: 'and now?' },
    { role: 'assistant' },
  ]);
  await writeFile(file, exported.stdout);
  expect((await project.parley('import', file, '--conversation', 'again')).code).toBe(0);
  expect((await project.parley('export', 'again')).stdout).toBe(exported.stdout);
  expect((await project.parley('fsck')).code).toBe(0);
}, 120_000);
