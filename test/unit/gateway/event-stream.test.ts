import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { eventStream } from '../../../src/gateway/course/event-stream.ts';

describe('frames as a stream of events', () => {
  it('release what they hold when making the next one fails, and end the stream with the error', async () => {
    let gone = 0;
    async function* frames(): AsyncGenerator<string> {
      yield 'data: first\n\n';
      throw new Error('a bug');
    }
    const { body } = eventStream(frames(), { heartbeatMs: 5, onGone: () => (gone += 1) });
    const reader = body!.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: first\n\n');
    await expect(reader.read()).rejects.toThrow('a bug');
    expect(gone).toBe(1);
    await pause(30); // several heartbeats
    expect(gone).toBe(1);
  });
});
