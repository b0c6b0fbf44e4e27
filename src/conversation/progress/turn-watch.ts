import type { Entry, EntryOf, TurnOutcome } from '../log/entry.ts';
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
export class TurnWatch {
  /**
   * Turns that ended other than `completed`, in order. `cut`: why a failed one has no text (L16); `limit`: the last
   * limit that a `limited` one reached.
   */
  readonly unfinished: { agent: string; outcome: TurnOutcome; cut?: Cut; limit?: string }[] = [];
  /** Turns with incomplete last text, in order; without failed turns that have none. */
  readonly cut: { agent: string; by: Cut }[] = [];
  readonly #calls: OpenCalls;
  /** The agents that are stopped, as the state folds them: each since the last stop or resume of all. */
  readonly #stops = new Map<string, boolean>();
  #areAllStopped = false;
  /** TURN-WATCH-1, TURN-WATCH-2: the agents of outstanding entries, by index and agent. */
  readonly #waiting = new Map<string, string>();
  /** Accepted before they were registered: the reply to a post may arrive after the turn that it starts. */
  readonly #accepted = new Set<string>();
  /** TURN-WATCH-3, by turn id. */
  readonly #open = new Map<string, 'runs' | 'waits'>();
  readonly #began = new Map<string, { readonly agent: string; readonly since: number }>();
  /** By turn: why its newest answer is incomplete, and the limit that it reached. */
  readonly #newest = new Map<string, Cut | null>();
  readonly #limits = new Map<string, string>();

  /** `calls`: observes what the watch observes. */
  constructor(calls: OpenCalls = new OpenCalls()) {
    this.#calls = calls;
  }

  /** TURN-WATCH-6: the stopped agents with outstanding messages. */
  get stoppedAgents(): readonly string[] {
    return [...this.#waiting.values()].filter((agent) => this.#isStopped(agent));
  }

  get settled(): boolean {
    return this.#waiting.size === 0 && this.#open.size === 0;
  }

  get quiet(): boolean {
    return this.#waiting.size === 0 && this.#held() !== null;
  }

  get held(): boolean {
    const held = this.#held();
    return (
      held !== null && [...this.#waiting.values()].every((agent) => this.#isStopped(agent) || held.has(agent))
    );
  }

  /** TURN-WATCH-3: the agents with an open turn, and the index at which it began. */
  get open(): readonly { readonly agent: string; readonly since: number }[] {
    return [...this.#open.keys()].flatMap((turnId) => this.#began.get(turnId) ?? []);
  }

  /** The agents with an open question to a person, in order. */
  get asking(): readonly string[] {
    return this.#calls.asking((turnId) => this.#open.get(turnId) === 'waits');
  }

  /** Registers a posted message. Entries observed earlier count. */
  addOutstanding(index: number, agents: readonly string[]): void {
    for (const agent of agents) {
      const key = `${index}:${agent}`;
      if (!this.#accepted.has(key)) this.#waiting.set(key, agent);
    }
  }

  /** Registers agents that were found to be stopped after the post. */
  markStopped(agents: readonly string[]): void {
    for (const agent of agents) this.#stops.set(agent, true);
  }

  observe(entry: Entry): void {
    this.#take(entry);
    const continued = this.#calls.observe(entry);
    if (continued !== null && this.#open.has(continued)) this.#open.set(continued, 'runs'); // TURN-WATCH-5
    switch (entry.type) {
      case 'message':
        if (entry.role === 'assistant' && entry.turnId !== undefined)
          this.#newest.set(entry.turnId, cutBy(entry.finishReason));
        break;
      case 'turn-ended':
        this.#endTurn(entry);
        break;
      case 'limit-reached':
        if (entry.turnId !== undefined) this.#limits.set(entry.turnId, entry.limit);
        break;
      case 'handoff':
      case 'node-entered':
      case 'delegation-requested':
        this.addOutstanding(entry.index, routedTo(entry));
        break;
      case 'agent-stopped':
        this.#stop(entry.agent, true);
        break;
      case 'agent-resumed':
        this.#stop(entry.agent, false);
        break;
      case 'turn-started': // see `#take`
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

  #isStopped(agent: string): boolean {
    return this.#stops.get(agent) ?? this.#areAllStopped;
  }

  /** The turn that gets messages with this entry. */
  #take(entry: Entry): void {
    const taken = turnInputOf(entry);
    if (!taken) return;
    const { agent, turnId, messages } = taken;
    // A result alone does not show whether its turn continues.
    if (entry.type !== 'message' || !this.#open.has(turnId)) {
      this.#open.set(turnId, 'runs');
      this.#began.set(turnId, this.#began.get(turnId) ?? { agent, since: entry.index });
    }
    for (const index of messages) {
      this.#waiting.delete(`${index}:${agent}`);
      this.#accepted.add(`${index}:${agent}`);
    }
  }

  #endTurn({ agent, turnId, outcome }: EntryOf<'turn-ended'>): void {
    if (outcome === 'waiting') return void this.#open.set(turnId, 'waits');
    this.#open.delete(turnId);
    const by = this.#newest.get(turnId);
    const isEmpty = by && outcome === 'failed';
    const limit = outcome === 'limited' ? this.#limits.get(turnId) : undefined;
    if (outcome !== 'completed')
      this.unfinished.push({ agent, outcome, ...(isEmpty && { cut: by }), ...(limit && { limit }) });
    if (by && !isEmpty) this.cut.push({ agent, by });
    this.#newest.delete(turnId);
    this.#limits.delete(turnId);
  }

  /** Null: every agent. TURN-WATCH-4: a stop drops everything outstanding. */
  #stop(agent: string | null, isStopped: boolean): void {
    for (const [key, slug] of isStopped ? this.#waiting : [])
      if (agent === null || slug === agent) this.#waiting.delete(key);
    if (agent !== null) this.#stops.set(agent, isStopped);
    else {
      this.#areAllStopped = isStopped;
      this.#stops.clear();
    }
  }

  /** TURN-WATCH-5: the agents whose turns wait for a person or a resume; null: one runs or will continue by itself. */
  #held(): ReadonlySet<string> | null {
    const busy = new Set(this.open.map(({ agent }) => agent));
    const isHeld = (id: string) =>
      this.#calls.workersOf(id).every((agent) => busy.has(agent) || this.#isStopped(agent));
    const isEach = [...this.#open].every(([id, state]) =>
      state === 'waits' ? isHeld(id) : this.#calls.asksPerson(id),
    );
    return isEach ? busy : null;
  }
}

export function createTurnWatch(): TurnWatch {
  return new TurnWatch();
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
