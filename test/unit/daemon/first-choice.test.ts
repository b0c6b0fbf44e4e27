import { describe, expect, it } from 'vitest';
import { firstChoice } from '../../../src/daemon/cluster/reconciler.ts';

describe('the daemon that a conversation is offered to', () => {
  const TEAMS = [
    ['a', 'b'],
    ['host-1', 'host-2'],
    ['5f0c2d9e', '81b7a3c4'],
    ['QK2X', 'QK2Y', 'QK2Z'],
  ];
  it.each(TEAMS.map((daemons) => ({ daemons })))(
    'conversations with names that differ in their last digits are spread over $daemons',
    ({ daemons }) => {
      const counts = new Map<string, number>();
      for (let at = 0; at < 100; at++) {
        const chosen = firstChoice(`ticket-${at}`, daemons);
        counts.set(chosen, (counts.get(chosen) ?? 0) + 1);
      }
      expect([...counts.keys()].sort()).toEqual([...daemons].sort());
      expect(Math.min(...counts.values())).toBeGreaterThan(100 / daemons.length / 2);
    },
  );

  it('is the same whatever the order in which the daemons are known', () => {
    expect(firstChoice('demo', ['a', 'b', 'c'])).toBe(firstChoice('demo', ['c', 'b', 'a']));
  });
});
