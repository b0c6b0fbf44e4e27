import type { Entry } from '../../conversation/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from './ask.ts';

/** The log, read for one answer. */

/** Entries from an index on, up to another or to the end. */
export async function readLog(
  door: GatewayPort,
  conversation: string,
  from: number,
  to = Number.POSITIVE_INFINITY,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let next = from; next < to; next = from + entries.length) {
    const limit = Math.min(1_000, to - next);
    const page = await ask(door, 'entries', { conversation, from: next, limit });
    entries.push(...page.entries);
    if (page.entries.length === 0 || next + page.entries.length >= page.length) break;
  }
  return entries;
}

const STRIDE = 200;
/** Characters of a log that are enough to know what is open at its end. */
const TAIL = 524_288;

/** The newest entries below an index that have about so many characters, in order. */
export async function readTail(
  door: GatewayPort,
  conversation: string,
  to: number,
  characters: number = TAIL,
): Promise<Entry[]> {
  let entries: Entry[] = [];
  for (let from = to, size = 0; from > 0 && size < characters; ) {
    const before = Math.max(0, from - STRIDE);
    const page = await readLog(door, conversation, before, from);
    entries = [...page, ...entries];
    size += JSON.stringify(page).length;
    from = before;
  }
  return entries;
}
