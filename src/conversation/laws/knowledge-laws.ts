import type { Entry, EntryOf } from '../log/entry.ts';
import { expand, isBefore } from '../log/ranges.ts';
import { Knowledge } from '../state/knowledge.ts';

/** Laws of what agents were shown: cursors and summaries. They trust the fold of `knowledge.ts` and compare the log with it. */

/** L8, V14, V17. The log does not record whether collapsed entries are shown: the setting with fewer faults counts. */
export function checkKnowledge(entries: readonly Entry[]): string[] {
  return agentsOf(entries).flatMap((agent) => {
    const strict = checkAgent(entries, agent, false);
    if (strict.length === 0) return [];
    const folded = checkAgent(entries, agent, true);
    return folded.length < strict.length ? folded : strict;
  });
}

function agentsOf(entries: readonly Entry[]): string[] {
  const agents = entries.flatMap((entry) =>
    entry.type === 'turn-ended' || entry.type === 'summary' ? [entry.agent] : [],
  );
  return [...new Set(agents)].sort();
}

function checkAgent(entries: readonly Entry[], agent: string, includeCollapsed: boolean): string[] {
  const knowledge = new Knowledge(agent, { includeCollapsed });
  const faults: string[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.type === 'turn-ended' && entry.agent === agent) {
      knowledge.catchUp(entries, at);
      const due = knowledge.cursorAfter([], at + 1);
      const cursor = entry.lastProcessedMessageIndex;
      if (cursor !== due)
        faults.push(`entry ${at}: the cursor of ${agent} is ${cursor}, and should be ${due}`);
    } else if (entry.type === 'summary' && entry.agent === agent) {
      knowledge.catchUp(entries, at);
      faults.push(...checkSummary(entries, entry, knowledge).map((fault) => `entry ${at}: ${fault}`));
    }
  }
  return faults;
}

/** V17: whole groups, from the oldest on, nothing unshown, nothing open. */
function checkSummary(
  entries: readonly Entry[],
  summary: EntryOf<'summary'>,
  knowledge: Knowledge,
): string[] {
  if (!isBefore(summary.entries, summary.index) || !isBefore(summary.leftOut ?? [], summary.index)) {
    return []; // `checkLaws` reports it; expanding such ranges may take unbounded time
  }
  const covered = new Set(expand(summary.entries));
  const gone = new Set([...covered, ...expand(summary.leftOut ?? [])]);
  const faults = [...checkRange(summary, gone)];
  for (const index of covered) {
    if (knowledge.isUnshown(index)) faults.push(`the summary covers entry ${index}, which was never shown`);
    else faults.push(...checkGroup(entries, index, gone, knowledge));
  }
  const newest = knowledge.history.findLastIndex((index) => covered.has(index));
  const passed = knowledge.history.slice(0, Math.max(0, newest)).find((index) => !gone.has(index));
  if (passed !== undefined)
    faults.push(`the summary does not begin with the oldest: entry ${passed} comes before it`);
  return faults;
}

function checkRange(summary: EntryOf<'summary'>, gone: ReadonlySet<number>): string[] {
  const all = gone.size > 0 ? [...gone] : (summary.shortened ?? []);
  const { fromIndex, toIndex } = summary;
  const fits = all.every((index) => index >= fromIndex && index <= toIndex);
  return fits ? [] : [`the summary says ${fromIndex} to ${toIndex}, and covers more`];
}

/** A call is covered with all its results, and has all of them. */
function checkGroup(
  entries: readonly Entry[],
  index: number,
  gone: ReadonlySet<number>,
  knowledge: Knowledge,
): string[] {
  const entry = entries[index];
  if (entry?.type !== 'message' || entry.role !== 'assistant' || entry.author.id !== knowledge.agent)
    return [];
  return knowledge.resultsOf(index).flatMap((result, position) => {
    if (result === undefined) return [`the summary covers the open call c${index}_${position}`];
    return gone.has(result) ? [] : [`the summary covers the call c${index}_${position} without its result`];
  });
}
