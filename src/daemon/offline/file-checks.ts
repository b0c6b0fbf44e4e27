import { type Entry, type FilePart, filesIn } from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { InspectedBlobs, NamedFiles } from '../../persistence/index.ts';

export interface FileFault {
  readonly text: string;
  /** What a repair does; null: nothing. */
  readonly repair: string | null;
}

/** Compares the stored files and their records with what the logs name. */
export class FileChecks {
  readonly #blobs: InspectedBlobs;
  /** Hashes of content that was read to its end. What is damaged may be whole when it is read again. */
  readonly #whole = new Set<string>();
  readonly #named = new Map<string, NamedFiles>();
  /** Conversations whose logs cannot be read as a whole. */
  readonly #unknown = new Set<string>();

  constructor(blobs: InspectedBlobs) {
    this.#blobs = blobs;
  }

  /** By conversation, what was read of its log last. */
  get named(): ReadonlyMap<string, NamedFiles> {
    return this.#named;
  }

  /** Null: what its log names is not known. */
  note(conversation: string, entries: readonly Entry[] | null): void {
    if (entries === null) {
      this.#named.delete(conversation);
      this.#unknown.add(conversation);
      return;
    }
    const files = [...filesIn(entries).values()].map(([, file]) => file);
    this.#named.set(conversation, { first: entries[0] ?? null, files });
    this.#unknown.delete(conversation);
  }

  async faults(conversation: string, entries: readonly Entry[]): Promise<FileFault[]> {
    const found: FileFault[] = [];
    const [first] = entries;
    for (const [index, file] of first ? filesIn(entries).values() : []) {
      const [what, repair = null] = (await this.#faultOf(file, conversation, first as Entry)) ?? [];
      if (what !== undefined) found.push({ text: `entry ${index}: its file ${file.sha256} ${what}`, repair });
    }
    return found;
  }

  async #faultOf(
    { sha256, size }: FilePart,
    conversation: string,
    first: Entry,
  ): Promise<readonly [what: string, repair?: string] | null> {
    try {
      const facts = await this.#blobs.facts(sha256);
      if (!(await this.#blobs.hasContent(sha256))) return ['is missing'];
      if (facts === null) return ['has no record: the next sweep would erase it', 'writes its record again'];
      const content = this.#whole.has(sha256) ? [] : await this.#blobs.read(sha256);
      for await (const _ of content ?? []); // to its end: only then its hash is verified
      this.#whole.add(sha256);
      if (facts.size !== size) return [`has ${facts.size} bytes, and the entry says ${size}`];
      if (await this.#blobs.isClaimed(sha256, conversation, first)) return null;
      return [
        'is not recorded as one of this conversation: a deletion elsewhere would erase it',
        'records it',
      ];
    } catch (error) {
      return [`cannot be read: ${messageOf(error)}`];
    }
  }

  /** Files that no log names, stored before this time (ISO 8601). None while a log cannot be read. */
  async orphans(before: string): Promise<FileFault[]> {
    if (this.#unknown.size > 0) return [];
    const named = new Set(
      [...this.#named.values()].flatMap(({ files }) => files.map(({ sha256 }) => sha256)),
    );
    const stored = [...(await this.#blobs.stored())].filter(
      ([sha256, at]) => at < before && !named.has(sha256),
    );
    return stored.map(([sha256, at]) => ({
      text: `no log names the file ${sha256}, which was stored at ${at}`,
      repair: 'erases it',
    }));
  }
}
