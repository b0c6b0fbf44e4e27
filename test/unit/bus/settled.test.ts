import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  covers,
  isAhead,
  LowWaterMark,
  markOf,
  parseSettledRecord,
  type Settled,
  type SettledRecord,
  startOf,
  union,
} from '../../../src/bus/settled.ts';
import { expectEqual } from '../../support/expect-equal.ts';

const LIFE = '2026-11-22T09:57:09.070717376Z';
const A = { id: 'a', name: 'data directory /a' };
const B = { id: 'b', name: 'data directory /b' };
const upTo = (sequence: number, open: number[] = []): Settled => ({ upTo: sequence, open });
const record = (settled: Settled, more: Partial<SettledRecord> = {}): SettledRecord => ({
  stream: LIFE,
  by: A,
  settled,
  before: null,
  last: null,
  reader: null,
  ...more,
});
const stream = { created: LIFE, last: 100 };
const at = (sequence: number) => ({ stream: LIFE, sequence });
const begin = (query: Partial<Parameters<typeof startOf>[0]>) =>
  startOf({ own: null, owner: B, record: null, isReplay: false, stream, ...query });

describe('the position at which a store starts to read posts', () => {
  it('the start position follows what another store settled if the store has no position of its own', () => {
    const known = record(upTo(10));
    expect(begin({ record: known })).toEqual({
      position: at(10),
      skip: null,
      before: upTo(10),
      elsewhere: { after: 0, settled: upTo(10), by: A.name },
      isKnown: true,
    });
  });

  it('the start position is the first post that another store left open, and what is settled after it is skipped', () => {
    const settled = upTo(20, [11, 15]);
    const start = begin({ record: record(settled) });
    expect(start.position).toEqual(at(10));
    const skips = covers(start.skip ?? upTo(0));
    const delivered = Array.from({ length: 12 }, (_, n) => n + 11).filter((sequence) => !skips(sequence));
    expect(delivered).toEqual([11, 15, 21, 22]);
  });

  it("the start position is the store's own one if that is newer, or if the record is its own", () => {
    expect(begin({ own: at(12), record: record(upTo(10)) })).toMatchObject({
      position: at(12),
      elsewhere: null,
    });
    const own = record(upTo(10, [9]), { by: B });
    expect(begin({ own: at(4), record: own })).toEqual({
      position: at(4),
      skip: null,
      before: null,
      elsewhere: null,
      isKnown: true,
    });
    expect(begin({ record: own }).position).toBeNull();
  });

  it('the start position follows what other stores settled before it, also without a position of its own', () => {
    const own = record(upTo(30), { by: B, before: upTo(20, [18]) });
    expect(begin({ record: own })).toMatchObject({
      position: at(17),
      skip: upTo(20, [18]),
      elsewhere: null,
    });
    expect(begin({ own: at(25), record: own })).toMatchObject({ position: at(25), skip: null });
  });

  it("the start position is the store's own one if the record is of another stream, or of one that lost its end", () => {
    for (const unfit of [record(upTo(10), { stream: 'another' }), record(upTo(101))])
      expect(begin({ own: at(4), record: unfit })).toMatchObject({ position: at(4), elsewhere: null });
    const other = { stream: 'another', sequence: 40 };
    expect(begin({ own: other, record: record(upTo(10)) }).position).toEqual(at(10));
    expect(begin({ own: other }).position).toEqual(other); // The reader reports that the stream is another one.
  });

  it('the start position of a replay is the oldest post, whatever is settled', () => {
    const start = begin({ own: at(12), record: record(upTo(50)), isReplay: true });
    expect(start).toEqual({ position: null, skip: null, before: null, elsewhere: null, isKnown: true });
  });
});

describe('whether it is known which posts of a stream are settled', () => {
  const earlier = { stream: 'earlier', sequence: 40 };
  type Known = Partial<Pick<Parameters<typeof startOf>[0], 'own' | 'record'>>;
  it.each<[boolean, string, Known]>([
    [false, 'no position and no record: an empty data directory on a server with posts', {}],
    [true, 'a position: a restart, with or without posts that arrived meanwhile', { own: at(4) }],
    [true, 'a position after the end: the server lost its newest posts', { own: at(400) }],
    [false, 'a position in an earlier life: the stream was created again', { own: earlier }],
    [true, 'a record of another store: its posts are skipped', { record: record(upTo(10)) }],
    [true, 'a record, and a position in an earlier life', { own: earlier, record: record(upTo(10)) }],
    [false, 'a record of an earlier life', { record: record(upTo(10), { stream: 'earlier' }) }],
    [
      false,
      'a record of another store on a server that lost its newest posts',
      { record: record(upTo(101)) },
    ],
    [true, 'a record of this store: a copy of its logs', { record: record(upTo(101), { by: B }) }],
  ])('%s: %s', (isKnown, _, known) => {
    expect(begin(known).isKnown).toBe(isKnown);
  });
});

it('SETTLED-8: a store reads again what is after its own record, and only then', () => {
  const cut = (own: ReturnType<typeof at> | null, known: SettledRecord | null) =>
    begin({ own, record: known }).position;
  expect(cut(at(12), record(upTo(10, [4]), { by: B }))).toEqual(at(10));
  expect(cut(at(9), record(upTo(10), { by: B }))).toEqual(at(9));
  expect(cut(at(101), record(upTo(10), { by: B }))).toEqual(at(101)); // after the end of the stream
  expect(cut(at(12), record(upTo(10)))).toEqual(at(12)); // of another store
  expect(cut(at(12), record(upTo(10), { by: B, stream: 'earlier' }))).toEqual(at(12));
  expect([cut(at(12), null), cut(null, record(upTo(10), { by: B }))]).toEqual([at(12), null]);
});

describe('sets of settled posts', () => {
  const sets = fc.tuple(fc.nat(30), fc.uniqueArray(fc.integer({ min: 1, max: 30 }))).map(([last, open]) =>
    upTo(
      last,
      open.filter((one) => one < last).sort((one, other) => one - other),
    ),
  );

  it('the union of sets of settled posts is exact', () => {
    fc.assert(
      fc.property(sets, sets, (one, other) => {
        const [inOne, inOther, inBoth] = [covers(one), covers(other), covers(union(one, other))];
        for (let sequence = 1; sequence <= 32; sequence++)
          expect(inBoth(sequence)).toBe(inOne(sequence) || inOther(sequence));
      }),
    );
  });

  it('a set of settled posts has a mark up to which everything is settled', () => {
    expect([upTo(7), upTo(7, [3, 5]), upTo(0)].map(markOf)).toEqual([7, 2, 0]);
  });

  it('the set of a reader never contains a post that is not settled, however few open ones it may list', () => {
    const steps = fc.array(fc.nat(), { maxLength: 120 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 5 }), (picks, mostOpen) => {
        const mark = new LowWaterMark(3);
        const open: number[] = [];
        const settled = new Set<number>();
        let next = 4;
        for (const pick of picks) {
          if (pick % 2 === 0 || open.length === 0) {
            mark.open(next);
            open.push(next);
            next += 1;
          } else {
            const [one] = open.splice(pick % open.length, 1);
            mark.settle(one!);
            settled.add(one!);
          }
          const found = mark.settled(mostOpen);
          expect(found.open.length).toBeLessThanOrEqual(mostOpen);
          expect(markOf(found)).toBeGreaterThanOrEqual(mark.value);
          const has = covers(found);
          for (let sequence = 4; sequence < next; sequence++)
            if (has(sequence)) expect(settled).toContain(sequence);
          if (open.length <= mostOpen) for (const sequence of settled) expect(has(sequence)).toBe(true);
        }
      }),
    );
  });
});

describe('the record of settled posts', () => {
  it('the record of settled posts is replaced only by a newer one', () => {
    const known = record(upTo(10, [5, 7]));
    const more = [upTo(8), upTo(11, [5, 7]), upTo(10, [5])];
    const less = [upTo(10, [5, 7]), upTo(9, [5]), upTo(20, [3]), upTo(4)];
    expect(more.map((settled) => isAhead(record(settled, { by: B }), known))).toEqual([true, true, true]);
    expect(less.map((settled) => isAhead(record(settled, { by: B }), known))).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(isAhead(record(upTo(1), { stream: 'another' }), known)).toBe(true);
    expect(isAhead(record(upTo(1)), null)).toBe(true);
  });

  it('the record of settled posts is read back unchanged, and any other text counts as no record', () => {
    const full = record(upTo(10, [5]), {
      before: upTo(3),
      last: { sequence: 12, time: '1790000000000000001' },
    });
    for (const one of [full, record(upTo(0))]) expect(parseSettledRecord(JSON.stringify(one))).toEqual(one);
    const wrong: unknown[] = [
      null,
      [],
      { ...full, by: 'a' },
      { ...full, stream: 1 },
      { ...full, settled: { upTo: -1, open: [] } },
      { ...full, settled: { upTo: 1, open: ['2'] } },
      { ...full, before: 3 },
      { ...full, last: { sequence: 1, time: 'now' } },
    ];
    for (const one of wrong) expect(parseSettledRecord(JSON.stringify(one)), JSON.stringify(one)).toBeNull();
    expect(parseSettledRecord('{')).toBeNull();
  });
});

describe('the low-water mark of posts that are settled out of order', () => {
  it('the low-water mark is the newest post before which everything is settled, for any order of settling', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 });
    const steps = fc.array(fc.nat(), { maxLength: 200 });
    fc.assert(
      fc.property(gaps, steps, (distances, picks) => {
        const mark = new LowWaterMark(0);
        let sequence = 0;
        const opened = distances.map((distance) => {
          sequence += distance;
          return sequence;
        });
        const waiting = [...opened];
        const underWay: number[] = [];
        const settled = new Set<number>();
        for (const pick of picks) {
          if (pick % 2 === 0 && waiting.length > 0) {
            const next = waiting.shift()!;
            mark.open(next);
            underWay.push(next);
          } else if (underWay.length > 0) {
            const [one] = underWay.splice(pick % underWay.length, 1);
            const before = mark.value;
            const moved = mark.settle(one!);
            settled.add(one!);
            expectEqual(moved, mark.value !== before);
          }
          const oldestOpen = opened.find((one) => !settled.has(one)) ?? Number.POSITIVE_INFINITY;
          const expected = opened.filter((one) => one < oldestOpen).at(-1) ?? 0;
          expectEqual(mark.value, expected); // SETTLED-5, SETTLED-6
        }
      }),
    );
  });

  it('the low-water mark needs little memory after many posts', () => {
    const mark = new LowWaterMark(10);
    expect(mark.value).toBe(10);
    for (let sequence = 11; sequence < 20_000; sequence += 2) {
      mark.open(sequence);
      mark.open(sequence + 1);
      const moved = [mark.settle(sequence + 1), mark.settle(sequence)];
      expectEqual([moved, mark.value], [[false, true], sequence + 1]);
    }
  });
});
