import type { Entry, EntryOf, MessageEntry, TurnOutcome } from '../log/entry.ts';
import { routedTo } from '../log/entry-traits.ts';
import { type Cut, cutBy } from '../log/finish-reason.ts';
import { OpenCalls } from './open-calls.ts';

/**
 * Tells from a log's entries alone whether a message still has outstanding turns.
 *
 * TURN-WATCH-1 A message is outstanding for each agent that it was routed to, until a turn of that agent accepts it.
 * TURN-WATCH-2 So is each handoff, delegation and entered node among the observed entries.
 * TURN-WATCH-3 A turn is open from `turn-started` to a `turn-ended` other than `waiting`.
 * TURN-WATCH-4 Settled: nothing is outstanding or open. A stop settles everything that it prevents from running.
 * TURN-WATCH-5 Quiet: settled, except for turns that wait for a person, or for an agent that does or is stopped. So does a turn with a
 *              running call whose server asks: without the answer it never continues. A turn
 *              continues by itself if it waits for any other agent without an open turn, or if its last open call has its result. An answered
 *              approval changes nothing here: if the turn continues, the same append has a `turn-started`.
 * TURN-WATCH-6 Held: quiet, except for messages to agents whose own turn waits for a person, or that are stopped. Read it
 *              only after the whole append was observed: the message itself may be the awaited answer.
 */
export interface TurnWatch {
  /** Registers a posted message. Entries observed earlier count. */
  addOutstanding(index: number, agents: readonly string[]): void;
  observe(entry: Entry): void;
  /** Registers agents that were found to be stopped after the post. */
  markStopped(agents: readonly string[]): void;
  /** TURN-WATCH-6: the stopped agents with outstanding messages. */
  readonly stoppedAgents: readonly string[];
  readonly settled: boolean;
  readonly quiet: boolean;
  readonly held: boolean;
  /** TURN-WATCH-3: the agents with an open turn, and the index at which it began. */
  readonly open: readonly { readonly agent: string; readonly since: number }[];
  /** The agents with an open question to a person, in order. */
  readonly asking: readonly string[];
  /**
   * Turns that ended other than `completed`, in order. `cut`: why a failed one has no text (L16); `limit`: the last
   * limit that a `limited` one reached.
   */
  readonly unfinished: readonly {
    readonly agent: string;
    readonly outcome: TurnOutcome;
    readonly cut?: Cut;
    readonly limit?: string;
  }[];
  /** Turns with incomplete last text, in order; without failed turns that have none. */
  readonly cut: readonly { readonly agent: string; readonly by: Cut }[];
}

export interface TurnInput {
  readonly agent: string;
  readonly turnId: string;
  readonly messages: readonly number[];
}

/**
 * The messages that an entry gives to a turn: as its trigger, during the turn, or as the result of its own call (V18).
 * For an answer, the result may be the only such entry: while other tools run, no `turn-started` follows.
 */
export function turnInputOf(entry: Entry): TurnInput | null {
  if (entry.type === 'turn-started') return { ...entry, messages: entry.trigger };
  if (entry.type === 'message-delivered') return { ...entry, messages: entry.entries };
  if (entry.type !== 'message' || entry.role !== 'tool' || !entry.answers || !entry.turnId) return null;
  return { agent: entry.author.id, turnId: entry.turnId, messages: entry.answers };
}

/** `calls`: observes what the watch observes. */
export function createTurnWatch(calls: OpenCalls = new OpenCalls()): TurnWatch {
  const stops = createStops();
  const outstanding = createOutstanding(stops);
  const turns = createOpenTurns(calls, stops);
  const endings = createEndings();

  return {
    addOutstanding: outstanding.add,
    observe: (entry) => observe(entry, { stops, outstanding, calls, turns, endings }),
    markStopped: (agents) => {
      for (const agent of agents) stops.set(agent, true);
    },
    get stoppedAgents() {
      return outstanding.paused;
    },
    unfinished: endings.unfinished,
    cut: endings.cut,
    get open() {
      return turns.open;
    },
    get asking() {
      return calls.asking((turnId) => turns.waits(turnId));
    },
    get settled() {
      return outstanding.none && turns.none;
    },
    get quiet() {
      return outstanding.none && turns.held() !== null;
    },
    get held() {
      const held = turns.held();
      return held !== null && outstanding.active.every((agent) => held.has(agent));
    },
  };
}

interface Parts {
  readonly stops: Stops;
  readonly outstanding: ReturnType<typeof createOutstanding>;
  readonly calls: OpenCalls;
  readonly turns: ReturnType<typeof createOpenTurns>;
  readonly endings: ReturnType<typeof createEndings>;
}

function observe(entry: Entry, { stops, outstanding, calls, turns, endings }: Parts): void {
  const taken = turnInputOf(entry);
  if (taken) {
    // A result alone does not show whether its turn continues.
    if (entry.type !== 'message' || !turns.has(taken.turnId))
      turns.begin(taken.agent, taken.turnId, entry.index);
    outstanding.accept(taken.agent, taken.messages);
  }
  turns.resume(calls.observe(entry));
  switch (entry.type) {
    case 'message':
      endings.message(entry);
      break;
    case 'turn-ended':
      turns.end(entry);
      if (entry.outcome !== 'waiting') endings.end(entry);
      break;
    case 'limit-reached':
      endings.limit(entry);
      break;
    case 'handoff':
    case 'node-entered':
    case 'delegation-requested':
      outstanding.add(entry.index, routedTo(entry));
      break;
    case 'agent-stopped':
      outstanding.release(entry.agent);
      stops.set(entry.agent, true);
      break;
    case 'agent-resumed':
      stops.set(entry.agent, false);
      break;
    case 'turn-started': // see `taken`
    case 'message-delivered':
    case 'phase-entered':
    case 'mode-entered':
    case 'delegation-answered':
    case 'tool-started':
    case 'approval-requested':
    case 'approval-answered': // TURN-WATCH-5
    case 'summary':
    case 'attempt-failed':
    case 'run-started':
    case 'run-ended':
    case 'title-set':
    case 'feedback':
    case 'session-set':
    case 'claim':
    case 'forked':
    case 'agent-hired':
    case 'agent-dismissed':
    case 'team-changed':
    case 'note':
      break;
    default:
      entry satisfies never; // or of a newer version
  }
}

type Stops = ReturnType<typeof createStops>;

/** The agents that are stopped, as the state folds them. */
function createStops() {
  let all = false;
  const each = new Map<string, boolean>();
  return {
    /** Null: every agent. */
    set(agent: string | null, isStopped: boolean): void {
      if (agent !== null) each.set(agent, isStopped);
      else {
        all = isStopped;
        each.clear();
      }
    },
    has: (agent: string) => each.get(agent) ?? all,
  };
}

/** TURN-WATCH-3, by turn id. */
function createOpenTurns(calls: OpenCalls, stops: Stops) {
  const open = new Map<string, 'runs' | 'waits'>();
  const began = new Map<string, { readonly agent: string; readonly since: number }>();
  return {
    get open() {
      return [...open.keys()].flatMap((turnId) => began.get(turnId) ?? []);
    },
    get none() {
      return open.size === 0;
    },
    has: (turnId: string) => open.has(turnId),
    waits: (turnId: string) => open.get(turnId) === 'waits',
    begin(agent: string, turnId: string, index: number): void {
      open.set(turnId, 'runs');
      began.set(turnId, began.get(turnId) ?? { agent, since: index });
    },
    /** TURN-WATCH-5: its last open call has its result. */
    resume(turnId: string | null): void {
      if (turnId !== null && open.has(turnId)) open.set(turnId, 'runs');
    },
    end({ turnId, outcome }: EntryOf<'turn-ended'>): void {
      if (outcome === 'waiting') open.set(turnId, 'waits');
      else open.delete(turnId);
    },
    /** TURN-WATCH-5: the agents whose turns wait for a person or a resume; null: one runs or will continue by itself. */
    held(): ReadonlySet<string> | null {
      const busy = new Set(this.open.map(({ agent }) => agent));
      const isHeld = (id: string) =>
        calls.workersOf(id).every((agent) => busy.has(agent) || stops.has(agent));
      const isEach = [...open].every(([id, state]) =>
        state === 'waits' ? isHeld(id) : calls.asksPerson(id),
      );
      return isEach ? busy : null;
    },
  };
}

/** Turns that did not complete. */
function createEndings() {
  /** By turn: why its newest answer is incomplete. */
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
      const isEmpty = by && outcome === 'failed';
      const limit = outcome === 'limited' ? limits.get(turnId) : undefined;
      if (outcome !== 'completed')
        unfinished.push({ agent, outcome, ...(isEmpty && { cut: by }), ...(limit && { limit }) });
      if (by && !isEmpty) cut.push({ agent, by });
      newest.delete(turnId);
      limits.delete(turnId);
    },
  };
}

/** TURN-WATCH-1, TURN-WATCH-2: outstanding entries, by index and agent. */
function createOutstanding(stops: Stops) {
  const waiting = new Map<string, string>();
  /** Accepted before they were registered: the reply to a post may arrive after the turn that it starts. */
  const accepted = new Set<string>();
  const keyOf = (index: number, agent: string) => `${index}:${agent}`;
  return {
    get none() {
      return waiting.size === 0;
    },
    /** Agents with outstanding entries that are not stopped. */
    get active() {
      return [...waiting.values()].filter((agent) => !stops.has(agent));
    },
    get paused() {
      return [...waiting.values()].filter((agent) => stops.has(agent));
    },
    add(index: number, agents: readonly string[]): void {
      for (const agent of agents) {
        const key = keyOf(index, agent);
        if (!accepted.has(key)) waiting.set(key, agent);
      }
    },
    accept(agent: string, indexes: readonly number[]): void {
      for (const index of indexes) {
        waiting.delete(keyOf(index, agent));
        accepted.add(keyOf(index, agent));
      }
    },
    /** TURN-WATCH-4: drops everything outstanding of one agent, or of all. */
    release(agent: string | null): void {
      for (const [key, slug] of waiting) if (agent === null || slug === agent) waiting.delete(key);
    },
  };
}
