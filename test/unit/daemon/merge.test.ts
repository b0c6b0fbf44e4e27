import { describe, expect, it } from 'vitest';
import { mergedApprovals } from '../../../src/daemon/api/approvals.ts';
import { agentsOf, conversationsOf } from '../../../src/daemon/cluster/shared-api.ts';

describe('answers of several daemons as one', () => {
  it('say that an agent runs if it does so at any of them', () => {
    const agent = (slug: string, status: string) => ({ slug, name: slug, status });
    const own = { agents: [agent('pm', 'idle'), agent('dev', 'idle')] };
    const other = { agents: [agent('pm', 'running'), agent('dev', 'idle')] };
    const merged = { agents: [agent('pm', 'running'), agent('dev', 'idle')] };
    expect(agentsOf([own, other])).toEqual(merged);
    expect(agentsOf([other, own])).toEqual(merged);
    expect(agentsOf([])).toEqual({ agents: [] });
  });

  describe('list conversations', () => {
    const row = (id: string, length: number) => ({ id, length });
    const page = (next: string | null, ...conversations: { id: string; length: number }[]) => ({
      conversations,
      next,
    });

    it('once each, by id, as told by whoever knows most of it', () => {
      const merged = conversationsOf(
        [page(null, row('b', 3), row('c', 1)), page(null, row('a', 2), row('b', 9))],
        {},
      );
      expect(merged).toEqual(page(null, row('a', 2), row('b', 9), row('c', 1)));
    });

    it('only up to where each of them has told all', () => {
      const merged = conversationsOf(
        [page('b', row('a', 1), row('b', 1)), page('d', row('c', 1), row('d', 1))],
        {},
      );
      expect(merged).toEqual(page('b', row('a', 1), row('b', 1)));
    });

    it('as many as were asked for, with where to go on', () => {
      const pages = [page(null, row('a', 1), row('c', 1)), page(null, row('b', 1))];
      expect(conversationsOf(pages, { limit: 2 })).toEqual(page('b', row('a', 1), row('b', 1)));
      expect(conversationsOf(pages, { limit: 3 })).toMatchObject({ next: null });
    });
  });

  describe('list approvals', () => {
    const approval = (id: string, bytes = 10) => ({ approvalId: id, arguments: 'x'.repeat(bytes) });
    const sizeOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

    it('once each, and sum up what was left out', () => {
      const pages = [
        { approvals: [approval('1'), approval('2')], more: 3 },
        { approvals: [approval('2'), approval('3')] },
      ];
      const merged = { approvals: [approval('1'), approval('2'), approval('3')], more: 3 };
      expect(mergedApprovals(pages, 10_000)).toEqual(merged);
    });

    it('whole or not at all: what does not fit is counted, and hides no smaller one', () => {
      const pages = [
        { approvals: [approval('a', 4_000)] },
        { approvals: [approval('b', 4_000), approval('c')] },
      ];
      const merged = mergedApprovals(pages, 6_000);
      expect(merged).toEqual({ approvals: [approval('a', 4_000), approval('c')], more: 1 });
    });

    it('with as many as fit, and with one at least', () => {
      const pages = ['a', 'b', 'c'].map((name) => ({
        approvals: Array.from({ length: 20 }, (_, n) => approval(`${name}${n}`, 1_000)),
        more: 1,
      }));
      const merged = mergedApprovals(pages, 4_000);
      expect(sizeOf(merged.approvals)).toBeLessThanOrEqual(4_000);
      expect(merged.approvals.length).toBeGreaterThan(1);
      expect(merged.more).toBe(63 - merged.approvals.length);
      expect(mergedApprovals(pages, 10).approvals).toHaveLength(1);
    });
  });
});
