import { diffHunks, type Hunk } from '../text/line-diff.ts';
import type { ExplainedRequest, ReportedDefinition, ReportedPart, RequestMessage } from './view-report.ts';

/**
 * The differences between two requests, message by message.
 *
 * VIEW-DIFF-1 The result contains each message of either request once, in the order of that request.
 * VIEW-DIFF-2 Two messages are the same if their bytes are. A message is `changed` if it has the same entries (or is the
 *             same part without entries, like the prefix) but another text or position.
 * VIEW-DIFF-3 No general difference algorithm: equal messages are aligned in O(n log n), thousands of them in milliseconds.
 */

export type Difference =
  | { readonly op: 'same'; readonly before: PlacedMessage; readonly after: PlacedMessage }
  | { readonly op: 'changed'; readonly before: PlacedMessage; readonly after: PlacedMessage }
  | { readonly op: 'gone'; readonly before: PlacedMessage }
  | { readonly op: 'added'; readonly after: PlacedMessage };

/** A message, its position in its request, and its origin. */
export interface PlacedMessage {
  readonly place: number;
  readonly message: RequestMessage;
  readonly part: ReportedPart | undefined;
}

export function diffViews(before: ExplainedRequest, after: ExplainedRequest): Difference[] {
  const left = placedMessages(before);
  const right = placedMessages(after);
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
    for (; next < same; next++) found.push(arrived(right[next] as PlacedMessage, partnerOf));
    found.push({ op: 'same', before: one, after: right[next++] as PlacedMessage });
  }
  for (const one of right.slice(next)) found.push(arrived(one, partnerOf));
  return found;
}

function placedMessages({ messages, report }: ExplainedRequest): PlacedMessage[] {
  return messages.map((message, place) => ({ place, message, part: report.parts[place] }));
}

function arrived(after: PlacedMessage, partnerOf: ReadonlyMap<number, PlacedMessage>): Difference {
  const before = partnerOf.get(after.place);
  return before ? { op: 'changed', before, after } : { op: 'added', after };
}

/** The longest common subsequence of equal messages: position before → position after. */
function keptPairs(left: readonly PlacedMessage[], right: readonly PlacedMessage[]): Map<number, number> {
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

/** The longest subsequence with rising second numbers, in O(n log n): a request may have thousands of messages. */
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

function changedPairs(
  gone: readonly PlacedMessage[],
  added: readonly PlacedMessage[],
): Map<PlacedMessage, PlacedMessage> {
  const bySource = new Map<string, PlacedMessage[]>();
  for (const one of added) bySource.set(sourceOf(one), [...(bySource.get(sourceOf(one)) ?? []), one]);
  const pairs = gone.flatMap((one): [PlacedMessage, PlacedMessage][] => {
    const other = bySource.get(sourceOf(one))?.shift();
    return other ? [[one, other]] : [];
  });
  return new Map(pairs);
}

/** The away block repeats the history, so it is not matched by entries. */
function sourceOf({ part, message }: PlacedMessage): string {
  if (!part) return message.role;
  if (part.kind === 'away-block' || part.entries.length === 0) return part.kind;
  return part.entries.join(' ');
}

/** A part of a definition that differs between two requests. */
export interface PartDifference {
  /** `persona`, `model`, `tool.<name>`. */
  readonly part: string;
  readonly op: 'changed' | 'gone' | 'added';
  /** Absent: a text is unknown. */
  readonly hunks?: readonly Hunk[];
}

/**
 * The differences between two definitions, part by part and line by line.
 *
 * DEFINITION-DIFF-1 Parts are compared by their hashes. The lines are known for parts whose texts both reports contain.
 * DEFINITION-DIFF-2 Every changed line is in a hunk once, with at most three unchanged lines around it. Above 1,000
 *                   changed lines, all lines of the part are shown as removed and added.
 */
export function diffDefinitions(before: ReportedDefinition, after: ReportedDefinition): PartDifference[] {
  const names = [...new Set([...Object.keys(before.parts), ...Object.keys(after.parts)])].sort();
  return names.flatMap((part): PartDifference[] => {
    const [old, now] = [before.parts[part], after.parts[part]];
    if (old === now) return [];
    const op = old === undefined ? 'added' : now === undefined ? 'gone' : 'changed';
    const [from, to] = [linesOf(before, part), linesOf(after, part)];
    return [from === null || to === null ? { part, op } : { part, op, hunks: diffHunks(from, to) }];
  });
}

/** Null: the report does not contain the text. A part that does not exist has no lines. */
function linesOf({ parts, texts }: ReportedDefinition, part: string): string | null {
  if (parts[part] === undefined) return '';
  const text = texts?.[part];
  return text === undefined ? null : `${readable(text)}\n`;
}

/** A JSON text for people: a string as it is, anything else indented, with the line breaks of its strings. */
function readable(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'string') return value;
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => {
      const indent = `\n${' '.repeat(line.search(/\S|$/) + 2)}`;
      return line.replaceAll(/\\[^n]|\\n/g, (found) => (found === '\\n' ? indent : found));
    })
    .join('\n');
}
