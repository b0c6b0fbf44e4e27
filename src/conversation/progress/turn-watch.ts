import type { Entry, EntryOf, MessageEntry, TurnOutcome } from '../log/entry.ts';
import { type Cut, cutBy } from '../log/finish-reason.ts';

/**
 * Knows from the log alone whether any turn is left to run after a message.
 *
 * TURN-WATCH-1 A message is owed one turn by each agent it was routed to, until a turn of that agent takes it up (`takenUp`).
 * TURN-WATCH-2 So is each handoff and delegation that is seen, and each node of a run that is entered.
 * TURN-WATCH-3 A turn is open from `turn-started` to a `turn-ended` other than `waiting`.
 * TURN-WATCH-4 Settled: nothing owed, nothing open. A stop settles what it keeps from running.
 * TURN-WATCH-5 Quiet: settled, but for turns that wait for a person's word, or for an agent that waits for one. One that waits for
 *    an agent whose turn is over goes on by itself, and so does one whose last open call has got its result. An answered
 *    approval says nothing of its own: if the turn goes on by it, a `turn-started` stands in the same append.
 * TURN-WATCH-6 Held: quiet, but for messages that wait for agents whose own turn waits for a person, or that a person has stopped.
 *    To be asked once everything that came together was observed: the message itself may be what such a turn waits for.
 */
export interface TurnWatch {
  /** A message was posted; what the log has told of it already counts. */
  owe(index: number, agents: readonly string[]): void;
  observe(entry: Entry): void;
  /** A person has stopped these agents, as was found out after the post. */
  pause(agents: readonly string[]): void;
  /** TURN-WATCH-6: the stopped agents that messages wait for. */
  readonly paused: readonly string[];
  readonly settled: boolean;
  readonly quiet: boolean;
  readonly held: boolean;
  /** The agents whose question to a person is open, in order. */
  readonly asking: readonly string[];
  /**
   * Turns that ended other than `completed`, in order. `cut`: what left a failed one without any words (L16); `limit`:
   * which one was reached last, of one that was `limited`.
   */
  readonly unfinished: readonly {
    readonly agent: string;
    readonly outcome: TurnOutcome;
    readonly cut?: Cut;
    readonly limit?: string;
  }[];
  /** Turns whose last words are not whole, in order; not those that failed without any. */
  readonly cut: readonly { readonly agent: string; readonly by: Cut }[];
}

export interface TakenUp {
  readonly agent: string;
  readonly turnId: string;
  readonly messages: readonly number[];
}

/**
 * The messages that a turn takes up by this entry: as its trigger, midway, or as the result of a call of its own (V18).
 * The last one alone may be all that the log tells of an answer: no `turn-started` follows where the turn still runs.
 */
export function takenUp(entry: Entry): TakenUp | null {
  if (entry.type === 'turn-started') return { ...entry, messages: entry.trigger };
  if (entry.type === 'message-delivered') return { ...entry, messages: entry.entries };
  if (entry.type !== 'message' || entry.role !== 'tool' || !entry.answers || !entry.turnId) return null;
  return { agent: entry.author.id, turnId: entry.turnId, messages: entry.answers };
}

export function createTurnWatch(): TurnWatch {
  const debts = createDebts();
  const calls = createPendingCalls();
  const turns = createOpenTurns(calls);
  const endings = createEndings();

  function observe(entry: Entry): void {
    const taken = takenUp(entry);
    if (taken) {
      // A result does not tell whether its turn goes on.
      if (entry.type !== 'message' || !turns.has(taken.turnId)) turns.begin(taken.agent, taken.turnId);
      debts.discharge(taken.agent, taken.messages);
    }
    switch (entry.type) {
      case 'message':
        endings.message(entry);
        turns.goOn(calls.message(entry));
        break;
      case 'turn-ended':
        turns.end(entry);
        if (entry.outcome !== 'waiting') endings.end(entry);
        break;
      case 'limit-reached':
        endings.limit(entry);
        break;
      case 'handoff':
        debts.owe(entry.index, [entry.to]); // TURN-WATCH-2
        break;
      case 'delegation-requested':
        debts.owe(entry.index, [entry.to]);
        calls.add(entry.call, entry.to);
        break;
      case 'node-entered':
        debts.owe(entry.index, entry.to ?? []);
        break;
      case 'approval-requested':
        calls.add(entry.call, null);
        break;
      case 'agent-stopped':
        debts.release(entry.agent);
        calls.release(entry.agent);
        break;
      case 'agent-resumed':
        debts.resume(entry.agent);
        break;
    }
  }

  return {
    owe: debts.owe,
    observe,
    pause: debts.pause,
    get paused() {
      return debts.paused;
    },
    unfinished: endings.unfinished,
    cut: endings.cut,
    get asking() {
      return calls.asking((turnId) => turns.waits(turnId));
    },
    get settled() {
      return debts.none && turns.none;
    },
    get quiet() {
      return debts.none && turns.held() !== null;
    },
    get held() {
      const held = turns.held();
      return held !== null && debts.active.every((agent) => held.has(agent));
    },
  };
}

/** TURN-WATCH-3, by turn id. */
function createOpenTurns(calls: PendingCalls) {
  const open = new Map<string, 'runs' | 'waits'>();
  const agents = new Map<string, string>();
  return {
    get none() {
      return open.size === 0;
    },
    has: (turnId: string) => open.has(turnId),
    waits: (turnId: string) => open.get(turnId) === 'waits',
    begin(agent: string, turnId: string): void {
      open.set(turnId, 'runs');
      agents.set(turnId, agent);
    },
    /** TURN-WATCH-5: its last open call has got its result. */
    goOn(turnId: string | null): void {
      if (turnId !== null && open.has(turnId)) open.set(turnId, 'runs');
    },
    end({ turnId, outcome }: EntryOf<'turn-ended'>): void {
      if (outcome === 'waiting') open.set(turnId, 'waits');
      else open.delete(turnId);
    },
    /** TURN-WATCH-5: the agents whose turns wait for a person; null: a turn runs, or will go on by itself. */
    held(): ReadonlySet<string> | null {
      const busy = new Set([...open.keys()].flatMap((turnId) => agents.get(turnId) ?? []));
      const isHeld = (id: string) => calls.awaited(id).every((agent) => busy.has(agent));
      return [...open].every(([id, state]) => state === 'waits' && isHeld(id)) ? busy : null;
    },
  };
}

/** Turns that did not end as they should. */
function createEndings() {
  /** By turn: what cut its newest answer. */
  const newest = new Map<string, Cut | null>();
  const limits = new Map<string, string>();
  const unfinished: { agent: string; outcome: TurnOutcome; cut?: Cut; limit?: string }[] = [];
  const cut: { agent: string; by: Cut }[] = [];
  return {
    unfinished,
    cut,
    message({ role, turnId, finishReason }: MessageEntry): void {
      if (role === 'assistant' && turnId !== undefined) newest.set(turnId, cutBy(finishReason));
    },
    limit({ turnId, limit }: EntryOf<'limit-reached'>): void {
      if (turnId !== undefined) limits.set(turnId, limit);
    },
    end({ agent, turnId, outcome }: EntryOf<'turn-ended'>): void {
      const by = newest.get(turnId);
      const isWordless = by && outcome === 'failed';
      const limit = outcome === 'limited' ? limits.get(turnId) : undefined;
      if (outcome !== 'completed')
        unfinished.push({ agent, outcome, ...(isWordless && { cut: by }), ...(limit && { limit }) });
      if (by && !isWordless) cut.push({ agent, by });
      newest.delete(turnId);
      limits.delete(turnId);
    },
  };
}

/** TURN-WATCH-1, TURN-WATCH-2: who is to take what up, by index and agent. */
function createDebts() {
  const owed = new Map<string, string>();
  /** Owed before anybody said so: the answer to a post may come later than the turn that it causes. */
  const dealtWith = new Set<string>();
  const stopped = new Set<string>();
  const keyOf = (index: number, agent: string) => `${index}:${agent}`;
  return {
    get none() {
      return owed.size === 0;
    },
    /** Agents that owe, without those that are stopped. */
    get active() {
      return [...owed.values()].filter((agent) => !stopped.has(agent));
    },
    get paused() {
      return [...owed.values()].filter((agent) => stopped.has(agent));
    },
    pause(agents: readonly string[]): void {
      for (const agent of agents) stopped.add(agent);
    },
    resume(agent: string | null): void {
      if (agent === null) stopped.clear();
      else stopped.delete(agent);
    },
    owe(index: number, agents: readonly string[]): void {
      for (const agent of agents) {
        const key = keyOf(index, agent);
        if (!dealtWith.has(key)) owed.set(key, agent);
      }
    },
    discharge(agent: string, indexes: readonly number[]): void {
      for (const index of indexes) {
        owed.delete(keyOf(index, agent));
        dealtWith.add(keyOf(index, agent));
      }
    },
    /** TURN-WATCH-4: every debt of one agent, or of all. */
    release(agent: string | null): void {
      for (const [key, debtor] of owed) if (agent === null || debtor === agent) owed.delete(key);
    },
  };
}

/** The tool calls of a log that wait for somebody: a person (a question, an approval) or another agent. */
export interface PendingCalls {
  /** Notes who called, and the questions among the calls; answers the turn whose last open call got its result. */
  message(entry: EntryOf<'message'>): string | null;
  add(place: CallPlace, agent: string | null): void;
  /** What a stopped agent works on (null: every agent) is not waited for. */
  release(agent: string | null): void;
  /** The agents that work on calls of this turn. */
  awaited(turnId: string): string[];
  /** Who asks a person, in order, of the turns that fit. */
  asking(fits: (turnId: string) => boolean): string[];
}

type CallPlace = EntryOf<'delegation-requested'>['call'];

interface Pending {
  readonly turnId: string;
  /** The agent that works on it; null: a person is to answer. */
  readonly agent: string | null;
  /** The agent that asks a question by it. */
  readonly asker?: string;
}

export function createPendingCalls(): PendingCalls {
  const pending = new Map<string, Pending>();
  /** The turn of each message that called tools, by its index. */
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
