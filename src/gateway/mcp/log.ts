import { createTurnWatch, type Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from '../progress/ask.ts';
import { readTail } from '../progress/log.ts';

/**
 * Reads a conversation while work is in progress.
 *
 * MCP-LOG-1  Only the log is read; a published entry only triggers the read.
 * MCP-LOG-2  A wait ends when no work is outstanding, when only a person can continue, or at its timeout.
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

/** Every entry from `from` on, until the wait ends (MCP-LOG-2) or the signal aborts. */
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
  const bell = createBell();
  const unsubscribe = daemon.subscribe(conversation, bell.ring);
  enough.addEventListener('abort', bell.ring);
  try {
    for (;;) {
      bell.reset();
      for (const entry of await readOn(daemon, conversation, from + entries.length)) {
        entries.push(entry);
        const isPost = entry.type === 'message' && entry.author.kind === 'person';
        if (!agents && isPost) watch.addOutstanding(entry.index, entry.to ?? []);
        watch.observe(entry);
      }
      if (watch.settled) return { entries, status: 'done', paused: [] };
      if (watch.held) return { entries, status: 'waits-for-a-person', paused: watch.stoppedAgents };
      if (enough.aborted) return { entries, status: 'running', paused: watch.stoppedAgents };
      await bell.rung();
    }
  } finally {
    unsubscribe();
    enough.removeEventListener('abort', bell.ring);
  }
}

/** All entries of the log from there on. */
async function readOn(daemon: GatewayPort, conversation: string, from: number): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (;;) {
    const next = from + entries.length;
    const page = await ask(daemon, 'entries', { conversation, from: next });
    if (page.length < next) {
      throw new ParleyError('CONVERSATION_DELETED', 'this conversation was deleted meanwhile');
    }
    entries.push(...page.entries);
    if (page.entries.length === 0 || from + entries.length >= page.length) return entries;
  }
}

/** A ring before the wait counts too. */
function createBell() {
  let isRung = false;
  let wake: () => void = () => undefined;
  return {
    ring: () => {
      isRung = true;
      wake();
    },
    reset: () => {
      isRung = false;
    },
    rung: () =>
      new Promise<void>((resolve) => {
        wake = resolve;
        if (isRung) resolve();
      }),
  };
}
