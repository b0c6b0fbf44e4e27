import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { coalesce, messageOf, ParleyError } from '../../../kernel/index.ts';
import { makeDirectory, orNullIfMissing, syncDirectory } from '../log/durable.ts';
import { idOfEither } from './folders.ts';
import { folderOf } from './paths.ts';

/**
 * The marks: one empty file per conversation that owes something, so that a start reads only those logs.
 *
 * MARKS-1 `add` resolves when the mark survives a power cut.
 * MARKS-2 Marks count only once they are complete, that is when `COMPLETE` stands beside them: a mark made while they are
 *    missing does not hide the conversations that have none yet.
 * MARKS-3 A mark too many costs reading one log; a mark too few loses work. So removing is not synced, and an `add` that
 *    comes while a removal waits wins.
 */

/** No conversation id has a dot. */
const COMPLETE = '.complete';

export class Marks {
  readonly #directory: string;
  readonly #sync: () => Promise<void>;
  readonly #durable = new Set<string>();
  /** The newest wish for each conversation under work; an older removal that finds another wish does nothing. */
  readonly #wishes = new Map<string, symbol>();
  readonly #tails = new Map<string, Promise<void>>();

  constructor(directory: string) {
    this.#directory = directory;
    this.#sync = coalesce(() => syncDirectory(directory));
  }

  async add(conversation: string): Promise<void> {
    this.#wishes.set(conversation, Symbol('add'));
    await this.#inTurn(conversation, async () => {
      if (this.#durable.has(conversation)) return;
      await this.#create(folderOf(conversation));
      this.#durable.add(conversation);
    });
  }

  /** Removes the mark after `before` has resolved; keeps it when `before` fails. */
  async remove(conversation: string, before: () => Promise<void>): Promise<void> {
    const wish = Symbol('remove');
    this.#wishes.set(conversation, wish);
    try {
      await before();
    } catch (error) {
      if (this.#wishes.get(conversation) === wish) this.#wishes.delete(conversation);
      throw error;
    }
    await this.#inTurn(conversation, async () => {
      if (this.#wishes.get(conversation) !== wish) return;
      this.#durable.delete(conversation);
      await rm(join(this.#directory, folderOf(conversation)), { force: true });
    });
  }

  async list(): Promise<string[] | null> {
    const names = await orNullIfMissing(readdir(this.#directory)).catch((cause: unknown) => {
      throw new ParleyError('MARKS_UNREADABLE', `${this.#directory} cannot be read: ${messageOf(cause)}`, {
        hint: 'It is a folder of marks, and may be removed: then every log is read at the next start.',
        cause,
      });
    });
    if (names === null || !names.includes(COMPLETE)) return null;
    return [...new Set(names.flatMap((name) => idOfEither(name) ?? []))].sort();
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
    const mine = before.catch(() => undefined).then(work);
    this.#tails.set(conversation, mine);
    try {
      await mine;
    } finally {
      if (this.#tails.get(conversation) === mine) {
        this.#tails.delete(conversation);
        this.#wishes.delete(conversation);
      }
    }
  }
}
