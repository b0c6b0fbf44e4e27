import { describe, expect, it } from 'vitest';
import type { WhatIfResult, WhatIfRun, WhatIfTurn } from '../../../src/client/index.ts';
import { NOTHING_USED } from '../../../src/conversation/index.ts';
import { fakeDaemon, parley, start } from './support.ts';

const USED = { ...NOTHING_USED, calls: 1, inputTokens: 10, outputTokens: 2 };
const NONE = { same: 0, different: 0, diverged: 0, failed: 0, interrupted: 0, used: USED };

const runOf = (more: Partial<WhatIfRun>): WhatIfRun => ({
  ...{ outcome: 'answered', content: 'yes', toolCalls: [], steps: 1, used: USED, duration: 3 },
  ...{ requestHash: 'a', verdict: 'same', ...more },
});
const turnOf = (more: Partial<WhatIfTurn> = {}): WhatIfTurn => ({
  at: 11,
  recorded: { content: 'yes', toolCalls: [], steps: 1, used: USED, requestHash: 'a' },
  control: [runOf({})],
  changed: [runOf({})],
  ...more,
});
const resultOf = (turns: readonly WhatIfTurn[], more: Partial<WhatIfResult> = {}): WhatIfResult => ({
  ...{ id: 'w1', conversation: 'c', agent: 'pm', state: 'done', by: 'alice', start: 'turn' },
  ...{ startedAt: '2026-11-23T17:00:00.000Z', endedAt: null, change: { model: 'm2', persona: 'Rhyme.' } },
  ...{ runs: 1, done: 2, total: 2, turns: turns.length, control: NONE, changed: NONE, next: null },
  results: turns,
  ...more,
});
const show = async (result: WhatIfResult) =>
  (await parley(['what-if', 'c', '--show', 'w1'], { daemon: fakeDaemon({ 'what-if-result': result }) })).out;

describe('parley what-if', () => {
  it('starts with an id of its own, waits, and joins the pages of the result', async () => {
    let asked = 0;
    const page = (from: number, next: number | null) => resultOf([turnOf({ at: from })], { next, turns: 2 });
    const daemon = fakeDaemon({
      'what-if': ({ id }: { id: string }) => resultOf([], { id, state: 'queued', done: 0 }),
      'what-if-result': ({ from = 0, limit }: { from?: number; limit?: number }) =>
        limit === 0
          ? resultOf([], { state: asked++ === 0 ? 'running' : 'done' })
          : page(from, from === 0 ? 1 : null),
    });
    const ran = await parley(['what-if', 'c', '--at', '3,4', '--model', 'm2', '-n', '3', '--json'], {
      daemon,
    });
    const [begun, ...reads] = daemon.requests;
    expect(begun).toEqual({
      endpoint: 'what-if',
      body: {
        ...{ conversation: 'c', at: [3, 4], model: 'm2', runs: 3, publisher: 'alice' },
        id: expect.stringMatching(/^[a-z0-9]+$/),
      },
    });
    expect(reads).toHaveLength(4);
    expect(ran.json()).toMatchObject([{ results: [{ at: 0 }, { at: 1 }] }]);
    expect([ran.code, ran.err]).toEqual([0, '']);
  });

  it('ends its wait at a signal, and names the command that shows the result', async () => {
    const daemon = fakeDaemon({
      'what-if': resultOf([], { state: 'queued' }),
      'what-if-result': resultOf([], { state: 'running' }),
    });
    const running = start(['what-if', 'c', '--at', '3', '--model', 'm2'], { daemon });
    await expect.poll(() => daemon.requests.length).toBeGreaterThan(1);
    running.signal('SIGINT');
    const { code, err } = await running.done;
    expect([code, err]).toEqual([1, expect.stringMatching(/continues in the daemon.*what-if c --show w1/s)]);
    expect(daemon.requests.map(({ endpoint }) => endpoint)).not.toContain('what-if-stop');
    expect(running.listeners()).toBe(0);
  });

  it.each([
    [['--at', '3'], 'what is changed?'],
    [['--model', 'm2'], 'one of --at, --list, --show and --stop'],
    [['--list', '--show', 'w1'], 'one of --at, --list, --show and --stop'],
    [['--at', 'x', '--model', 'm2'], 'index of an entry'],
    [['--at', '3', '--model', 'm2', '-n', '21'], 'from 1 to 20'],
    [['--at', '3', '--persona', '/nowhere/pm.md'], 'cannot be read'],
  ])('refuses %j before it asks the daemon to start', async (args, message) => {
    const daemon = fakeDaemon();
    const ran = await parley(['what-if', 'c', ...args], { daemon });
    expect([ran.code, ran.err, daemon.requests]).toEqual([2, expect.stringContaining(message), []]);
  });

  it('shows why a run failed or diverged, and an unknown cost as unknown', async () => {
    const used = { ...USED, unpricedCalls: 1 };
    const failed = runOf({
      verdict: 'failed',
      outcome: 'failed',
      code: 'TIMEOUT',
      message: 'no answer',
      used,
    });
    const toolCalls = [{ name: 'shell', arguments: '{"command":"ls"}' }];
    const diverged = runOf({ verdict: 'diverged', outcome: 'diverged', content: null, toolCalls });
    const out = await show(
      resultOf([turnOf({ changed: [failed, diverged] })], { changed: { ...NONE, used } }),
    );
    expect(out).toContain('pm with model m2 and another persona, 1 run of each side');
    expect(out).toContain('changed 1: TIMEOUT: no answer\n');
    expect(out).toContain(
      'changed 2: call 1 wanted tools that the recorded turn did not call\n- yes\n+ ⚙ shell',
    );
    expect(out).toMatch(/^changed +0 .* unknown$/m);
    expect(out).not.toContain('control 1:');
  });

  it('shows one line for each of several turns, also for one that could not be sent again', async () => {
    const failure = { code: 'NO_DEFINITION', message: 'recorded without a definition' };
    const turns = [
      turnOf({ at: 5, changed: [runOf({ verdict: 'different', content: 'no\nnever' }), runOf({})] }),
      turnOf({ at: 9, control: [], changed: [], failure }),
    ];
    const lines = (await show(resultOf(turns))).trim().split('\n');
    expect(lines.at(-2)).toMatch(/^5 +same +1 same, 1 different +12 +24 +- +no…$/);
    expect(lines.at(-1)).toMatch(/^9 +- +- +0 +0 +- +NO_DEFINITION: recorded without a definition$/);
  });

  it('names the call at which a run diverged, also in the table of several turns', async () => {
    const toolCalls = [{ name: 'shell', arguments: '{"command":"ls"}' }];
    const run = runOf({ verdict: 'diverged', outcome: 'diverged', content: 'I look.', toolCalls });
    const lines = (await show(resultOf([turnOf({ at: 5 }), turnOf({ at: 9, changed: [run] })]))).trim();
    expect(lines).toMatch(/⚙ shell {"command":"ls"}$/);
  });

  it('shows texts of models without control characters', async () => {
    const out = await show(
      resultOf([turnOf({ changed: [runOf({ verdict: 'different', content: 'a\u001b[2Jb' })] })]),
    );
    expect(out).toContain('+ a[2Jb');
  });

  it('ends with 1 for a what-if that has not all its runs', async () => {
    const daemon = fakeDaemon({
      'what-if-result': resultOf([turnOf()], { state: 'limited', reason: 'too much' }),
    });
    const ran = await parley(['what-if', 'c', '--show', 'w1'], { daemon });
    expect([ran.code, ran.out]).toEqual([
      1,
      expect.stringContaining('limited (too much), 2 of 2 runs of 1 turn'),
    ]);
  });
});
