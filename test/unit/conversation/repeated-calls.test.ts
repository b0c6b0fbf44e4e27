import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../support/runs.ts';
import { typed } from './life.ts';
import type { Called } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

const started = () => {
  const core = new ToolCore().posted('go');
  return core;
};

/** One answer with calls, and the result of each. */
function round(core: ToolCore, calls: readonly Called[], results: readonly string[], words = ''): void {
  core.act('pm', words, ...calls);
  for (const [at, result] of results.entries()) core.done(calls[at]?.[0] ?? '', result);
}

const isOpen = (core: ToolCore) => core.turn('pm') !== null;
const limits = (core: ToolCore) => typed(core.entries, 'limit-reached').map(({ limit }) => limit);
const noticed = (core: ToolCore) =>
  typed(core.entries, 'message').flatMap(({ role, content }) =>
    role === 'tool' ? [content?.includes('three times in a row') ?? false] : [],
  );

describe('an agent that repeats a call', () => {
  it('gets a notice with the third same result, and its turn ends after the fifth with a limit that people see', () => {
    const core = started();
    for (let call = 1; call <= 5; call += 1) {
      expect(isOpen(core)).toBe(true);
      // Spaces and what it says beside the call do not make another call of it.
      const given = call % 2 === 0 ? '{ "path": "a" }' : '{"path":"a"}';
      round(core, [['safe', given]], ['nothing'], `try ${call}`);
    }
    expect(isOpen(core)).toBe(false);
    expect(noticed(core)).toEqual([false, false, true, false, false]);
    expect(limits(core)).toEqual(['repeatedCalls']);
    expect(typed(core.entries, 'turn-ended').at(-1)?.outcome).toBe('limited');
    expect(typed(core.entries, 'limit-reached')[0]?.content).toBe(
      'pm made the same calls with the same results 5 times in a row',
    );
  });

  it('is noticed with refused calls and with several calls in one answer, too', () => {
    const both = started();
    for (let call = 1; call <= 5; call += 1) {
      both.act('pm', '', ['safe1'], ['unknown'], ['safe2']);
      both.done('safe2', 'b');
      both.done('safe1', 'a');
    }
    expect(isOpen(both)).toBe(false);
    expect(noticed(both).filter(Boolean)).toEqual([true]);
  });

  it.each<[string, (core: ToolCore, call: number) => void]>([
    ['another result', (core, call) => round(core, [['safe']], [`step ${call}`])],
    ['other arguments', (core, call) => round(core, [['safe', { page: call }]], ['nothing'])],
    ['another tool', (core, call) => round(core, [[`safe${call}`]], ['nothing'])],
    [
      'another call beside it',
      (core, call) => round(core, [['safe'], [`safe${call}`]], ['nothing', 'nothing']),
    ],
  ])('may continue with %s', (_, repeat) => {
    const core = started();
    for (let call = 1; call <= 12; call += 1) repeat(core, call);
    expect(isOpen(core)).toBe(true);
    expect(limits(core)).toEqual([]);
    expect(noticed(core)).not.toContain(true);
  });

  it('begins anew with a message that a person sends into the turn, with the answer of a person, and in the next turn', () => {
    const core = started();
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    core.act('pm', '', ['safe']);
    core.post('try harder', { delivery: 'steer' });
    core.done('safe', 'nothing');
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    expect(isOpen(core)).toBe(true);
    round(core, [['safe']], ['nothing']);
    expect(limits(core)).toEqual(['repeatedCalls']);
    core.post('once more');
    for (let call = 1; call <= 4; call += 1) round(core, [['safe']], ['nothing']);
    expect(isOpen(core)).toBe(true);

    const asking = started();
    for (let call = 1; call <= 8; call += 1) {
      asking.act('pm', '', ['ask', { question: 'go on?' }]);
      asking.post('yes');
    }
    expect(limits(asking)).toEqual([]);
  });

  it.each([
    ['two rounds', 2],
    ['three rounds', 3],
    ['four rounds', 4],
  ])('gets the notice and the limit in a loop of %s, too', (_, length) => {
    const core = started();
    for (let call = 0; call < 5 * length; call += 1) {
      expect(isOpen(core)).toBe(true);
      round(core, [['safe', { page: call % length }]], ['nothing']);
    }
    expect(isOpen(core)).toBe(false);
    expect(noticed(core).flatMap((is, at) => (is ? [at + 1] : []))).toEqual([3 * length]);
    expect(limits(core)).toEqual(['repeatedCalls']);
  });

  it('the turn ends with the fifth repetition of one to four rounds, and with no other', () => {
    const steps = fc.array(
      fc.record({ call: fc.constantFrom('safe1', 'safe2'), result: fc.constantFrom('a', 'b') }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const core = started();
        const made: string[] = [];
        for (const { call, result } of all) {
          round(core, [[call]], [result]);
          made.push(call + result);
          const repeats = (times: number) =>
            [1, 2, 3, 4].some(
              (length) =>
                made.length >= times * length &&
                made.slice(-times * length).every((one, at, last) => one === last[at % length]),
            );
          expect(isOpen(core)).toBe(!repeats(5));
          if (repeats(5)) return;
          if (noticed(core).at(-1)) expect(repeats(3)).toBe(true);
        }
      }),
      { numRuns: runs(100) },
    );
  });
});
