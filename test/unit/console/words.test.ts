import { describe, expect, it } from 'vitest';
import { candidates, completed, mentionAt } from '../../../src/console/model/addressing.ts';
import {
  argumentsBlock,
  argumentsLine,
  count,
  duration,
  money,
  pretty,
  roughly,
  shortId,
  shortLine,
} from '../../../src/console/model/format.ts';
import { adviceOn } from '../../../src/console/model/thread/failure.ts';
import {
  COLOURS,
  initialsOf,
  participantsOf,
  shownName,
  Thread,
} from '../../../src/console/model/thread/thread.ts';
import { logOf, other } from './support.ts';

describe('the arguments of a call in the console', () => {
  const RAW = JSON.stringify({ command: 'rm \u202eexe.gpj\u200b\u009b\u2028\u{e0041} \u2066é' });
  const SHOWN = String.raw`rm \u202eexe.gpj\u200b\u009b\u2028\udb40\udc41 \u2066é`;

  it('arguments are shown with an escape for each control, format and direction character', () => {
    expect(argumentsBlock(RAW)).toBe(`{\n  "command": "${SHOWN}"\n}`);
    expect(argumentsLine(RAW.replace('\u2028', ''))).toBe(`{"command":"${SHOWN.replace('\\u2028', '')}"}`);
  });

  it('arguments are shown with escapes that were in the JSON, and in a text that is not JSON', () => {
    expect(argumentsBlock(String.raw`{"a":"\u202e"}`)).toBe('{\n  "a": "\\u202e"\n}');
    expect(argumentsBlock('not json \u202e')).toBe(String.raw`(not JSON) not json \u202e`);
  });
});

describe('telling authors apart', () => {
  it.each([
    ['Project Manager', 'PM'],
    ['dev', 'DE'],
    ['Ada B. Lovelace', 'AL'],
    ['<b>Ops</b>', 'BB'],
    ['李 小龙', '李小'],
    ['', '?'],
    ['!!', '?'],
  ])('%j has the initials %s', (name, initials) => {
    expect(initialsOf(name)).toBe(initials);
  });

  it('agents have distinct colours by roster order, and a person has the same one beside any others', () => {
    const roster = [
      { slug: 'dev', name: 'Dev' },
      { slug: 'pm', name: 'Pam' },
    ];
    const colourOf = (...names: string[]) =>
      participantsOf(roster, new Map(names.map((name) => [name, name]))).get('Alice')?.colour;
    expect(colourOf('Alice', 'Bob')).toBe(colourOf('Bob', 'Alice'));
    expect(colourOf('Alice')).not.toBe(participantsOf(roster, new Map([['b', 'Bob']])).get('b')?.colour);
    const found = participantsOf(
      roster,
      new Map([
        ['pm', 'Pam'],
        ['alice', 'Alice'],
      ]),
    );
    expect([...found.values()].map(({ id, colour, isAgent }) => [id, colour, isAgent])).toEqual([
      ['dev', 0, true],
      ['pm', 1, true],
      ['alice', colourOf('Alice'), false],
    ]);
    const many = Array.from({ length: COLOURS + 1 }, (_, n) => ({ slug: `a${n}`, name: `A ${n}` }));
    expect(participantsOf(many, new Map()).get(`a${COLOURS}`)?.colour).toBe(0);
  });

  it('people with the same name are shown with their publishers, others by name alone', () => {
    const authors = new Map([
      ['console/Ann', 'Ann'],
      ['operator/Ann', 'Ann'],
      ['console/Bob', 'Bob'],
      ['carol', 'Carol'],
    ]);
    const found = [...participantsOf([], authors).values()];
    expect(found.map((one) => shownName(one.name, one))).toEqual([
      'Ann · console',
      'Ann · operator',
      'Bob',
      'Carol',
    ]);
  });

  it.each([
    ['alice', 'by alice'],
    ['console/Bob', 'by Bob'],
    ['pm', 'by PAM'],
  ])('a band names the person or agent with the id %s as messages do', (by, detail) => {
    const thread = new Thread((slug) => (slug === 'pm' ? 'PAM' : slug));
    for (const entry of logOf(
      other('agent-stopped', { agent: null, by }),
      other('agent-resumed', { agent: null, by }),
      other('phase-entered', { from: 'chat', to: 'plan', by }),
    ))
      thread.add(entry);
    expect(thread.blocks.map((block) => block.kind === 'band' && block.detail)).toEqual([
      detail,
      detail,
      detail,
    ]);
  });
});

describe('a short form of an id', () => {
  it.each([
    ['release-notes', 'release-notes'],
    ['01M80QZN2E1AYX37VCHA7XGT3P', '01M80Q…7XGT3P'],
    ['5d0087c4b1f04d6e9a37d2b8e59b5a11', '5d0087…5a11'],
  ])('the id %s is shortened to %s', (id, short) => {
    expect(shortId(id)).toBe(short);
  });
});

describe('the completion of a mention', () => {
  it.each([
    ['@', 1, { from: 0, typed: '' }],
    ['ask @de', 7, { from: 4, typed: 'de' }],
    ['ask @de now', 7, { from: 4, typed: 'de' }],
    ['(@pm', 4, { from: 1, typed: 'pm' }],
    ['@Éla', 4, { from: 0, typed: 'Éla' }],
    ['jo@dev', 6, null],
    ['ask @dev now', 12, null],
    ['no', 2, null],
  ])('a mention is completed in %j at %i', (text, cursor, expected) => {
    expect(mentionAt(text, cursor)).toEqual(expected);
  });

  it('completion offers slugs first, then names, and appends one space', () => {
    const agents = [
      { slug: 'pm', name: 'Dora' },
      { slug: 'dev', name: 'Developer' },
    ];
    expect(candidates(agents, 'D').map(({ slug }) => slug)).toEqual(['dev', 'pm']);
    expect(candidates(agents, 'x')).toEqual([]);
    expect(completed('ask @d now', { from: 4, typed: 'd' }, 'dev')).toEqual({
      text: 'ask @dev now',
      cursor: 9,
    });
  });
});

describe('numbers in the console', () => {
  it('numbers are short, in one or two units', () => {
    expect([0, 999, 1_500, 42_000, 59_700, 125_000, 179_600, 7_500_000].map(duration)).toEqual([
      '0 ms',
      '999 ms',
      '1.5 s',
      '42 s',
      '1 min 0 s',
      '2 min 5 s',
      '3 min 0 s',
      '2 h 5 min',
    ]);
    expect([500, 4_000, 200_000, 7_200_000, 200_000_000].map(roughly)).toEqual([
      '500 ms',
      '4 s',
      '3 min',
      '2 h',
      '2 d',
    ]);
    expect([0, 0.0012, 3.456].map((usd) => money(usd))).toEqual(['-', '$0.0012', '$3.46']);
    expect(count(1_234_567)).toBe('1,234,567');
  });

  it('texts are cut to fit', () => {
    expect(shortLine('  a\n b  ')).toBe('a b');
    expect(shortLine('abcdef', 4)).toBe('abc…');
    expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(pretty('no json')).toBe('no json');
  });
});

describe('what to do about a failed model call or a limit', () => {
  it.each(['UNAUTHORIZED', 'NOT_FOUND', 'BAD_REQUEST', 'QUOTA_EXHAUSTED', 'REDIRECTED'])(
    '%s names the keys of the model and the command that tests it',
    (code) => {
      const text = expect.stringMatching(/`models\.big.*`parley\.yaml`.*`parley doctor --probe`/);
      expect(adviceOn(code, 'big')).toEqual({ text, fails: 'agent', orNew: false });
    },
  );

  it('the advice names the model as it is configured, whatever characters its name has', () => {
    expect(adviceOn('UNAUTHORIZED', "a$&b$'")?.text).toContain("`models.a$&b$'.apiKey`");
  });

  it('another try may succeed after other failures, and an agent in another process has no model here', () => {
    for (const code of ['RATE_LIMITED', 'TIMEOUT', 'toString', 'attempts', null])
      expect(adviceOn(code, 'big')).toBeNull();
    expect(adviceOn('UNAUTHORIZED', undefined)).toBeNull();
  });

  it.each(['CONTEXT_TOO_LONG', 'CONTEXT_STILL_TOO_LARGE'])(
    '%s names the window of the model and a new conversation, for an agent in another process too',
    (code) => {
      const text = expect.stringMatching(/`contextTokens` of its model in `parley\.yaml`.*larger window/);
      for (const model of ['big', undefined])
        expect(adviceOn(code, model)).toEqual({ text, fails: 'agent', orNew: true });
    },
  );

  it('a refusal of the content asks for other words, and blames no configuration', () => {
    const text = expect.stringMatching(/^(?!.*parley\.yaml).*other words/);
    for (const model of ['big', undefined])
      expect(adviceOn('CONTENT_FILTERED', model)).toEqual({ text, fails: null, orNew: true });
  });

  it('an exhausted quota is that of the key that the model uses, whatever names the key', () => {
    expect(adviceOn('QUOTA_EXHAUSTED', 'big')?.text).toMatch(/account of the key that this model uses/);
    expect(adviceOn('QUOTA_EXHAUSTED', 'big')?.text).not.toContain('apiKey');
    expect(adviceOn('UNAUTHORIZED', 'big')?.text).toMatch(/`models\.big\.apiKey`.* or else `OPENAI_API_KEY`/);
  });

  it.each(['tokensPerConversation', 'usdPerConversation'])(
    'the limit %s of a conversation names its key, and another try fails until it is raised',
    (limit) => {
      const text = expect.stringMatching(
        new RegExp(`\`limits\\.${limit}\` in \`parley\\.yaml\`.*\`parley reload\``),
      );
      for (const model of ['big', undefined])
        expect(adviceOn(limit, model)).toEqual({ text, fails: 'conversation', orNew: true });
    },
  );

  it('a limit of a turn names its key, and another turn may succeed; the budget of a hired agent has no key', () => {
    for (const limit of ['modelCallsPerTurn', 'turnSeconds'])
      expect(adviceOn(limit, 'big')).toEqual({
        text: expect.stringContaining(`\`limits.${limit}\` in \`parley.yaml\``),
        fails: null,
        orNew: false,
      });
    for (const limit of ['hireBudget', 'repeatedCalls'])
      expect(adviceOn(limit, undefined)).toMatchObject({ text: expect.not.stringContaining('limits.') });
  });
});
