import { describe, expect, it } from 'vitest';
import { FollowedLog } from '../../../src/conversation/followed-log.ts';
import type { Entry } from '../../../src/conversation/index.ts';

const entryAt = (index: number, log: string) => ({ index, id: `${log}${index}`, type: 'note' }) as Entry;
const entriesOf = (log: string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, place) => entryAt(from + place, log));

describe('the place of a reader in a log that it follows', () => {
  it('notices after a reading that found nothing new that the conversation was deleted and begun anew', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 3, entries: entriesOf('old', 0, 3) });
    expect(log.fromLog({ length: 3, entries: entriesOf('old', log.from, 3) })?.entries).toEqual([]);
    expect(log.fromLog({ length: 5, entries: entriesOf('new', log.from, 5) })).toBeNull();
  });

  it('reads the next page from the next entry where the one that it knows fills a page', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 2, entries: entriesOf('old', 0, 1) });
    expect(log.fromLog({ length: 2, entries: entriesOf('old', 0, 1) })).toEqual({
      entries: [],
      again: 'now',
    });
    expect(log.from).toBe(1);
    expect(log.fromLog({ length: 2, entries: entriesOf('old', 1, 2) })?.entries).toHaveLength(1);
  });
});
