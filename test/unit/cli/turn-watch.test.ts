import { describe, expect, it } from 'vitest';
import { createTurnWatch } from '../../../src/cli/turn-watch.ts';
import type { Entry } from '../../../src/client/index.ts';
import { agent, ended, entryOf, person, started } from './support.ts';

const handoff = (index: number, from: string, to: string): Entry =>
  entryOf('handoff', index, { from, to, summary: 's' });

/** Observes one entry after the other and says after which one the watch is settled, or null. */
function settledAfter(agents: string[], entries: Entry[]): number | null {
  const watch = createTurnWatch();
  watch.owe(0, agents);
  for (const entry of entries) {
    watch.observe(entry);
    if (watch.settled) return entry.index;
  }
  return null;
}

describe('whether a turn is left to run', () => {
  it('settles at once when a message was routed to nobody', () => {
    const watch = createTurnWatch();
    watch.owe(0, []);
    expect(watch.settled).toBe(true);
  });

  it('settles when the turn that the message triggered has ended', () => {
    expect(
      settledAfter(['pm'], [person(0, 'hi'), started(1, 'pm', [0]), agent(2, 'pm', 'ho'), ended(3, 'pm')]),
    ).toBe(3);
  });

  it('waits for every agent that was addressed', () => {
    const entries = [started(1, 'pm', [0]), ended(2, 'pm'), started(3, 'dev', [0]), ended(4, 'dev')];
    expect(settledAfter(['pm', 'dev'], entries)).toBe(4);
  });

  it('does not take an earlier turn of the same agent for the answer', () => {
    const entries = [ended(1, 'pm', 'completed', 'old'), started(2, 'pm', [0]), ended(3, 'pm')];
    expect(settledAfter(['pm'], entries)).toBe(3);
  });

  it('takes a message shown in the middle of a turn as answered by that turn', () => {
    const delivered = entryOf('message-delivered', 1, { turnId: 'old', agent: 'pm', entries: [0] });
    expect(settledAfter(['pm'], [delivered, agent(2, 'pm', 'x'), ended(3, 'pm', 'completed', 'old')])).toBe(
      3,
    );
  });

  it('waits for whoever the floor is handed to', () => {
    const entries = [
      started(1, 'pm', [0]),
      handoff(2, 'pm', 'dev'),
      ended(3, 'pm'),
      started(4, 'dev', [2]),
      ended(5, 'dev'),
    ];
    expect(settledAfter(['pm'], entries)).toBe(5);
  });

  it('waits through a turn that waits for a delegation', () => {
    const delegation = entryOf('delegation-requested', 2, { from: 'pm', to: 'dev', request: 'r' });
    const result = agent(6, 'pm', 'r', { role: 'tool', answers: [5] });
    const entries = [
      started(1, 'pm', [0]),
      delegation,
      ended(3, 'pm', 'waiting'),
      started(4, 'dev', [2]),
      ended(5, 'dev'),
      result,
      started(7, 'pm', [5]),
      ended(8, 'pm'),
    ];
    expect(settledAfter(['pm'], entries)).toBe(8);
  });

  it('waits for the rest of a turn whose question the message answers', () => {
    const result = agent(1, 'pm', 'yes', { role: 'tool', answers: [0] });
    expect(settledAfter(['pm'], [result, started(2, 'pm', [0]), ended(3, 'pm')])).toBe(3);
  });

  it('does not wait for what a stop keeps from running', () => {
    const stop = (who: string | null) => entryOf('agent-stopped', 1, { agent: who, by: 'alice' });
    expect(settledAfter(['pm', 'dev'], [stop(null)])).toBe(1);
    expect(settledAfter(['pm', 'dev'], [stop('pm')])).toBeNull();
  });

  it('knows of a turn that was seen before the answer to the post came', () => {
    const watch = createTurnWatch();
    for (const entry of [person(0, 'hi'), started(1, 'pm', [0]), ended(2, 'pm')]) watch.observe(entry);
    watch.owe(0, ['pm']);
    expect(watch.settled).toBe(true);
  });

  it('tells which turns ended otherwise than completed', () => {
    const watch = createTurnWatch();
    for (const entry of [started(1, 'pm', [0]), ended(2, 'pm', 'failed')]) watch.observe(entry);
    expect(watch.unfinished).toEqual([{ agent: 'pm', outcome: 'failed' }]);
  });

  it('is quiet, though not settled, while a turn waits for a person', () => {
    const watch = createTurnWatch();
    watch.observe(started(1, 'pm', [0]));
    expect(watch.quiet).toBe(false);
    watch.observe(ended(2, 'pm', 'waiting'));
    expect([watch.quiet, watch.settled]).toEqual([true, false]);
  });
});
