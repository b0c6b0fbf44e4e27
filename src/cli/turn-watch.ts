import type { Entry, EntryOf, TurnOutcome } from '../client/index.ts';

/**
 * Knows from the log alone whether any turn is left to run after a message.
 *
 * W1 A message is owed one turn by each agent it was routed to, until a turn of that agent takes it as its
 *    trigger, is shown it midway, or gets it as a tool's result.
 * W2 So is each handoff and delegation that is seen.
 * W3 A turn is open from `turn-started` to a `turn-ended` other than `waiting`.
 * W4 Settled: nothing owed, nothing open. A stop settles what it keeps from running.
 */
export interface TurnWatch {
  /** A message was posted; what the log has told of it already counts. */
  owe(index: number, agents: readonly string[]): void;
  observe(entry: Entry): void;
  readonly settled: boolean;
  /** Agents whose turns run or wait. */
  readonly open: readonly string[];
  /** Turns that ended other than `completed`, in order. */
  readonly unfinished: readonly { readonly agent: string; readonly outcome: TurnOutcome }[];
}

export function createTurnWatch(): TurnWatch {
  const owed = new Map<string, { index: number; agent: string }>();
  /** Owed before anybody said so: the answer to a post may come later than the turn that it causes. */
  const dealtWith = new Set<string>();
  const open = new Map<string, string>();
  const unfinished: { agent: string; outcome: TurnOutcome }[] = [];
  const keyOf = (index: number, agent: string) => `${index}:${agent}`;

  function owe(index: number, agents: readonly string[]): void {
    for (const agent of agents) {
      const key = keyOf(index, agent);
      if (!dealtWith.has(key)) owed.set(key, { index, agent });
    }
  }

  function take(agent: string, turnId: string, indexes: readonly number[]): void {
    open.set(turnId, agent);
    for (const index of indexes) discharge(keyOf(index, agent));
  }

  function discharge(key: string): void {
    owed.delete(key);
    dealtWith.add(key);
  }

  /** W4: every debt of one agent, or of all. */
  function release(agent: string | null): void {
    for (const [key, debt] of owed) if (agent === null || debt.agent === agent) owed.delete(key);
  }

  function end(entry: EntryOf<'turn-ended'>): void {
    if (entry.outcome === 'waiting') return; // W3
    open.delete(entry.turnId);
    if (entry.outcome !== 'completed') unfinished.push({ agent: entry.agent, outcome: entry.outcome });
  }

  function observe(entry: Entry): void {
    switch (entry.type) {
      case 'turn-started':
        take(entry.agent, entry.turnId, entry.trigger);
        break;
      case 'message-delivered':
        take(entry.agent, entry.turnId, entry.entries);
        break;
      case 'turn-ended':
        end(entry);
        break;
      case 'handoff':
      case 'delegation-requested':
        owe(entry.index, [entry.to]); // W2
        break;
      case 'message':
        for (const [key, { index }] of owed) if (entry.answers?.includes(index)) discharge(key);
        break;
      case 'agent-stopped':
        release(entry.agent);
        break;
    }
  }

  return {
    owe,
    observe,
    unfinished,
    get settled() {
      return owed.size === 0 && open.size === 0;
    },
    get open() {
      return [...open.values()];
    },
  };
}
