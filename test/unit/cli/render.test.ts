import { describe, expect, it } from 'vitest';
import { renderBanner } from '../../../src/cli/render/banner.ts';
import { renderCheck } from '../../../src/cli/render/check.ts';
import { renderEntry } from '../../../src/cli/render/entry.ts';
import { concernsPeople } from '../../../src/cli/render/events.ts';
import { failureOf, renderFailure } from '../../../src/cli/render/failure.ts';
import { createPalette, voiceOf, wantsColour } from '../../../src/cli/render/palette.ts';
import { renderTable } from '../../../src/cli/render/table.ts';
import { clockTime, firstLine, indent, printable } from '../../../src/cli/render/text.ts';
import { renderView } from '../../../src/cli/render/view.ts';
import { type Entry, ParleyError } from '../../../src/client/index.ts';
import { agent, ended, entryOf, person, started } from './support.ts';

const plain = createPalette(false);
/** Without index and time. */
const shown = (entry: Entry) => renderEntry(entry, plain).replace(/^ +\d+ {2}\d\d:\d\d:\d\d {2}/, '');

describe('an entry of the log, for people', () => {
  it('has its index and time first', () => {
    expect(renderEntry(person(12, 'x'), plain)).toMatch(/^ {3}12 {2}\d\d:\d\d:\d\d {2}Alice\n/);
  });

  it('says who speaks to whom, then what, each line set in', () => {
    expect(shown(person(0, 'one\ntwo', { to: ['pm', 'dev'] }))).toBe(
      `Alice → pm, dev\n${' '.repeat(17)}one\n${' '.repeat(17)}two`,
    );
  });

  it('marks what no agent is shown', () => {
    expect(shown(person(0, 'x', { includeInContext: false }))).toContain('Alice (shown to no agent)');
  });

  it('folds a tool call and its result to a line each', () => {
    const call = {
      id: 'c',
      type: 'function' as const,
      function: { name: 'shell', arguments: '{"command":"ls"}' },
    };
    expect(shown(agent(0, 'pm', null, { tool_calls: [call] }))).toBe(
      `PM\n${' '.repeat(17)}⚙ shell {"command":"ls"}`,
    );
    expect(shown(agent(0, 'pm', 'a\nb', { role: 'tool', toolName: 'shell' }))).toBe('⚙ shell: a…');
    expect(shown(agent(0, 'pm', 'x'.repeat(300), { role: 'tool' }))).toMatch(
      /^⚙ result: x{100}… \(300 characters\)$/,
    );
  });

  it('says for what a turn begins, and that one goes on', () => {
    const turn = (trigger: number[], resumed?: boolean) =>
      shown(entryOf('turn-started', 9, { turnId: 't', agent: 'pm', trigger, resumed }));
    expect(turn([3, 4])).toBe('· pm begins a turn for 3, 4');
    expect(turn([7], true)).toBe('· pm goes on with its turn, for 7');
    expect(turn([], true)).toBe('· pm goes on with its turn');
  });

  it('shows a failure apart from the words before it', () => {
    const content = 'So far\n\nLLM_ERROR {"code":"TIMEOUT","message":"too late"}';
    expect(shown(agent(0, 'pm', content, { partType: 'error' }))).toMatch(/So far\n +✗ TIMEOUT: too late$/);
  });

  it('takes a failure that it cannot read as it stands', () => {
    expect(shown(agent(0, 'pm', 'LLM_ERROR {nonsense}', { partType: 'error' }))).toContain(
      '✗ LLM_ERROR: {nonsense}',
    );
  });

  it('does not take words for a failure that only look like one', () => {
    expect(shown(agent(0, 'pm', 'LLM_ERROR {"code":"X","message":"y"}'))).toContain('LLM_ERROR {"code"');
  });

  it.each<[string, Entry]>([
    ['· pm begins a turn for 3, 4', started(0, 'pm', [3, 4])],
    ["· pm's turn ended: failed", ended(0, 'pm', 'failed')],
    ["· pm's turn waits", ended(0, 'pm', 'waiting')],
    [
      '· phase chat → plan by alice (it is time)',
      entryOf('phase-entered', 0, { from: 'chat', to: 'plan', by: 'alice', reason: 'it is time' }),
    ],
    ['· everybody was stopped by alice', entryOf('agent-stopped', 0, { agent: null, by: 'alice' })],
    [
      '· limit hopsPerTrigger reached: 16 hops',
      entryOf('limit-reached', 0, { limit: 'hopsPerTrigger', content: '16 hops' }),
    ],
    ['· tool started', entryOf('tool-started', 0, { call: { index: 0, position: 0 } })],
  ])('says %j', (text, entry) => {
    expect(shown(entry)).toBe(text);
  });

  it('shows the beginning of a result that came late, and nothing that moves the cursor', () => {
    const call = { index: 3, position: 0 };
    const content = `a late result of shell (call c3_0): \u001b[2Jdone ${'x'.repeat(500)}\nmore`;
    const late = shown(entryOf('note', 9, { content, call }));
    expect(late).toMatch(/^· a late result of shell \(call c3_0\): \[2Jdone x+…$/);
    expect(late.length).toBeLessThan(200);
  });

  it('keeps bookkeeping from those who only want to talk', () => {
    expect(concernsPeople(started(0, 'pm', [0]) as never)).toBe(false);
    expect(concernsPeople(ended(0, 'pm') as never)).toBe(false);
    expect(concernsPeople(ended(0, 'pm', 'limited') as never)).toBe(true);
    expect(concernsPeople(entryOf('handoff', 0, { from: 'a', to: 'b', summary: '' }) as never)).toBe(true);
  });
});

describe('small things about text', () => {
  it('makes what others wrote harmless for a terminal', () => {
    expect(printable('a\u001b]0;x\u0007b\r\nc\td\u009b')).toBe('a]0;xb\nc\td');
  });

  it('cuts to the first line, by characters', () => {
    expect(firstLine('  one\ntwo', 10)).toBe('one…');
    expect(firstLine('one', 3)).toBe('one');
    expect(firstLine('😀😀😀', 2)).toBe('😀😀…');
  });

  it('sets in whole lines and leaves empty ones empty', () => {
    expect(indent('a\n\nb', '  ')).toBe('  a\n\n  b');
  });

  it('has a time for what has none', () => {
    expect(clockTime('nonsense')).toBe('--:--:--');
  });

  it('aligns the columns of a table', () => {
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
});

describe('a failure', () => {
  it('is two lines for people', () => {
    const failure = failureOf(new ParleyError('CODE', 'what', { hint: 'do\nthis' }));
    expect(renderFailure(failure)).toBe('parley: what\n  do\n  this');
    expect(failure).toEqual({ code: 'CODE', message: 'what', hint: 'do\nthis' });
  });

  it('without a hint is one', () => {
    expect(renderFailure(failureOf(new ParleyError('CODE', 'what')))).toBe('parley: what');
  });

  it('that nobody expected is called a fault', () => {
    expect(failureOf(new TypeError('x is not a function'))).toMatchObject({ code: 'UNEXPECTED' });
    expect(failureOf('text')).toMatchObject({ code: 'UNEXPECTED', message: 'text' });
  });
});

describe('a view', () => {
  it('shows each message under its role, and the report', () => {
    const view = {
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1_0', function: { name: 'ask', arguments: '{}' } }],
        },
        { role: 'tool', content: 'yes', tool_call_id: 'c1_0' },
      ],
      report: { tokens: 12, left_out: [], included: [0, 1], fault: null, parts: [{ kind: 'prefix' }] },
    };
    expect(renderView(view, plain)).toBe(
      [
        '── 0 user ──\nhi',
        '── 1 assistant ──\n⚙ c1_0 ask {}',
        '── 2 tool c1_0 ──\nyes',
        '── report ──\n3 messages\ntokens: 12\nleft_out: none\nincluded: 0, 1',
      ].join('\n\n'),
    );
  });
});

describe('colours', () => {
  it('are for terminals that want them', () => {
    expect(wantsColour({ isTTY: true }, {})).toBe(true);
    expect(wantsColour({}, {})).toBe(false);
    expect(wantsColour({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour({ isTTY: true }, { TERM: 'dumb' })).toBe(false);
  });

  it('are the same for an agent every time', () => {
    const palette = createPalette(true);
    expect(voiceOf('pm', palette)('PM')).toBe(voiceOf('pm', palette)('PM'));
    expect(voiceOf('pm', palette)('PM')).not.toBe('PM');
  });
});

describe('the banner and a check', () => {
  it('tells where the daemon is and what to type next', () => {
    const banner = renderBanner(
      {
        pid: 7,
        nats: 'nats://h:1',
        http: null,
        agents: ['pm', 'dev'],
        store: 'file',
        data: '/d',
        invocation: 'npx parley',
      },
      plain,
    );
    for (const part of ['process 7', 'nats://h:1', 'off', '/d', 'pm, dev', 'npx parley chat']) {
      expect(banner).toContain(part);
    }
  });

  it('names the fix below what was found', () => {
    const check = { name: 'node', status: 'fail', message: 'old\nvery', fix: 'new' } as const;
    expect(renderCheck(check, plain)).toBe('fail  node: old\n      very\n      → new');
  });
});
