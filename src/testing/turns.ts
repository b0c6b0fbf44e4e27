import { createTurnWatch, type Entry, type MessageEntry, type TurnOutcome } from '../conversation/index.ts';
import { parseJson } from '../kernel/index.ts';

/** What happened in a conversation, as tests describe it. */

export interface TurnSeen {
  readonly agent: string;
  /** `running`: it has not ended yet. */
  readonly outcome: TurnOutcome | 'running';
  /** Its messages, joined by empty lines. */
  readonly text: string;
}

export interface ToolCallSeen {
  readonly agent: string;
  readonly tool: string;
  /** Parsed; the text itself if it is no JSON. */
  readonly arguments: unknown;
  /** Absent: it has none yet. */
  readonly result?: string;
}

export function turnsOf(entries: readonly Entry[]): TurnSeen[] {
  const turns = new Map<string, TurnSeen>();
  for (const entry of entries) {
    if (entry.type === 'turn-started' && !turns.has(entry.turnId))
      turns.set(entry.turnId, { agent: entry.agent, outcome: 'running', text: '' });
    const turn = turns.get(entry.turnId ?? '');
    if (!turn || !entry.turnId) continue;
    if (entry.type === 'turn-ended') turns.set(entry.turnId, { ...turn, outcome: entry.outcome });
    if (entry.type === 'turn-started') turns.set(entry.turnId, { ...turn, outcome: 'running' });
    if (isAnswer(entry))
      turns.set(entry.turnId, { ...turn, text: [turn.text, entry.content].filter(Boolean).join('\n\n') });
  }
  return [...turns.values()];
}

export function isAnswer(entry: Entry): entry is MessageEntry & { readonly content: string } {
  return entry.type === 'message' && entry.role === 'assistant' && Boolean(entry.content);
}

export function toolCallsOf(entries: readonly Entry[]): ToolCallSeen[] {
  const messages = entries.filter((entry) => entry.type === 'message');
  return messages.flatMap((message) =>
    (message.tool_calls ?? []).map((call, position): ToolCallSeen => {
      const result = messages.find(
        (other) => other.call?.index === message.index && other.call.position === position,
      );
      return {
        agent: message.author.id,
        tool: call.function.name,
        arguments: parseJson(call.function.arguments) ?? call.function.arguments,
        ...(result && { result: result.content ?? '' }),
      };
    }),
  );
}

/** The agents that asked a person and have no answer. */
export function askingIn(entries: readonly Entry[]): readonly string[] {
  const watch = createTurnWatch();
  for (const entry of entries) watch.observe(entry);
  return watch.asking;
}
