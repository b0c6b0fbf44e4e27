import type { Entry } from '../../src/client/index.ts';
import { type CallPlace, checkLaws } from '../../src/conversation/index.ts';
import type { Acknowledged } from './actors/publishers.ts';
import type { PlannedPost } from './posts-plan.ts';

/** The observations of a run, and the violations in them. */

export interface Violation {
  /** The violated promise, in one or two words. */
  readonly law: string;
  readonly conversation: string | null;
  readonly index: number | null;
  readonly text: string;
}

/** The request for an answer, as the daemon explains it; `at` null: the next request. */
export interface SeenView {
  readonly conversation: string;
  readonly agent: string;
  readonly at: number | null;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | null;
    readonly tool_calls?: readonly { readonly id: string }[];
    readonly tool_call_id?: string;
  }[];
  readonly requestHash: string;
  /** Absent: the daemon could not explain it. */
  readonly definition?: { readonly recorded: boolean };
  readonly included: readonly number[];
  readonly fault: { readonly code: string; readonly message: string } | null;
  readonly parts: readonly { readonly kind: string; readonly entries: readonly number[] }[];
}

export interface Observed {
  readonly planned: readonly PlannedPost[];
  readonly acknowledged: readonly Acknowledged[];
  readonly logs: ReadonlyMap<string, readonly Entry[]>;
  readonly views: readonly SeenView[];
  /** How often each call took effect, by `<conversation>:<index>:<position>`. */
  readonly effects: ReadonlyMap<string, number>;
  /** Why an acknowledged post was refused later, by its id: the reason in its dead letter. */
  readonly refused: ReadonlyMap<string, string>;
}

export function violation(
  law: string,
  conversation: string | null,
  index: number | null,
  text: string,
): Violation {
  return { law, conversation, index, text };
}

/**
 * Compares the effects of tools, which the tool server counts, with the log.
 *
 * CHAOS-FINDINGS-1 A call took effect at most as often as it was started according to the log.
 * CHAOS-FINDINGS-2 Each start of a call except its first has a mark: `rerun`, or the answer of a person.
 * CHAOS-FINDINGS-3 A call with the tool's own result took effect.
 * CHAOS-FINDINGS-4 Every effect belongs to a call in a log.
 */

interface Known {
  starts: number;
  /** Marks of repeated starts, and decisions of a person to repeat one. */
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
  for (const key of effects.keys()) if (!calls.has(key)) wrong(key, null, 'took effect and is in no log');
  return found;
}

/** The laws of a single log: the same check as in the tests. */
export function checkLogs({ logs }: Pick<Observed, 'logs'>): Violation[] {
  return [...logs].flatMap(([conversation, entries]) =>
    checkLaws(entries).map((text) => {
      const index = /^(?:entry|line) (\d+)/.exec(text)?.[1];
      return violation('log', conversation, index === undefined ? null : Number(index), text);
    }),
  );
}
