import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Entry, pendingApprovals, type ToolRules } from '../../../src/conversation/index.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, postCommand, type World } from './world.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 0, 1);
const ASK: ToolRules = {
  judge: () => ({ kind: 'ask', risk: 'risky', why: 'it changes things' }),
  fingerprint: (text) => createHash('sha256').update(text).digest('hex'),
};

const worlds: World[] = [];
/** The wall clock, which can be set. Timers use a monotonic clock. */
let wall = START;

function open(approvalExpiryMs: number | undefined, disk = createMemoryDisk()): World {
  const world = createWorld({
    tools: ASK,
    disk,
    now: () => wall,
    ...(approvalExpiryMs && { approvalExpiryMs }),
  });
  worlds.push(world);
  return world;
}

/** pm calls a tool that needs a person's word; answers the approval's id. */
async function ask(world: World): Promise<string> {
  await world.workers.submit('demo', postCommand('m1', 'go', ['pm']));
  const { state } = await world.workers.use('demo');
  const turnId = state.agents.pm?.turn?.turnId ?? '';
  const toolCalls = [{ id: 'x', type: 'function', function: { name: 'shell', arguments: '{}' } } as const];
  const report = { agent: 'pm', turnId, duration: 1, requestHash: 'h', upTo: state.length };
  await world.workers.submit('demo', {
    type: 'model-answered',
    ...report,
    answer: { content: null, toolCalls },
  });
  return pendingApprovals((await world.workers.use('demo')).state)[0]?.approvalId ?? '';
}

async function pass(milliseconds: number): Promise<void> {
  wall += milliseconds;
  await vi.advanceTimersByTimeAsync(milliseconds);
}

async function answers(world: World): Promise<string[]> {
  const entries: readonly Entry[] = await world.entries();
  return entries.flatMap((entry) => (entry.type === 'approval-answered' ? [entry.answer] : []));
}

beforeEach(() => {
  wall = START;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.end();
  vi.useRealTimers();
});

describe('an unanswered approval', () => {
  it('an approval waits without limit by default', async () => {
    const world = open(undefined);
    await ask(world);
    await pass(24 * HOUR);
    expect(await answers(world)).toEqual([]);
  });

  it('an approval expires at its time, and not before', async () => {
    const world = open(HOUR);
    const id = await ask(world);
    await pass(HOUR - 1);
    expect(await answers(world)).toEqual([]);
    await pass(1);
    expect(await answers(world)).toEqual(['expired']);
    const late = await world.request('answer', { approvalId: id, answer: 'approve', publisher: 'alice' });
    expect(late).toMatchObject({ ok: false, refusal: { code: 'APPROVAL_EXPIRED' } });
  });

  it('an answered approval does not expire', async () => {
    const world = open(HOUR);
    const approvalId = await ask(world);
    await world.request('answer', { approvalId, answer: 'deny', publisher: 'alice' });
    await pass(2 * HOUR);
    expect(await answers(world)).toEqual(['deny']);
  });

  it('the time of an approval counts from its request, also across a restart', async () => {
    const disk = createMemoryDisk();
    const first = open(HOUR, disk);
    await ask(first);
    await pass(HOUR / 2);
    await first.end();
    wall += HOUR / 4; // the daemon is down
    const second = open(HOUR, disk);
    await second.workers.recover();
    await pass(HOUR / 4 - 1);
    expect(await answers(second)).toEqual([]);
    await pass(1);
    expect(await answers(second)).toEqual(['expired']);
  });

  it('an approval whose time ended while the daemon was down expires at the start', async () => {
    const disk = createMemoryDisk();
    const first = open(HOUR, disk);
    await ask(first);
    await first.end();
    wall += 2 * HOUR;
    const second = open(HOUR, disk);
    await second.workers.recover();
    await pass(0);
    expect(await answers(second)).toEqual(['expired']);
  });

  it('a clock that jumps ahead does not expire an approval early, and one that is set back does not keep it', async () => {
    const world = open(HOUR);
    await ask(world);
    wall += 1_000 * HOUR;
    await pass(HOUR - 1);
    expect(await answers(world)).toEqual([]);
    wall -= 5_000 * HOUR;
    await pass(1);
    expect(await answers(world)).toEqual(['expired']);
  });

  it('an approval waits no longer than its limit after a restart with a clock that was set back', async () => {
    const disk = createMemoryDisk();
    const first = open(HOUR, disk);
    await ask(first);
    await first.end();
    wall -= 10 * HOUR;
    const second = open(HOUR, disk);
    await second.workers.recover();
    await pass(HOUR);
    expect(await answers(second)).toEqual(['expired']);
  });

  it('an approval expires later if the disk is full at its time', async () => {
    const world = open(HOUR);
    await ask(world);
    world.faults.push(new Error('no space'));
    await pass(HOUR);
    expect(await answers(world)).toEqual([]);
    await pass(1_000);
    expect(await answers(world)).toEqual(['expired']);
  });

  it('a stopping daemon does not expire an approval', async () => {
    const disk = createMemoryDisk();
    const first = open(HOUR, disk);
    await ask(first);
    await first.end();
    await pass(2 * HOUR);
    const second = open(undefined, disk);
    expect(await answers(second)).toEqual([]);
  });
});
