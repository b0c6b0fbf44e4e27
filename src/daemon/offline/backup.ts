import { recordsOfBackup } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type {
  ConversationStore,
  Deletion,
  MigrationTarget,
  StoreArchive,
  WhatIfTexts,
} from '../../persistence/index.ts';
import {
  concurrently,
  contentOf,
  copy,
  copyDefinitions,
  isSamePosition,
  list,
  ofNewestStream,
  positionsOf,
  verifyDefinitions,
} from './copy.ts';

/**
 * Copies a store, which a daemon may be using, into an empty data directory.
 *
 * BACKUP-1  Each conversation is the beginning of its log. The position in the ingress stream is read before the logs, so it
 *           may lag them and never leads them: no post is taken for answered that is in no log.
 * BACKUP-2  What a log names is in the copy: definitions and outputs are stored before the entries that name them, and read
 *           after these.
 * BACKUP-3  A conversation that was deleted meanwhile is not in the copy, and its deletion is.
 * BACKUP-4  The copy is closed to daemons and commands until it is whole, read back and compared (MIGRATE-1).
 * BACKUP-5  A conversation that cannot be read does not prevent the copy of the others. The report names it.
 * BACKUP-6  The copy proves nothing about calls that may run after it is made (RESTORED-2). It is another store than the
 *           original: it has no id.
 * BACKUP-7  A log keeps its appends: a cut of the copy loses its last append alone.
 */

export interface BackupReport {
  readonly from: string;
  readonly to: string;
  /** ISO 8601. */
  readonly madeAt: string;
  readonly conversations: number;
  readonly entries: number;
  readonly outputs: number;
  readonly deletions: number;
  /** Bytes of all files of the copy. */
  readonly bytes: number;
  /** What could not be read. */
  readonly missing: readonly Missing[];
}

interface Missing {
  /** A conversation, or the hash of a text of a definition. */
  readonly id: string;
  readonly reason: string;
}

/** A conversation with one of these was damaged before. */
const DAMAGED: ReadonlySet<string> = new Set([
  'LOG_CORRUPT',
  'LOG_UNREADABLE',
  'OUTPUT_CORRUPT',
  'OUTPUT_UNREADABLE',
]);
/** The conversation was deleted while it was read. */
const GONE: ReadonlySet<string> = new Set(['LOG_NOT_FOUND', 'LOG_UNAVAILABLE']);

export async function backUpStore(
  source: StoreArchive,
  target: MigrationTarget,
  whatIfs: { readonly from: WhatIfTexts; readonly to: WhatIfTexts },
): Promise<Omit<BackupReport, 'to' | 'bytes'>> {
  const { store, archive } = target;
  const madeAt = new Date().toISOString();
  await target.begin(source.name); // BACKUP-4
  const position = await source.ingressPosition(); // BACKUP-1
  const copying = new Copying(source, target);
  await copying.noteDeletions();
  await concurrently(await source.conversations(), (id) => copying.copy(id));
  await copying.dropGone();
  for (let more = true; more; ) {
    const deleted = await copying.noteDeletions(); // BACKUP-3
    for (const id of deleted) await copying.copy(id); // what began again
    more = deleted.length > 0;
  }
  const definitions = await copyDefinitions(source, target, (hash) =>
    copying.missing.push({ id: hash, reason: 'this text of a definition is damaged' }),
  );
  for (const id of copying.copied.keys()) await copyWhatIfs(id, whatIfs);
  if (position !== null) await store.saveIngressPosition(position);
  await store.initialiseMarks();
  await store.backupMark.put({ from: source.name, madeAt });
  await store.close();
  await verifyDefinitions(archive, definitions);
  await target.end();
  const { missing, deletions } = copying;
  return { from: source.name, madeAt, ...copying.totals(), deletions, missing };
}

class Copying {
  readonly copied = new Map<string, { readonly entries: number; readonly outputs: number }>();
  readonly missing: Missing[] = [];
  readonly #source: StoreArchive;
  readonly #target: MigrationTarget;
  readonly #store: ConversationStore;
  #deletions: readonly Deletion[] = [];

  constructor(source: StoreArchive, target: MigrationTarget) {
    this.#source = source;
    this.#target = target;
    this.#store = target.store;
  }

  get deletions(): number {
    return this.#deletions.length;
  }

  totals(): { readonly conversations: number; readonly entries: number; readonly outputs: number } {
    const all = [...this.copied.values()];
    const sum = (of: 'entries' | 'outputs') => all.reduce((total, one) => total + one[of], 0);
    return { conversations: all.length, entries: sum('entries'), outputs: sum('outputs') };
  }

  async copy(id: string): Promise<void> {
    try {
      const found = await contentOf(this.#source, id);
      const { entries, outputs } = found;
      if (entries.length === 0) return;
      const audit = recordsOfBackup(entries, found.audit);
      await copy(this.#target, id, { ...found, audit }, { divides: false }); // BACKUP-7
      await list(this.#target, id, entries);
      this.copied.set(id, { entries: entries.length, outputs: outputs.length });
    } catch (error) {
      const code = error instanceof ParleyError ? error.code : '';
      if (GONE.has(code)) return;
      if (!DAMAGED.has(code)) throw error;
      this.missing.push({ id, reason: (error as ParleyError).message });
    }
  }

  /** Repeats the deletions that are new. Returns the conversations. */
  async noteDeletions(): Promise<string[]> {
    const known = positionsOf(this.#deletions);
    this.#deletions = ofNewestStream(await this.#source.deletions());
    const fresh = this.#deletions.filter((one) => !isSamePosition(one, known.get(one.conversation)));
    for (const { conversation, ...upTo } of fresh) {
      await this.#store.delete(conversation, upTo);
      this.copied.delete(conversation);
    }
    return fresh.map(({ conversation }) => conversation);
  }

  /** A deletion of a conversation without posts leaves no record. */
  async dropGone(): Promise<void> {
    const present = new Set(await this.#source.conversations());
    for (const id of this.copied.keys()) {
      if (present.has(id)) continue;
      await this.#store.delete(id);
      this.copied.delete(id);
    }
  }
}

async function copyWhatIfs(
  conversation: string,
  { from, to }: { readonly from: WhatIfTexts; readonly to: WhatIfTexts },
): Promise<void> {
  for (const id of await from.list(conversation)) {
    const text = await from.get(conversation, id);
    if (text !== null) await to.put(conversation, id, text, { durable: true });
  }
}
