import { closeSync, fstatSync, readFileSync, writeSync } from 'node:fs';
import { messageOf, openPrivate } from '../../kernel/index.ts';
import type { IngressPosts } from '../port.ts';
import { requirePosts } from './collections.ts';
import type { StoreLog } from './log/log-file.ts';

/**
 * The posts that the daemon decides on at this moment, in a file, so that the next start knows which post ended it.
 *
 * DECISION-NOTE-1 A note is written at once and not synced: it survives the end of the process, but after a power loss there
 *                 may be an older note or none.
 * DECISION-NOTE-2 A note is a hint. One that cannot be written or read counts as none; the first failure is reported.
 */
export class DecisionNote {
  /** The note of the last process; null: none, or unreadable. */
  readonly left: IngressPosts | null;
  readonly #path: string;
  readonly #log: StoreLog;
  readonly #write: typeof writeSync;
  #file: number | null = null;
  /** Bytes of the longest note so far; shorter ones are padded with blanks. */
  #length = ROOM;
  #isTold = false;

  /** `write`: a test makes it fail. */
  constructor(path: string, log: StoreLog, write = writeSync) {
    this.#path = path;
    this.#log = log;
    this.#write = write;
    this.left = read(path);
    try {
      this.#file = openPrivate(path);
      this.#length = Math.max(ROOM, fstatSync(this.#file).size);
      this.set(this.left); // later notes overwrite these bytes, so they need no space on a full disk
    } catch (error) {
      this.#failed(error);
    }
  }

  set(posts: IngressPosts | null): void {
    if (this.#file === null) return;
    const text = `${JSON.stringify(posts).padEnd(this.#length - 1)}\n`;
    this.#length = text.length;
    try {
      this.#write(this.#file, text, 0);
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #failed(error: unknown): void {
    if (!this.#isTold)
      this.#log({ type: 'projection-not-saved', file: this.#path, reason: messageOf(error) });
    this.#isTold = true;
  }
}

/** Bytes, enough for a few posts. */
const ROOM = 256;

function read(path: string): IngressPosts | null {
  try {
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'));
    requirePosts(note, 'it');
    return note as IngressPosts;
  } catch {
    return null; // DECISION-NOTE-2: `null`, missing or incomplete
  }
}
