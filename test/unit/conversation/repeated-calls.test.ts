import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../support/runs.ts';
import { typed } from './life.ts';
import type { Called } from './team.ts';
import { ToolTeam } from './tool-life.ts';

const started = () => {
  const team = new ToolTeam().posted('go');
  return team;
};

/** One answer with calls, and the result of each. */
function round(team: ToolTeam, calls: readonly Called[], results: readonly string[], words = ''): void {
  team.act('pm', words, ...calls);
  for (const [at, result] of results.entries()) team.done(calls[at]?.[0] ?? '', result);
}

const isOpen = (team: ToolTeam) => team.turn('pm') !== null;
const limits = (team: ToolTeam) => typed(team.entries, 'limit-reached').map(({ limit }) => limit);
const noticed = (team: ToolTeam) =>
  typed(team.entries, 'message').flatMap(({ role, content }) =>
    role === 'tool' ? [content?.includes('three times in a row') ?? false] : [],
  );

describe('an agent that repeats a call', () => {
  it('gets a notice with the third same result, and its turn ends after the fifth with a limit that people see', () => {
    const team = started();
    for (let call = 1; call <= 5; call += 1) {
      expect(isOpen(team)).toBe(true);
      // Spaces and what it says beside the call do not make another call of it.
      const given = call % 2 === 0 ? '{ "path": "a" }' : '{"path":"a"}';
      round(team, [['safe', given]], ['nothing'], `try ${call}`);
    }
    expect(isOpen(team)).toBe(false);
    expect(noticed(team)).toEqual([false, false, true, false, false]);
    expect(limits(team)).toEqual(['repeatedCalls']);
    expect(typed(team.entries, 'turn-ended').at(-1)?.outcome).toBe('limited');
    expect(typed(team.entries, 'limit-reached')[0]?.content).toBe(
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

  it.each<[string, (team: ToolTeam, call: number) => void]>([
    ['another result', (team, call) => round(team, [['safe']], [`step ${call}`])],
    ['other arguments', (team, call) => round(team, [['safe', { page: call }]], ['nothing'])],
    ['another tool', (team, call) => round(team, [[`safe${call}`]], ['nothing'])],
    [
      'another call beside it',
      (team, call) => round(team, [['safe'], [`safe${call}`]], ['nothing', 'nothing']),
    ],
  ])('may continue with %s', (_, repeat) => {
    const team = started();
    for (let call = 1; call <= 12; call += 1) repeat(team, call);
    expect(isOpen(team)).toBe(true);
    expect(limits(team)).toEqual([]);
    expect(noticed(team)).not.toContain(true);
  });

  it('begins anew with a message that a person sends into the turn, with the answer of a person, and in the next turn', () => {
    const team = started();
    for (let call = 1; call <= 4; call += 1) round(team, [['safe']], ['nothing']);
    team.act('pm', '', ['safe']);
    team.post('try harder', { delivery: 'steer' });
    team.done('safe', 'nothing');
    for (let call = 1; call <= 4; call += 1) round(team, [['safe']], ['nothing']);
    expect(isOpen(team)).toBe(true);
    round(team, [['safe']], ['nothing']);
    expect(limits(team)).toEqual(['repeatedCalls']);
    team.post('once more');
    for (let call = 1; call <= 4; call += 1) round(team, [['safe']], ['nothing']);
    expect(isOpen(team)).toBe(true);

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
    const team = started();
    for (let call = 0; call < 5 * length; call += 1) {
      expect(isOpen(team)).toBe(true);
      round(team, [['safe', { page: call % length }]], ['nothing']);
    }
    expect(isOpen(team)).toBe(false);
    expect(noticed(team).flatMap((is, at) => (is ? [at + 1] : []))).toEqual([3 * length]);
    expect(limits(team)).toEqual(['repeatedCalls']);
  });

  it('the turn ends with the fifth repetition of one to four rounds, and with no other', () => {
    const steps = fc.array(
      fc.record({ call: fc.constantFrom('safe1', 'safe2'), result: fc.constantFrom('a', 'b') }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const team = started();
        const made: string[] = [];
        for (const { call, result } of all) {
          round(team, [[call]], [result]);
          made.push(call + result);
          const repeats = (times: number) =>
            [1, 2, 3, 4].some(
              (length) =>
                made.length >= times * length &&
                made.slice(-times * length).every((one, at, last) => one === last[at % length]),
            );
          expect(isOpen(team)).toBe(!repeats(5));
          if (repeats(5)) return;
          if (noticed(team).at(-1)) expect(repeats(3)).toBe(true);
        }
      }),
      { numRuns: runs(100) },
    );
  });
});
