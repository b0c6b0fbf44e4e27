import type { Entry, EntryOf, TurnOutcome } from '../client/index.ts';

/**
 * Knows from the log alone whether any turn is left to run after a message.
 *
 * W1 A message is owed one turn by each agent it was routed to, until a turn of that agent takes it as its
 *    trigger (a turn that waited for it does so when it goes on) or is shown it midway.
 * W2 So is each handoff and delegation that is seen.
 * W3 A turn is open from `turn-started` to a `turn-ended` other than `waiting`.
 * W4 Settled: nothing owed, nothing open. A stop settles what it keeps from running.
 * W5 Quiet: settled, but for turns that wait while nothing runs: it is a person's word that they wait for.
 */
export interface TurnWatch {
  /** A message was posted; what the log has told of it already counts. */
  owe(index: number, agents: readonly string[]): void;
  observe(entry: Entry): void;
  readonly settled: boolean;
  readonly quiet: boolean;
  /** Turns that ended other than `completed`, in order. */
  readonly unfinished: readonly { readonly agent: string; readonly outcome: TurnOutcome }[];
}

export function createTurnWatch(): TurnWatch {
  const owed = new Map<string, { index: number; agent: string }>();
  /** Owed before anybody said so: the answer to a post may come later than the turn that it causes. */
  const dealtWith = new Set<string>();
  /** By turn id. */
  const open = new Map<string, 'runs' | 'waits'>();
  const unfinished: { agent: string; outcome: TurnOutcome }[] = [];
  const keyOf = (index: number, agent: string) => `${index}:${agent}`;

  function owe(index: number, agents: readonly string[]): void {
    for (const agent of agents) {
      const key = keyOf(index, agent);
      if (!dealtWith.has(key)) owed.set(key, { index, agent });
    }
  }

  function take(agent: string, turnId: string, indexes: readonly number[]): void {
    open.set(turnId, 'runs');
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
    if (entry.outcome === 'waiting') {
      open.set(entry.turnId, 'waits'); // W3
      return;
    }
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
    get quiet() {
      return owed.size === 0 && [...open.values()].every((state) => state === 'waits');
    },
  };
}
