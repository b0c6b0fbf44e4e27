import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { orFault } from '../../../src/daemon/serve.ts';
import { ParleyError } from '../../../src/kernel/index.ts';

/** SERVER-FAULTS-1 */
describe('orFault', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const fault = new ParleyError('NATS_SILENT', 'the nats-server does not answer');
  const never = () => new Promise<string>(() => undefined);

  it('work that a fault of the server delays is answered with the cause before two seconds', async () => {
    const answer = orFault(never(), { fault: () => fault }, ({ code }) => code);
    await vi.advanceTimersByTimeAsync(1_900);
    expect(await answer).toBe('NATS_SILENT');
  });

  it('work is answered by itself while the server has no fault, and however long it takes', async () => {
    let found: ParleyError | null = null;
    let isAnswered = false;
    const answer = orFault(never(), { fault: () => found }, ({ code }) => code);
    void answer.then(() => {
      isAnswered = true;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(isAnswered).toBe(false);
    found = fault;
    await vi.advanceTimersByTimeAsync(200);
    expect(await answer).toBe('NATS_SILENT');
    const done = orFault(Promise.resolve('done'), { fault: () => fault }, String);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await done).toBe('done');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an error of the work, and one of the answer instead of it, reach the caller', async () => {
    await expect(orFault(Promise.reject(new Error('broken')), { fault: () => null }, String)).rejects.toThrow(
      'broken',
    );
    const answer = orFault(never(), { fault: () => fault }, (thrown) => {
      throw thrown;
    });
    const rejected = expect(answer).rejects.toBe(fault);
    await vi.advanceTimersByTimeAsync(2_000);
    await rejected;
  });
});
