import { type JetStreamManager, NatsError, nanos, type StreamConfig } from 'nats';
import { describe, expect, it } from 'vitest';
import { ensureStreams as ensureBusStreams } from '../../../src/bus/nats/streams/streams.ts';
import { createSubjects, streamsOf } from '../../../src/bus/subjects.ts';
import type { FindingKind } from '../../../src/daemon/offline/fsck.ts';
import { appendHeaders } from '../../../src/persistence/jetstream/stream-log.ts';
import { ensureStoreStreams } from '../../../src/persistence/jetstream/streams.ts';
import { FORMAT, storePaths } from '../../../src/persistence/jsonl/directory/layout.ts';
import { codeIn, specPage } from './tables.ts';

/** docs/spec/storage.md names streams, files and findings; here they are compared with the code. */

const { page, rowsOf, firstColumn } = specPage('storage.md');

/** The streams that a start makes on a server that has none. */
async function madeStreams(): Promise<Partial<StreamConfig>[]> {
  const made: Partial<StreamConfig>[] = [];
  const manager = {
    streams: {
      info(name: string) {
        const found = made.find((one) => one.name === name);
        if (found) return Promise.resolve({ config: found, created: '' });
        const error = new NatsError('none', '404');
        error.api_error = { err_code: 10_059, code: 404, description: '' };
        return Promise.reject(error);
      },
      add(config: Partial<StreamConfig>) {
        made.push(config);
        return Promise.resolve({ config, created: '' });
      },
    },
  } as unknown as JetStreamManager;
  const subjects = createSubjects();
  await ensureBusStreams(manager, subjects, {});
  await ensureStoreStreams(manager, subjects);
  return made;
}

describe('docs/spec/storage.md', () => {
  it('docs/spec/storage.md has the subject, the discard policy and the other settings of each stream', async () => {
    const made = await madeStreams();
    const said = rowsOf('Streams').map(([name = '', subject = '', discard = '', other = '']) => ({
      name: codeIn(name)[0],
      subjects: codeIn(subject),
      discard: codeIn(discard)[0],
      window: other.includes('`duplicate_window` 100 ms'),
      denyDelete: other.includes('`deny_delete`'),
      posts: other.includes('`max_msgs` 1,000,000'),
      bytes: other.includes('`max_bytes` 64 MiB'),
      newestOnly: other.includes('`max_msgs_per_subject` 1'),
    }));
    const done = made.map((one) => ({
      name: one.name,
      subjects: one.subjects,
      discard: one.discard,
      window: one.duplicate_window === nanos(100),
      denyDelete: one.deny_delete === true,
      posts: one.max_msgs === 1_000_000,
      bytes: one.max_bytes === 64 * 1024 ** 2,
      newestOnly: one.max_msgs_per_subject === 1,
    }));
    const byName = (left: { name?: string | undefined }, right: { name?: string | undefined }) =>
      `${left.name}`.localeCompare(`${right.name}`);
    expect(said.sort(byName)).toEqual(done.sort(byName));
    for (const one of made) {
      expect(one).toMatchObject({
        retention: 'limits',
        storage: 'file',
        max_age: 0,
        allow_rollup_hdrs: false,
      });
    }
  });

  it('docs/spec/storage.md names every stream and bucket', () => {
    const { stateBucket, outputBucket } = createSubjects();
    const named = [...firstColumn('Streams').filter((name) => name.startsWith('PARLEY_'))];
    const buckets = [stateBucket, outputBucket].filter((bucket) => page.includes(`\`${bucket}\``));
    const streams = [...named, ...buckets.map((bucket, at) => `${at === 0 ? 'KV' : 'OBJ'}_${bucket}`)];
    expect(streams.sort()).toEqual(streamsOf(createSubjects()).sort());
  });

  it('docs/spec/storage.md names every path of a data directory', () => {
    const paths = storePaths('');
    const functions = [paths.log, paths.audit, paths.state].map((path) => path('<folder>'));
    const {
      root: _,
      conversations: __,
      marks,
      definitions,
      lock,
      blobs,
      blobRecords,
      deleting,
      people,
      ...rest
    } = paths;
    const files = Object.values(rest).filter((path): path is string => typeof path === 'string');
    const expected = [...functions, ...files, lock, paths.output('<folder>', '<entry>')];
    const ofBlobs = [
      `${blobs}/<2 digits>/<hash>`,
      `${blobRecords}/<hash>.json`,
      `${deleting}/<folder>.json`,
      `${people}/<hash>.json`,
    ];
    const marked = [`${marks}/<folder>`, `${marks}/.complete`, `${definitions}/<hash>`];
    expect(firstColumn('Files').sort()).toEqual([...expected, ...marked, ...ofBlobs].sort());
  });

  it('docs/spec/storage.md has the headers of an append', () => {
    const made = appendHeaders('a', 1, 1, { claim: { daemon: 'd', epoch: 1 }, hasOutstandingWork: true });
    expect(firstColumn('The message of an append').sort()).toEqual([...made.keys()].sort());
  });

  it('docs/spec/storage.md has the version of the format', () => {
    expect(page).toContain(JSON.stringify({ format: FORMAT }).slice(0, -1));
  });

  it('docs/spec/storage.md has a row for each kind of finding', () => {
    const kinds: Record<FindingKind, true> = {
      ...{ damage: true, 'torn-tail': true, law: true, 'stray-call': true, audit: true, output: true },
      ...{ row: true, state: true, mark: true, deleted: true, unreadable: true },
      ...{ definition: true, view: true, file: true },
    };
    expect(firstColumn('What fsck checks').sort()).toEqual(Object.keys(kinds).sort());
  });
});
