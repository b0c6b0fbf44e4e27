import type { AnswerOf } from '../../bus/contract.ts';
import type { Entry } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from './ask.ts';

/** Reads logs and the list of conversations through the request API. */

export type Row = AnswerOf<'conversations'>['conversations'][number];

/** All conversations with a later id, in the order of their ids. */
export async function* conversationRows(daemon: GatewayPort, after?: string): AsyncGenerator<Row, void> {
  for (let next: string | null | undefined = after; next !== null; ) {
    const page: AnswerOf<'conversations'> = await ask(daemon, 'conversations', { after: next, limit: 1_000 });
    yield* page.conversations;
    next = page.next;
  }
}

/** Entries from an index on, up to another or to the end. */
export async function readLog(
  daemon: GatewayPort,
  conversation: string,
  from: number,
  to = Number.POSITIVE_INFINITY,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let next = from; next < to; next = from + entries.length) {
    const limit = Math.min(1_000, to - next);
    const page = await ask(daemon, 'entries', { conversation, from: next, limit });
    entries.push(...page.entries);
    if (page.entries.length === 0 || next + page.entries.length >= page.length) break;
  }
  return entries;
}

const STRIDE = 200;
/** Characters at the end of a log that are enough to find what is open there. */
const TAIL = 524_288;

/** The newest entries below an index, in order, of about this many characters. */
export async function readTail(
  daemon: GatewayPort,
  conversation: string,
  to: number,
  characters: number = TAIL,
): Promise<Entry[]> {
  let entries: Entry[] = [];
  for (let from = to, size = 0; from > 0 && size < characters; ) {
    const before = Math.max(0, from - STRIDE);
    const page = await readLog(daemon, conversation, before, from);
    entries = [...page, ...entries];
    size += JSON.stringify(page).length;
    from = before;
  }
  return entries;
}
