import type { ModelRequest, WireMessage } from '../../agents/model-port.ts';
import type { RemoteCall, RemoteResults } from './port.ts';

/**
 * The results that a waiting agent is owed, found in the next request of its turn: what stands behind the last answer
 * that made calls. Null if the request does not continue from these calls.
 */
export function resultsFor(request: ModelRequest, calls: readonly RemoteCall[]): RemoteResults | null {
  const at = request.messages.findLastIndex((message) => message.role === 'assistant');
  const made = request.messages[at]?.tool_calls;
  if (made?.length !== calls.length) return null;
  if (made.some((call, position) => call.function.name !== calls[position]?.name)) return null;
  const behind = request.messages.slice(at + 1);
  const contents = new Map(behind.filter(isResult).map((message) => [message.tool_call_id, message.content]));
  const results: RemoteResults['results'][number][] = [];
  for (const [position, { id }] of calls.entries()) {
    const content = contents.get(made[position]?.id);
    if (content === undefined) return null;
    results.push({ ...(id === undefined ? {} : { id }), content: content ?? '' });
  }
  const messages = behind.filter((message) => !isResult(message));
  return messages.length > 0 ? { results, messages } : { results };
}

function isResult(message: WireMessage): boolean {
  return message.role === 'tool';
}
