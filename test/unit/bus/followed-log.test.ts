import { describe, expect, it } from 'vitest';
import { FollowedLog } from '../../../src/bus/follower.ts';
import type { Entry } from '../../../src/conversation/index.ts';

const entryAt = (index: number, log: string) => ({ index, id: `${log}${index}`, type: 'note' }) as Entry;
const entriesOf = (log: string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, place) => entryAt(from + place, log));

describe('a reader that follows a log', () => {
  it('the reader notices, after a poll without new entries, that the conversation was deleted and started again', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 3, entries: entriesOf('old', 0, 3) });
    expect(log.fromLog({ length: 3, entries: entriesOf('old', log.from, 3) })?.entries).toEqual([]);
    expect(log.fromLog({ length: 5, entries: entriesOf('new', log.from, 5) })).toBeNull();
  });

  it('the reader continues with the next entry when the last known entry fills a page', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 2, entries: entriesOf('old', 0, 1) });
    expect(log.fromLog({ length: 2, entries: entriesOf('old', 0, 1) })).toEqual({
      entries: [],
      again: 'now',
    });
    expect(log.from).toBe(1);
    expect(log.fromLog({ length: 2, entries: entriesOf('old', 1, 2) })?.entries).toHaveLength(1);
  });

  it('the reader waits for the entries of the feed when the log is shorter, and then treats it as another log (FOLLOWED-3)', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 2, entries: entriesOf('old', 0, 2) });
    expect(log.fromFeed(entriesOf('old', 2, 4))).toHaveLength(2);
    const tooShort = { length: 3, entries: [] };
    expect(log.fromLog(tooShort)).toEqual({ entries: [], again: 'later' });
    expect(log.fromLog({ length: 4, entries: entriesOf('old', 3, 4) })?.entries).toEqual([]);
    expect(log.fromLog(tooShort)).toBeNull(); // The log contained it.
    expect(log.fromFeed(entriesOf('old', 4, 5))).toHaveLength(1);
    const answers = Array.from({ length: 101 }, () => log.fromLog({ length: 4, entries: [] }));
    expect(answers.slice(0, 100)).toEqual(Array(100).fill({ entries: [], again: 'later' }));
    expect(answers.at(-1)).toBeNull();
    expect(log.fromLog({ length: 0, entries: [] })).toBeNull();
  });

  it('the reader takes a shorter log for another one as soon as that begins with another entry (FOLLOWED-3)', () => {
    const log = new FollowedLog(0);
    log.fromLog({ length: 2, entries: entriesOf('old', 0, 2) });
    log.fromFeed(entriesOf('old', 2, 4));
    expect(log.fromLog({ length: 3, entries: [] })?.again).toBe('later');
    expect(log.from).toBe(0);
    expect(log.fromLog({ length: 3, entries: entriesOf('old', 0, 3) })).toEqual({
      entries: [],
      again: 'later',
    });
    expect(log.fromLog({ length: 4, entries: entriesOf('old', 0, 4) })).toEqual({
      entries: [],
      again: 'now',
    });
    expect(log.fromLog({ length: 4, entries: entriesOf('old', log.from, 4) })?.entries).toEqual([]);
    log.fromFeed(entriesOf('old', 4, 6));
    expect(log.fromLog({ length: 5, entries: [] })?.again).toBe('later');
    expect(log.fromLog({ length: 5, entries: entriesOf('new', log.from, 5) })).toBeNull();
  });

  it('a log that is shorter than it was when it was read is another one at once, also before the place where the reader began (FOLLOWED-3)', () => {
    const log = new FollowedLog(7);
    expect(log.fromLog({ length: 7, entries: [] })?.entries).toEqual([]);
    expect(log.fromFeed(entriesOf('old', 7, 9))).toHaveLength(2);
    expect(log.fromLog({ length: 3, entries: [] })).toBeNull();
  });
});
