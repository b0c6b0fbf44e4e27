import { getEventListeners, setMaxListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { linkedAbort, sleep } from '../../../src/kernel/index.ts';

describe('a linked abort', () => {
  it('the parent aborts its child with its reason, and the child does not abort its parent', () => {
    const parent = new AbortController();
    const child = linkedAbort(parent.signal);
    const other = linkedAbort(parent.signal);
    other.abort('alone');
    expect([parent.signal.aborted, child.signal.aborted, other.signal.reason]).toEqual([
      false,
      false,
      'alone',
    ]);
    parent.abort('everybody');
    expect([child.signal.reason, other.signal.reason]).toEqual(['everybody', 'alone']);
  });

  it('a child of an aborted parent is aborted from the start', () => {
    const child = linkedAbort(AbortSignal.abort('over'));
    expect(child.signal.reason).toBe('over');
  });

  it('unlink removes the listener from a long-lived parent', () => {
    const parent = new AbortController();
    setMaxListeners(0, parent.signal); // as the daemon's signal, which has many listeners
    const links = Array.from({ length: 50 }, () => linkedAbort(parent.signal));
    expect(getEventListeners(parent.signal, 'abort').length).toBe(50);
    for (const link of links) link.unlink();
    expect(getEventListeners(parent.signal, 'abort').length).toBe(0);
    parent.abort();
    expect(links.some((link) => link.signal.aborted)).toBe(false);
  });
});

describe('sleep', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('sleep ends after its time and removes its listener', async () => {
    const { signal } = new AbortController();
    const slept = sleep(1_000, signal);
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort').length]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(1_000);
    await slept;
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });

  it('an abort ends sleep at once and clears its timer', async () => {
    const controller = new AbortController();
    const slept = sleep(1_000_000, controller.signal);
    controller.abort();
    await slept;
    await sleep(1_000_000, controller.signal); // already aborted
    expect(vi.getTimerCount()).toBe(0);
  });
});
