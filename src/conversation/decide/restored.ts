import { type Entry, type EntryOf, wireCallId } from '../log/entry.ts';
import { evolve } from '../state/evolve.ts';
import { EMPTY_STATE, type OpenCall, type Turn } from '../state/state.ts';
import { isConversationTool } from '../tools/conversation-tools.ts';
import type { AuditedCall } from '../tools/tool-rules.ts';

/**
 * A copy of a log that continues in place of the original, which went on after the copy was made.
 *
 * RESTORED-1 A risky call that needed no further decision of a person may have run since then. It counts as started, so that
 *            the recovery asks a person and runs nothing (TOOLS-3).
 * RESTORED-2 The audit log of the copy proves no call to be without effect: records of open calls without a result are left
 *            out, and so are those of calls whose start is not in the log yet.
 */

/** The starts to append before the log is recovered (RESTORED-1). Empty: none, also if they are there already. */
export function mayHaveRunSince(
  entries: readonly Entry[],
  at: { readonly newId: () => string; readonly createdAt: string },
): EntryOf<'tool-started'>[] {
  const { agents } = entries.reduce(evolve, EMPTY_STATE);
  const running = Object.values(agents).flatMap(({ turn }) => (turn?.status === 'running' ? [turn] : []));
  const found = running.flatMap((turn) => unstarted(turn).map((call) => ({ turn, call })));
  return found.map(({ turn, call }, position) => ({
    index: entries.length + position,
    id: at.newId(),
    createdAt: at.createdAt,
    type: 'tool-started',
    author: entries[call.place.index]?.author ?? { kind: 'agent', id: turn.agent, name: turn.agent },
    turnId: turn.turnId,
    call: call.place,
    toolName: call.name,
    risk: 'risky',
  }));
}

/** Those that could start without a decision: no call starts after one that waits for an approval (TOOLS-1). */
function unstarted({ openCalls }: Turn): OpenCall[] {
  const pending = openCalls.findIndex(({ approval }) => approval?.status === 'pending');
  const free = pending === -1 ? openCalls : openCalls.slice(0, pending);
  return free.filter(
    ({ name, started, risk, atCaller }) =>
      !started && risk === 'risky' && !isConversationTool(name) && !atCaller,
  );
}

/** RESTORED-2. `records` were read after `entries`. */
export function recordsOfBackup<Found extends AuditedCall>(
  entries: readonly Entry[],
  records: readonly Found[],
): Found[] {
  const keyOf = ({ call }: AuditedCall) => wireCallId({ index: call.entry, position: call.position });
  const started = new Set(
    entries.flatMap((one) => (one.type === 'tool-started' ? wireCallId(one.call) : [])),
  );
  const settled = new Set([
    ...entries.flatMap((one) => (one.type === 'message' && one.call ? wireCallId(one.call) : [])),
    ...records.flatMap((one) => (one.type === 'ToolCallCompleted' ? keyOf(one) : [])),
  ]);
  return records.filter((one) => started.has(keyOf(one)) && settled.has(keyOf(one)));
}
