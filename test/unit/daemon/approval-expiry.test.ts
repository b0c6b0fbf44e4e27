import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { refusedWith } from '../../support/error-with.ts';
import { ASK_FOR_EACH, askApproval, createDaemon, type TestDaemon } from './daemon.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);

const daemons: TestDaemon[] = [];
/** The wall clock, which can be set. Timers use a monotonic clock. */
let wall = START;

function open(approvalExpiryMs: number | undefined, disk = createMemoryDisk()): TestDaemon {
  const expiry = { now: () => wall, ...(approvalExpiryMs && { approvalExpiryMs }) };
  const daemon = createDaemon({ tools: ASK_FOR_EACH, disk, ...expiry });
  daemons.push(daemon);
  return daemon;
}

/** A daemon that asks for an approval and ends after a while, and one that starts when the wall clock has moved so far. */
async function restarted({ after = 0, moved = 0 }): Promise<TestDaemon> {
  const disk = createMemoryDisk();
  const first = open(HOUR, disk);
  await askApproval(first);
  await pass(after);
  await first.end();
  wall += moved;
  const second = open(HOUR, disk);
  await second.workers.recover();
  return second;
}

async function pass(milliseconds: number): Promise<void> {
  wall += milliseconds;
  await vi.advanceTimersByTimeAsync(milliseconds);
}

async function answers(daemon: TestDaemon): Promise<string[]> {
  const entries: readonly Entry[] = await daemon.entries();
  return entries.flatMap((entry) => (entry.type === 'approval-answered' ? [entry.answer] : []));
}

beforeEach(() => {
  wall = START;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.end();
  vi.useRealTimers();
});

describe('an unanswered approval', () => {
  it('an approval waits without limit by default', async () => {
    const daemon = open(undefined);
    await askApproval(daemon);
    await pass(24 * HOUR);
    expect(await answers(daemon)).toEqual([]);
  });

  it('an approval expires at its time, and not before', async () => {
    const daemon = open(HOUR);
    const id = await askApproval(daemon);
    await pass(HOUR - 1);
    expect(await answers(daemon)).toEqual([]);
    await pass(1);
    expect(await answers(daemon)).toEqual(['expired']);
    const late = await daemon.request('answer', { approvalId: id, answer: 'approve', publisher: 'alice' });
    expect(late).toMatchObject(refusedWith('APPROVAL_EXPIRED'));
  });

  it('an answered approval does not expire', async () => {
    const daemon = open(HOUR);
    const approvalId = await askApproval(daemon);
    await daemon.request('answer', { approvalId, answer: 'deny', publisher: 'alice' });
    await pass(2 * HOUR);
    expect(await answers(daemon)).toEqual(['deny']);
  });

  it('the time of an approval counts from its request, also across a restart', async () => {
    const daemon = await restarted({ after: HOUR / 2, moved: HOUR / 4 });
    await pass(HOUR / 4 - 1);
    expect(await answers(daemon)).toEqual([]);
    await pass(1);
    expect(await answers(daemon)).toEqual(['expired']);
  });

  it('an approval whose time ended while the daemon was down expires at the start', async () => {
    const daemon = await restarted({ moved: 2 * HOUR });
    await pass(0);
    expect(await answers(daemon)).toEqual(['expired']);
  });

  it('a clock that jumps ahead does not expire an approval early, and one that is set back does not keep it', async () => {
    const daemon = open(HOUR);
    await askApproval(daemon);
    wall += 1_000 * HOUR;
    await pass(HOUR - 1);
    expect(await answers(daemon)).toEqual([]);
    wall -= 5_000 * HOUR;
    await pass(1);
    expect(await answers(daemon)).toEqual(['expired']);
  });

  it('an approval waits no longer than its limit after a restart with a clock that was set back', async () => {
    const daemon = await restarted({ moved: -10 * HOUR });
    await pass(HOUR);
    expect(await answers(daemon)).toEqual(['expired']);
  });

  it('an approval expires later if the disk is full at its time', async () => {
    const daemon = open(HOUR);
    await askApproval(daemon);
    daemon.faults.push(new Error('no space'));
    await pass(HOUR);
    expect(await answers(daemon)).toEqual([]);
    await pass(1_000);
    expect(await answers(daemon)).toEqual(['expired']);
  });

  it('a stopping daemon does not expire an approval', async () => {
    const disk = createMemoryDisk();
    const first = open(HOUR, disk);
    await askApproval(first);
    await first.end();
    await pass(2 * HOUR);
    const second = open(undefined, disk);
    expect(await answers(second)).toEqual([]);
  });
});
