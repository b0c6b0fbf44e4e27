import { describe, expect, it } from 'vitest';
import { coalesce } from '../../../src/persistence/storage.ts';

/** Work whose runs the test ends. */
function steered(): { work: () => Promise<void>; runs: { end: (error?: Error) => void }[] } {
  const runs: { end: (error?: Error) => void }[] = [];
  const work = () =>
    new Promise<void>((resolve, reject) => {
      runs.push({ end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  return { work, runs };
}

describe('coalesce', () => {
  it('all calls during a run share one later run', async () => {
    const { work, runs } = steered();
    const request = coalesce(work);
    const first = request();
    const later = [request(), request(), request()];
    expect(runs).toHaveLength(1);
    runs[0]?.end();
    await first;
    await Promise.resolve();
    expect(runs).toHaveLength(2);
    runs[1]?.end();
    await Promise.all(later);
    expect(runs).toHaveLength(2);
  });

  it('a failed run fails only its own callers, and the others get a new run', async () => {
    const { work, runs } = steered();
    const request = coalesce(work);
    const first = request();
    const second = request();
    runs[0]?.end(new Error('disk'));
    await expect(first).rejects.toThrow('disk');
    await Promise.resolve();
    runs[1]?.end();
    await second;
    const third = request();
    runs[2]?.end();
    await third;
    expect(runs).toHaveLength(3);
  });
});
