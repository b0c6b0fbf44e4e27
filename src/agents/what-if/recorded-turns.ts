import type { Entry, MessageEntry } from '../../conversation/index.ts';

/** The turns of one agent that called its model, as a log records them. */

/** One model call of a turn. */
export interface RecordedStep {
  /** The index of its answer; the request was built from the entries before it. */
  readonly index: number;
  /** Hash of the definition that the request was built from; null: none is recorded. */
  readonly definition: string | null;
}

export interface RecordedTurn {
  readonly turnId: string;
  /** At least one, in order. */
  readonly steps: readonly [RecordedStep, ...RecordedStep[]];
}

export function recordedTurns(entries: readonly Entry[], agent: string): RecordedTurn[] {
  const definitions = new Map<string, string | null>();
  const turns = new Map<string, RecordedStep[]>();
  for (const entry of entries) {
    if (entry.type === 'turn-started' && entry.agent === agent)
      definitions.set(entry.turnId, entry.definition ?? null);
    if (!isAnswerTo(entry, agent) || entry.turnId === undefined) continue;
    const step = { index: entry.index, definition: definitions.get(entry.turnId) ?? null };
    turns.set(entry.turnId, [...(turns.get(entry.turnId) ?? []), step]);
  }
  return [...turns].flatMap(([turnId, [first, ...others]]) =>
    first === undefined ? [] : [{ turnId, steps: [first, ...others] }],
  );
}

/** The answer to a request that was sent: an import has no hash, and a refused request an empty one. */
function isAnswerTo(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    entry.author.kind === 'agent' &&
    entry.author.id === agent &&
    Boolean(entry.requestHash)
  );
}

/** The turn that entry `at` belongs to. */
export function turnAt(
  turns: readonly RecordedTurn[],
  entries: readonly Entry[],
  at: number,
): RecordedTurn | undefined {
  const turnId = entries[at]?.turnId;
  return turns.find((turn) => turn.turnId === turnId);
}

/** The part of a turn from the request that entry `at` answers; unchanged if it answers none. */
export function fromAnswer({ turnId, steps }: RecordedTurn, at: number): RecordedTurn {
  const [first, ...others] = steps.slice(
    Math.max(
      0,
      steps.findIndex(({ index }) => index === at),
    ),
  );
  return first === undefined ? { turnId, steps } : { turnId, steps: [first, ...others] };
}
