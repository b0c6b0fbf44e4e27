import type { ContentBlock } from '@agentclientprotocol/sdk';
import { AWAY_MARKER, PERMIT } from '../../conversation/index.ts';
import type { OfferedTurn, TurnMessage } from './turn.ts';

/**
 * What a session is told of a turn: a pure function of the offer.
 *
 * ACP-PROMPT-1 A session that continues keeps its own history, so it is told what it missed (MISSED-1), and never its own messages.
 * ACP-PROMPT-2 A new session is told the whole view, its own earlier messages included, in the order of the view.
 * ACP-PROMPT-3 The away block repeats messages that come before it, so it is left out.
 * ACP-PROMPT-4 A result is told only if the program that waited for it has ended: what a permission allowed did not run then.
 */
export function promptOf(
  { messages, missed }: Pick<OfferedTurn, 'messages' | 'missed'>,
  isNew: boolean,
): ContentBlock[] {
  const places = isNew || missed === undefined ? messages.map((_, place) => place) : missed;
  const told = places.flatMap((place) => textOf(messages, place, isNew));
  const texts = told.length > 0 ? told : [CONTINUE];
  return texts.map((text) => ({ type: 'text', text }));
}

const CONTINUE =
  '=== CONTINUE ===\nYour work on this request was interrupted. Continue where it ends, and repeat nothing.';

function textOf(messages: readonly TurnMessage[], place: number, isNew: boolean): string[] {
  const message = messages[place];
  const content = message?.content ?? '';
  if (message === undefined || content.startsWith(AWAY_MARKER)) return []; // ACP-PROMPT-3
  if (message.role === 'tool') return [resultText(nameOfCall(messages, message), content)];
  if (message.role !== 'assistant') return content === '' ? [] : [content];
  return isNew && content !== '' ? [`[You, earlier]: ${content}`] : []; // ACP-PROMPT-1
}

/** ACP-PROMPT-4 */
function resultText(name: string, content: string): string {
  if (!PERMITS.has(name)) return `[Result of your call ${name}]: ${content}`;
  return `[You asked for a permission, and were interrupted before the call ran. The answer was: ${content}. Ask again if you still want it.]`;
}

const PERMITS: ReadonlySet<string> = new Set(Object.values(PERMIT));

function nameOfCall(messages: readonly TurnMessage[], { tool_call_id: id }: TurnMessage): string {
  const calls = messages.flatMap(({ tool_calls: made = [] }) => made);
  return calls.find((call) => call.id === id)?.function.name ?? 'of a tool';
}
