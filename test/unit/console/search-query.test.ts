import { describe, expect, it } from 'vitest';
import {
  partsOf,
  refusalText,
  searchQueryOf,
  whyNothing,
} from '../../../src/console/model/list/search-query.ts';

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
