import { describe, expect, it } from 'vitest';
import type { Activity, ConversationRow } from '../../../src/console/model/answers.ts';
import { inboxOf } from '../../../src/console/model/list/inbox.ts';
import { isUnread, listed, waitOf, withSeen } from '../../../src/console/model/list/list.ts';
import {
  fitOf,
  partsOf,
  refusalText,
  searchQueryOf,
  whyNothing,
} from '../../../src/console/model/list/search-query.ts';

const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`;
const row = (id: string, minute: number, more: Partial<ConversationRow> = {}): ConversationRow => ({
  ...{ id, title: null, phase: 'chat', mode: 'chat', length: 4, activeAgent: null },
  ...{ newest: null, archived: false, tokens: 0, usd: 0, unpricedCalls: 0, agents: [], people: [] },
  ...{ updatedAt: at(minute), activeAt: at(minute), activeLength: more.length ?? 4, activity: [] },
  ...{ running: [], waiting: [], limited: [], stopped: [], ...more },
});
const ALL = { shown: 'all', agent: '', phase: '', text: '' } as const;
const NOTHING = { mine: new Set(['ann']), pins: new Set<string>(), isUnread: () => false };
const ids = (rows: readonly ConversationRow[]) => rows.map(({ id }) => id);

describe('what a conversation of the list waits for', () => {
  it('the question of an MCP server needs an answer, as the inbox says', () => {
    const activity: Activity[] = [
      { agent: 'pm', status: 'waiting', since: null, for: 'approval', of: 'book', asks: 'forms' },
    ];
    expect(waitOf({ activity })).toBe('answer needed');
    expect(inboxOf([{ id: 'c', title: null, activity }])).toMatchObject([{ kind: 'form' }]);
  });

  it.each<[Activity['for'][], string]>([
    [['agent', 'approval'], 'approval needed'],
    [['question', 'approval'], 'approval needed, answer needed'],
    [['outcome'], 'outcome unknown'],
    [['agent', 'question'], 'answer needed'],
    [['input'], 'message needed'],
    [['agent'], 'waits for an agent'],
    [[], 'waits'],
  ])('agents that wait for %j: %s', (kinds, words) => {
    const waiting = { agent: 'pm', status: 'waiting', since: null } as const;
    const activity = kinds.map((kind) => ({ ...waiting, for: kind }));
    expect(waitOf({ activity })).toBe(words);
  });
});

describe('the list of conversations', () => {
  const rows = [
    row('old', 1, { running: ['pm'], people: ['ann', 'bob'] }),
    row('new', 3, {
      phase: 'execute',
      agents: ['dev'],
      activity: [{ agent: 'dev', status: 'failed', since: null }],
    }),
    row('mid', 2, { title: 'Quokka', waiting: ['pm'], agents: ['qa'] }),
  ];

  it('the newest come first, and pinned ones before them', () => {
    expect(ids(listed(rows, ALL, NOTHING))).toEqual(['new', 'mid', 'old']);
    expect(ids(listed(rows, ALL, { ...NOTHING, pins: new Set(['old']) }))).toEqual(['old', 'new', 'mid']);
  });

  it('a new title neither moves a conversation nor makes it unread', () => {
    const titled = row('old', 5, { title: 'New', activeAt: at(1) });
    expect(ids(listed([...rows.slice(1), titled], ALL, NOTHING))).toEqual(['new', 'mid', 'old']);
    expect(isUnread(titled, { since: at(2), lengths: {} })).toBe(false);
    const isNew = (more: object) => isUnread({ ...titled, ...more }, { since: at(2), lengths: { old: 4 } });
    expect([isNew({ activeLength: 4 }), isNew({ activeLength: 5 }), isNew({ length: 5 })]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('each filter leaves what fits it, and they combine', () => {
    const found = (filter: object) => ids(listed(rows, { ...ALL, ...filter }, NOTHING));
    expect(found({ shown: 'running' })).toEqual(['old']);
    expect(found({ shown: 'waiting' })).toEqual(['mid']);
    expect(found({ shown: 'failed' })).toEqual(['new']);
    expect(found({ shown: 'unread' })).toEqual([]);
    expect(found({ agent: 'dev' })).toEqual(['new']);
    expect(found({ agent: 'qa' })).toEqual(['mid']);
    expect(found({ phase: 'execute', shown: 'running' })).toEqual([]);
    expect(found({ shown: 'mine' })).toEqual(['old']);
    expect(found({ text: 'quok' })).toEqual(['mid']);
  });

  it('a conversation in which a person took part under another name of this browser is also theirs', () => {
    const begun = [row('unnamed', 1, { people: ['console'] }), row('named', 2, { people: ['console/Ann'] })];
    const known = { ...NOTHING, mine: new Set(['console', 'console/Ann']) };
    expect(ids(listed(begun, { ...ALL, shown: 'mine' }, known))).toEqual(['named', 'unnamed']);
  });

  it('an archived conversation is listed among the archived ones alone', () => {
    const both = [row('kept', 1), row('gone', 2, { archived: true })];
    expect(ids(listed(both, ALL, NOTHING))).toEqual(['kept']);
    expect(ids(listed(both, { ...ALL, shown: 'archived' }, NOTHING))).toEqual(['gone']);
  });

  it('a conversation is unread from an entry that was not seen, or if it began after the first visit', () => {
    const seen = withSeen({ since: at(2), lengths: {} }, new Map([['seen', 4]]));
    expect(isUnread(row('seen', 5), seen)).toBe(false);
    expect(isUnread(row('seen', 5, { length: 5 }), seen)).toBe(true);
    expect(isUnread(row('other', 1), seen)).toBe(false);
    expect(isUnread(row('other', 3), seen)).toBe(true);
    expect(isUnread(row('constructor', 1), seen)).toBe(false);
  });

  it('of too many, those that were read longest ago are forgotten', () => {
    const one = withSeen({ since: at(0), lengths: {} }, new Map([['a', 1]]));
    const two = withSeen(one, new Map([['b', 2]]));
    const again = withSeen(two, new Map([['a', 3]]), 2);
    expect(withSeen(again, new Map([['c', 4]]), 2).lengths).toEqual({ a: 3, c: 4 });
  });
});

describe('what a person types to search', () => {
  it('filters are taken out of the words', () => {
    expect(searchQueryOf('in:demo login agent:dev page')).toEqual({
      q: 'login page',
      filters: { agent: 'dev', conversation: 'demo' },
    });
  });

  it('a value with spaces is quoted, and one that is still being typed ends with the text', () => {
    for (const text of ['bulk person:"Carol Smith"', 'person:"Carol Smith" bulk'])
      expect(searchQueryOf(text)).toEqual({ q: 'bulk', filters: { person: 'Carol Smith' } });
    expect(searchQueryOf('bulk person:"Carol S').filters).toEqual({ person: 'Carol S' });
  });

  it('a word with a colon that is no filter is searched', () => {
    expect(searchQueryOf('https://example.org constructor:x')).toEqual({
      q: 'https://example.org constructor:x',
      filters: {},
    });
  });

  it('the last word may be unfinished, so a blank at the end is kept', () => {
    expect(searchQueryOf('the ').q).toBe('the ');
  });

  it('a refusal names the filter alone', () => {
    expect(refusalText('search: after: expected a time')).toBe('after: expected a time');
    expect(refusalText('The daemon does not answer')).toBe('The daemon does not answer');
  });

  it('a filter alone, and one that names nothing, say so', () => {
    const why = (text: string) =>
      whyNothing(searchQueryOf(text), { agent: ['dev', 'lead'], phase: ['chat'] });
    expect(why('agent:dev')).toBe('Add a word of the messages, with two letters or more.');
    expect(why('agent:nobody word')).toBe('agent:nobody names none of: dev, lead.');
    expect(why('phase:foo word')).toBe('phase:foo names none of: chat.');
    expect(why('agent:')).toBe('Type a value after agent:, one of: dev, lead.');
    expect(why('word person:')).toBe('Type a value after person:.');
    for (const text of ['', 'word', 'agent:dev word', 'in:demo phase:chat word'])
      expect(why(text)).toBe(null);
  });

  it('a snippet is split at its found words', () => {
    expect(partsOf('a login page', [[2, 7]])).toEqual([
      { text: 'a ', isFound: false },
      { text: 'login', isFound: true },
      { text: ' page', isFound: false },
    ]);
  });
});

describe('the words that find an action or a conversation', () => {
  it.each([
    ['', 'Stop all agents'],
    ['all stop', 'Stop all agents'],
    ['phase exec', 'Phase: execute'],
    ['tmln', 'Timeline'],
    ['what-if', 'What if? what-if'],
    ['LEAD', 'Stop Lena Lead'],
    ['ロード', 'ロードマップ'],
  ])('%j fits %j', (typed, text) => expect(fitOf(typed, text)).toBeGreaterThan(0));

  it.each([
    ['stop none', 'Stop all agents'],
    ['top', 'Theme: dark'],
    ['sk', 'Stop'],
    ['pts', 'Stop'],
  ])('%j does not fit %j', (typed, text) => expect(fitOf(typed, text)).toBe(0));

  it('a whole word fits better than its beginning, and that better than its middle and its letters', () => {
    const texts = ['mode', 'modern', 'commodes', 'mxoxdxe'].map((text) => fitOf('mode', text));
    expect(texts).toEqual([...texts].sort((a, b) => b - a));
    expect(new Set(texts).size).toBe(4);
  });
});
