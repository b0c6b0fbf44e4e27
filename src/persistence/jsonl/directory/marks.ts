import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { coalesce, messageOf, ParleyError } from '../../../kernel/index.ts';
import { makeDirectory, orNullIfMissing, syncDirectory } from '../log/durable.ts';
import { folderOf, idOf } from './paths.ts';

/**
 * The marks: one empty file for each conversation with outstanding work, so that a start reads only those logs.
 *
 * MARKS-1 `add` resolves when the mark survives a power cut.
 * MARKS-2 Marks count only if the file `COMPLETE` is beside them: without it, conversations may lack their mark.
 * MARKS-3 A superfluous mark costs reading one log; a missing mark loses work. So a removal is not synced, and an `add` during
 *         a pending removal wins.
 */

/** No conversation id has a dot. */
const COMPLETE = '.complete';

export class Marks {
  readonly #directory: string;
  readonly #sync: () => Promise<void>;
  readonly #durable = new Set<string>();
  /** The newest request for each conversation in progress. A removal that finds a newer request does nothing. */
  readonly #requests = new Map<string, symbol>();
  readonly #tails = new Map<string, Promise<void>>();

  constructor(directory: string) {
    this.#directory = directory;
    this.#sync = coalesce(() => syncDirectory(directory));
  }

  async add(conversation: string): Promise<void> {
    this.#requests.set(conversation, Symbol('add'));
    await this.#inTurn(conversation, async () => {
      if (this.#durable.has(conversation)) return;
      await this.#create(folderOf(conversation));
      this.#durable.add(conversation);
    });
  }

  /** Removes the mark after `before` has resolved; keeps it when `before` fails. */
  async remove(conversation: string, before: () => Promise<void>): Promise<void> {
    const request = Symbol('remove');
    this.#requests.set(conversation, request);
    try {
      await before();
    } catch (error) {
      if (this.#requests.get(conversation) === request) this.#requests.delete(conversation);
      throw error;
    }
    await this.#inTurn(conversation, async () => {
      if (this.#requests.get(conversation) !== request) return;
      this.#durable.delete(conversation);
      await rm(join(this.#directory, folderOf(conversation)), { force: true });
    });
  }

  async list(): Promise<string[] | null> {
    const names = await orNullIfMissing(readdir(this.#directory)).catch((cause: unknown) => {
      throw new ParleyError('MARKS_UNREADABLE', `${this.#directory} cannot be read: ${messageOf(cause)}`, {
        hint: 'It only contains marks, and may be removed: then the next start reads every log.',
        cause,
      });
    });
    if (names === null || !names.includes(COMPLETE)) return null;
    return [...new Set(names.flatMap((name) => idOf(name) ?? []))].sort();
  }

  async complete(): Promise<void> {
    await this.#create(COMPLETE);
  }

  async #create(name: string): Promise<void> {
    await makeDirectory(this.#directory);
    await (await open(join(this.#directory, name), 'w', 0o600)).close();
    await this.#sync();
  }

  async #inTurn(conversation: string, work: () => Promise<void>): Promise<void> {
    const before = this.#tails.get(conversation) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(work); // the caller of the previous work gets its error
    this.#tails.set(conversation, mine);
    try {
      await mine;
    } finally {
      if (this.#tails.get(conversation) === mine) {
        this.#tails.delete(conversation);
        this.#requests.delete(conversation);
      }
    }
  }
}
