import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  type ConversationState,
  createRoster,
  EMPTY_STATE,
  mentions,
  route,
} from '../../../src/conversation/index.ts';
import { Core, card } from './core.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

const roster = createRoster(
  [
    card('pm', { phases: ['chat', 'plan'], modes: ['chat'] }),
    card('dev', { phases: ['execute'], modes: ['agent'] }),
    card('dev-ops', { phases: ['execute', 'chores'] }),
    card('qa', { phases: ['execute', 'chat'], modes: ['chat'] }),
  ],
  'pm',
);

function state(more: Partial<ConversationState>): ConversationState {
  return { ...EMPTY_STATE, ...more };
}

function to(content: string, more: Partial<ConversationState> = {}, explicit?: string[]) {
  const routed = route(explicit ? { content, to: explicit } : { content }, state(more), roster);
  return routed.ok ? routed.to : routed.refusal.code;
}

describe('the first routing rule that applies', () => {
  it.each<[string, unknown, unknown]>([
    ["the message's `to` comes before a mention", to('@dev please', {}, ['qa']), ['qa']],
    ['several in `to` all answer, each once', to('x', {}, ['qa', 'dev', 'qa']), ['qa', 'dev']],
    ['an empty `to` is ignored', to('@dev please', {}, []), ['dev']],
    ['an unknown `to` is an error', to('x', {}, ['dev', 'nobody']), 'UNKNOWN_AGENT'],
    ['a mention comes before the active agent', to('@dev please', { activeAgent: 'qa' }), ['dev']],
    [
      'the active agent in mode agent comes before the phase',
      to('x', { activeAgent: 'qa', phase: 'plan' }),
      ['qa'],
    ],
    [
      'the active agent in mode chat comes after the phase',
      to('x', { activeAgent: 'dev', mode: 'chat' }),
      ['pm'],
    ],
    [
      'an active agent that was removed is ignored',
      to('x', { activeAgent: 'gone', phase: 'chores' }),
      ['dev-ops'],
    ],
    ['the only agent with the phase answers', to('x', { phase: 'plan' }), ['pm']],
    [
      'of several agents with the phase the active one answers',
      to('x', { phase: 'execute', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    [
      'of several agents with the phase the active one answers before the default one',
      to('x', { phase: 'chat', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    ['of several agents with the phase the default one answers', to('x', { phase: 'chat' }), ['pm']],
    ['of several agents with the phase the first slug answers', to('x', { phase: 'execute' }), ['dev']],
    ['no agent has the phase: the agent with the mode answers', to('x', { phase: 'reflection' }), ['dev']],
    [
      'no agent has the phase: of several agents with the mode the default one answers',
      to('x', { phase: 'reflection', mode: 'chat' }),
      ['pm'],
    ],
    [
      'no agent has the phase or the mode: the default agent answers',
      to('x', { phase: 'reflection', mode: 'run' }),
      ['pm'],
    ],
  ])('a post is routed by the first rule that applies: %s', (_, got, expected) => {
    expect(got).toEqual(expected);
  });

  it('an unknown `to` is refused with the list of known agents, and nothing is appended', () => {
    const core = new Core();
    const { reply, entries, effects } = core.post('x', { to: ['nobody'] });
    expect(reply).toEqual({
      kind: 'refused',
      refusal: {
        code: 'UNKNOWN_AGENT',
        message: 'there is no agent "nobody"',
        hint: 'known agents: dev, dev-ops, pm, qa',
      },
    });
    expect([entries, effects, core.entries]).toEqual([[], [], []]);
  });

  it('several agents that a message mentions answer side by side', () => {
    const core = new Core();
    const { effects, reply } = core.post('@dev and @qa: look');
    expect(reply).toMatchObject({ agents: ['dev', 'qa'] });
    expect(effects.map((effect) => [effect.type, effect.agent])).toEqual([
      ['call-model', 'dev'],
      ['call-model', 'qa'],
    ]);
  });

  it("L14: a mention in an agent's text starts no turn", () => {
    const core = new Core().posted('hello', { to: ['pm'] });
    const { effects } = core.answer(core.callOf('pm'), 'I think @dev should do this');
    expect(effects).toEqual([]);
    expect(core.calls).toEqual([]);
  });

  it('V1: a message outside the context is routed to no agent, even if it names one', () => {
    const core = new Core();
    expect(core.post('@dev', { includeInContext: false }).effects).toEqual([]);
    expect(core.post('@dev', { isCollapsed: true, to: ['dev'] }).effects).toEqual([]);
    expect(core.entries.map((entry) => entry.type)).toEqual(['message', 'message']);
  });
});

describe('a mention', () => {
  it.each<[string, string[], unknown?: string[]]>([
    ['@dev', ['dev']],
    ['@Dev', ['dev']],
    ['@DEV!', ['dev']],
    ['@dev.', ['dev']],
    ['@dev...', ['dev']],
    ['(@dev)', ['dev']],
    ['**@dev**, look', ['dev']],
    ['.@dev look', ['dev']],
    ['@dev, @qa; @dev', ['dev', 'qa']],
    ["@dev's idea", ['dev']],
    ['@dev@qa', ['dev']],
    ['@dev-ops', ['dev-ops']],
    ['@Dev-Ops-', ['dev-ops']],
    ['@dev-', ['dev']],
    ['@@dev', ['dev']],
    ['- @dev\n1. @qa', ['dev', 'qa']],
    ['dev', []],
    ['@ dev', []],
    ['é@dev', []],
    ['_@dev', []],
    ['9@dev', []],
    ['\\@dev', []],
  ])('the text %j mentions %j', (content, known, unknown = []) => {
    expect(mentions(content, roster)).toEqual({ known, unknown });
  });

  it.each([
    ['@nobody', 'nobody'],
    ['@-dev', '-dev'],
    ['@dev-op', 'dev-op'],
    ['@dev-opsx', 'dev-opsx'],
    ['@dev-sec-ops', 'dev-sec-ops'],
    ['@developer', 'developer'],
    ['@dev_x', 'dev_x'],
    ['@devé', 'devé'],
    ['@dev\u0301', 'dev\u0301'],
    ['@dev.route("/")', 'dev.route'],
    ['@dev.example', 'dev.example'],
  ])('the whole word counts: %j names no agent, which the sender learns', (content, unknown) => {
    expect(mentions(content, roster)).toEqual({ known: [], unknown: [unknown] });
  });

  it.each([
    'before a slash: @dev/tools and @dev/tools@1.2',
    'after a slash: /@dev, src/@dev and https://x.example/@dev',
    'in inline code: `@dev`, ``a ` @dev`` and `npm i\n@dev`',
    '```\n@dev\n```',
    '~~~ts\n@dev\n```\n@dev\n~~~',
    '  - ```sh\n    @dev\n    ```',
    'a fence without an end\n````\n@dev\n```\n@dev',
    'in a URL: https://x.example/?to=@dev,@dev, www.x.example/a:@dev, ssh://@dev, mailto:@dev and <ftp://a:@dev>',
    'in an e-mail address: bob@dev.example, bob.@dev.example, "bob"@dev.example, b+@dev.x and git@dev:repo',
    'in a name elsewhere: @bob@dev.example',
    '> @dev look\n > so said Bob',
  ])('nothing is mentioned %j', (content) => {
    expect(mentions(content, roster)).toEqual({ known: [], unknown: [] });
  });

  it.each([
    ['`a` @dev `b`', 'between code spans'],
    ['`` ` @dev', 'after backticks without an end'],
    ['a `\n\n@dev `', 'a code span ends with its paragraph'],
    ['```\ncode\n```\n@dev', 'after a fence'],
    ['``` not a fence ```\n@dev', 'after a code span of three backticks'],
    ['> quoted\n\n@dev', 'after a quote'],
    ['https://x.example/y @dev', 'after a URL'],
    ['[@dev](https://x.example/@qa)', 'as the text of a link'],
    ['bob@x.example and @dev', 'after an address'],
  ])('%j mentions dev: %s', (content) => {
    expect(mentions(content, roster)).toEqual({ known: ['dev'], unknown: [] });
  });

  it.each([
    [
      'a title, in an element',
      `### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\nUSER: @dev build it\n</chat_history>\n@dev now\nASSISTANT: Done.\n</chat_history>`,
    ],
    ['tags, in an element', `### Task:\nGenerate 1-3 broad tags.\n<chat_history>\n@dev\n</chat_history>`],
    [
      'follow-ups, in an element',
      `Suggest 3-5 relevant follow-up questions.\n <messages>\r\nhi @dev\r\n</messages>`,
    ],
    [
      'a title, as a dialogue',
      `user: @dev hello\nassistant: Hello.\nuser: and @qa?\n\nPlease summarize the above conversation into a title`,
    ],
    [
      'a title, after an instruction',
      `Provide a concise title for the conversation.\n\nConversation:\nUser: @dev hi\nAI: Hello, ask @qa.`,
    ],
    [
      'a title of one message',
      'Summarize in a 10-word Title. Give the title only. Here is the message: @dev build it',
    ],
    ['a summary', 'Write a summary of this chat:\n**Human**: @dev hi\n**Assistant**: hello'],
  ])('nothing is mentioned in a history that a chat program quotes to get %s', (_, content) => {
    expect(mentions(content, roster)).toEqual({ known: [], unknown: [] });
  });

  it.each([
    'The user: @dev',
    'User: @dev',
    '<b>bold</b> @dev',
    '<notes>\n@dev',
    '@dev, write a title for this chat: it is about x',
    '<chat_history>\n@qa\n</chat_history>\nNow @dev',
  ])('what only resembles a quoted history mentions dev: %j', (content) => {
    expect(mentions(content, roster)).toEqual({ known: ['dev'], unknown: [] });
  });

  it('no text around code, addresses and paths makes them mention an agent, and none hides a mention in prose', () => {
    const silent = fc.constantFrom(
      '`@dev`',
      '\n```\n@dev\n```\n',
      'a@dev.example',
      'https://a/@dev',
      '@dev/x',
      '\n> @dev\n',
      '@dev-op',
    );
    const prose = fc.constantFrom('look', ' ', 'a.b', '(x)', ', ', 'é', '\n\n', '#1');
    fc.assert(
      fc.property(fc.array(fc.oneof(silent, prose)), fc.boolean(), (parts, isNamed) => {
        const text = [...parts, ...(isNamed ? ['@qa'] : []), ...parts].join(' ');
        expect(mentions(text, roster).known).toEqual(isNamed ? ['qa'] : []);
      }),
    );
  });

  it('mentions are found in linear time in text of any shape', () => {
    const none = { known: [], unknown: [] };
    for (const text of [
      '@'.repeat(500_000),
      `@${'-'.repeat(500_000)}a`,
      `@${'a-'.repeat(500_000)}`,
      'a@'.repeat(250_000),
      `${'a.'.repeat(250_000)}@`,
      '`'.repeat(500_000),
      `${'` `` '.repeat(100_000)}@`,
      `${'\n'.repeat(500_000)}@`,
      `${'a://'.repeat(100_000)}@`,
      `${'<a>\n'.repeat(100_000)}@`,
      `${'user:\n'.repeat(100_000)}@`,
      `${'title '.repeat(100_000)}@`,
    ])
      expect(mentions(text, roster).known).toEqual(none.known);
    const runs = Array.from({ length: 900 }, (_, length) => '`'.repeat(length + 1)).join(' ');
    expect(mentions(`${runs} @dev`, roster)).toEqual({ known: ['dev'], unknown: [] });
  });

  it('the sender learns which mentions name no agent, also of a repeated post', () => {
    const core = new Core();
    const { reply } = core.post('@dev-op look', { id: 'm' });
    expect(reply).toMatchObject({ agents: ['pm'], unknownMentions: ['dev-op'] });
    expect(core.post('@dev-op look', { id: 'm' }).reply).toMatchObject({
      duplicate: true,
      unknownMentions: ['dev-op'],
    });
    expect(core.post('@dev look').reply).not.toHaveProperty('unknownMentions');
    expect(core.post('@nobody look', { to: ['dev'] }).reply).not.toHaveProperty('unknownMentions');
  });
});
