import type { ExplainedRequest, ReportedPart, RequestMessage } from './view-report.ts';

/**
 * What differs between two requests, message by message.
 *
 * VIEW-DIFF-1 Each message of either request stands in the result once, in the order of the request that holds it.
 * VIEW-DIFF-2 Two messages are the same if their bytes are. One that stands for the same entries (or is the same part, where
 *    there are none: the prefix) in other words or another place is changed.
 */

export type Difference =
  | { readonly op: 'same'; readonly before: Placed; readonly after: Placed }
  | { readonly op: 'changed'; readonly before: Placed; readonly after: Placed }
  | { readonly op: 'gone'; readonly before: Placed }
  | { readonly op: 'added'; readonly after: Placed };

/** A message, its place in its request, and where it comes from. */
export interface Placed {
  readonly place: number;
  readonly message: RequestMessage;
  readonly part: ReportedPart | undefined;
}

export function diffViews(before: ExplainedRequest, after: ExplainedRequest): Difference[] {
  const left = placed(before);
  const right = placed(after);
  const kept = keptPairs(left, right);
  const keptThere = new Set(kept.values());
  const changed = changedPairs(
    left.filter(({ place }) => !kept.has(place)),
    right.filter(({ place }) => !keptThere.has(place)),
  );
  const partnerOf = new Map([...changed].map(([one, other]) => [other.place, one]));
  const found: Difference[] = [];
  let next = 0;
  for (const one of left) {
    const same = kept.get(one.place);
    if (same === undefined) {
      if (!changed.has(one)) found.push({ op: 'gone', before: one });
      continue;
    }
    for (; next < same; next++) found.push(arrived(right[next] as Placed, partnerOf));
    found.push({ op: 'same', before: one, after: right[next++] as Placed });
  }
  for (const one of right.slice(next)) found.push(arrived(one, partnerOf));
  return found;
}

function placed({ messages, report }: ExplainedRequest): Placed[] {
  return messages.map((message, place) => ({ place, message, part: report.parts[place] }));
}

function arrived(after: Placed, partnerOf: ReadonlyMap<number, Placed>): Difference {
  const before = partnerOf.get(after.place);
  return before ? { op: 'changed', before, after } : { op: 'added', after };
}

/** The longest run of equal messages that both hold in the same order: places before → places after. */
function keptPairs(left: readonly Placed[], right: readonly Placed[]): Map<number, number> {
  const places = new Map<string, number[]>();
  for (const { message, place } of right) {
    const key = JSON.stringify(message);
    places.set(key, [...(places.get(key) ?? []), place]);
  }
  const pairs = left.flatMap(({ message, place }): [number, number][] => {
    const other = places.get(JSON.stringify(message))?.shift();
    return other === undefined ? [] : [[place, other]];
  });
  return new Map(longestRising(pairs));
}

interface Chain {
  readonly pair: readonly [number, number];
  readonly before: Chain | null;
}

/** By their second number; in time n log n, since a request may hold thousands of messages. */
function longestRising(pairs: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const ends: Chain[] = [];
  for (const pair of pairs) {
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.pair[1] ?? 0) < pair[1]) low = middle + 1;
      else high = middle;
    }
    ends[low] = { pair, before: ends[low - 1] ?? null };
  }
  const found: (readonly [number, number])[] = [];
  for (let at = ends.at(-1) ?? null; at; at = at.before) found.push(at.pair);
  return found.reverse();
}

function changedPairs(gone: readonly Placed[], added: readonly Placed[]): Map<Placed, Placed> {
  const bySource = new Map<string, Placed[]>();
  for (const one of added) bySource.set(sourceOf(one), [...(bySource.get(sourceOf(one)) ?? []), one]);
  const pairs = gone.flatMap((one): [Placed, Placed][] => {
    const other = bySource.get(sourceOf(one))?.shift();
    return other ? [[one, other]] : [];
  });
  return new Map(pairs);
}

/** A block repeats what stands in the history: it is another message. */
function sourceOf({ part, message }: Placed): string {
  if (!part) return message.role;
  if (part.kind === 'away-block' || part.entries.length === 0) return part.kind;
  return part.entries.join(' ');
}
