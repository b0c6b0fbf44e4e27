import { type NewId, wellFormed } from '../../kernel/index.ts';
import type { Author, Entry, MessageEntry, NewEntry } from '../log/entry.ts';
import type { Part } from '../log/parts.ts';
import { evolve } from '../state/evolve.ts';
import type { Knowledge } from '../state/knowledge.ts';
import { type Roster, rosterOf, type Workflows } from '../state/roster.ts';
import type { ConversationState, PhaseTable } from '../state/state.ts';
import type { ToolRules } from '../tools/tool-rules.ts';
import type { Decision, Effect, Reply } from './command.ts';

interface Limits {
  readonly hopsPerTrigger: number;
  readonly modelCallsPerTurn: number;
}

/** What hiring depends on besides roster and log. */
export interface HiringRules {
  readonly depth: number;
  readonly agents: number;
  readonly tokensPerConversation: number | null;
  readonly usdPerConversation: number | null;
  /** Configured models without a price, or with a fallback without one. */
  readonly unpriced: ReadonlySet<string>;
  /** Publishers and people that the configuration names. */
  readonly people: readonly string[];
  /** Some configured agent or MCP server has this tool or pattern. */
  isConfigured(tool: string): boolean;
}

/** Everything that a decision may depend on. There is no clock and no randomness: time and ids are arguments. */
export interface DecideContext {
  /** Its id. */
  readonly conversation: string;
  /** As configured; `DecisionBuilder.roster` is that of the conversation. */
  readonly roster: Roster;
  readonly phases: PhaseTable;
  readonly limits: Limits;
  readonly workflows: Workflows;
  readonly tools: ToolRules;
  /** A publisher may approve a call that answers its own request. */
  readonly ownRequests: boolean;
  /** Absent: no agent can be hired. */
  readonly hiring?: HiringRules;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly newId: NewId;
  readonly entries: readonly Entry[];
  /** The first entry with this id, posts excepted. */
  indexOfId(id: string): number | undefined;
  /** The post of this publisher with this id (L4). */
  indexOfPost(publisher: string, id: string): number | undefined;
  /** The knowledge of an agent, up to date with `entries`. */
  knowledge(agent: string): Knowledge;
}

/** Collects one decision. Each added entry is folded at once, so that the next step sees it. */
export class DecisionBuilder {
  state: ConversationState;
  readonly context: DecideContext;
  readonly drafted: Entry[] = [];
  readonly #effects: Effect[] = [];

  constructor(state: ConversationState, context: DecideContext) {
    this.state = state;
    this.context = context;
  }

  /** The agents of this conversation now. */
  get roster(): Roster {
    return rosterOf(this.context.roster, this.state.hired);
  }

  get nextIndex(): number {
    return this.state.length;
  }

  /** An entry of the log or of this decision. */
  entryAt(index: number): Entry | undefined {
    return this.context.entries[index] ?? this.drafted[index - this.context.entries.length];
  }

  /** The first matching entry of the log, else of this decision. */
  find(fits: (entry: Entry) => boolean): Entry | undefined {
    return this.context.entries.find(fits) ?? this.drafted.find(fits);
  }

  /** The entries of the log, then those of this decision. */
  all(): readonly Entry[] {
    return [...this.context.entries, ...this.drafted];
  }

  add(draft: NewEntry): number {
    const entry: Record<string, unknown> = {
      index: this.state.length,
      id: draft.id ?? this.context.newId(),
      createdAt: new Date(this.context.now).toISOString(),
    };
    // Without undefined fields: an entry in memory must equal the entry read from disk.
    for (const key in draft) {
      const value = draft[key as keyof NewEntry];
      if (value !== undefined) entry[key] = stored(key, value);
    }
    this.copy(entry as unknown as Entry);
    return this.nextIndex - 1;
  }

  /** Adds an entry of another log as it is. Its index must be `nextIndex`. */
  copy(entry: Entry): void {
    if (entry.index !== this.nextIndex)
      throw new Error(`entry ${entry.index} cannot follow ${this.nextIndex - 1}`);
    this.drafted.push(entry);
    this.state = evolve(this.state, entry);
  }

  effect(effect: Effect): void {
    this.#effects.push(effect);
  }

  agentAuthor(slug: string): Author {
    return {
      kind: 'agent',
      id: slug,
      name: this.roster.agents.get(slug)?.name ?? this.state.hired[slug]?.card.name ?? slug,
    };
  }

  decision(reply: Reply): Decision {
    return { entries: this.drafted, effects: this.#effects, reply };
  }
}

/** A field as it is in the log: no provider accepts lone surrogates, and an entry cannot be corrected. */
function stored(key: string, value: unknown): unknown {
  if (key === 'tool_calls') return wellFormedCalls(value as NonNullable<MessageEntry['tool_calls']>);
  if (key === 'parts') return (value as NonNullable<MessageEntry['parts']>).map(wellFormedPart);
  return typeof value === 'string' ? wellFormed(value) : value;
}

function wellFormedPart(part: Part): Part {
  if (part.type === 'text') return { ...part, text: wellFormed(part.text) };
  return part.name === undefined ? part : { ...part, name: wellFormed(part.name) };
}

/** A model's tool calls, which later requests contain again. */
function wellFormedCalls(calls: NonNullable<MessageEntry['tool_calls']>): typeof calls {
  return calls.map(({ function: called, ...call }) => ({
    ...call,
    id: wellFormed(call.id),
    function: { ...called, name: wellFormed(called.name), arguments: wellFormed(called.arguments) },
  }));
}
