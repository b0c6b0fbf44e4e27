import type { Entry, MessageEntry } from '../../src/conversation/index.ts';

/**
 * An independent statement of what an agent must be shown: from the whole log at once, without a fold. Each entry gets a
 * sort key by the rules V1 to V5 and V11. It shares no code with the view, so that its errors are independent.
 */

export interface Expected {
  /** Entry indexes, in order. */
  readonly history: number[];
  readonly block: number[];
  readonly trigger: number[];
  readonly steps: number[];
  /** For each own assistant entry with calls: the first result of each call. */
  readonly results: Map<number, (number | undefined)[]>;
  /** Entries by others that a view may contain and that were not shown yet. */
  readonly unshown: number[];
}

interface Span {
  readonly turnId: string;
  readonly start: number;
  readonly end: number;
  readonly trigger: readonly number[];
}

interface Place {
  readonly index: number;
  /** The start of the turn to which the entry belongs, or its own index. */
  readonly anchor: number;
  /** 0: trigger; 1: what the turn did; 2: messages of others during the turn. */
  readonly rank: 0 | 1 | 2;
  /** The entry that determined this position. */
  readonly at: number;
  /** The index from which on a request of this agent contains it. */
  readonly visible: number;
  readonly turn: Span | undefined;
}

const NOTICES = new Set(
  'phase-entered mode-entered handoff run-started node-entered run-ended limit-reached note'.split(' '),
);

function isOwn(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    entry.author.kind === 'agent' &&
    entry.author.id === agent
  );
}

/** V5: by another author, and of a kind that this agent may be shown. */
function mayBeShown(entry: Entry, agent: string, includeCollapsed = false): boolean {
  const hidden = entry.includeInContext === false;
  const byOther = !(entry.author.kind === 'agent' && entry.author.id === agent);
  if (hidden || !byOther) return false;
  if (entry.type === 'delegation-requested') return entry.to === agent;
  if (entry.type !== 'message') return NOTICES.has(entry.type);
  const folded = entry.isCollapsed === true && entry.tool_calls === undefined && !includeCollapsed;
  return (
    entry.role !== 'tool' &&
    !folded &&
    (!!entry.content || entry.parts !== undefined || entry.reported !== undefined)
  );
}

function isRoutedTo(entry: Entry, agent: string): boolean {
  if (entry.type === 'message' || entry.type === 'node-entered') return entry.to?.includes(agent) ?? false;
  return (entry.type === 'handoff' || entry.type === 'delegation-requested') && entry.to === agent;
}

/** V11: from a turn's first `turn-started` to its end; a wait does not end it. */
function spansOf(log: readonly Entry[], agent: string): Span[] {
  const ends = log.filter((e) => e.type === 'turn-ended' && e.agent === agent && e.outcome !== 'waiting');
  const first = new Map<string, Entry & { type: 'turn-started' }>();
  for (const entry of log)
    if (entry.type === 'turn-started' && entry.agent === agent && !first.has(entry.turnId))
      first.set(entry.turnId, entry);
  return [...first.values()].map((started) => ({
    turnId: started.turnId,
    start: started.index,
    end: ends.find((end) => end.index > started.index)?.index ?? Number.POSITIVE_INFINITY,
    trigger: started.trigger,
  }));
}

/** V7: the first result of each call of each own assistant entry. */
function resultsOf(log: readonly Entry[], agent: string): Map<number, (number | undefined)[]> {
  const tools = log.filter((entry) => entry.type === 'message' && entry.role === 'tool') as MessageEntry[];
  const own = log.filter(
    (entry) => isOwn(entry, agent) && (entry.tool_calls?.length ?? 0) > 0,
  ) as MessageEntry[];
  return new Map(
    own.map((entry) => [
      entry.index,
      (entry.tool_calls ?? []).map(
        (_, position) =>
          tools.find((tool) => tool.call?.index === entry.index && tool.call.position === position)?.index,
      ),
    ]),
  );
}

export function expectedView(
  entries: readonly Entry[],
  agent: string,
  asOf = entries.length,
  includeCollapsed = false,
): Expected {
  const log = entries.slice(0, asOf);
  const spans = spansOf(log, agent);
  const spanAt = (index: number) => spans.find((span) => span.start < index && index < span.end);
  const results = resultsOf(log, agent);
  // V4: what a counted result replaces, and since when.
  const behind = new Map<number, number>();
  for (const list of results.values())
    for (const at of list) {
      const result = at === undefined ? undefined : log[at];
      if (result?.type === 'message')
        for (const index of result.answers ?? []) behind.set(index, result.index);
    }

  const placeOf = (entry: Entry): Place | undefined => {
    const { index } = entry;
    const turn = spanAt(index);
    if (isOwn(entry, agent)) {
      const folded = entry.isCollapsed && !entry.tool_calls && !includeCollapsed;
      if (entry.includeInContext === false || folded) return undefined;
      return { index, anchor: turn?.start ?? index, rank: 1, at: index, visible: index, turn };
    }
    if (!mayBeShown(entry, agent, includeCollapsed) || behind.has(index)) return undefined;
    const asTrigger = spans.find((span) => span.trigger.includes(index));
    if (asTrigger) {
      const { start } = asTrigger;
      return { index, anchor: start, rank: 0, at: index, visible: start, turn: asTrigger };
    }
    if (isRoutedTo(entry, agent)) {
      const delivered = log.find(
        (e) =>
          (e.type === 'message-delivered' && e.agent === agent && e.entries.includes(index)) ||
          (e.type === 'turn-started' && e.agent === agent && e.trigger.includes(index)),
      );
      if (!delivered) return undefined; // V1
      const into = spanAt(delivered.index);
      const anchor = into?.start ?? delivered.index;
      return { index, anchor, rank: 1, at: delivered.index, visible: delivered.index, turn: into };
    }
    if (turn) return { index, anchor: turn.start, rank: 2, at: index, visible: turn.end, turn }; // V2
    return { index, anchor: index, rank: 1, at: index, visible: index, turn };
  };

  const places = log
    .map(placeOf)
    .filter((place) => place !== undefined)
    .sort((a, b) => a.anchor - b.anchor || a.rank - b.rank || a.at - b.at || a.index - b.index);
  const visibleFrom = new Map<number, number>(places.map((place) => [place.index, place.visible]));
  for (const [index, at] of behind) visibleFrom.set(index, at);

  // V3: what a request contained counts as shown once an own assistant entry follows.
  const ownWords = log.filter((entry) => isOwn(entry, agent)).map((entry) => entry.index);
  const shownBefore = (index: number, limit: number): boolean => {
    const since = visibleFrom.get(index);
    return since !== undefined && ownWords.some((own) => since < own && own < limit);
  };

  const open = spans.find((span) => span.end === Number.POSITIVE_INFINITY);
  const inOpen = (rank: 0 | 1) =>
    places.filter((place) => open && place.turn === open && place.rank === rank).map((place) => place.index);
  const history = places.filter((place) => place.turn === undefined || place.turn !== open);
  const speaks = open !== undefined && ownWords.some((own) => own < open.start);
  const block = history.filter((place) => {
    const type = log[place.index]?.type;
    const other = !ownWords.includes(place.index) && (type === 'message' || type === 'handoff');
    return open && speaks && other && place.visible < open.start && !shownBefore(place.index, open.start);
  });
  return {
    history: history.map((place) => place.index),
    block: block.map((place) => place.index),
    trigger: inOpen(0),
    steps: inOpen(1),
    results,
    unshown: log
      .filter((entry) => mayBeShown(entry, agent, includeCollapsed) && !shownBefore(entry.index, asOf))
      .map((entry) => entry.index),
  };
}

/**
 * V17: the view without what the agent's summaries replaced. A summary is at the position of the first entry it names.
 */
export function expectedReduced(
  entries: readonly Entry[],
  agent: string,
  asOf = entries.length,
  includeCollapsed = false,
): Expected {
  const whole = expectedView(entries, agent, asOf, includeCollapsed);
  const summaries = entries
    .slice(0, asOf)
    .flatMap((entry) => (entry.type === 'summary' && entry.agent === agent ? [entry] : []));
  const leftOut = new Set(summaries.flatMap((summary) => named(summary.leftOut ?? [])));
  const newestFor = new Map<number, number>();
  for (const summary of summaries)
    for (const index of [...named(summary.entries), ...named(summary.leftOut ?? [])])
      newestFor.set(index, summary.index);
  /** A summary may be merged into a later one, and that one again. */
  const standsFor = (index: number): number => {
    const by = newestFor.get(index);
    return by === undefined ? index : standsFor(by);
  };
  const reduced = (list: readonly number[]) => [...new Set(list.map(standsFor))];
  const stays = (index: number) => !leftOut.has(index);
  return {
    ...whole,
    history: reduced(whole.history),
    steps: reduced(whole.steps),
    block: whole.block.filter(stays),
    unshown: whole.unshown.filter(stays),
  };
}

function named(ranges: readonly (readonly [number, number])[]): number[] {
  return ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at));
}

/** V14: the cursor that the `turn-ended` at this index must carry. */
export function expectedCursor(entries: readonly Entry[], agent: string, turnEnded: number): number {
  return expectedReduced(entries, agent, turnEnded).unshown[0] ?? turnEnded + 1;
}
