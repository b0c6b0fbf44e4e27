import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { eventStream } from '../../../src/gateway/progress/event-stream.ts';

describe('frames as a stream of events', () => {
  it('an event stream releases its resources and reports the error when the next frame fails', async () => {
    let gone = 0;
    const faults: unknown[] = [];
    async function* frames(): AsyncGenerator<string> {
      yield 'data: first\n\n';
      throw new Error('a bug');
    }
    const { body } = eventStream(frames(), {
      heartbeatMs: 5,
      closing: new AbortController().signal,
      onGone: () => {
        gone += 1;
      },
      onFault: (error) => void faults.push(error),
    });
    const reader = body!.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: first\n\n');
    expect(await reader.read()).toMatchObject({ done: true });
    expect(faults).toEqual([new Error('a bug')]);
    expect(gone).toBe(1);
    await pause(30); // several heartbeats
    expect(gone).toBe(1);
  });
});
