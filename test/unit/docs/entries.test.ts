import { describe, expect, it } from 'vitest';
import { commonFields, type Entry, entrySchema, Knowledge } from '../../../src/conversation/index.ts';
import { codeIn, specPage } from './tables.ts';

/** docs/spec/entries.md names every field of every type of entry. */

const { rowsOf } = specPage('entries.md');

const COMMON = Object.keys(commonFields);
const schemas = new Map(entrySchema.options.map(({ shape }) => [shape.type.value, shape]));
const types = [...schemas.keys()].filter((type) => type !== 'message');

/** The fields that only this type requires or allows, optional ones with a `?`. */
function fieldsOf(type: string): string[] {
  const own = Object.entries(schemas.get(type as Entry['type']) ?? {}).filter(
    ([field]) => field !== 'type' && (!COMMON.includes(field) || field === 'sessionId'),
  );
  return own
    .filter(([field, schema]) => field !== 'sessionId' || !schema.isOptional())
    .map(([field, schema]) => `${field}${schema.isOptional() ? '?' : ''}`)
    .sort();
}

describe('docs/spec/entries.md', () => {
  it('docs/spec/entries.md has a row for each field that every entry can have', () => {
    const named = rowsOf('Every entry').flatMap(([first = '']) => codeIn(first));
    expect(named.sort()).toEqual([...COMMON, 'type'].sort());
  });

  it('docs/spec/entries.md has a row for each field of a message', () => {
    const named = rowsOf('Messages').flatMap(([first = '']) => codeIn(first));
    expect(named.sort()).toEqual(
      fieldsOf('message')
        .map((field) => field.replace('?', ''))
        .sort(),
    );
  });

  it('docs/spec/entries.md has a row for each other entry type, in the order of the schema', () => {
    expect(rowsOf('Other types').map(([first = '']) => codeIn(first)[0])).toEqual(types);
  });

  it.each(types)('docs/spec/entries.md has each field of %s', (type) => {
    const row = rowsOf('Other types').find(([first = '']) => codeIn(first)[0] === type);
    expect(codeIn(row?.[1] ?? '').sort()).toEqual(fieldsOf(type));
  });

  it.each(types)('docs/spec/entries.md agrees with the code on whether a view can contain %s', (type) => {
    const row = rowsOf('Other types').find(([first = '']) => codeIn(first)[0] === type);
    const by = (to: string) =>
      ({
        type,
        to,
        agent: 'pm',
        author: { kind: 'system', id: 'parley', name: 'Parley' },
      }) as unknown as Entry;
    const knowledge = new Knowledge('pm', { includeCollapsed: false });
    const [own, others] = [knowledge.mayContain(by('pm')), knowledge.mayContain(by('dev'))];
    const said = row?.[3]?.trim();
    if (said === 'own')
      expect([type, own]).toEqual(['summary', false]); // it is worded as a summary
    else expect(said).toBe(others ? 'yes' : own ? 'addressee' : 'no');
  });
});
