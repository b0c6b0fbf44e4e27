import { closeSync, fstatSync, readFileSync, writeSync } from 'node:fs';
import { messageOf, openPrivate } from '../../kernel/index.ts';
import type { IngressPosts } from '../port.ts';
import type { StoreLog } from './log/log-file.ts';
import { parseIngressPosts } from './projections.ts';

/**
 * On which posts the daemon decides at this moment, in a file, so that it can be told afterwards what ended it.
 *
 * DECISION-NOTE-1 A note is written at once and without a sync: the system has it when `set` returns, however the process ends then.
 *    After a power loss there is an older one, or none.
 * DECISION-NOTE-2 It is a hint. What cannot be written or read is as if nothing had been noted; the first failure is told.
 */
export class DecisionNote {
  /** What the last process left; null: nothing, or nothing that can be read. */
  readonly left: IngressPosts | null;
  readonly #path: string;
  readonly #log: StoreLog;
  readonly #write: typeof writeSync;
  #file: number | null = null;
  /** Of the longest note so far, in bytes: a shorter one is filled up with blanks. */
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
      this.set(this.left); // what is written over later needs no room on a disk that is full by then
    } catch (error) {
      this.#failed(error);
    }
  }

  /** DECISION-NOTE-1 */
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

  /** DECISION-NOTE-2 */
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
    return parseIngressPosts(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return null; // DECISION-NOTE-2: it says `null`, there is none, or it was never written whole
  }
}
