import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { dataUrlsIn, type Entry, type FilePart, filesIn, readDataUrl } from '../../conversation/index.ts';
import { isBase64, messageOf, ParleyError } from '../../kernel/index.ts';
import type { BlobFacts, ConversationStore, InspectedBlobs } from '../../persistence/index.ts';
import { measured } from '../files/measure.ts';

/**
 * The files of an export in JSON Lines: beside `work.jsonl`, the folder `work.files` has each under its SHA-256.
 *
 * EXPORTED-FILES-1  The folder is complete before the file of the entries appears. A repetition writes only what is missing
 *                   or damaged.
 * EXPORTED-FILES-2  An import reads and checks all files before it stores one, and stores all before the log names one.
 * EXPORTED-FILES-3  The type of a file is that of its bytes: an entry that says another one is refused. Which text it is, the
 *                   entry says and not the name: it may have been stored under another one.
 */

const MOST_NAMED = 8;

export function folderOf(file: string): string {
  return join(dirname(file), `${parse(file).name}.files`);
}

/** Each file of these entries once, before what names them is written. */
export async function exportFiles(
  blobs: InspectedBlobs,
  entries: readonly Entry[],
  folder: string,
): Promise<number> {
  const files = [...filesIn(entries)];
  if (files.length > 0) await mkdir(folder, { recursive: true });
  for (const [sha256, [index]] of files) {
    const path = join(folder, sha256);
    const known = await measured(createReadStream(path), {}).catch(() => null);
    if (known?.sha256 === sha256) continue;
    const unfinished = `${path}.part`;
    try {
      const content = await blobs.read(sha256);
      if (content === null) throw new Error('it is missing');
      await pipeline(content, createWriteStream(unfinished));
      await rename(unfinished, path);
    } catch (cause) {
      await rm(unfinished, { force: true });
      throw new ParleyError(
        'EXPORT_INCOMPLETE',
        `the file ${sha256} of entry ${index} cannot be read: ${messageOf(cause)}`,
        {
          hint: '`parley fsck` reports what is missing or damaged; without --out, files are named and left out',
          cause,
        },
      );
    }
  }
  return files.length;
}

/** The bytes of each file as a data URL, for an export as OpenAI messages. */
export async function dataUrlsOf(
  blobs: InspectedBlobs,
  entries: readonly Entry[],
): Promise<ReadonlyMap<string, string>> {
  const urls = new Map<string, string>();
  for (const [sha256, [, { mediaType }]] of filesIn(entries)) {
    const content = await blobs.read(sha256);
    if (content === null) continue; // named only, as `fsck` reports it
    const bytes = Buffer.concat(await Readable.from(content).toArray());
    urls.set(sha256, `data:${mediaType};base64,${bytes.toString('base64')}`);
  }
  return urls;
}

/** A file to store, and where its bytes are. */
export interface ImportedFile {
  readonly facts: BlobFacts;
  readonly content: () => AsyncIterable<Uint8Array>;
}

/** EXPORTED-FILES-2: the files of these entries from the folder beside their file. Throws what is missing or differs. */
export async function filesBeside(file: string, entries: readonly Entry[]): Promise<ImportedFile[]> {
  const folder = folderOf(file);
  const found: ImportedFile[] = [];
  const faults: string[] = [];
  for (const [sha256, [index, part]] of filesIn(entries)) {
    const content = () => createReadStream(join(folder, sha256));
    const facts = await measured(content(), { declared: part.mediaType }).catch(() => null);
    const fault = facts ? differenceOf(facts, part) : 'is missing';
    if (fault) faults.push(`entry ${index}: ${sha256} ${fault}`);
    else if (facts) found.push({ facts, content });
  }
  if (faults.length === 0) return found;
  const more = faults.length > MOST_NAMED ? [`and ${faults.length - MOST_NAMED} more`] : [];
  throw new Error(
    [
      `the files that its entries name must be in ${basename(folder)} beside it, as \`parley export --out\` writes them:`,
      ...faults.slice(0, MOST_NAMED),
      ...more,
    ].join('\n'),
  );
}

/** Null: the bytes are what the entry says. */
function differenceOf(facts: BlobFacts, part: FilePart): string | null {
  if (facts.sha256 !== part.sha256) return `has the SHA-256 ${facts.sha256}`;
  if (facts.size !== part.size) return `has ${facts.size} bytes, and the entry says ${part.size}`;
  return facts.mediaType === part.mediaType
    ? null
    : `is ${facts.mediaType}, and the entry says ${part.mediaType}`;
}

/** The files that messages in OpenAI's form have as data URLs, by URL. */
export async function filesInMessages(
  messages: readonly unknown[],
): Promise<ReadonlyMap<string, ImportedFile>> {
  const found = new Map<string, ImportedFile>();
  const urls = messages.flatMap((message, at) => dataUrlsIn([message]).map((url) => ({ at, url })));
  for (const { at, url } of urls) {
    const { base64 = '', mediaType } = readDataUrl(url) ?? {};
    const place = `message ${at} (from 0)`;
    if (!isBase64(base64)) throw new Error(`${place}: the base64 of its file is broken`);
    const bytes = Buffer.from(base64, 'base64');
    if (bytes.length === 0) throw new Error(`${place}: its file has no bytes`);
    const facts = await measured([bytes], { declared: mediaType });
    found.set(url, { facts, content: () => Readable.from([bytes]) });
  }
  return found;
}

/** Before the entries that name them. */
export async function storeFiles(store: ConversationStore, files: Iterable<ImportedFile>): Promise<void> {
  for (const { facts, content } of files) await store.blobs.put(facts, content);
}
