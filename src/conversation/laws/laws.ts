import { authorSchema, type Entry, entrySchema } from '../log/entry.ts';
import { isPaused } from '../log/entry-traits.ts';
import { isBefore } from '../log/ranges.ts';
import { publisherOfPost } from '../state/people.ts';
import { checkApprovals } from './approval-laws.ts';
import { checkCalls, checkDelegations, checkReach } from './call-laws.ts';

/**
 * The laws of any log, checked from its entries alone, without the fold that the daemon uses. Returns one sentence for
 * each fault; an empty list if there is none.
 */
export function checkLaws(entries: readonly Entry[]): string[] {
  const faults: string[] = [];
  checkIndexes(entries, faults);
  checkTurns(entries, faults);
  checkAnswers(entries, faults);
  checkSummaries(entries, faults);
  checkSessions(entries, faults);
  checkCalls(entries, faults);
  checkApprovals(entries, faults);
  checkDelegations(entries, faults);
  checkReach(entries, faults);
  return faults;
}

/** L2, L4: dense indexes, unique ids (of posts, for each publisher), ingress sequences that rise within one stream, epochs without a gap. */
function checkIndexes(entries: readonly Entry[], faults: string[]): void {
  const ids = new Set<string>();
  let sequence = 0;
  let stream: string | undefined;
  let epoch = 0;
  entries.forEach((entry, at) => {
    if (entry.index !== at) faults.push(`line ${at} has index ${entry.index}`);
    const publisher = publisherOfPost(entry);
    const key = publisher === null ? entry.id : `${publisher}\n${entry.id}`;
    if (ids.has(key)) faults.push(`entry ${at}: the id ${entry.id} is used twice`);
    ids.add(key);
    if (entry.copiedFrom !== undefined) return;
    if (entry.type === 'claim') {
      if (entry.epoch !== epoch + 1) faults.push(`entry ${at}: epoch ${entry.epoch} after ${epoch}`);
      if (entry.ingress !== stream) sequence = 0;
      epoch = entry.epoch;
      stream = entry.ingress;
    }
    if (entry.ingressSequence === undefined) return;
    if (entry.ingressSequence <= sequence) faults.push(`entry ${at}: a post out of order`);
    sequence = entry.ingressSequence;
  });
}

/**
 * L8, V11: one final end per turn, which no delivery and no new call follows; one open turn per agent (a waiting one counts);
 * cursors that never move back.
 */
function checkTurns(entries: readonly Entry[], faults: string[]): void {
  /** By agent. */
  const open = new Map<string, { readonly turnId: string; readonly waits: boolean }>();
  const ended = new Set<string>();
  const cursors = new Map<string, number>();
  for (const entry of entries) {
    const at = `entry ${entry.index}`;
    if (entry.type === 'turn-started') {
      const other = open.get(entry.agent);
      if (other !== undefined && other.turnId !== entry.turnId) faults.push(`${at}: two turns at once`);
      if (ended.has(entry.turnId)) faults.push(`${at}: a turn began after its end`);
      else if ((other?.turnId === entry.turnId) !== (entry.resumed === true))
        faults.push(`${at}: ${entry.resumed ? 'a resumed turn was not open' : 'a turn started twice'}`);
      if (entry.trigger.some((index) => index >= entry.index)) faults.push(`${at}: a later trigger`);
      open.set(entry.agent, { turnId: entry.turnId, waits: false });
    } else if (entry.type === 'turn-ended') {
      const turn = open.get(entry.agent);
      if (turn?.turnId !== entry.turnId) faults.push(`${at}: the end of no open turn`);
      if (ended.has(entry.turnId)) faults.push(`${at}: a second end of turn ${entry.turnId}`);
      if (turn?.waits && entry.outcome === 'waiting') faults.push(`${at}: a waiting turn waits again`);
      const cursor = entry.lastProcessedMessageIndex;
      if (cursor < (cursors.get(entry.agent) ?? 0)) faults.push(`${at}: the cursor moved back`);
      if (cursor > entries.length) faults.push(`${at}: the cursor is beyond the log`);
      cursors.set(entry.agent, cursor);
      if (entry.outcome === 'waiting') {
        open.set(entry.agent, { turnId: entry.turnId, waits: true });
      } else {
        open.delete(entry.agent);
        ended.add(entry.turnId);
      }
    } else if (ended.has(entry.turnId ?? '')) {
      if (entry.type === 'message-delivered')
        faults.push(`${at}: a delivery after the end of turn ${entry.turnId}`);
      else if (isCalling(entry))
        faults.push(`${at}: an answer with calls after the end of turn ${entry.turnId}`);
    }
  }
}

function isCalling(entry: Entry): boolean {
  return entry.type === 'message' && entry.role === 'assistant' && entry.tool_calls !== undefined;
}

/** One final answer per turn; a paused answer is not final. */
function checkAnswers(entries: readonly Entry[], faults: string[]): void {
  const answered = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'assistant' || entry.tool_calls || !entry.turnId) continue;
    if (answered.has(entry.turnId))
      faults.push(`entry ${entry.index}: a second answer of turn ${entry.turnId}`);
    if (!isPaused(entry)) answered.add(entry.turnId);
  }
}

/** V17: a summary covers entries before it, each named once. So its ranges cannot expand to more than the log. */
function checkSummaries(entries: readonly Entry[], faults: string[]): void {
  for (const entry of entries) {
    if (entry.type !== 'summary') continue;
    for (const ranges of [entry.entries, entry.leftOut ?? []]) {
      if (!isBefore(ranges, entry.index))
        faults.push(`entry ${entry.index}: the summary names ranges that are not ascending and before it`);
    }
  }
}

/**
 * PERSON-7: a session is one that a message names by right, to an agent that it was routed to, and the next entry of the same
 * append takes that message into a turn of the agent.
 */
function checkSessions(entries: readonly Entry[], faults: string[]): void {
  for (const entry of entries) {
    if (entry.type !== 'session-set') continue;
    const at = `entry ${entry.index}`;
    const message = entries[entry.from];
    const isNamed =
      message?.type === 'message' && message.setsSession && message.sessionId === entry.sessionId;
    if (!isNamed || entry.from >= entry.index || !message.to?.includes(entry.agent))
      faults.push(`${at}: a session of ${entry.agent} that entry ${entry.from} does not set`);
    const next = entries[entry.index + 1];
    if (next === undefined || next.copiedFrom !== entry.copiedFrom) continue; // the copy of a log may end here
    const taken =
      next.type === 'turn-started'
        ? next.trigger
        : next.type === 'message-delivered'
          ? next.entries
          : next.type === 'message'
            ? next.answers
            : [];
    if (!taken?.includes(entry.from)) faults.push(`${at}: a session that belongs to no turn`);
  }
}

/** The entry types of this version. */
const KNOWN: ReadonlySet<unknown> = new Set(
  entrySchema.options.flatMap(({ shape }) => [...shape.type.values]),
);

/**
 * The shape that entries need before the laws can be checked. For a type of a newer minor version, only the common
 * fields are checked.
 */
export function checkShapes(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry, at) => {
    const fault = KNOWN.has(entry.type) ? shapeFault(entry) : baseFault(entry);
    return fault === null ? [] : [`entry ${at} is invalid: ${fault}`];
  });
}

function shapeFault(entry: Entry): string | null {
  const [issue] = entrySchema.safeParse(entry).error?.issues ?? [];
  return issue ? `${issue.path.join('.')}: ${issue.message}` : null;
}

function baseFault({ type, author }: Entry): string | null {
  if (typeof type !== 'string') return 'type: not a string';
  return authorSchema.safeParse(author).success ? null : 'author: invalid';
}
