import type { Entry, MessageEntry } from '../log/entry.ts';
import { estimateTokens } from '../text/text.ts';
import { counted, HEADING_TOKENS, NAME_LENGTH, oneLine, reserveFor, shortName } from './summary-lines.ts';

/** What of a summary nobody has to write: the beginning and the end of what was said and done, in the order of the log (SUMMARY-TEXT-2, SUMMARY-TEXT-3). */

/** In code points: of what was said, of an agent's last word. */
const EXTRACT_LENGTH = 160;
const LAST_WORD_LENGTH = 400;

/** Something that was said or done, and how much it matters: 2 an agent's last word, 1 what changed the course, 0 the rest. */
export interface Said {
  readonly entry: Entry;
  readonly name: string;
  readonly what: string;
  readonly weight: 0 | 1 | 2;
}

export function saidBy(
  covered: readonly Entry[],
  agent: string,
  canStand: (entry: Entry) => boolean,
): Said[] {
  const said: Said[] = [];
  const lastHeard = new Set<string>();
  for (const entry of covered.toReversed()) {
    // What it handed over or asked for it said by a call, and of calls only the names are told.
    const isOwn = isBy(entry, agent) && entry.includeInContext !== false;
    if (entry.type === 'message' && (entry.author.kind === 'person' || entry.role === 'tool')) continue;
    if (!isOwn && !canStand(entry)) continue;
    const what = wordsOf(entry);
    if (!what) continue;
    const isLast = entry.type === 'message' && !lastHeard.has(entry.author.id);
    if (isLast) lastHeard.add(entry.author.id);
    const name = isOwn ? 'you' : shortName(entry);
    said.push({ entry, name, what, weight: isLast ? 2 : entry.type === 'message' ? 0 : 1 });
  }
  return said.reverse();
}

/** SUMMARY-TEXT-2 */
export function extract(said: readonly Said[], room: number, canRecall: boolean): string {
  if (said.length === 0) return '';
  let left = room - HEADING_TOKENS;
  const isWhole = extractTokens(said, left) <= left;
  left -= isWhole ? 0 : reserveFor(entriesOf(said), namesOf(said), canRecall);
  const shown = new Map<number, string>();
  for (const weight of [2, 1, 0]) {
    for (let at = said.length - 1; at >= 0; at--) {
      const one = said[at];
      if (one?.weight !== weight) continue;
      const line = sayingLine(one);
      const needed = 1 + estimateTokens(line);
      if (needed > left) break;
      left -= needed;
      shown.set(at, line);
    }
  }
  const missing = said.filter((_, at) => !shown.has(at));
  const count = missing.length > 0 ? [counted(entriesOf(missing), namesOf(missing), canRecall)] : [];
  return ['What was done:', ...count, ...said.flatMap((_, at) => shown.get(at) ?? [])].join('\n');
}

/** What all of it would need; of what is more than `limit` only that it is more: a long log has far more than fits. */
export function extractTokens(said: readonly Said[], limit: number): number {
  let tokens = 0;
  for (const one of said) {
    tokens += 1 + estimateTokens(sayingLine(one));
    if (tokens > limit) break;
  }
  return tokens;
}

function sayingLine({ entry, name, what, weight }: Said): string {
  return `- entry ${entry.index}, ${name}: ${oneLine(what, weight === 2 ? LAST_WORD_LENGTH : EXTRACT_LENGTH)}`;
}

/** What somebody else did, in words. */
export function wordsOf(entry: Entry): string {
  switch (entry.type) {
    case 'message':
      return entry.content ?? '';
    case 'handoff':
      return `hands over to ${entry.to}: ${entry.summary}`;
    case 'delegation-requested':
      return `asks ${entry.to}: ${entry.request}`;
    case 'phase-entered':
    case 'mode-entered':
      return `${entry.type === 'phase-entered' ? 'phase' : 'mode'} ${entry.from} → ${entry.to}`;
    case 'run-started':
      return `run of ${entry.workflowId} started`;
    case 'node-entered':
      return `node ${entry.node} entered`;
    case 'run-ended':
      return `run ended: ${entry.outcome}`;
    case 'limit-reached':
    case 'note':
      return entry.content;
    default:
      return '';
  }
}

/** SUMMARY-TEXT-3 */
export function usedTools(covered: readonly Entry[], agent: string, room: number): string {
  const uses = new Map<string, number>();
  for (const entry of covered) {
    if (!isOwnMessage(entry, agent)) continue;
    for (const { function: call } of entry.tool_calls ?? []) {
      const name = oneLine(call.name, NAME_LENGTH);
      uses.set(name, (uses.get(name) ?? 0) + 1);
    }
  }
  if (uses.size === 0) return '';
  const named = [...uses].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}×`);
  const line = (count: number) => {
    const others = named.length > count ? [`${named.length - count} others`] : [];
    return `Tools you used: ${[...named.slice(0, count), ...others].join(', ')}`;
  };
  let count = Math.min(named.length, 8);
  while (count > 0 && estimateTokens(line(count)) > room) count--;
  return line(count);
}

const entriesOf = (said: readonly Said[]): Entry[] => said.map(({ entry }) => entry);
const namesOf = (said: readonly Said[]): string[] => said.map(({ name }) => name);

function isOwnMessage(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    isBy(entry, agent) &&
    entry.includeInContext !== false
  );
}

function isBy({ author }: Entry, agent: string): boolean {
  return author.kind === 'agent' && author.id === agent;
}
