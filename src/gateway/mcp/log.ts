import { createTurnWatch, type Entry } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { readTail } from '../progress/log.ts';

/**
 * Reads a conversation while work is in progress.
 *
 * MCP-LOG-1  A wait ends when no work is outstanding, when only a person can continue, or at its timeout.
 */

type RunStatus = 'done' | 'waits-for-a-person' | 'running';

export interface ReadEntries {
  readonly entries: readonly Entry[];
  readonly status: RunStatus;
  /** Stopped agents with an outstanding turn. */
  readonly paused: readonly string[];
}

export interface Awaited {
  readonly conversation: string;
  /** Index of the first entry to return. */
  readonly from: number;
  /** The agents that must answer the entry at `from`. Absent: those that the log names. */
  readonly agents?: readonly string[];
  /** Those of them that a person stopped. */
  readonly stopped?: readonly string[];
}

/** Every entry from `from` on, until the wait ends (MCP-LOG-1) or the signal aborts. */
export async function readUntilQuiet(
  daemon: GatewayPort,
  { conversation, from, agents, stopped = [] }: Awaited,
  enough: AbortSignal,
): Promise<ReadEntries> {
  const watch = createTurnWatch();
  for (const entry of await readTail(daemon, conversation, from)) watch.observe(entry);
  if (agents) watch.addOutstanding(from, agents);
  watch.markStopped(stopped);
  const entries: Entry[] = [];
  const arrivals = new Arrivals(daemon, conversation);
  const stop = () => arrivals.close();
  const ended = (status: RunStatus): ReadEntries => ({ entries, status, paused: watch.stoppedAgents });
  try {
    for await (const received of arrivals.from(from)) {
      if (received.kind === 'live') continue;
      for (const entry of received.entries) {
        entries.push(entry);
        const isPost = entry.type === 'message' && entry.author.kind === 'person';
        if (!agents && isPost) watch.addOutstanding(entry.index, entry.to ?? []);
        watch.observe(entry);
      }
      if (!received.isCurrent) continue;
      if (watch.settled) return { ...ended('done'), paused: [] };
      if (watch.held) return ended('waits-for-a-person');
      if (enough.aborted) break;
      enough.addEventListener('abort', stop); // not before: a wait of no time returns what there is
    }
    return ended('running');
  } finally {
    enough.removeEventListener('abort', stop);
  }
}
