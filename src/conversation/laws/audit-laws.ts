import { wellFormed } from '../../kernel/index.ts';
import type { CallPlace, Entry } from '../log/entry.ts';
import { wireCallId } from '../log/entry.ts';
import type { AuditedCall } from '../tools/tool-rules.ts';

export function checkAudit(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  return [...checkRecords(entries, records), ...checkResults(entries, records)];
}

/**
 * L9, L10: every recorded start or completion belongs to a call of this log with the same tool and an earlier
 * `tool-started`. A request is recorded before that, so a crash may leave one without any entry.
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
 * L12: if the audit log has the outcome of a call, its result in the log is that outcome, a person's answer, or says
 * that the outcome is unknown. A call that ran on two machines has two outcomes; either is correct.
 */
function checkResults(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const seen = new Map<string, { readonly at: number; readonly texts: Set<string> }>();
  records.forEach(({ type, call, result }, at) => {
    if (type !== 'ToolCallCompleted' || result === undefined) return;
    const key = `c${call.entry}_${call.position}`;
    const known = seen.get(key) ?? { at, texts: new Set() };
    seen.set(key, known);
    known.texts.add(wellFormed(result)); // as the log stores it
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

/** Answers to an approval that give the call a result of their own. */
const SETTLING: readonly string[] = ['result', 'failed', 'expired'];
/** Every result of the daemon for a call with an unknown outcome contains this. */
const SAYS_UNKNOWN = /whether (?:it|that) took effect is unknown/;

function resultOf(entry: Entry): string | null {
  return entry.type === 'message' && entry.role === 'tool' && entry.call ? wireCallId(entry.call) : null;
}

function startedCalls(entries: readonly Entry[]): ReadonlySet<string> {
  const places: CallPlace[] = entries.flatMap((entry) => (entry.type === 'tool-started' ? [entry.call] : []));
  return new Set(places.map(wireCallId));
}
