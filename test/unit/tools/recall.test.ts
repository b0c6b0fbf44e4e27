import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DEFAULT_VIEW_POLICY, type Entry } from '../../../src/conversation/index.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { type Conversations, createBuiltInTools } from '../../../src/tools/index.ts';
import { logOf, said } from '../conversation/recall-log.ts';
import { content, failed, openTools, toolRun } from './support.ts';

const ALICE = { kind: 'person', id: 'alice', name: 'Alice' } as const;
const DEV = { kind: 'agent', id: 'dev', name: 'Dev' } as const;

function conversations(entries: readonly Entry[], more: Partial<Conversations> = {}): Conversations {
  return { entriesOf: async () => entries, viewPolicyOf: () => DEFAULT_VIEW_POLICY, ...more };
}

const log = logOf(said(ALICE, 'hello there'), said(DEV, 'mine'));

describe('the recall tool', () => {
  it('recall reads the conversation of the call as it is shown to the calling agent', async () => {
    const { run, tools } = await openTools({
      conversations: conversations([], {
        entriesOf: async (conversation) => (conversation === 'work' ? log : []),
        viewPolicyOf: (agent) => {
          expect(agent).toBe('dev');
          return DEFAULT_VIEW_POLICY;
        },
      }),
    });
    expect(tools.definitions().get('recall')?.risk).toBe('safe');
    const text = content(await run('recall', { from: 0 }));
    expect(text).toBe('--- entry 0 · t0 · person: hello there\n--- entry 1 · t1 · you: mine');
    expect(content(await run('recall', { query: 'hello' }))).toContain('--- entry 0 ·');
  });

  it.each([
    [{ from: -1 }, 'from: Too small'],
    [{ from: 1.5 }, 'from: Invalid input: expected int'],
    [{ to: '3' }, 'to: Invalid input: expected number'],
    [{ query: 'x'.repeat(401) }, 'query: Too big'],
    [{ index: 3 }, 'Unrecognized key: "index"'],
    [{}, 'say which entries (from, to) or what to look for (query)'],
  ])('recall refuses %j', async (given, message) => {
    const { run } = await openTools({ conversations: conversations(log) });
    expect(await run('recall', given)).toEqual(failed('INVALID_ARGUMENTS', message));
  });

  it('recall reports that no conversation is open, or that its log cannot be read', async () => {
    const { run, tools } = await openTools();
    expect(await run('recall', { from: 0 })).toEqual(failed('NOT_FOUND', 'the log of work is not open here'));
    await tools.close();
    const gone = conversations([], {
      entriesOf: async () => {
        throw new ParleyError('NOT_FOUND', 'the conversation work is not open');
      },
    });
    const others = createBuiltInTools({ project: '/', conversations: gone });
    const outcome = await others.run(toolRun('recall', { from: 0 }), new AbortController().signal);
    expect(outcome).toEqual(failed('NOT_FOUND', 'the conversation work is not open'));
    await others.close();
  });

  const long = logOf(...Array.from({ length: 20_000 }, () => said(ALICE, `needle ${'x y '.repeat(100)}`)));

  it('recall yields to other work while it searches a long log', async () => {
    const { run } = await openTools({ conversations: conversations(long) });
    let turns = 0;
    let running = true;
    const searching = run('recall', { query: 'needle' }).finally(() => {
      running = false;
    });
    while (running) {
      await nextTurnOfTheLoop();
      turns++;
    }
    expect(content(await searching)).toContain('in 20000 entries');
    expect(turns).toBeGreaterThan(3);
  });

  it('recall stops in the middle of a long log when it is aborted', async () => {
    const { run } = await openTools({ conversations: conversations(long) });
    const stop = new AbortController();
    const searching = run('recall', { query: 'needle' }, stop.signal);
    await nextTurnOfTheLoop();
    await nextTurnOfTheLoop();
    stop.abort();
    expect(await searching).toEqual({ kind: 'aborted' });
  });
});
