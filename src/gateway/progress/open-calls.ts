import {
  type CallPlace,
  type Entry,
  type EntryOf,
  type MessageEntry,
  wireCallId,
} from '../../conversation/index.ts';
import { inOneLine, visibleArguments, visibleCall } from '../../kernel/index.ts';

/** A call that only a person can answer. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly turnId: string;
  readonly agent: string;
  readonly tool: string;
  /** JSON text from the model; for an approval with invisible characters escaped. */
  readonly arguments: string;
  /** Null: it is a question. */
  readonly approval: { readonly id: string; readonly mayHaveRun: boolean } | null;
  /** The question; for an approval the whole call. */
  readonly question: string;
}

/** Folds a log, or its end, into the open questions and approvals. */
export class OpenCalls {
  readonly #open = new Map<string, OpenCall>();

  observe(entry: Entry): void {
    if (entry.type === 'message') this.#message(entry);
    else if (entry.type === 'approval-requested') this.#asked(entry);
    else if (entry.type === 'approval-answered' && entry.call) this.#open.delete(wireCallId(entry.call));
    else if (entry.type === 'turn-ended' && entry.outcome !== 'waiting') this.#over(entry.turnId);
  }

  of(isWanted: (turnId: string) => boolean): readonly OpenCall[] {
    return [...this.#open.values()].filter(({ turnId }) => isWanted(turnId));
  }

  #message(entry: MessageEntry): void {
    if (entry.call) this.#open.delete(wireCallId(entry.call));
    for (const [position, { function: tool }] of (entry.tool_calls ?? []).entries()) {
      if (tool.name !== 'ask') continue;
      const place = { index: entry.index, position };
      this.#open.set(wireCallId(place), {
        place,
        turnId: entry.turnId ?? '',
        agent: entry.author.id,
        tool: tool.name,
        arguments: tool.arguments,
        approval: null,
        question: questionOf(tool.arguments),
      });
    }
  }

  #asked({ call: place, turnId = '', approvalId, mayHaveRun, why, ...entry }: EntryOf<'approval-requested'>) {
    const { agent = entry.author.id, tool = 'a tool', arguments: given = '{}' } = entry;
    const call = visibleCall(tool, given);
    this.#open.set(wireCallId(place), {
      place,
      turnId,
      agent,
      tool,
      arguments: visibleArguments(given),
      approval: { id: approvalId, mayHaveRun },
      question: mayHaveRun
        ? `${agent} called ${call}, which may already have run: ${inOneLine(why ?? 'it was interrupted')}`
        : `${agent} wants to call ${call}`,
    });
  }

  #over(turnId: string): void {
    for (const [key, call] of this.#open) if (call.turnId === turnId) this.#open.delete(key);
  }
}

/** The question and options in the arguments of `ask`. */
export function questionOf(json: string): string {
  try {
    const { question, options } = JSON.parse(json);
    const choices = Array.isArray(options) && options.length > 0 ? ` (${options.join(', ')})` : '';
    return `${question}${choices}`;
  } catch {
    return json;
  }
}
