import { closeStrayCalls, hasOutstandingWork } from '../../conversation/index.ts';
import { createIdSource, messageOf, ParleyError, sleep } from '../../kernel/index.ts';
import type { ConversationStore, Leftover, StoreInspector } from '../../persistence/index.ts';
import { composeInspector, composeOwnStore } from '../compose.ts';
import { rowOf } from '../conversations/projections.ts';
import { type Finding, findingsOf, leftoverFinding, stateOf } from './findings.ts';

/**
 * Verifies the laws on what a data directory holds, and mends what can be mended.
 *
 * FSCK-1 Looking takes no lock and changes nothing; it may be done beside a running daemon.
 * FSCK-2 A repair owns the directory. It appends, cuts what was never acknowledged (and keeps it), and writes
 *    projections again: history is never edited (L2), a damaged log is left as it is.
 * FSCK-3 What a log owes is left to the next start, which runs it by the one path there is; a repair only makes sure
 *    that the start finds it.
 */

export interface FsckOptions {
  readonly dataDirectory: string;
  /** Absent: every conversation. */
  readonly conversation?: string;
  readonly repair: boolean;
}

export interface FsckReport {
  readonly conversation: string;
  /** What was found, each with whether it is mended now. */
  readonly findings: readonly (Finding & { readonly repaired: boolean })[];
}

/** As often as a conversation is looked at again before something that may be a daemon at work is called a fault. */
const LOOKS = 3;
/** A deletion that is under way is over by then. */
const REST_MS = 500;

export async function fsck(options: FsckOptions): Promise<FsckReport[]> {
  const { dataDirectory, repair } = options;
  const inspector = composeInspector(dataDirectory);
  const found = await scopeOf(inspector, options); // before a store is opened, which would make a directory
  if (!repair) return lookAtAll(inspector, found);
  const store = await composeOwnStore(dataDirectory);
  let before: FsckReport[];
  const failures: string[] = [];
  try {
    before = await lookAtAll(inspector, found);
    for (const { conversation, findings } of before) {
      if (!findings.some((finding) => finding.repair !== null)) continue;
      const isDeleted = found.left.some((one) => one.conversation === conversation && !one.isSwept);
      if (!isDeleted && !found.withLog.has(conversation)) continue; // opening the store removed it
      const mending = isDeleted ? store.delete(conversation) : mend(store, conversation);
      await mending.catch((error: unknown) => void failures.push(messageOf(error)));
    }
  } finally {
    await store.close();
  }
  if (failures.length > 0) {
    throw new ParleyError('REPAIR_FAILED', failures.join('\n'), {
      hint: 'what was mended before stays mended: see to the cause and repeat the command',
    });
  }
  return compared(before, await lookAtAll(inspector, { ...found, left: await leftoversIn(inspector) }));
}

/** What is looked at. */
interface Scope {
  readonly ids: readonly string[];
  /** Those of `ids` that have a log, or should. */
  readonly withLog: ReadonlySet<string>;
  readonly left: readonly Leftover[];
}

async function scopeOf(
  inspector: StoreInspector,
  { conversation, dataDirectory }: FsckOptions,
): Promise<Scope> {
  const withLog = new Set(await inspector.conversations());
  const left = await leftoversIn(inspector);
  const ids = new Set([...withLog, ...left.map((leftover) => leftover.conversation)]);
  if (conversation === undefined) return { ids: [...ids].sort(), withLog, left };
  if (ids.has(conversation)) return { ids: [conversation], withLog, left };
  throw new ParleyError('NOT_FOUND', `there is no conversation ${conversation} in ${dataDirectory}`, {
    hint: 'check the id and --data',
  });
}

async function lookAtAll(inspector: StoreInspector, { ids, withLog, left }: Scope): Promise<FsckReport[]> {
  const reports: FsckReport[] = [];
  for (const conversation of ids) {
    const its = left.filter((leftover) => leftover.conversation === conversation);
    const found = withLog.has(conversation) ? await look(inspector, conversation) : [];
    const findings = [...its.map(({ path }) => leftoverFinding(path)), ...found];
    reports.push({ conversation, findings: findings.map((one) => ({ ...one, repaired: false })) });
  }
  return reports;
}

/** A daemon may be deleting a conversation: only what is found again is left (FSCK-1). */
async function leftoversIn(inspector: StoreInspector): Promise<Leftover[]> {
  const first = await inspector.leftovers();
  if (first.length === 0) return [];
  await sleep(REST_MS);
  const paths = new Set((await inspector.leftovers()).map(({ conversation, path }) => conversation + path));
  return first.filter(({ conversation, path }) => paths.has(conversation + path));
}

/** A daemon may be at work on it: only what is found again and again is a fault (FSCK-1). */
async function look(inspector: StoreInspector, conversation: string): Promise<Finding[]> {
  let found = findingsOf(conversation, await inspector.inspect(conversation));
  for (let looks = 1; looks < LOOKS && found.length > 0; looks++) {
    const again = findingsOf(conversation, await inspector.inspect(conversation));
    found = again.filter(({ text }) => found.some((one) => one.text === text));
  }
  return found;
}

/** FSCK-2, FSCK-3 */
async function mend(store: ConversationStore, conversation: string): Promise<void> {
  const { log, entries } = await store.open(conversation); // cuts a torn tail
  try {
    const newId = createIdSource();
    const closing = closeStrayCalls(entries, { newId: () => newId(), createdAt: new Date().toISOString() });
    if (closing.length > 0) {
      await log.append(entries.length, closing);
      entries.push(...closing);
    }
    const state = stateOf(entries);
    if (hasOutstandingWork(state)) await store.markOpen(conversation);
    if (entries.length === 0) return;
    await store.saveRow(rowOf(conversation, state, entries));
    await store.saveState(conversation, { id: conversation, ...state });
  } finally {
    await log.close();
  }
}

function compared(before: readonly FsckReport[], after: readonly FsckReport[]): FsckReport[] {
  return before.map(({ conversation, findings }) => {
    const left = after.find((one) => one.conversation === conversation)?.findings ?? [];
    const isLeft = (text: string) => left.some((one) => one.text === text);
    const known = findings.map((one) => ({ ...one, repaired: !isLeft(one.text) }));
    const fresh = left.filter(({ text }) => !findings.some((one) => one.text === text));
    return { conversation, findings: [...known, ...fresh] };
  });
}
