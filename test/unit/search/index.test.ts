import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  documentsOf,
  openSearchIndex,
  type SearchDocument,
  type SearchIndex,
} from '../../../src/search/index.ts';
import { openSqliteIndex } from '../../../src/search/sqlite-index.ts';
import { toolCall } from '../../support/log.ts';

const ada = { kind: 'person', id: 'web/ada', name: 'ada' } as const;
const dev = { kind: 'agent', id: 'dev', name: 'Developer' } as const;

function document(index: number, text: string, more: Partial<SearchDocument> = {}): SearchDocument {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
  return { index, at, author: ada, phase: 'plan', text, ...more };
}

function conversation(id: string, documents: readonly SearchDocument[]) {
  return { id, length: documents.length, lastId: `${id}-last`, updatedAt: '2026-01-01T00:00:00Z', documents };
}

let folder: string;
let path: string;
let index: SearchIndex;

async function begin(open: typeof openSearchIndex = openSearchIndex): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'parley-search-'));
  path = join(folder, 'index.sqlite');
  index = open(path);
  await index.put([
    conversation('demo', [
      document(0, 'Please fix the login page'),
      document(1, 'The login form misses a xylophone', { author: dev, phase: 'execute' }),
      document(2, 'Thanks, the page works: café'),
    ]),
    conversation('other', [document(7, 'A login of another conversation')]),
  ]);
}

/** In this thread: from its source, a thread takes a second to start. */
function openHere(at: string | null): SearchIndex {
  const opened = openSqliteIndex(at);
  return {
    conversations: async () => opened.conversations(),
    put: async (batch) => opened.put(batch),
    remove: async (ids) => opened.remove(ids),
    search: async (query) => opened.search(query),
    close: async () => opened.close(),
  };
}

async function end(): Promise<void> {
  await index.close();
  await rm(folder, { recursive: true, force: true });
}

const places = async (text: string, more: object = {}) =>
  (await index.search({ text, limit: 10, ...more })).map((hit) => `${hit.conversation}/${hit.index}`).sort();

describe('a query of the search index', () => {
  beforeAll(() => begin());
  afterAll(end);

  it('every word must occur, and the last one may be the beginning of a word', async () => {
    expect(await places('login')).toEqual(['demo/0', 'demo/1', 'other/7']);
    expect(await places('login xylo')).toEqual(['demo/1']);
    expect(await places('xylo login')).toEqual([]);
    expect(await places('CAFE')).toEqual(['demo/2']);
  });

  it('words in quotation marks occur in this order', async () => {
    expect(await places('"login page"')).toEqual(['demo/0']);
    expect(await places('"page login"')).toEqual([]);
    expect(await places('"login page')).toEqual(['demo/0']);
  });

  it('filters limit the answer to a conversation, an agent, a person, a phase and a time', async () => {
    expect(await places('login', { conversation: 'other' })).toEqual(['other/7']);
    expect(await places('login', { agent: 'dev' })).toEqual(['demo/1']);
    expect(await places('login', { person: 'ada' })).toEqual(['demo/0', 'other/7']);
    expect(await places('login', { person: 'web/ada', phase: 'plan' })).toEqual(['demo/0', 'other/7']);
    expect(await places('login', { phase: 'execute' })).toEqual(['demo/1']);
    expect(await places('login', { after: '2026-01-01T00:00:01Z' })).toEqual(['demo/1', 'other/7']);
    expect(await places('login', { before: '2026-01-01T00:00:01Z' })).toEqual(['demo/0']);
  });

  it('a snippet names the places of the words', async () => {
    const [hit] = await index.search({ text: 'xylophone', limit: 1 });
    expect(hit?.marks.map(([from, to]) => hit.snippet.slice(from, to))).toEqual(['xylophone']);
    expect(hit).toMatchObject({ author: dev, phase: 'execute', index: 1 });
  });

  it.each(['"', '*', 'text:', 'a OR', 'NEAR(', '(', "'; DROP TABLE entry; --", '-login', '\0', '^login'])(
    'no character of a query is an operator: %j',
    async (text) => {
      await index.search({ text, limit: 10, conversation: `x') OR ('` });
      expect(await places('xylophone')).toEqual(['demo/1']);
    },
  );
});

describe('the search index', () => {
  beforeEach(() => begin(openHere));
  afterEach(end);

  it('more entries than ids of one millisecond are all found', async () => {
    const at = '2026-02-01T00:00:00.000Z';
    const many = Array.from({ length: 2_100 }, (_, position) =>
      document(position, `crowd ${position}`, { at }),
    );
    await index.put([conversation('crowd', many)]);
    expect(await places('crowd 2099')).toEqual(['crowd/2099']);
    expect(await places('crowd 3')).toContain('crowd/3');
  });

  it('the texts of a removed conversation are neither found nor in the file', async () => {
    expect(await readFile(path, 'latin1')).toContain('login form misses');
    await index.remove(['demo']);
    expect(await places('login')).toEqual(['other/7']);
    expect((await index.conversations()).map(({ id }) => id)).toEqual(['other']);
    const file = await readFile(path, 'latin1');
    expect(file).not.toContain('login form misses');
    expect(file).not.toContain('xylo');
  });

  it('an index that was closed is opened again with its texts', async () => {
    await index.close();
    index = openHere(path);
    expect(await places('xylophone')).toEqual(['demo/1']);
  });

  it('a file that is no database is replaced by an empty index', async () => {
    await index.close();
    await writeFile(path, 'not a database, but long enough to be read as the header of one'.repeat(100));
    index = openHere(path);
    expect(await index.conversations()).toEqual([]);
  });

  it('an index of an older version is replaced by an empty one', async () => {
    await index.close();
    const file = await readFile(path);
    file.writeUInt32BE(1, 60); // `user_version` in the header of a database
    await writeFile(path, file);
    index = openHere(path);
    expect(await index.conversations()).toEqual([]);
  });

  it('the lock of a killed process does not keep the index closed', async () => {
    await index.close();
    const { mkdir } = await import('node:fs/promises');
    await mkdir(`${path}.lock`);
    index = openHere(path);
    expect(await places('xylophone')).toEqual(['demo/1']);
    expect(existsSync(path)).toBe(true);
  });
});

describe('the thread of the search index', () => {
  beforeAll(() => begin());
  afterAll(end);

  it('a call of an index whose thread has ended fails instead of waiting', async () => {
    await index.close();
    await expect(index.conversations()).rejects.toMatchObject({ code: 'SEARCH_INDEX_FAILED' });
    index = openSearchIndex(path);
  });
});

describe('what is searched', () => {
  it('messages with a text are searched, and other entries are not', () => {
    const common = { id: 'a', createdAt: '2026-01-01T00:00:00Z', author: ada, phase: 'plan' };
    const found = documentsOf([
      { ...common, index: 0, type: 'message', role: 'user', content: 'hello' },
      { ...common, index: 1, type: 'message', role: 'assistant', content: ' ' },
      { ...common, index: 2, type: 'phase-entered', from: 'plan', to: 'execute', by: 'ada' },
    ]);
    expect(found).toEqual([{ index: 0, at: common.createdAt, author: ada, phase: 'plan', text: 'hello' }]);
  });

  it('a file is found by its name and type, also without a text', () => {
    const file = {
      type: 'file' as const,
      sha256: 'ab'.repeat(32),
      name: 'plan.png',
      mediaType: 'image/png',
      size: 7,
    };
    const common = {
      id: 'a',
      createdAt: '2026-01-01T00:00:00Z',
      author: ada,
      type: 'message',
      role: 'user',
    } as const;
    const found = documentsOf([
      { ...common, index: 0, content: '', parts: [file] },
      { ...common, index: 1, content: 'look', parts: [{ type: 'text', text: 'look' }, file] },
    ]);
    const line = '[file plan.png: image/png, 7 B, @blob/abababababab]';
    expect(found.map(({ text }) => text)).toEqual([line, `look\n\n${line}`]);
  });

  it('what an agent reports that it did is searched, with results that its view would cut, after the text of the message', () => {
    const result = `${'x '.repeat(2_000)}needle`;
    const reported = [{ title: 'Edit a.ts', kind: 'edit', status: 'completed', result }];
    const common = { createdAt: '2026-01-01T00:00:00Z', author: dev, type: 'message' as const };
    const [found] = documentsOf([
      { ...common, id: 'a', index: 0, role: 'assistant', content: 'Done.', reported },
    ]);
    expect(found?.text).toMatch(/^Done\.\n\n\(reported call: Edit a\.ts; edit, completed\)\nx .*needle$/);
  });

  it('an answer of a person is found once, as a message of that person', () => {
    const common = { createdAt: '2026-01-01T00:00:00Z', type: 'message' as const, content: 'blue' };
    const found = documentsOf([
      { ...common, id: 'a', index: 0, author: ada, role: 'user' },
      { ...common, id: 'b', index: 1, author: dev, role: 'tool', answers: [0] },
    ]);
    expect(found.map(({ index, author }) => [index, author.name])).toEqual([[0, ada.name]]);
  });

  it('the question that an agent asks is searched with its options, after the text of the message', () => {
    const ask = (json: string) => toolCall('ask', json, 'c');
    const asking = (index: number, content: string | null, ...calls: ReturnType<typeof ask>[]) => ({
      ...{ id: `e${index}`, createdAt: '2026-01-01T00:00:00Z', author: dev, index, content },
      ...{ type: 'message' as const, role: 'assistant' as const, tool_calls: calls },
    });
    const found = documentsOf([
      asking(0, null, ask('{"question":"Which database?","options":["Postgres","SQLite"]}')),
      asking(1, 'One thing.', ask('{"question":"Which port?"}')),
      asking(2, null, ask('not JSON'), ask('{"question":7}')),
    ]);
    expect(found.map(({ index, text }) => [index, text])).toEqual([
      [0, 'Which database?\nPostgres\nSQLite'],
      [1, 'One thing.\n\nWhich port?'],
    ]);
  });
});
