import type { EntryOf } from '../log/entry.ts';

/** The tool calls of a log that wait for a person (a question, an approval) or for another agent. */
export interface PendingCalls {
  /** Registers callers and questions; returns the turn whose last open call got its result. */
  message(entry: EntryOf<'message'>): string | null;
  add(place: CallPlace, agent: string | null): void;
  /** Drops the calls that a stopped agent works on (null: every agent). */
  release(agent: string | null): void;
  /** The agents that work on calls of this turn. */
  awaited(turnId: string): string[];
  /** The agents with an open question, in order, of the turns that `fits` accepts. */
  asking(fits: (turnId: string) => boolean): string[];
}

type CallPlace = EntryOf<'delegation-requested'>['call'];

interface Pending {
  readonly turnId: string;
  /** The agent that works on it; null: a person must answer. */
  readonly agent: string | null;
  /** The agent that asked, if it is a question. */
  readonly asker?: string;
}

export function createPendingCalls(): PendingCalls {
  const pending = new Map<string, Pending>();
  /** The turn of each message with tool calls, by index. */
  const callers = new Map<number, string>();
  const keyOf = ({ index, position }: CallPlace) => `${index}:${position}`;

  function add(place: CallPlace, agent: string | null, asker?: string): void {
    const turnId = callers.get(place.index);
    if (turnId !== undefined) pending.set(keyOf(place), { turnId, agent, asker });
  }

  function message(entry: EntryOf<'message'>): string | null {
    if (entry.turnId !== undefined && entry.tool_calls) callers.set(entry.index, entry.turnId);
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      if (tool.name === 'ask') add({ index: entry.index, position }, null, entry.author.id);
    }
    const key = entry.call && keyOf(entry.call);
    const answered = key === undefined ? undefined : pending.get(key);
    if (key === undefined || answered === undefined) return null;
    pending.delete(key);
    const isLast = [...pending.values()].every(({ turnId }) => turnId !== answered.turnId);
    return isLast ? answered.turnId : null;
  }

  return {
    message,
    add,
    release(agent) {
      for (const [key, one] of pending) {
        if (one.agent !== null && (agent === null || one.agent === agent)) pending.delete(key);
      }
    },
    awaited: (id) =>
      [...pending.values()].flatMap(({ turnId, agent }) => (turnId === id && agent !== null ? [agent] : [])),
    asking(fits) {
      const asked = [...pending.values()].filter(({ turnId }) => fits(turnId));
      return [...new Set(asked.flatMap(({ asker }) => asker ?? []))];
    },
  };
}
