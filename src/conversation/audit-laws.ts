import type { Entry } from './entry.ts';

/** A record of the audit log, as far as it can be held against the conversation's log. */
export interface AuditedCall {
  readonly type: string;
  readonly call: { readonly entry: number; readonly position: number };
  readonly tool: string;
}

/** L9, L10: what ran was called for by this log, by that name, and its start was in the log before. */
export function checkAudit(entries: readonly Entry[], records: readonly AuditedCall[]): string[] {
  const started = new Set(
    entries.flatMap((entry) =>
      entry.type === 'tool-started' ? [`${entry.call.index} ${entry.call.position}`] : [],
    ),
  );
  return records.flatMap(({ type, call, tool }, at) => {
    const words = `audit record ${at} (${type} of c${call.entry}_${call.position})`;
    const entry = entries[call.entry];
    const called = entry?.type === 'message' ? entry.tool_calls?.[call.position] : undefined;
    if (!called) return [`${words}: the log has no such call`];
    if (called.function.name !== tool) {
      return [`${words}: it names ${tool}; the log has ${called.function.name}`];
    }
    return started.has(`${call.entry} ${call.position}`)
      ? []
      : [`${words}: the log has no start of that call`];
  });
}
