import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { DecisionNote } from '../../../src/persistence/jsonl/file-store.ts';
import { scenePerTest } from './support.ts';

const { events, path, session } = scenePerTest();

const POSTS = { stream: 'first', sequences: [3, 4] };

describe('the decision note', () => {
  it('set() writes one whole document to the file, which does not grow', async () => {
    await session(async (store) => {
      const read = async () => JSON.parse(await readFile(path('deciding.json'), 'utf8'));
      expect(await read()).toBeNull();
      const { size } = await stat(path('deciding.json'));
      store.noteDecision(POSTS);
      expect(await read()).toEqual(POSTS);
      store.noteDecision(null);
      expect(await read()).toBeNull();
      expect((await stat(path('deciding.json'))).size).toBe(size);
      await store.close();
      store.noteDecision(POSTS); // a closed store ignores the note
      expect(await read()).toBeNull();
    });
    expect(events).toEqual([]);
  });

  it('the note of the last process is kept until a new one replaces it', async () => {
    await writeFile(path('deciding.json'), JSON.stringify(POSTS));
    for (let start = 1; start <= 2; start++)
      await session(async (store) => expect(await store.lastDecision()).toEqual(POSTS));
  });

  it.each([
    ['empty', ''],
    ['cut short', '{"stream":"first"'],
    ['without a list', '{"stream":"first"}'],
    ['without a stream', '{"stream":1,"sequences":[]}'],
    ['of no numbers', '{"stream":"a","sequences":[-1]}'],
    ['of something else, and long', 'x'.repeat(1_000)],
  ])('an unreadable note counts as no note: %s', async (_, text) => {
    await writeFile(path('deciding.json'), text);
    await session(async (store) => {
      expect(await store.lastDecision()).toBeNull();
      store.noteDecision(POSTS);
    });
    await session(async (store) => expect(await store.lastDecision()).toEqual(POSTS));
    expect(events).toEqual([]);
  });

  it('a note that cannot be written is reported once and delays nothing', async () => {
    await mkdir(path('deciding.json'));
    await session(async (store) => {
      store.noteDecision(POSTS);
      expect(await store.lastDecision()).toBeNull();
    });
    expect(events).toMatchObject([{ type: 'projection-not-saved', file: path('deciding.json') }]);
  });

  it('a disk that accepts no write is reported once', async () => {
    const events: unknown[] = [];
    const note = new DecisionNote(
      path('note.json'),
      (event) => events.push(event),
      () => {
        throw new Error('ENOSPC: no space left');
      },
    );
    note.set(POSTS);
    note.set(null);
    note.close();
    expect(events).toMatchObject([{ reason: expect.stringContaining('ENOSPC') }]);
  });
});
