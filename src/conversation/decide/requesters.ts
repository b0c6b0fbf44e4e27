import type { CallPlace, Entry } from '../log/entry.ts';
import { takenUp } from '../progress/turn-watch.ts';
import { publisherOf } from '../state/people.ts';

/**
 * The publishers whose messages a call answers: those that its turn had taken up when the model wrote it, and over
 * delegations, hand-overs, answers of agents and nodes of a run those of the turns before.
 */
export function requestersOf(entries: readonly Entry[], { index: end }: CallPlace): ReadonlySet<string> {
  const taken = new Map<string, number[]>();
  for (const entry of entries.slice(0, end)) {
    const found = takenUp(entry);
    if (found) taken.set(found.turnId, [...(taken.get(found.turnId) ?? []), ...found.messages]);
  }
  const requesters = new Set<string>();
  const turns = new Set<string>();
  const follow = (turnId: string | undefined) => void (turnId !== undefined && turns.add(turnId));
  follow(entries[end]?.turnId);
  for (const turnId of turns) {
    for (const index of taken.get(turnId) ?? []) {
      const entry = entries[index];
      if (entry?.author.kind === 'person') requesters.add(publisherOf(entry.author.id));
      else follow(entry?.turnId ?? nodeBefore(entries, index));
    }
  }
  return requesters;
}

/** A node of a run is entered right after the result of the call that left the node before. */
function nodeBefore(entries: readonly Entry[], index: number): string | undefined {
  return entries[index]?.type === 'node-entered' ? entries[index - 1]?.turnId : undefined;
}
