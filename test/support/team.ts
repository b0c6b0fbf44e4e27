import type { Entry } from '../../src/client/index.ts';

/** Reading the log of a team: who said what, who waits, what was called and what came of it. */

export function ofType<T extends Entry['type']>(entries: readonly Entry[], type: T) {
  return entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type);
}

/** What an agent said, in order: words and the tools it called. */
export function saidBy(entries: readonly Entry[], agent: string): [string | null, string[]][] {
  return ofType(entries, 'message')
    .filter((entry) => entry.role === 'assistant' && entry.author.id === agent)
    .map((entry) => [entry.content, (entry.tool_calls ?? []).map((call) => call.function.name)]);
}

/** The agent's turn has waited for somebody. */
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

/** How each turn of an agent ended, the waits between left out. */
export function outcomesOf(entries: readonly Entry[], agent: string): string[] {
  return ofType(entries, 'turn-ended')
    .filter((entry) => entry.agent === agent && entry.outcome !== 'waiting')
    .map(({ outcome }) => outcome);
}

/** So many turns have ended for good. */
export function finished(count: number): (entries: readonly Entry[]) => boolean {
  return (entries) =>
    ofType(entries, 'turn-ended').filter((entry) => entry.outcome !== 'waiting').length >= count;
}
