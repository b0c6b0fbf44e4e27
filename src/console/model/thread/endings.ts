import type { Entry, EntryOf } from '../../../conversation/index.ts';

/** Why a turn ended early, in words; from the entries before its end. */

type NameOf = (slug: string) => string;
type Ended = EntryOf<'turn-ended'>;

export function endingOf(entries: readonly Entry[], ended: Ended, nameOf: NameOf): string {
  if (ended.outcome === 'failed') return 'This turn failed';
  if (ended.outcome === 'limited') return 'This turn ended at a limit';
  const answers = new Set<number>();
  for (let at = ended.index - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type === 'message' && entry.role === 'tool')
      for (const index of entry.answers ?? []) answers.add(index);
    const cause = entry && !answers.has(at) ? causeIn(entry, ended) : null;
    if (cause !== null) return cause;
    if (entry?.type === 'turn-started' && entry.turnId === ended.turnId && !entry.resumed)
      return causeBefore(entry, entries[entry.trigger[0] ?? -1], ended, nameOf);
  }
  return STOPPED;
}

const STOPPED = 'This turn was stopped';

/** Null: this entry did not end it. */
function causeIn(entry: Entry, { agent }: Ended): string | null {
  const by = entry.author.name;
  switch (entry.type) {
    case 'agent-stopped':
      return entry.agent === null || entry.agent === agent ? `${STOPPED} by ${by}` : null;
    case 'message':
      return entry.delivery === 'interrupt' && entry.to?.includes(agent)
        ? `This turn was interrupted by a message of ${by}`
        : null;
    case 'agent-dismissed':
      return entry.agent === agent ? `This turn ended: ${by} dismissed its agent` : null;
    case 'team-changed':
      return entry.agents.some((one) => one.agent === agent && one.change === 'removed')
        ? 'This turn ended: its agent was removed from the configuration'
        : null;
    case 'forked':
      return entry.file === undefined
        ? 'This turn ended with the fork: it is in the other conversation'
        : 'This turn ended with the import: nothing of a file continues';
    default:
      return null;
  }
}

/** It was not needed any more: the asker waits no longer, or the run has left the node. */
function causeBefore(
  started: EntryOf<'turn-started'>,
  trigger: Entry | undefined,
  ended: Ended,
  nameOf: NameOf,
): string {
  if (trigger?.type === 'delegation-requested')
    return `This turn ended: ${nameOf(trigger.from)} does not wait for it any more`;
  const isAtOnce = ended.index === started.index + 1;
  return trigger?.type === 'node-entered' && isAtOnce
    ? 'This turn ended: its run has left this node'
    : STOPPED;
}
