import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { FilePart } from '../../src/conversation/index.ts';
import type { BlobFacts, ConversationStore } from '../../src/persistence/index.ts';
import { entry } from './samples.ts';

const LATER = '9999-01-01T00:00:00.000Z';

/** Text as the content of a blob, in pieces of three bytes, or of more if it is long. */
export function blobOf(text: string): {
  readonly facts: BlobFacts;
  readonly part: FilePart;
  content(): AsyncGenerator<Uint8Array>;
} {
  const bytes = Buffer.from(text);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const facts = { sha256, mediaType: 'image/png', size: bytes.length, width: 3, height: 4 };
  return {
    facts,
    part: { type: 'file', name: 'a.png', ...facts },
    async *content() {
      const step = bytes.length > 1_000 ? 1_001 : 3;
      for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
    },
  };
}

/** An entry that names these files. */
export function entryWith(index: number, ...parts: FilePart[]) {
  return { ...entry(index), parts };
}

export async function textOf(
  store: ConversationStore,
  sha256: string,
  from?: number,
): Promise<string | null> {
  const content = await store.blobs.read(sha256, from);
  if (content === null) return null;
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

export async function putBlob(store: ConversationStore, text: string) {
  const blob = blobOf(text);
  await store.blobs.put(blob.facts, blob.content);
  return blob;
}

export function describeBlobs(current: () => ConversationStore, reopen: () => Promise<void>): void {
  async function begin(conversation: string, ...parts: FilePart[]): Promise<void> {
    const { log } = await current().open(conversation);
    await log.append(0, [entryWith(0, ...parts)]);
    await log.close();
  }

  describe('blobs', () => {
    it('a blob that was put is read as it was, also after a reopening', async () => {
      const large = 'x'.repeat(300_000);
      for (const text of ['one', large]) {
        const { facts } = await putBlob(current(), text);
        for (const round of ['now', 'after a reopening']) {
          expect(await current().blobs.facts(facts.sha256), round).toEqual(facts);
          expect(await textOf(current(), facts.sha256), round).toBe(text);
          await reopen();
        }
      }
    });

    it('a blob is read from any byte on', async () => {
      const text = '0123456789'.repeat(30_000);
      const { facts } = await putBlob(current(), text);
      for (const from of [1, 4, 131_072, 299_999, 300_000, 400_000])
        expect(await textOf(current(), facts.sha256, from), `${from}`).toBe(text.slice(from));
    });

    it('a blob that is not stored is null, and its hash must be one', async () => {
      const { sha256 } = blobOf('never').facts;
      expect(await current().blobs.facts(sha256)).toBeNull();
      expect(await current().blobs.read(sha256)).toBeNull();
      for (const bad of ['', 'ABC', '../../LOCK', sha256.toUpperCase()]) {
        await expect(current().blobs.facts(bad)).rejects.toMatchObject({ code: 'BLOB_HASH_INVALID' });
        await expect(current().blobs.read(bad)).rejects.toMatchObject({ code: 'BLOB_HASH_INVALID' });
        const facts = { ...blobOf('never').facts, sha256: bad };
        const putting = (async () => current().blobs.put(facts, blobOf('never').content))();
        await expect(putting).rejects.toMatchObject({ code: 'BLOB_HASH_INVALID' });
      }
    });

    it('content with another hash or size is refused, and leaves nothing', async () => {
      const { facts, content } = blobOf('right');
      const wrong = [blobOf('wrong').content, blobOf('righ').content, blobOf('rights').content];
      for (const other of wrong)
        await expect(current().blobs.put(facts, other)).rejects.toMatchObject({ code: 'BLOB_WRONG_HASH' });
      await expect(current().blobs.put({ ...facts, size: 4 }, content)).rejects.toMatchObject({
        code: 'BLOB_WRONG_HASH',
      });
      expect(await current().blobs.facts(facts.sha256)).toBeNull();
      await current().blobs.put(facts, content);
      const claimed = current().blobs.put({ ...facts, size: 4 }, content);
      await expect(claimed).rejects.toMatchObject({ code: 'BLOB_WRONG_HASH' });
      expect(await textOf(current(), facts.sha256)).toBe('right');
    });

    it('a put whose content fails rejects with that error, and can be repeated', async () => {
      const { facts, content } = blobOf('some text');
      const failing = async function* () {
        yield Buffer.from('some');
        throw new Error('the upload ended');
      };
      await expect(current().blobs.put(facts, failing)).rejects.toThrow('the upload ended');
      await current().blobs.put(facts, content);
      expect(await textOf(current(), facts.sha256)).toBe('some text');
    });

    it('concurrent puts of one blob store it once', async () => {
      const { facts, content } = blobOf('twice');
      await Promise.all([1, 2, 3].map(() => current().blobs.put(facts, content)));
      expect(await textOf(current(), facts.sha256)).toBe('twice');
      expect(await current().blobs.sweep(LATER)).toBe(1);
    });

    it('an append that names a blob which is not stored is refused and appends nothing', async () => {
      const { part } = await putBlob(current(), 'stored');
      const { log } = await current().open('demo');
      const refused = log.append(0, [entryWith(0, part), entryWith(1, blobOf('never').part)]);
      await expect(refused).rejects.toMatchObject({ code: 'MISSING_BLOB' });
      expect(log.length).toBe(0);
      expect(await log.read(0)).toEqual([]);
      expect(await log.append(0, [entry(0)])).toEqual({ kind: 'appended', length: 1 });
    });

    it('appends that are queued after one with files keep their order, and fail with it', async () => {
      const { part } = await putBlob(current(), 'stored');
      const { log } = await current().open('demo');
      const queued = [log.append(0, [entryWith(0, part)]), log.append(1, [entry(1)])];
      expect(log.length).toBe(2);
      queued.push(log.append(2, [entryWith(2, part), entry(3)]));
      expect((await Promise.all(queued)).map(({ kind }) => kind)).toEqual(Array(3).fill('appended'));
      expect(await log.read(0)).toEqual([entryWith(0, part), entry(1), entryWith(2, part), entry(3)]);
      const failing = [log.append(4, [entryWith(4, blobOf('never').part)]), log.append(5, [entry(5)])];
      for (const one of await Promise.allSettled(failing))
        expect(one).toMatchObject({ status: 'rejected', reason: { code: 'MISSING_BLOB' } });
      expect(await log.append(4, [entry(4)])).toEqual({ kind: 'appended', length: 5 });
    });

    it('an append with files that expects another length is a conflict', async () => {
      const { part } = await putBlob(current(), 'stored');
      const { log } = await current().open('demo');
      expect(await log.append(1, [entryWith(1, part)])).toEqual({ kind: 'conflict', length: 0 });
      expect(await current().blobs.sweep(LATER)).toBe(1);
    });

    it('closing a log finishes an append that waits for its files, and refuses later ones', async () => {
      const { part } = await putBlob(current(), 'stored');
      const { log } = await current().open('demo');
      const appending = log.append(0, [entryWith(0, part)]);
      const closing = log.close();
      await expect(log.append(1, [entryWith(1, part)])).rejects.toMatchObject({ code: 'LOG_CLOSED' });
      expect(await appending).toEqual({ kind: 'appended', length: 1 });
      await closing;
      expect((await current().open('demo')).entries).toEqual([entryWith(0, part)]);
    });

    it('the files of a conversation are those that its log names', async () => {
      const [one, two] = [await putBlob(current(), 'one'), await putBlob(current(), 'two')];
      await begin('demo', one.part, two.part, one.part);
      await begin('other', two.part);
      for (const round of ['now', 'after a reopening']) {
        expect(new Set(await current().blobs.of('demo')), round).toEqual(new Set([one.facts, two.facts]));
        expect(await current().blobs.of('other'), round).toEqual([two.facts]);
        expect(await current().blobs.of('never'), round).toEqual([]);
        await reopen();
      }
      await expect(current().blobs.of('../x')).rejects.toMatchObject({ code: 'CONVERSATION_ID_INVALID' });
    });

    it('a deletion erases the blobs that no other conversation may name', async () => {
      const [one, both] = [await putBlob(current(), 'one'), await putBlob(current(), 'both')];
      await begin('demo', one.part, both.part);
      await begin('other', both.part);
      expect(await current().delete('demo')).toMatchObject({ files: 1 });
      for (const round of ['now', 'after a reopening']) {
        expect(await current().blobs.facts(one.facts.sha256), round).toBeNull();
        expect(await current().blobs.read(one.facts.sha256), round).toBeNull();
        expect(await current().blobs.of('demo'), round).toEqual([]);
        expect(await textOf(current(), both.facts.sha256), round).toBe('both');
        await reopen();
      }
      await current().delete('other');
      expect(await current().blobs.facts(both.facts.sha256)).toBeNull();
    });

    it('an erased blob can be stored again, and a deleted conversation can name it again', async () => {
      for (const _ of [1, 2, 3]) {
        const { part, facts } = await putBlob(current(), 'again');
        await begin('demo', part);
        expect(await current().blobs.sweep(LATER)).toBe(0);
        expect(await textOf(current(), facts.sha256)).toBe('again');
        await current().delete('demo');
        expect(await current().blobs.facts(facts.sha256)).toBeNull();
      }
    });

    it('a sweep erases what was never named and is older, and nothing else', async () => {
      const [named, unnamed] = [await putBlob(current(), 'named'), await putBlob(current(), 'unnamed')];
      await begin('demo', named.part);
      expect(await current().blobs.sweep('2000-01-01T00:00:00.000Z')).toBe(0);
      expect(await textOf(current(), unnamed.facts.sha256)).toBe('unnamed');
      expect(await current().blobs.sweep(LATER)).toBe(1);
      expect(await current().blobs.facts(unnamed.facts.sha256)).toBeNull();
      expect(await textOf(current(), named.facts.sha256)).toBe('named');
      expect(await current().blobs.sweep(LATER)).toBe(0);
    });

    it('a sweep ends early with its signal, and a later one does the rest', async () => {
      const files = [await putBlob(current(), 'one'), await putBlob(current(), 'two')];
      expect(await current().blobs.sweep(LATER, AbortSignal.abort())).toBe(0);
      for (const { facts } of files) expect(await current().blobs.facts(facts.sha256)).toEqual(facts);
      expect(await current().blobs.sweep(LATER)).toBe(2);
    });

    it('a put of a stored blob counts as a new upload', async () => {
      const { facts, content } = await putBlob(current(), 'unnamed');
      await new Promise((resolve) => setTimeout(resolve, 5));
      const between = new Date().toISOString();
      await current().blobs.put(facts, content);
      expect(await current().blobs.sweep(between)).toBe(0);
      expect(await textOf(current(), facts.sha256)).toBe('unnamed');
    });

    it('a file that was uploaded again stays with the deletion of its last conversation, for a message that names it', async () => {
      const { facts, part, content } = await putBlob(current(), 'the logo');
      await begin('old', part);
      await current().blobs.put(facts, content);
      expect(await current().delete('old')).toMatchObject({ files: 0 });
      expect(await current().blobs.sweep('2000-01-01T00:00:00.000Z')).toBe(0);
      await begin('new', part);
      expect(await textOf(current(), facts.sha256)).toBe('the logo');
      await current().blobs.put(facts, content);
      const { log } = await current().open('new');
      await log.append(1, [entryWith(1, part)]); // names it after the upload
      await log.close();
      expect(await current().delete('new')).toMatchObject({ files: 1 });
      expect(await current().blobs.facts(facts.sha256)).toBeNull();
      await putBlob(current(), 'the logo');
      await begin('demo', part);
      await putBlob(current(), 'the logo');
      await current().delete('demo');
      expect(await current().blobs.sweep(LATER)).toBe(1);
    });

    it('a sweep releases the claim of a log that never began, after its time', async () => {
      const { part, facts } = await putBlob(current(), 'claimed');
      const { log } = await current().open('demo');
      await expect(log.append(0, [entryWith(7, part)])).rejects.toMatchObject({ code: 'ENTRY_INDEX_WRONG' });
      await log.close();
      expect(await current().blobs.sweep('2000-01-01T00:00:00.000Z')).toBe(0);
      expect(await textOf(current(), facts.sha256)).toBe('claimed');
      expect(await current().blobs.sweep(LATER)).toBe(1);
      expect(await current().blobs.facts(facts.sha256)).toBeNull();
    });

    it('a rebuild records what logs name, and forgets what they do not; other conversations stay', async () => {
      const [one, two] = [await putBlob(current(), 'one'), await putBlob(current(), 'two')];
      await begin('demo', one.part, two.part);
      await begin('other', two.part);
      const first = entryWith(0);
      await current().blobs.rebuild(new Map([['demo', { first, files: [] }]]));
      expect(await current().blobs.sweep(LATER)).toBe(1);
      expect(await textOf(current(), two.facts.sha256)).toBe('two');
      await putBlob(current(), 'one');
      const never = { ...one.part, sha256: 'f'.repeat(64) };
      await current().blobs.rebuild(new Map([['demo', { first, files: [one.part, never] }]]));
      expect(await current().blobs.sweep(LATER)).toBe(0);
      expect(await current().delete('demo')).toMatchObject({ files: 1 });
    });

    it('blobs are refused after the store is closed', async () => {
      const { facts, content } = await putBlob(current(), 'one');
      await current().close();
      const { blobs } = current();
      for (const use of [
        () => blobs.put(facts, content),
        () => blobs.facts(facts.sha256),
        () => blobs.read(facts.sha256),
        () => blobs.of('demo'),
        () => blobs.sweep(LATER),
        () => blobs.rebuild(new Map()),
      ])
        await expect(use()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
      await reopen();
    });
  });
}
