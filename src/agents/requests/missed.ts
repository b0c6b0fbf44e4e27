import type { Entry } from '../../conversation/index.ts';
import type { WirePart } from '../dialect-port.ts';

/**
 * The messages of a request that the session of an agent in another process has not been told: a pure function of the log.
 *
 * MISSED-1 A session was told what the requests contained that it answered. The newest one says up to which entry.
 * MISSED-2 Its own messages are never among them. A result is new only after its newest answer: until then its program waited for it.
 */
export function missedBy(
  session: { readonly id: string } | null,
  agent: string,
  entries: readonly Entry[],
  parts: readonly Pick<WirePart, 'kind' | 'entries' | 'message'>[],
): readonly number[] | undefined {
  if (session === null) return undefined;
  const answer = newestAnswer(session.id, agent, entries);
  if (answer === null) return undefined;
  const missed = parts.flatMap(({ kind, entries: of, message }, place) => {
    if (message.role === 'assistant' || kind.includes('prefix') || kind.includes('away-block')) return [];
    const from = message.role === 'tool' ? answer.index : answer.upTo;
    const isNews = of.length === 0 ? kind !== 'bridge' : of.some((index) => index >= from);
    return isNews ? [place] : [];
  });
  return missed.every((place) => parts[place]?.kind === 'marker') ? [] : missed;
}

/** Null: this session answered no request. `upTo`: the length of the log when that request was built. */
function newestAnswer(session: string, agent: string, entries: readonly Entry[]) {
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type !== 'message' || entry.role !== 'assistant' || entry.author.id !== agent) continue;
    const { index, upTo, sessionId } = entry;
    if (sessionId === session && upTo !== undefined) return { index, upTo };
  }
  return null;
}
