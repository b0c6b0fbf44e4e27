import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConversationRow } from '../../../src/console/model/answers.ts';
import { Rows } from '../../../src/console/model/list/rows.ts';

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
const ids = ({ sorted }: Rows) => sorted.map(({ id }) => id);

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
  it('ROWS-1 any changes give the rows, their order and the shared titles of a rebuild', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const rows = new Rows();
        const known = new Map<string, ConversationRow>();
        for (const { whole, changed, deleted } of steps) {
          if (whole) known.clear();
          for (const one of changed) known.set(one.id, one);
          if (!whole) for (const one of deleted) known.delete(one);
          if (whole) rows.replace(changed);
          else rows.change(changed, deleted);
          const rebuilt = new Rows();
          rebuilt.replace([...known.values()]);
          expect(ids(rows)).toEqual(ids(rebuilt));
          expect(rows.sorted.every((one) => known.get(one.id) === one && rows.get(one.id) === one)).toBe(
            true,
          );
          const titles = [...known.values()].map(({ title }) => title);
          const shared = ['A', 'B', 'C'].filter((title) => titles.filter((one) => one === title).length > 1);
          expect([...rows.sharedTitles].sort()).toEqual(shared);
        }
      }),
    );
  });

  it('the newest row is first, and rows of the same time are in the order of their ids', () => {
    const rows = new Rows();
    rows.replace([row('b', 1, null), row('a', 1, null), row('c', 2, null)]);
    expect(ids(rows)).toEqual(['c', 'a', 'b']);
    rows.change([row('b', 3, null)], []);
    expect(ids(rows)).toEqual(['b', 'c', 'a']);
  });

  it('a change that shares no title leaves the set of shared titles', () => {
    const rows = new Rows();
    rows.replace([row('a', 1, 'A'), row('b', 2, 'A')]);
    const before = rows.sharedTitles;
    rows.change([row('a', 3, 'A'), row('c', 4, 'C')], []);
    expect(rows.sharedTitles).toBe(before);
  });
});
