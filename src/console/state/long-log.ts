import { signal } from '@preact/signals';
import type { AnswerOf } from '../../bus/contract.ts';
import { requests } from '../api/requests.ts';
import { Thread } from '../model/thread/thread.ts';
import { isListed, rows } from './conversations.ts';

/**
 * Loads a long log before it is followed.
 *
 * LONG-LOG-1 Its end and the state of the conversation are shown first, then the whole.
 * LONG-LOG-2 The whole comes in pages, which are compressed and folded in tasks of their own. What a page does not have, such as an
 *    entry that is too large for one, the event stream brings.
 */

/** Entries; the stream brings a shorter log as fast. */
const LONG = 500;
/** What fills a screen. */
const END = 100;
/** One takes about as long as a frame. */
const PAGE = 500;
const LISTED_WITHIN_MS = 3_000;

export interface Loading {
  /** The end of the log: of the entries before it nothing is known. */
  readonly end: Thread;
  readonly loaded: number;
  readonly length: number;
}

/** A long log that is not whole yet; null: none. */
export const loading = signal<Loading | null>(null);

type NameOf = (slug: string) => string;

/** Resolves when the thread can be followed from its length on. It is shown when `loading` is null. */
export async function loadLong(id: string, thread: Thread, nameOf: NameOf, left: AbortSignal): Promise<void> {
  try {
    await listed(left);
    const known = rows.value.find((row) => row.id === id);
    if (left.aborted || !known || known.length < LONG) return;
    const head = await requests.conversation(id);
    const end = await endOf(head, nameOf);
    for (let added = 1; added > 0 && thread.entries.length < head.length && !left.aborted; ) {
      loading.value = { end, loaded: thread.entries.length, length: head.length };
      added = await addPage(id, thread);
    }
  } catch {
    // The stream tells why, and tries again.
  }
}

/** Resolves when the list says how long the conversation is, or should have said it. */
async function listed(left: AbortSignal): Promise<void> {
  const late = performance.now() + LISTED_WITHIN_MS;
  while (!isListed.value && !left.aborted && performance.now() < late)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

async function endOf(head: AnswerOf<'conversation'>, nameOf: NameOf): Promise<Thread> {
  const { id, length, phase, mode, activeAgent, run } = head;
  const from = length - END;
  const { entries } = await requests.entries(id, from, END);
  const end = new Thread(nameOf, from);
  for (const entry of entries) end.add(entry);
  end.floor = { phase, mode, activeAgent, run: run && { ...run, workflowId: run.workflow } };
  return end;
}

/** The number of entries that were added. */
async function addPage(id: string, thread: Thread): Promise<number> {
  const { entries } = await requests.entries(id, thread.entries.length, PAGE);
  const whole = entries.findIndex((entry) => 'truncated' in entry);
  const page = whole < 0 ? entries : entries.slice(0, whole);
  for (const entry of page) thread.add(entry);
  return page.length;
}
