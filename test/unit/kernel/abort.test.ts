import { getEventListeners } from 'node:events';
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

  it('a child that is unlinked leaves no listener at a long-lived parent, and is not aborted', () => {
    const parent = new AbortController();
    const links = Array.from({ length: 50 }, () => linkedAbort(parent.signal));
    const listeners = () => getEventListeners(parent.signal, 'abort').length;
    expect(listeners()).toBe(50);
    const [last, ...others] = links;
    for (const link of others) link.unlink();
    for (const link of others) link.unlink();
    expect(listeners()).toBe(1);
    last?.unlink();
    expect(listeners()).toBe(0);
    parent.abort();
    expect(links.some((link) => link.signal.aborted)).toBe(false);
  });

  it('a child that is linked after the last one was unlinked is aborted too', () => {
    const parent = new AbortController();
    linkedAbort(parent.signal).unlink();
    const [child, unlinked] = [linkedAbort(parent.signal), linkedAbort(parent.signal)];
    unlinked.unlink();
    parent.abort('over');
    expect([child.signal.reason, unlinked.signal.aborted]).toEqual(['over', false]);
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
