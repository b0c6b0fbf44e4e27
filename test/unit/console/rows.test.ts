import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConversationRow } from '../../../src/console/model/answers.ts';
import { changedRows, newestFirst, sharedTitlesOf } from '../../../src/console/model/list/list.ts';

const row = (id: string, second: number, title: string | null): ConversationRow => ({
  ...{ id, title, phase: 'chat', mode: 'chat', length: 1, activeAgent: null },
  ...{
    updatedAt: new Date(second * 1_000).toISOString(),
    running: [],
    waiting: [],
    limited: [],
    stopped: [],
  },
});

const id = fc.integer({ min: 0, max: 80 }).map(String);
const anyRow = fc
  .tuple(id, fc.integer({ min: 0, max: 9 }), fc.constantFrom(null, 'A', 'B', 'C'))
  .map(([one, second, title]) => row(one, second, title));
const step = fc.record({
  whole: fc.boolean(),
  changed: fc.oneof(fc.array(anyRow, { maxLength: 4 }), fc.array(anyRow, { minLength: 60, maxLength: 80 })),
  deleted: fc.array(id, { maxLength: 3 }),
});

describe('the rows of the list', () => {
  it('any changes give the rows, their order and the shared titles of a rebuild', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let rows: readonly ConversationRow[] = [];
        const known = new Map<string, ConversationRow>();
        for (const { whole, changed, deleted } of steps) {
          if (whole) known.clear();
          for (const one of changed) known.set(one.id, one);
          if (!whole) for (const one of deleted) known.delete(one);
          rows = changedRows(whole ? [] : rows, changed, whole ? [] : deleted);
          expect(rows).toEqual([...known.values()].sort(newestFirst));
          expect(rows.every((one) => known.get(one.id) === one)).toBe(true);
          const titles = [...known.values()].map(({ title }) => title);
          const shared = ['A', 'B', 'C'].filter((title) => titles.filter((one) => one === title).length > 1);
          expect([...sharedTitlesOf(rows)].sort()).toEqual(shared);
        }
      }),
    );
  });

  it('the newest row is first, and rows of the same time are in the order of their ids', () => {
    const before = changedRows([], [row('b', 1, null), row('a', 1, null), row('c', 2, null)], []);
    expect(before.map((one) => one.id)).toEqual(['c', 'a', 'b']);
    expect(changedRows(before, [row('b', 3, null)], []).map((one) => one.id)).toEqual(['b', 'c', 'a']);
  });
});
