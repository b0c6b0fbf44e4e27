import { describe, expect, it } from 'vitest';
import { renderCheck } from '../../../src/cli/commands/daemon/doctor.ts';
import { renderBanner } from '../../../src/cli/commands/daemon/up.ts';
import { concernsPeople, renderEntry } from '../../../src/cli/render/entry.ts';
import { ageText, renderDetail, renderState, renderStatus } from '../../../src/cli/render/state.ts';
import {
  clockTime,
  createPalette,
  failureOf,
  firstLine,
  indent,
  onTerminal,
  printable,
  renderFailure,
  renderTable,
  voiceOf,
  wantsColour,
} from '../../../src/cli/render/text.ts';
import { renderView } from '../../../src/cli/render/view.ts';
import { type Entry, ParleyError, type ViewReport } from '../../../src/client/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { toolCall } from '../../support/log.ts';
import { agent, ended, entryOf, person, reportOf, started } from './support.ts';

const plain = createPalette(false);
/** Without index and time. */
const shown = (entry: Entry) => renderEntry(entry, plain).replace(/^ +\d+ {2}\d\d:\d\d:\d\d {2}/, '');

describe('an entry of the log, rendered for people', () => {
  it('an entry begins with its index and time', () => {
    expect(renderEntry(person(12, 'x'), plain)).toMatch(/^ {3}12 {2}\d\d:\d\d:\d\d {2}Alice\n/);
  });

  it('a message shows its author and recipients, then the text, with each line indented', () => {
    expect(shown(person(0, 'one\ntwo', { to: ['pm', 'dev'] }))).toBe(
      `Alice → pm, dev\n${' '.repeat(17)}one\n${' '.repeat(17)}two`,
    );
  });

  it('an entry that no agent is shown is marked', () => {
    expect(shown(person(0, 'x', { includeInContext: false }))).toContain('Alice (shown to no agent)');
    expect(shown(person(0, 'x', { isCollapsed: true }))).toContain('Alice (collapsed)');
  });

  it('a post whose session has no effect, since its sender lacks the right, is marked', () => {
    const named = { sessionId: 's-1' };
    expect(shown(person(0, 'x', named))).toContain('Alice (its sessionId has no effect)');
    expect(shown(person(0, 'x', { ...named, setsSession: true }))).not.toContain('sessionId');
    expect(shown(agent(0, 'pm', 'x', named))).not.toContain('sessionId');
  });

  it('a call that an agent reports is one line, which says so and begins its result', () => {
    const call = { title: 'Edit\n a\u202e', kind: 'edit', status: 'completed' };
    const reported = [call, { ...call, title: 'ls', arguments: '{}', result: 'x'.repeat(300) }];
    const lines = shown(agent(0, 'dev', 'Done.', { reported }))
      .split('\n')
      .slice(2);
    expect(lines.map((line) => line.trim())).toEqual([
      '⚙ Edit\\n a\\u202e (reported: edit, completed)',
      `⚙ ls (reported: edit, completed): ${'x'.repeat(100)}… (300 characters)`,
    ]);
  });

  it('a tool call and its result are one line each', () => {
    const call = toolCall('shell', '{"command":"ls"}', 'c');
    expect(shown(agent(0, 'pm', null, { tool_calls: [call] }))).toBe(
      `PM\n${' '.repeat(17)}⚙ shell {"command":"ls"}`,
    );
    const two = [toolCall('shell', '{}', 'a'), toolCall('set_color', '{"color":"red"}', 'b')];
    const mixed = shown(agent(0, 'pm', null, { tool_calls: two, callerCalls: [1] }));
    expect(mixed).toContain('⚙ shell {}\n');
    expect(mixed).toContain('⚙ set_color {"color":"red"} (its caller answers)');
    expect(shown(agent(0, 'pm', 'a\nb', { role: 'tool', toolName: 'shell' }))).toBe('⚙ shell: a…');
    expect(shown(agent(0, 'pm', 'x'.repeat(300), { role: 'tool' }))).toMatch(
      /^⚙ result: x{100}… \(300 characters\)$/,
    );
  });

  it('the begin of a turn shows its triggers, and a resumed turn is marked', () => {
    const turn = (trigger: number[], resumed?: boolean) =>
      shown(entryOf('turn-started', 9, { turnId: 't', agent: 'pm', trigger, resumed }));
    expect(turn([3, 4])).toBe('· pm begins a turn for 3, 4');
    expect(turn([7], true)).toBe('· pm continues its turn, for 7');
    expect(turn([], true)).toBe('· pm continues its turn');
  });

  it('a failure is separate from the text before it', () => {
    const content = 'So far\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}';
    expect(shown(agent(0, 'pm', content, { partType: 'error' }))).toMatch(/So far\n +✗ TIMEOUT: too late$/);
  });

  it('the code of a failure is one line, with escapes for invisible characters', () => {
    const failure = JSON.stringify({ code: 'BAD\n\u202eCODE\u001b[2K', message: 'no' });
    expect(shown(agent(0, 'pm', `LLM_ERROR ${failure}`, { partType: 'error' }))).toContain(
      '✗ BAD\\n\\u202eCODE\\u001b[2K: no',
    );
  });

  it('a failure that cannot be parsed is shown unchanged', () => {
    expect(shown(agent(0, 'pm', 'LLM_ERROR {nonsense}', { partType: 'error' }))).toContain(
      '✗ LLM_ERROR: {nonsense}',
    );
  });

  it('a text that only resembles a failure is shown as text', () => {
    expect(shown(agent(0, 'pm', 'LLM_ERROR {"code":"X","message":"y"}'))).toContain('LLM_ERROR {"code"');
  });

  const phase = { from: 'chat', to: 'plan', by: 'alice', reason: 'it is time' } as const;
  const approved = {
    author: { kind: 'person', id: 'alice', name: 'Alice' },
    answer: 'approve',
    reason: 'fine',
  };
  const attempt = (code: string, more: object = {}) =>
    entryOf('attempt-failed', 0, {
      ...{ agent: 'pm', turnId: 't', model: 'big', code, message: 'x', duration: 1, upTo: 2 },
      ...{ next: { model: 'small' }, ...more },
    });
  const sent = { requestHash: 'h' };
  const keys = { ...sent, key: 1, next: { model: 'big', key: 2 } };
  const answered = (fields: object) => entryOf('approval-answered', 0, { approvalId: '01A', ...fields });

  it.each<[string, Entry]>([
    ['pm begins a turn for 3, 4', started(0, 'pm', [3, 4])],
    ["pm's turn ended: failed", ended(0, 'pm', 'failed')],
    ["pm's turn waits", ended(0, 'pm', 'waiting')],
    ['phase chat → plan by alice (it is time)', entryOf('phase-entered', 0, phase)],
    ['the conversation was stopped by alice', entryOf('agent-stopped', 0, { agent: null, by: 'alice' })],
    ['limit hops reached: 16 hops', entryOf('limit-reached', 0, { limit: 'hops', content: '16 hops' })],
    ['big was rate limited (RATE_LIMITED); small is asked instead', attempt('RATE_LIMITED', sent)],
    ['big with key 1 refused the key (UNAUTHORIZED); key 2 is used instead', attempt('UNAUTHORIZED', keys)],
    ['big is left out after a recent failure (TIMEOUT); small is asked instead', attempt('TIMEOUT')],
    [
      'big has too small a window (CONTEXT_STILL_TOO_LARGE); small is asked instead',
      attempt('CONTEXT_STILL_TOO_LARGE'),
    ],
    ['approval 01A: approve by Alice (fine)', answered(approved)],
    ['approval 01A: expired', answered({ answer: 'expired' })],
    ['tool started', entryOf('tool-started', 0, { call: { index: 0, position: 0 } })],
  ])('an entry is rendered as %j after a dot', (text, entry) => {
    expect(shown(entry)).toBe(`· ${text}`);
  });

  it('a late result shows its beginning and no character that moves the cursor', () => {
    const call = { index: 3, position: 0 };
    const content = `a late result of shell (call c3_0): \u001b[2Jdone ${'x'.repeat(500)}\nmore`;
    const late = shown(entryOf('note', 9, { content, call }));
    expect(late).toMatch(/^· a late result of shell \(call c3_0\): \[2Jdone x+…$/);
    expect(late.length).toBeLessThan(200);
  });

  it('an unknown entry type of a newer version is named as such', () => {
    const later = { ...person(1, ''), type: 'mood-set' } as unknown as Entry;
    expect(shown(later)).toContain('mood-set: this version does not know that kind of entry');
  });

  it('bookkeeping entries are hidden in a chat', () => {
    expect(concernsPeople(started(0, 'pm', [0]) as never)).toBe(false);
    expect(concernsPeople(ended(0, 'pm') as never)).toBe(false);
    expect(concernsPeople(ended(0, 'pm', 'limited') as never)).toBe(true);
    expect(concernsPeople(entryOf('handoff', 0, { from: 'a', to: 'b', summary: '' }) as never)).toBe(true);
  });
});

describe('text helpers of the CLI', () => {
  it('text of others is made harmless for a terminal', () => {
    expect(printable('a\u001b]0;x\u0007b\r\nc\td\u009b')).toBe('a]0;xb\nc\td');
  });

  it('characters that reorder text are removed', () => {
    expect(printable('rm \u202eexe.gpj\u202c \u2066a\u2069')).toBe('rm exe.gpj a');
    expect(printable('\u0645\u200f!')).toBe('\u0645\u200f!'); // Right-to-left text is unchanged.
  });

  it('a text is cut to its first line, by characters', () => {
    expect(firstLine('  one\ntwo', 10)).toBe('one…');
    expect(firstLine('one', 3)).toBe('one');
    expect(firstLine('😀😀😀', 2)).toBe('😀😀…');
  });

  it('indenting covers whole lines and leaves empty lines empty', () => {
    expect(indent('a\n\nb', '  ')).toBe('  a\n\n  b');
  });

  it('a missing time is rendered, too', () => {
    expect(clockTime('nonsense')).toBe('--:--:--');
  });

  it('the columns of a table are aligned', () => {
    expect(
      renderTable(
        ['A', 'LONG'],
        [
          ['xyz', '1'],
          ['y', ''],
        ],
      ),
    ).toBe('A    LONG\nxyz  1\ny');
  });

  it('a character of a table that is two columns wide on a terminal counts as two', () => {
    const rows = [
      ['会議メモ', '1'],
      ['🚀 go', '2'],
      ['plain', '3'],
    ];
    expect(renderTable(['TITLE', 'N'], rows)).toBe('TITLE     N\n会議メモ  1\n🚀 go     2\nplain     3');
  });
});

describe('an error message', () => {
  it('an error is two lines for people', () => {
    const failure = failureOf(new ParleyError('CODE', 'what', { hint: 'do\nthis' }));
    expect(renderFailure(failure)).toBe('parley: what\n  do\n  this');
    expect(failure).toEqual({ code: 'CODE', message: 'what', hint: 'do\nthis' });
  });

  it('an error has an escape for each invisible character', () => {
    const failure = failureOf(new ParleyError('CODE', 'no file \u202egpj.exe', { hint: 'see \u009b2K' }));
    expect(renderFailure(failure)).toBe('parley: no file \\u202egpj.exe\n  see \\u009b2K');
  });

  it('an error without a hint is one line', () => {
    expect(renderFailure(failureOf(new ParleyError('CODE', 'what')))).toBe('parley: what');
  });

  it('an error of a full disk is not called a bug, and says what to do', () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    expect(failureOf(full)).toMatchObject(errorWith('DISK_FULL', 'is full: ENOSPC', 'free space'));
  });

  it('an unexpected error is called a bug', () => {
    expect(failureOf(new TypeError('x is not a function'))).toMatchObject({ code: 'UNEXPECTED' });
    expect(failureOf('text')).toMatchObject({ code: 'UNEXPECTED', message: 'text' });
  });
});

type LeftOut = ViewReport['left_out_as'][number];

describe('an explained view', () => {
  const messages = [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1_0', function: { name: 'ask', arguments: '{}' } }],
    },
    { role: 'tool', content: 'yes', tool_call_id: 'c1_0' },
  ];
  const report = (more: Partial<ViewReport> = {}) =>
    renderView({ messages: [], report: reportOf(more) }, plain);

  it('an explained view shows each message below its kind, origin and size', () => {
    const parts = [
      { kind: 'history', entries: [0], tokens: 11 },
      { kind: 'turn', entries: [3, 4, 5, 9], tokens: 1 },
    ];
    const lines = renderView({ messages, report: reportOf({ parts }) }, plain).split('\n\n');
    expect(lines.slice(0, 3)).toEqual([
      '── 0 user · history · entry 0 · 11 tokens ──\nhi',
      '── 1 assistant · turn · entries 3 to 5, 9 · 1 token ──\n⚙ c1_0 ask {}',
      '── 2 tool c1_0 ──\nyes',
    ]);
  });

  it('an explained view draws each group of tokens against the window', () => {
    expect(report({ tokens: 500, tokens_by_group: { tools: 1, history: 499 } })).toContain(
      [
        '── 500 of 1,000 tokens (50 %) ──',
        'tools             1  ▏',
        `history         499  ${'█'.repeat(20)}`,
        `for the answer  200  ${'░'.repeat(8)}`,
        `free            300  ${'░'.repeat(12)}`,
      ].join('\n'),
    );
  });

  const leftOut = (from: number, to: number, how: 'summed_up' | 'left_out' | 'empty') =>
    ({ from, to, how, ...(how !== 'empty' && { by: 9 }), recall: { from, to } }) as LeftOut;

  it.each<[Partial<ViewReport>, RegExp]>([
    [{ status: 'not_needed' }, /view +whole/],
    [{ status: 'reduced' }, /view +reduced/],
    [{ status: 'no_effect' }, /view +over its limit/],
    [{ status: 'failed' }, /view +too large/],
    [{ included: [] }, /holds +no entry/],
    [{ included: [0, 1, 2, 7] }, /holds +entries 0 to 2, 7/],
    [
      { left_out_as: [leftOut(1, 4, 'summed_up')] },
      /not in it +entries 1 to 4: summed up in entry 9; recall \{"from":1,"to":4\}/,
    ],
    [
      { left_out_as: [leftOut(5, 5, 'left_out')] },
      /not in it +entry 5: left out by entry 9, never shown; recall/,
    ],
    [{ left_out_as: [leftOut(6, 6, 'empty')] }, /not in it +entry 6: without text/],
    [{ shortened: [3] }, /previews +entry 3/],
    [
      { unseen_files: [{ entry: 5, name: 'mug.png', why: 'its model takes no such files' }] },
      /not shown +mug\.png of entry 5: its model takes no such files/,
    ],
    [{ waiting: [8] }, /later +entry 8: for a later call/],
    [{ sent: true }, /sent +yes/],
    [{ sent: false }, /sent +no: other bytes were sent;[\s\S]*an older version of Parley/],
    [{ sent: 'unknown' }, /sent +unknown/],
    [{ fault: { code: 'CONTEXT_STILL_TOO_LARGE', message: 'why' } }, /fault +CONTEXT_STILL_TOO_LARGE: why/],
    [{ note: 'careful' }, /note +careful/],
    [
      { tools: ['a', 'b'], tools_missing: ['c'], tools_forbidden: ['d'] },
      /tools +a, b\nmissing +c\nforbidden +d/,
    ],
    [{}, /the agent +1 call, 1,200 tokens in \(900 cached\), 7 out, \$0\.0012/],
  ])('an explained view describes %j', (more, text) => {
    expect(report(more)).toMatch(text);
  });

  it('an explained view says when the next reduction is due, and how much it would remove', () => {
    const next_reduction = {
      above: 640,
      target: 400,
      limits: { messages: 80, chars: 120_000 },
      due: true,
      would: { drop_files: [], shorten: [3], sum_up: [0, 1], leave_out: [5] },
    };
    const said = report({ next_reduction }).replace(/\s+/g, ' ');
    expect(said).toContain('due: it is above 640 tokens or 80 messages or 120,000 characters, to 400 tokens');
    expect(said).toContain('now it would shorten entry 3, sum up entries 0 to 1, leave out entry 5');
    expect(report().replace(/\s+/g, ' ')).toContain(
      'when above 640 tokens, to 400 tokens; now it would remove nothing',
    );
  });

  it('the account of a view fits 80 columns, except for words that cannot be broken', () => {
    const left_out_as = [
      { from: 100, to: 4_000, how: 'summed_up', by: 4_321, recall: { from: 100, to: 4_000 } },
    ] as const;
    for (const line of report({ sent: false, left_out_as }).split('\n')) expect(line.length).toBeLessThan(81);
  });
});

describe('colours', () => {
  it('colours are used only on terminals that support them', () => {
    expect(wantsColour({ isTTY: true }, {})).toBe(true);
    expect(wantsColour({}, {})).toBe(false);
    expect(wantsColour({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour({ isTTY: true }, { TERM: 'dumb' })).toBe(false);
  });

  it('an agent has the same colour every time', () => {
    const palette = createPalette(true);
    expect(voiceOf('pm', palette)('PM')).toBe(voiceOf('pm', palette)('PM'));
    expect(voiceOf('pm', palette)('PM')).not.toBe('PM');
  });
});

describe('the banner and the checks', () => {
  it('the banner shows where the daemon is and what to type next', () => {
    const facts = { pid: 7, nats: 'nats://h:1', http: null, agents: ['pm', 'dev'], store: 'file' } as const;
    const where = { daemon: null, data: '/d', chat: 'npx parley chat --data /d' };
    const banner = renderBanner({ ...facts, ...where }, plain);
    for (const part of ['process 7', 'nats://h:1', 'off', '/d', 'pm, dev', 'npx parley chat']) {
      expect(banner).toContain(part);
    }
  });

  it('the banner names the daemon if it shares its logs', () => {
    const facts = { pid: 7, nats: 'nats://h:1', http: null, agents: ['pm'], store: 'jetstream' } as const;
    const banner = renderBanner({ ...facts, data: '/d', chat: 'parley chat', daemon: '01M81N' }, plain);
    expect(banner).toContain('daemon  01M81N');
  });

  it('a check shows no control character of what a server answered', () => {
    const said = 'x\u001b]52;c;QUJD\u0007\u009b2J';
    const shown = renderCheck({ name: 'model m', status: 'fail', message: said, fix: said }, plain);
    expect(shown).toBe(
      ['fail  model m: ', '      → '].map((start) => `${start}x\\u001b]52;c;QUJD\\u0007\\u009b2J`).join('\n'),
    );
  });

  it('a terminal gets the colours of Parley and no other control character', () => {
    const given = '\u001b[1mbold\u001b[0m\u001b]0;title\u0007\u009b2J\r\u001b[2J\u202e\ttext\n';
    expect(onTerminal(given)).toBe('\u001b[1mbold\u001b[0m]0;title2J[2J\ttext\n');
  });

  it('a check prints the remedy below the finding', () => {
    const check = { name: 'node', status: 'fail', message: 'old\nvery', fix: 'new' } as const;
    expect(renderCheck(check, plain)).toBe('fail  node: old\n      very\n      → new');
  });
});

it('a tool name invented by a model neither moves the cursor nor begins a line', () => {
  const toolName = 'x\u001b]0;owned\u0007\nbob: yes';
  const shown = renderEntry(agent(0, 'pm', 'a', { role: 'tool', toolName }), createPalette(false));
  expect(shown).toMatch(/⚙ x\\u001b\]0;owned\\u0007\\nbob: yes: a$/);
});

it.each([
  ['stopped', '; dev is stopped: the run waits until it is resumed'],
  ['waiting', '; dev begins with the next message'],
])('the line of a conversation shows what its run waits for if its agent is %s', (status, said) => {
  const run = { runId: 'r', workflow: 'w', node: 'build', agent: 'dev', awaitsInput: true };
  const detail = { id: 'c', phase: 'chat', mode: 'run', activeAgent: null, run, agents: { dev: { status } } };
  const line = renderState(detail as unknown as Parameters<typeof renderState>[0]);
  expect(line).toBe(`c: phase chat, mode run, no agent has the floor, run of w at build${said}`);
});

const NOW = Date.parse('2026-11-22T05:00:00.000Z');
const ago = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString();
const none = { count: 0, first: [] };
type Status = Parameters<typeof renderStatus>[0];
const STATUS: Status = {
  ...{ at: ago(0), conversations: 3, running: none, limited: none, stopped: none, failed: none },
  waiting: {
    count: 22,
    first: [
      {
        ...{ conversation: 'photos', title: 'Re\u001b[2Jname', agent: 'dev', status: 'waiting' },
        ...{ since: ago(7_300), for: 'approval', of: 'shell' },
      },
    ],
  },
  ...{ deadLetters: 1, queue: { posts: 2, oldestAt: ago(4) } },
  daemons: [
    {
      ...{
        daemon: 'A',
        version: '1.2.3',
        startedAt: ago(90),
        store: 'jetstream',
        data: '/d',
        nats: 'nats://n',
        http: null,
      },
      ...{
        servers: [
          { server: 'files', state: 'failed', error: 'ENOENT\nmore' },
          { server: 'web', state: 'ready', leftOut: ['bad: its schema is invalid'] },
        ],
        owns: { count: 3, first: ['photos'] },
        backOff: [{ model: 'big', key: 2, code: 'RATE_LIMITED', failures: 2, until: ago(-60) }],
      },
    },
    { daemon: 'B', error: 'it did not answer in time' },
  ],
  agents: [{ agent: 'critic', connected: false, absent: 'wait' }],
};

it('`parley status ID` shows the agents that do something, and the files with their limit', () => {
  const detail = {
    ...{ id: 'c', phase: 'plan', mode: 'chat', activeAgent: null, run: null },
    agents: { pm: { status: 'idle' }, dev: { status: 'running' } },
    files: { count: 2, bytes: 1_500_000, maxBytes: 2_000_000_000 },
  } as unknown as Parameters<typeof renderDetail>[0];
  const first = 'c: phase plan, mode chat, no agent has the floor\n  dev: running';
  expect(renderDetail(detail)).toBe(`${first}\n  2 files, 1.5 MB of 2000.0 MB`);
  expect(renderDetail({ ...detail, files: undefined })).toBe(first);
});

describe('the page of `parley status`', () => {
  it('shows daemons, the queue, what is not connected, and what waits for whom since when', () => {
    expect(renderStatus(STATUS, createPalette(false)).split('\n')).toEqual([
      'daemon A  version 1.2.3, up 1m, jetstream store',
      '  data /d',
      '  nats nats://n',
      '  http off',
      '  works on 3 conversations: photos and 2 more',
      'daemon B  it did not answer in time',
      '3 conversations; 2 posts not in a log, the oldest for 4s; 1 dead letter',
      'agent critic: not connected, turns wait for it',
      'MCP server files of A: not connected (ENOENT more)',
      'MCP server web of A: connected (left out bad: its schema is invalid)',
      `model big, key 2 of A: left out until ${clockTime(ago(-60))} (RATE_LIMITED, 2 failures in a row)`,
      '',
      'waiting (22)',
      'CONVERSATION  AGENT  SINCE  FOR                TITLE',
      expect.stringMatching(/^photos {8}dev {4}2h {5}approval of shell {2}Re[ -~]+name$/),
      '… and 21 more',
    ]);
  });

  it('says what the server did not answer', () => {
    const text = renderStatus({ ...STATUS, queue: null, deadLetters: null }, createPalette(false));
    expect(text).toContain('queue unknown: the server did not answer; dead letters unknown');
  });

  it.each([
    [0, '0s'],
    [59, '59s'],
    [61, '1m'],
    [7_200, '2h'],
    [200_000, '2d'],
    [-5, '0s'],
  ])('an age of %d seconds is %s', (seconds, text) => expect(ageText(ago(seconds), NOW)).toBe(text));
});
