import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RetentionConfig } from '../../../src/config/index.ts';
import { Retention } from '../../../src/daemon/api/retention.ts';
import type { Blobs } from '../../../src/persistence/index.ts';
import { putBlob } from '../../contract/blobs.contract.ts';
import { gate } from '../../support/gate.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

const DAY = 86_400_000;
const HOUR = DAY / 24;

describe('retention', () => {
  let daemon: TestDaemon;
  let now: number;
  let lettersExpired: number;
  beforeEach(() => {
    lettersExpired = 0;
    now = Date.parse('2026-01-01T00:00:00Z');
    daemon = createDaemon({ now: () => now });
  });
  afterEach(() => daemon.end());

  /** A conversation with one answered post. */
  async function converse(conversation: string): Promise<void> {
    const delivery = daemon.bus.delivery('alice', conversation, 'hello');
    await daemon.posts.deliver(delivery);
    await expect.poll(() => daemon.calls.length).toBeGreaterThan(0);
    daemon.calls.splice(0)[0]?.answer('fine');
    const worker = await daemon.workers.use(conversation);
    await expect.poll(() => worker.isIdle).toBe(true);
    daemon.runtime.progress.settledUpTo(delivery.position);
  }
  const tick = (isOurs = true, deadLetters: number | null = null, conversations: number | null = 90 * DAY) =>
    retention(isOurs, { conversations, deadLetters }).tick();
  const retention = (
    isOurs = true,
    config: RetentionConfig = { conversations: null, deadLetters: null },
    blobs: Pick<Blobs, 'sweep'> = daemon.runtime.store.blobs,
  ) =>
    new Retention({
      config,
      eraser: {
        async expireDeadLetters() {
          lettersExpired += 1;
          return 0;
        },
      },
      rows: () => daemon.workers.rows(),
      handle: (request) => daemon.api.handle(request),
      isOurs: async () => isOurs,
      firstAfterMs: 0,
      now: () => now,
      blobs,
      log: daemon.runtime.log,
    });
  const left = async () => (await daemon.workers.rows()).map(({ id }) => id);

  it('files that no message named for a day are erased at the start, without any retention', async () => {
    const { blobs } = daemon.runtime.store;
    const { facts } = await putBlob(daemon.runtime.store, 'unnamed');
    now = Date.now() + DAY - 1_000;
    await retention().sweep();
    expect(await blobs.facts(facts.sha256)).toEqual(facts);
    now += 2_000;
    const started = retention();
    started.start();
    await expect.poll(() => blobs.facts(facts.sha256)).toBeNull();
    await started.stop();
    expect(daemon.lines.filter((line) => line.includes('"files":1')).length).toBe(1);
  });

  it('a stop ends a sweep of files', async () => {
    const { open: begun, passed: isBegun } = gate();
    const sweep = (_: string, signal?: AbortSignal) =>
      new Promise<number>((resolve) => {
        begun();
        signal?.addEventListener('abort', () => resolve(0));
      });
    const running = retention(true, undefined, { sweep });
    running.start();
    await isBegun;
    await running.stop();
  });

  it('a sweep that fails is reported and does not end the daemon', async () => {
    await daemon.runtime.store.close();
    await retention().sweep();
    expect(daemon.lines.filter((line) => line.includes('were not all erased')).length).toBe(1);
  });

  it('retention deletes a conversation whose newest entry is too old, and no other', async () => {
    await converse('old');
    now += 60 * DAY;
    await converse('newer');
    now += 31 * DAY;
    expect(await tick()).toBe(true);
    expect(await left()).toEqual(['newer']);
    expect(daemon.lines.filter((line) => line.includes('"conversations":1')).length).toBe(1);
  });

  it('retention keeps a conversation until its age is reached', async () => {
    await converse('old');
    now += 90 * DAY - HOUR;
    await tick();
    expect(await left()).toEqual(['old']);
  });

  it('retention keeps a conversation in which a turn runs', async () => {
    await daemon.deliver('hello');
    daemon.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    now += 91 * DAY;
    await tick();
    expect(await left()).toEqual(['demo']);
    expect(daemon.calls[0]?.signal.aborted).toBe(false);
  });

  it('retention keeps a conversation with posts for a stopped agent', async () => {
    await converse('demo');
    await daemon.request('stop', { conversation: 'demo' });
    const later = daemon.bus.delivery('alice', 'demo', 'waits');
    await daemon.posts.deliver(later);
    daemon.runtime.progress.settledUpTo(later.position);
    now += 91 * DAY;
    const before = new Date(now - 90 * DAY).toISOString();
    expect(await daemon.request('delete', { conversation: 'demo', lastEntryBefore: before })).toMatchObject({
      body: { deleted: false, kept: 'posts wait for an agent' },
    });
    await tick();
    expect(await left()).toEqual(['demo']);
  });

  it('retention keeps a conversation with an unsettled post in the stream', async () => {
    await converse('demo');
    daemon.bus.delivery('alice', 'demo', 'unread');
    now += 91 * DAY;
    await tick();
    expect(await left()).toEqual(['demo']);
  });

  it('retention leaves a conversation to the daemon that works on it (RETENTION-2)', async () => {
    await converse('demo');
    now += 91 * DAY;
    expect(await tick(false)).toBe(true);
    expect(await left()).toEqual(['demo']);
  });

  it('retention deletes nothing after the clock was set forward by ten years, and reports it at each tick (RETENTION-4)', async () => {
    const warnings = () => daemon.lines.filter((line) => line.includes('the clock may be wrong')).length;
    await converse('one');
    await converse('two');
    now += 3_650 * DAY;
    expect(await tick(true, 30 * DAY)).toBe(true);
    expect([await left(), lettersExpired, warnings()]).toEqual([['one', 'two'], 0, 1]);
    await converse('later'); // by the wrong clock
    await tick(true, 30 * DAY);
    expect([await left(), lettersExpired, warnings()]).toEqual([['later', 'one', 'two'], 0, 2]);
    now -= 3_650 * DAY;
    await tick(true, 30 * DAY);
    expect([await left(), lettersExpired, warnings()]).toEqual([['later', 'one', 'two'], 1, 2]);
  });

  it('retention deletes after a stop of one week, and long overdue conversations as soon as another one becomes due (RETENTION-4)', async () => {
    await converse('oldest');
    now += 60 * DAY;
    await converse('old');
    now += 97 * DAY;
    await tick();
    expect(await left()).toEqual([]);
  });

  it('retention keeps dead letters when conversations have no age limit and no entry is recent (RETENTION-4)', async () => {
    await converse('one');
    now += 40 * DAY;
    await tick(true, 30 * DAY, null);
    expect(lettersExpired).toBe(0);
    await converse('two');
    await tick(true, 30 * DAY, null);
    expect(lettersExpired).toBe(1);
  });
});
