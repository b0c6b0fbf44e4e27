import { wellFormed } from '../decide/decision-builder.ts';
import type { CallPlace, Entry } from '../log/entry.ts';
import { wireCallId } from '../state/knowledge.ts';

/** A record of the audit log, as far as it can be held against the conversation's log. */
export interface AuditedCall {
  readonly type: string;
  readonly call: { readonly entry: number; readonly position: number };
  readonly tool: string;
  /** Of a call that completed. */
  readonly result?: string;
}

export function checkAudit(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  return [...checkRecords(entries, records), ...checkResults(entries, records)];
}

/**
 * L9, L10: what ran was called for by this log, by that name, and its start was in the log before. A request is recorded
 * before that start, so a crash may leave one of which the log knows nothing.
 */
function checkRecords(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const started = startedCalls(entries);
  return records.flatMap(({ type, call, tool }, at) => {
    if (type === 'ToolCallRequested') return [];
    const key = `c${call.entry}_${call.position}`;
    const words = `audit record ${at} (${type} of ${key})`;
    const entry = entries[call.entry];
    const called = entry?.type === 'message' ? entry.tool_calls?.[call.position] : undefined;
    if (!called) return [`${words}: the log has no such call`];
    if (called.function.name !== tool) {
      return [`${words}: it names ${tool}; the log has ${called.function.name}`];
    }
    return started.has(key) ? [] : [`${words}: the log has no start of that call`];
  });
}

/**
 * L12: where the runner of a tool saw what came of a call, the log has that as its result, or a person's word, or says
 * that nobody knows. A call that ran twice (on two machines, one of which was silent) has two; either will do.
 */
function checkResults(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const seen = new Map<string, { readonly at: number; readonly texts: Set<string> }>();
  records.forEach(({ type, call, result }, at) => {
    if (type !== 'ToolCallCompleted' || result === undefined) return;
    const key = `c${call.entry}_${call.position}`;
    const known = seen.get(key) ?? { at, texts: new Set() };
    seen.set(key, known);
    known.texts.add(wellFormed(result)); // as the log has it
  });
  const started = startedCalls(entries);
  const settledByWord = new Set<string>();
  return entries.flatMap((entry) => {
    if (entry.type === 'approval-answered' && entry.call && SETTLING.includes(entry.answer))
      settledByWord.add(wireCallId(entry.call));
    const key = resultOf(entry);
    const found = key === null ? undefined : seen.get(key);
    if (key === null || !found || !started.has(key) || settledByWord.has(key)) return [];
    const content = (entry.type === 'message' && entry.content) || '';
    if (found.texts.has(content) || SAYS_UNKNOWN.test(content)) return [];
    return [`entry ${entry.index}: the result of ${key} is not the one that audit record ${found.at} has`];
  });
}

/** What a person, or nobody in time, says of a call instead of what came of it. */
const SETTLING: readonly string[] = ['result', 'failed', 'expired'];
/** As every result of the daemon's own says it of a call that may have taken effect. */
const SAYS_UNKNOWN = /whether (?:it|that) took effect is unknown/;

function resultOf(entry: Entry): string | null {
  return entry.type === 'message' && entry.role === 'tool' && entry.call ? wireCallId(entry.call) : null;
}

function startedCalls(entries: readonly Entry[]): ReadonlySet<string> {
  const places: CallPlace[] = entries.flatMap((entry) => (entry.type === 'tool-started' ? [entry.call] : []));
  return new Set(places.map(wireCallId));
}
