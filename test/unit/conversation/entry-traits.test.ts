import { describe, expect, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import {
  ENTRY_TRAITS,
  type Entry,
  type EntryType,
  type entrySchema,
  evolve,
  Knowledge,
  routedTo,
  traitsOf,
} from '../../../src/conversation/index.ts';
import { EMPTY_STATE } from '../../../src/conversation/state/state.ts';

it('every entry type has a schema: the union that reads logs covers the table of traits', () => {
  expectTypeOf<z.infer<typeof entrySchema>['type']>().toEqualTypeOf<EntryType>();
  expect(Object.keys(ENTRY_TRAITS)).toHaveLength(27);
});

describe('an entry type of a newer version', () => {
  const author = { kind: 'person', id: 'alice', name: 'Alice' } as const;

  it.each(['colour-set', 'constructor', '__proto__'])(
    'the unknown type %s is shown to no agent, routed to none, and skipped by the fold',
    (type) => {
      const entry = { index: 0, id: 'a', createdAt: '', author, to: ['pm'], content: 'hi', type };
      const unknown = entry as unknown as Entry;
      expect(traitsOf(unknown)).toEqual({
        shownTo: 'none',
        isRouted: false,
        isInAwayBlock: false,
        isProgress: true,
        isMachinery: false,
      });
      expect(routedTo(unknown)).toEqual([]);
      expect(evolve(EMPTY_STATE, unknown)).toEqual({ ...EMPTY_STATE, length: 1, updatedAt: '' });
      const knowledge = new Knowledge('pm', { includeCollapsed: false });
      knowledge.catchUp([unknown]);
      expect(knowledge.history).toEqual([]);
    },
  );
});
