import type { RecordedTurn, Run } from '../../agents/index.ts';
import type { WhatIfRun, WhatIfTally, WhatIfTurn } from '../../bus/index.ts';
import { type Entry, NOTHING_USED, usedTogether, usedWith } from '../../conversation/index.ts';

/** What a what-if reports: the recorded turn, its runs, and their count. */

export type Tally = { -readonly [K in keyof WhatIfTally]: WhatIfTally[K] };

export function emptyTally(): Tally {
  return { same: 0, different: 0, diverged: 0, failed: 0, interrupted: 0, used: NOTHING_USED };
}

export function addRun(tally: Tally, { verdict, used }: WhatIfRun): void {
  tally[verdict] += 1;
  tally.used = usedTogether([tally.used, used]);
}

export function recordedOf({ steps }: RecordedTurn, entries: readonly Entry[]): WhatIfTurn['recorded'] {
  const answers = steps.flatMap(({ index }) => entries[index] ?? []);
  const last = answers.at(-1);
  const [first] = answers;
  if (last?.type !== 'message' || first?.type !== 'message')
    throw new Error('the answer of a step is a message');
  return {
    content: last.content,
    toolCalls: (last.tool_calls ?? []).map((call) => ({
      name: call.function.name,
      arguments: call.function.arguments,
    })),
    finishReason: last.finishReason,
    model: last.model,
    steps: steps.length,
    used: answers.reduce(usedWith, NOTHING_USED),
    requestHash: first.requestHash ?? '',
  };
}

export function reportedRun(run: Run, recorded: WhatIfTurn['recorded']): WhatIfRun {
  return { ...run, toolCalls: [...run.toolCalls], verdict: verdictOn(run, recorded) };
}

/** White space around a text does not matter. */
function verdictOn(run: Run, { content, toolCalls }: WhatIfTurn['recorded']): WhatIfRun['verdict'] {
  if (run.outcome !== 'answered' && run.outcome !== 'ended') return run.outcome;
  const hasSameCalls = run.outcome === 'ended' || toolCalls.length === 0;
  return hasSameCalls && (run.content ?? '').trim() === (content ?? '').trim() ? 'same' : 'different';
}

/** The turns from `from` on that fit into `room` bytes. One that fits no answer is cut (`truncated`). */
export function pageOfTurns(turns: readonly WhatIfTurn[], room: number): readonly WhatIfTurn[] {
  let left = room;
  const over = turns.findIndex((turn) => {
    left -= sizeOf(turn) + 1;
    return left < 0;
  });
  const [first] = turns;
  if (over !== 0 || !first) return over < 0 ? turns : turns.slice(0, over);
  for (let most = 32_768; ; most /= 2) {
    const short = cutTo(first, most);
    if (most <= 64 || sizeOf(short) < room) return [short];
  }
}

function cutTo(turn: WhatIfTurn, most: number): WhatIfTurn {
  const shorter = (text: string) => text.slice(0, most).replace(/\p{Surrogate}$/u, '');
  const cut = <T extends WhatIfRun | WhatIfTurn['recorded']>(one: T): T => ({
    ...one,
    content: one.content === null ? null : shorter(one.content),
    toolCalls: one.toolCalls.map((call) => ({ ...call, arguments: shorter(call.arguments) })),
  });
  return {
    ...turn,
    recorded: cut(turn.recorded),
    control: turn.control.map(cut),
    changed: turn.changed.map(cut),
    truncated: true,
  };
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
