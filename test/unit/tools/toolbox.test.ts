import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Risk, Toolbox, ToolOutcome, ToolRun } from '../../../src/agents/tool-port.ts';
import type { JsonRecord } from '../../../src/kernel/index.ts';
import { createToolbox } from '../../../src/tools/index.ts';
import { toolboxOf, toolNamed } from '../../support/toolbox.ts';
import { toolRun } from './support.ts';

type Runner = (call: ToolRun, signal: AbortSignal) => Promise<ToolOutcome>;

function part(
  names: Record<string, Risk>,
  run: Runner,
  close: () => Promise<void> = async () => {},
): Toolbox {
  return toolboxOf({
    definitions: () =>
      new Map(Object.entries(names).map(([name, risk]) => [name, toolNamed(name, { risk })])),
    check: (name, given) => (given === 'right' ? null : `${name}: wrong`),
    ...{ run, close },
  });
}
const failed = (code: string, message: string) => ({ kind: 'failed', code, message });

const says =
  (content: string): Runner =>
  async () => ({ kind: 'completed', content });
const LIMITS = { risk: {}, timeoutMs: 1_000, graceMs: 100 };
const { signal: NEVER } = new AbortController();

describe('several toolboxes combined into one', () => {
  it('a name belongs to the first toolbox that offers it, and the clash is logged once', async () => {
    const warned: string[] = [];
    const log = { warn: (_: object, message: string) => void warned.push(message), error: () => {} };
    const parts = [
      part({ a: 'safe', b: 'safe' }, says('first')),
      part({ b: 'risky', c: 'risky' }, says('second')),
    ];
    const tools = createToolbox(parts, { ...LIMITS, log });
    const offered = [...tools.definitions()].map(([name, { risk }]) => `${name} ${risk}`);
    expect(offered).toEqual(['a safe', 'b safe', 'c risky']);
    expect(await tools.run(toolRun('b'), NEVER)).toEqual({ kind: 'completed', content: 'first' });
    expect(await tools.run(toolRun('c'), NEVER)).toEqual({ kind: 'completed', content: 'second' });
    expect(warned).toEqual(['two toolboxes offer a tool b; the first one counts']);
  });

  it('the combined toolbox applies the configured risk by name', () => {
    const risk = { a: 'risky', c: 'safe', gone: 'safe' } as const;
    const names = { a: 'safe', b: 'risky', c: 'risky', constructor: 'risky' } as const;
    const tools = createToolbox([part(names, says(''))], { ...LIMITS, risk });
    const risks = [...tools.definitions().values()].map((tool) => tool.risk);
    expect(risks).toEqual(['risky', 'risky', 'safe', 'risky']);
  });

  it('the combined toolbox follows tools that are added and removed', async () => {
    const names: Record<string, Risk> = {};
    const tools = createToolbox([part(names, says('here'))], LIMITS);
    const missing = failed('TOOL_NOT_AVAILABLE', 'there is no tool a');
    expect(tools.check('a', 'right')).toBe('there is no tool a');
    expect(await tools.run(toolRun('a'), NEVER)).toEqual(missing);
    names.a = 'safe';
    expect([tools.check('a', 'right'), tools.check('a', 'left')]).toEqual([null, 'a: wrong']);
    expect(await tools.run(toolRun('a'), NEVER)).toEqual({ kind: 'completed', content: 'here' });
  });

  it('each toolbox is closed once, even if closing one of them fails', async () => {
    const closed: string[] = [];
    const errors: string[] = [];
    const log = { warn: () => {}, error: (_: object, message: string) => void errors.push(message) };
    const closes = (name: string) => async () => {
      closed.push(name);
      if (name === 'a') throw new Error('stuck');
    };
    const parts = [part({ a: 'safe' }, says(''), closes('a')), part({ b: 'safe' }, says(''), closes('b'))];
    const tools = createToolbox(parts, { ...LIMITS, log });
    await Promise.all([tools.close(), tools.close()]);
    expect([closed, errors]).toEqual([['a', 'b'], ['tools did not close: stuck']]);
  });
});

describe('a tool that misbehaves', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const runOf = (run: unknown, signal = NEVER) =>
    createToolbox([part({ a: 'safe' }, run as Runner)], LIMITS).run(toolRun('a'), signal);

  const throws = () => {
    throw new Error('broken');
  };
  const rejects = async () => {
    throw 'words';
  };
  const NONE = ['NO_RESULT', 'a ended without a result'] as const;
  it.each<[string, unknown, string, string]>([
    ['throws at once', throws, 'TOOL_FAILED', 'a: broken'],
    ['rejects', rejects, 'TOOL_FAILED', 'a: words'],
    ['returns nothing', async () => undefined, ...NONE],
    ['returns null', async () => null, ...NONE],
    ['returns a text', async () => 'text', ...NONE],
    ['completes without content', async () => ({ kind: 'completed' }), ...NONE],
    ['fails without words', async () => ({ kind: 'failed', code: 'X' }), ...NONE],
  ])('a tool that %s ends in a result', async (_, run, code, message) => {
    expect(await runOf(run)).toEqual(failed(code, message));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a tool that hangs is aborted at its deadline, and not awaited after it', async () => {
    let told: AbortSignal | undefined;
    const outcome = runOf((_: ToolRun, signal: AbortSignal) => {
      told = signal;
      return new Promise(() => {});
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(told?.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(told?.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(100);
    expect(await outcome).toEqual(failed('TIMEOUT', 'a did not end within 1 seconds'));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('GUARDED-5: the time of a tool stops until every person that it asks has answered, and begins again once', async () => {
    const ask = ({ message }: { message: string }) =>
      new Promise<JsonRecord>((resolve) => void setTimeout(resolve, Number(message), {}));
    const asks: Runner = async (call, signal) => {
      await Promise.all(
        ['500', '1700'].map((message) => call.ask?.({ server: 's', message, schema: {} }, signal)),
      );
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { kind: 'aborted' };
    };
    const outcome = createToolbox([part({ a: 'safe' }, asks)], LIMITS).run({ ...toolRun('a'), ask }, NEVER);
    await vi.advanceTimersByTimeAsync(2_699);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await outcome).toEqual(failed('TIMEOUT', 'a did not end within 1 seconds'));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a tool that is aborted ends with its own result, and a rejection counts as the abort', async () => {
    const obeys = (answer: unknown) => (_: ToolRun, signal: AbortSignal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => (answer === null ? reject(signal.reason) : resolve(answer)));
      });
    const outcomes = async (answer: unknown) => {
      const late = runOf(obeys(answer));
      await vi.advanceTimersByTimeAsync(1_000);
      const controller = new AbortController();
      const aborted = runOf(obeys(answer), controller.signal);
      controller.abort();
      return [await late, await aborted, getEventListeners(controller.signal, 'abort').length];
    };
    const timeout = failed('TIMEOUT', 'a did not end within 1 seconds');
    const completed = { kind: 'completed', content: 'just done' };
    expect(await outcomes(completed)).toEqual([completed, completed, 0]);
    expect(await outcomes({ kind: 'aborted' })).toEqual([timeout, { kind: 'aborted' }, 0]);
    expect(await outcomes(null)).toEqual([timeout, { kind: 'aborted' }, 0]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a tool that ignores its abort is not awaited after a grace period', async () => {
    const controller = new AbortController();
    const outcome = runOf(() => new Promise(() => {}), controller.signal);
    controller.abort();
    await vi.advanceTimersByTimeAsync(100);
    expect(await outcome).toEqual({ kind: 'aborted' });
    expect([vi.getTimerCount(), getEventListeners(controller.signal, 'abort').length]).toEqual([0, 0]);
  });

  it('a tool whose call is already aborted is not started', async () => {
    const run = vi.fn();
    expect(await runOf(run, AbortSignal.abort())).toEqual({ kind: 'aborted' });
    expect(run).not.toHaveBeenCalled();
  });
});
