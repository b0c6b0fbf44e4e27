import type { CallPlace } from '../../conversation/index.ts';
import { type Observed, type Violation, violation } from '../findings.ts';

/**
 * What tools really did, against what the log says of it. Both are written by different hands: the effects were
 * counted where they happened.
 *
 * E1 A call took effect at most as often as the log says that it was started.
 * E2 Each start of a call but its first has a mark: `rerun`, or a person's word.
 * E3 A result in the tool's own words was not made up: the call took effect.
 * E4 Nothing took effect that no log knows.
 */

interface Known {
  starts: number;
  /** Starts that say themselves that they are not the first, and words of a person that order one. */
  marks: number;
  lastIndex: number;
  saysDone: boolean;
}

export function checkEffects({ logs, effects }: Pick<Observed, 'logs' | 'effects'>): Violation[] {
  const calls = new Map<string, Known>();
  for (const [conversation, entries] of logs) {
    const known = (call: CallPlace, index: number): Known => {
      const key = `${conversation}:${call.index}:${call.position}`;
      const found = calls.get(key) ?? { starts: 0, marks: 0, lastIndex: index, saysDone: false };
      found.lastIndex = index;
      calls.set(key, found);
      return found;
    };
    for (const entry of entries) {
      if (entry.type === 'tool-started') {
        const call = known(entry.call, entry.index);
        call.starts += 1;
        if (entry.rerun) call.marks += 1;
      } else if (entry.type === 'approval-answered' && entry.answer === 'rerun' && entry.call) {
        known(entry.call, entry.index).marks += 1;
      } else if (entry.type === 'message' && entry.role === 'tool' && entry.call) {
        const key = `${conversation}:${entry.call.index}:${entry.call.position}`;
        if (entry.content === `did ${key}`) known(entry.call, entry.index).saysDone = true;
      }
    }
  }
  const found: Violation[] = [];
  const wrong = (key: string, index: number | null, text: string) =>
    void found.push(violation('effects', key.split(':')[0] ?? null, index, `the call ${key} ${text}`));
  for (const [key, call] of calls) {
    const count = effects.get(key) ?? 0;
    if (count > call.starts)
      wrong(key, call.lastIndex, `took effect ${count} times and was started ${call.starts}`);
    if (call.starts - 1 > call.marks) wrong(key, call.lastIndex, 'was started again without a mark');
    if (call.saysDone && count === 0) wrong(key, call.lastIndex, 'has a result and never took effect');
  }
  for (const key of effects.keys())
    if (!calls.has(key)) wrong(key, null, 'took effect and no log knows of it');
  return found;
}
