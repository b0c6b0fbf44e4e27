import { inOneLine, visibleArguments, visibleCall, visibleText } from '../../kernel/hidden.ts';
import { parseJson } from '../../kernel/json.ts';
import { wireCallId } from '../log/call-id.ts';
import type { CallPlace, Entry, EntryOf, MessageEntry, ServerAsks } from '../log/entry.ts';
import { askedText } from '../log/server-asks.ts';

/** A call that only a person can answer. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly turnId: string;
  readonly agent: string;
  readonly tool: string;
  /** JSON text from the model; for an approval with invisible characters escaped. */
  readonly arguments: string;
  /** Null: it is a question. */
  readonly approval: {
    readonly id: string;
    readonly mayHaveRun: boolean;
    /** With `always`: what else it allows. */
    readonly covers?: string | undefined;
    /** The server of the running call asks: `arguments` proposes the answer. */
    readonly asks?: ServerAsks | undefined;
  } | null;
  /** The question; for an approval the whole call. */
  readonly question: string;
}

/** A call that the author of a post answers, because the post brought its tool. */
export interface CallersCall extends Pick<OpenCall, 'place' | 'turnId' | 'tool' | 'arguments'> {
  /** The answer that holds it. */
  readonly asked: MessageEntry;
}

type Awaiting = EntryOf<'approval-requested'> | EntryOf<'delegation-requested'> | MessageEntry;

/** A call without a result. */
interface Open {
  readonly place: CallPlace;
  readonly turnId: string;
  /** What asks a person, or another agent. */
  readonly by: Awaiting;
  /** An approval was answered: the call runs, or will. */
  readonly isAnswered?: boolean;
  /** The caller that brought its tool answers it. */
  readonly isCallers?: boolean;
}

/** Folds a log, or its end, into the calls that wait for a person (a question, an approval) or for another agent. */
export class OpenCalls {
  readonly #open = new Map<string, Open>();
  /** The turn of each message with tool calls, by index. */
  readonly #callers = new Map<number, string>();

  /** Returns the turn whose last open call got its result with this entry; null: none. */
  observe(entry: Entry): string | null {
    switch (entry.type) {
      case 'message':
        return this.#message(entry);
      case 'approval-requested':
        if (entry.grant === undefined) this.#add(entry.call, entry);
        break;
      case 'delegation-requested':
        this.#add(entry.call, entry);
        break;
      case 'approval-answered':
        if (entry.call) this.#answered(wireCallId(entry.call));
        break;
      case 'turn-ended':
        if (entry.outcome !== 'waiting') this.#remove(({ turnId }) => turnId === entry.turnId);
        break;
      default:
    }
    return null;
  }

  /** Those that a person must answer. */
  of(isWanted: (turnId: string) => boolean): readonly OpenCall[] {
    return [...this.#open.values()]
      .filter(
        ({ by, turnId, isAnswered, isCallers }) =>
          workerOf(by) === null && !isAnswered && !isCallers && isWanted(turnId),
      )
      .map(openCallOf);
  }

  /** Those that callers must answer, in order. */
  ofCallers(isWanted: (turnId: string) => boolean): readonly CallersCall[] {
    return [...this.#open.values()].flatMap(({ place, turnId, by, isCallers }) => {
      const call = by.type === 'message' ? by.tool_calls?.[place.position] : undefined;
      if (!isCallers || by.type !== 'message' || !call || !isWanted(turnId)) return [];
      return [{ place, turnId, asked: by, tool: call.function.name, arguments: call.function.arguments }];
    });
  }

  /** A running call of this turn waits for a person: its server asks. */
  asksPerson(turnId: string): boolean {
    return this.of((id) => id === turnId).some(({ approval }) => approval?.asks);
  }

  /** The agents that work on calls of this turn. */
  workersOf(turnId: string): string[] {
    return [...this.#open.values()].flatMap((call) =>
      call.turnId === turnId ? (workerOf(call.by) ?? []) : [],
    );
  }

  /** The agents with an open question, in order, of the turns that `isWanted` accepts. */
  asking(isWanted: (turnId: string) => boolean): string[] {
    const asked = [...this.#open.values()].filter(
      ({ by, turnId, isCallers }) => by.type === 'message' && !isCallers && isWanted(turnId),
    );
    return [...new Set(asked.map(({ by }) => by.author.id))];
  }

  #message(entry: MessageEntry): string | null {
    if (entry.turnId !== undefined && entry.tool_calls) this.#callers.set(entry.index, entry.turnId);
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      const isCallers = entry.callerCalls?.includes(position) === true;
      if (isCallers || tool.name === 'ask') this.#add({ index: entry.index, position }, entry, isCallers);
    }
    const key = entry.call && wireCallId(entry.call);
    const ended = key === undefined ? undefined : this.#open.get(key);
    if (key === undefined || ended === undefined) return null;
    this.#open.delete(key);
    const isLast = [...this.#open.values()].every(({ turnId }) => turnId !== ended.turnId);
    return isLast ? ended.turnId : null;
  }

  #add(place: CallPlace, by: Awaiting, isCallers = false): void {
    const turnId = this.#callers.get(place.index) ?? by.turnId ?? '';
    this.#open.set(wireCallId(place), { place, turnId, by, isCallers });
  }

  #answered(key: string): void {
    const call = this.#open.get(key);
    if (call) this.#open.set(key, { ...call, isAnswered: true });
  }

  #remove(isOver: (call: Open) => boolean): void {
    for (const [key, call] of this.#open) if (isOver(call)) this.#open.delete(key);
  }
}

/** The agent that works on it; null: a person must answer. */
function workerOf(by: Awaiting): string | null {
  return by.type === 'delegation-requested' ? by.to : null;
}

function openCallOf({ place, turnId, by }: Open): OpenCall {
  if (by.type !== 'approval-requested') {
    const given = by.type === 'message' ? (by.tool_calls?.[place.position]?.function.arguments ?? '') : '';
    return {
      place,
      turnId,
      agent: by.author.id,
      tool: 'ask',
      arguments: given,
      approval: null,
      question: questionText(given),
    };
  }
  const { approvalId, mayHaveRun, covers, asks, why = 'it was interrupted' } = by;
  const { agent = by.author.id, tool = 'a tool', arguments: given = '{}' } = by;
  const call = visibleCall(tool, given);
  return {
    place,
    turnId,
    agent,
    tool,
    arguments: visibleArguments(given),
    approval: { id: approvalId, mayHaveRun, covers, asks },
    question: asks
      ? `${visibleText(`${agent} called ${tool}`)}: ${askedText(asks)}`
      : mayHaveRun
        ? `${agent} called ${call}, which may already have run: ${inOneLine(why)}`
        : `${agent} wants to call ${call}`,
  };
}

export interface Asked {
  readonly question: string;
  readonly options: readonly string[];
}

/** What the arguments of `ask` ask a person; null: a model got them wrong. */
export function askedIn(json: string): Asked | null {
  const { question, options } = (parseJson(json) ?? {}) as Partial<Record<keyof Asked, unknown>>;
  if (typeof question !== 'string' || question === '') return null;
  const texts = Array.isArray(options) ? options.filter((one) => typeof one === 'string') : [];
  return { question, options: texts };
}

/** The question with its options, on one line. */
export function questionText(json: string): string {
  const { question, options } = askedIn(json) ?? { question: json, options: [] };
  return options.length > 0 ? `${question} (${options.join(', ')})` : question;
}
