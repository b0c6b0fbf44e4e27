import { describe, expect, it } from 'vitest';
import { keptReports } from '../../../src/conversation/index.ts';

const call = (title: string, result?: string) => ({
  ...{ title, kind: 'edit', status: 'completed' },
  ...(result !== undefined && { result }),
});

describe('the reported calls of an answer', () => {
  it('are kept as they are if they are short', () => {
    const calls = [{ ...call('a', 'done'), arguments: '{}' }, call('b')];
    expect(keptReports(calls)).toEqual(calls);
  });

  it('never exceed one append: each text is cut, later texts are left out, and every call stays', () => {
    const kept = keptReports(
      Array.from({ length: 256 }, (_, at) => call(`call ${at}`, 'x'.repeat(1_000_000))),
    );
    expect(kept).toHaveLength(256);
    expect(kept[0]?.result).toHaveLength(8_000);
    expect(kept.at(-1)).toEqual(call('call 255'));
    expect(JSON.stringify(kept).length).toBeLessThan(200_000);
  });
});
