import { type Entry, filesIn } from '../conversation/index.ts';
import { lifeOf, type StoredBlobs } from './blobs.ts';
import type { AppendOutcome, ConversationLog, OpenedLog, WorkStatus } from './port.ts';
import { logClosed } from './rules.ts';

/** An open log that claims files before entries name them (BLOBS-2). Appends keep their order; those after a refused one fail too. */
export class ClaimingLog implements ConversationLog {
  /** What its entries name, by hash. */
  readonly files: ReturnType<typeof filesIn>;
  readonly #log: ConversationLog;
  readonly #blobs: StoredBlobs;
  #life: string | null;
  /** Entries whose append waits for a claim. */
  #waiting = 0;
  #claiming: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(blobs: StoredBlobs, { log, entries }: OpenedLog) {
    this.#log = log;
    this.#blobs = blobs;
    this.files = filesIn(entries);
    this.#life = entries[0] ? lifeOf(entries[0]) : null;
  }

  get conversation(): string {
    return this.#log.conversation;
  }

  get length(): number {
    return this.#log.length + this.#waiting;
  }

  get newestSequence(): number {
    return this.#log.newestSequence ?? 0;
  }

  async append(expected: number, entries: readonly Entry[], status?: WorkStatus): Promise<AppendOutcome> {
    const files = filesIn(entries);
    const [first] = entries;
    if (expected === 0 && this.length === 0 && first) this.#life = lifeOf(first);
    const isRefused = expected !== this.length || this.#closing !== null;
    if (this.#claiming === null && (files.size === 0 || isRefused))
      return this.#log.append(expected, entries, status);
    if (this.#closing !== null) throw logClosed(this.conversation);
    this.#waiting += entries.length;
    const claiming = (this.#claiming ?? Promise.resolve()).then(() => this.#claim(files, expected === 0));
    this.#claiming = claiming;
    try {
      await claiming;
    } finally {
      this.#waiting -= entries.length;
      if (this.#claiming === claiming) this.#claiming = null;
    }
    return this.#log.append(expected, entries, status);
  }

  read(from: number, to?: number): Promise<Entry[]> {
    return this.#log.read(from, to);
  }

  close(): Promise<void> {
    this.#closing ??= (this.#claiming ?? Promise.resolve())
      .catch(() => undefined) // its caller gets the error
      .then(() => this.#log.close());
    return this.#closing;
  }

  async #claim(files: ReturnType<typeof filesIn>, isBeginning: boolean): Promise<void> {
    if (files.size === 0 || this.#life === null) return;
    await this.#blobs.claim(this.conversation, this.#life, [...files.keys()], isBeginning);
    for (const [sha256, named] of files) this.files.set(sha256, named);
  }
}
