import type { Entry } from '../../src/client/index.ts';

/** Reads the log of a team: messages, waiting agents, calls and results. */

export function ofType<T extends Entry['type']>(entries: readonly Entry[], type: T) {
  return entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type);
}

/** The messages of an agent in order: text and the tools it called. */
export function saidBy(entries: readonly Entry[], agent: string): [string | null, string[]][] {
  return ofType(entries, 'message')
    .filter((entry) => entry.role === 'assistant' && entry.author.id === agent)
    .map((entry) => [entry.content, (entry.tool_calls ?? []).map((call) => call.function.name)]);
}

/** Whether a turn of the agent has waited for another agent or a person. */
export function hasWaited(entries: readonly Entry[], agent: string): boolean {
  return ofType(entries, 'turn-ended').some((entry) => entry.agent === agent && entry.outcome === 'waiting');
}

/** Every tool call, in order, with the results that it got. */
export function callsOf(entries: readonly Entry[]) {
  const messages = ofType(entries, 'message');
  return messages.flatMap((entry) =>
    (entry.tool_calls ?? []).map((call, position) => ({
      agent: entry.author.id,
      name: call.function.name,
      results: messages.filter(
        (other) => other.call?.index === entry.index && other.call.position === position,
      ),
    })),
  );
}

/** How each turn of an agent ended, without the waits in between. */
export function outcomesOf(entries: readonly Entry[], agent: string): string[] {
  return ofType(entries, 'turn-ended')
    .filter((entry) => entry.agent === agent && entry.outcome !== 'waiting')
    .map(({ outcome }) => outcome);
}

/** Whether this many turns have ended, not counting waits. */
export function finished(count: number): (entries: readonly Entry[]) => boolean {
  return (entries) =>
    ofType(entries, 'turn-ended').filter((entry) => entry.outcome !== 'waiting').length >= count;
}
