import { chmodSync, rmSync } from 'node:fs';
import sqlite from 'node-sqlite3-wasm';
import type { FoundEntry, IndexedConversation, IndexQuery, SearchDocument } from './documents.ts';

/**
 * The index as an SQLite database with FTS5.
 *
 * SQLITE-INDEX-1 A row's id is the time of its entry: "the newest matches" and limits of time are ranges of the index, which
 *                FTS5 reads without the rows outside of them.
 * SQLITE-INDEX-2 Only the newest matches are ranked: ranking every match of a frequent word takes seconds.
 * SQLITE-INDEX-3 A file that cannot be read, or of another version, is deleted: the daemon fills it again from the logs.
 * SQLITE-INDEX-4 Texts that are removed are overwritten, in the table and in the index of words.
 */

/** Raise it when `documents.ts` changes what is searched. */
const VERSION = 2;
const MOST_RANKED = 10_000;
/** Ids of one millisecond. The largest id is then a safe integer for centuries. */
const IDS_OF_A_MILLISECOND = 1_024;
const SNIPPET_WORDS = 24;
const LONGEST_SNIPPET = 600;
/** Around a found word in a snippet; no text contains them, since they are removed. */
const [MARK, UNMARK] = ['\u0002', '\u0003'];

const SCHEMA = `
  CREATE TABLE conversation (id TEXT PRIMARY KEY, length INTEGER, lastId TEXT, updatedAt TEXT) WITHOUT ROWID;
  CREATE TABLE entry (
    id INTEGER PRIMARY KEY, conversation TEXT, position INTEGER, at TEXT,
    kind TEXT, author TEXT, name TEXT, phase TEXT, text TEXT, tags TEXT
  );
  CREATE INDEX byConversation ON entry (conversation, position);
  CREATE VIRTUAL TABLE words USING fts5(
    text, tags, content='entry', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
  );
  INSERT INTO words (words, rank) VALUES ('rank', 'bm25(1.0, 0.0)');
  INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
  PRAGMA user_version = ${VERSION};
`;

/** `path`: null keeps the index in memory. */
export function openSqliteIndex(path: string | null): SqliteIndex {
  if (path === null) return new SqliteIndex(prepared(new sqlite.Database()));
  rmSync(`${path}.lock`, { recursive: true, force: true }); // of a process that was killed: this one owns the directory
  try {
    return new SqliteIndex(preparedAt(path));
  } catch {
    for (const file of [path, `${path}-journal`]) rmSync(file, { force: true });
    rmSync(`${path}.lock`, { recursive: true, force: true });
    return new SqliteIndex(preparedAt(path));
  }
}

/** The lock is a folder, which SQLite makes for everybody and, since it is exclusive, once. */
function preparedAt(path: string): Database {
  const database = prepared(new sqlite.Database(path));
  chmodSync(`${path}.lock`, 0o700);
  return database;
}

type Database = InstanceType<typeof sqlite.Database>;

function prepared(database: Database): Database {
  database.exec(
    'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON',
  );
  database.exec('PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY');
  const version = database.get('PRAGMA user_version')?.user_version;
  if (version === 0 && database.all('SELECT 1 FROM sqlite_schema').length === 0) database.exec(SCHEMA);
  else if (version !== VERSION) {
    database.close();
    throw new Error(`the index has version ${version}`);
  }
  return database;
}

/** Its thread executes the calls in order. */
export class SqliteIndex {
  readonly #database: Database;
  readonly #insert;
  readonly #insertWords;
  readonly #newestOf;

  constructor(database: Database) {
    this.#database = database;
    this.#insert = database.prepare('INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    this.#insertWords = database.prepare('INSERT INTO words (rowid, text, tags) VALUES (?, ?, ?)');
    this.#newestOf = database.prepare('SELECT max(id) AS newest FROM entry WHERE id BETWEEN ? AND ?');
  }

  conversations(): IndexedConversation[] {
    return this.#database.all('SELECT * FROM conversation') as unknown as IndexedConversation[];
  }

  /** Adds the documents of a conversation, and notes how far it is indexed. */
  put(batch: readonly (IndexedConversation & { readonly documents: readonly SearchDocument[] })[]): void {
    this.#atOnce(() => {
      const added = batch.flatMap(({ id, documents }) =>
        documents.map((document) => ({ conversation: id, document, time: timeOf(document.at) })),
      );
      added.sort((a, b) => a.time - b.time); // SQLITE-INDEX-1: ascending ids are cheap to add
      for (const { conversation, document, time } of added) this.#add(conversation, document, time);
      for (const { id, length, lastId, updatedAt } of batch) {
        this.#database.run('REPLACE INTO conversation VALUES (?, ?, ?, ?)', [id, length, lastId, updatedAt]);
      }
    });
  }

  /** Their texts are overwritten in the file. */
  remove(ids: readonly string[]): void {
    const words = `INSERT INTO words (words, rowid, text, tags) SELECT 'delete', id, text, tags FROM entry`;
    this.#atOnce(() => {
      for (const id of ids) {
        this.#database.run(`${words} WHERE conversation = ?`, [id]);
        this.#database.run('DELETE FROM entry WHERE conversation = ?', [id]);
        this.#database.run('DELETE FROM conversation WHERE id = ?', [id]);
      }
    });
  }

  search(query: IndexQuery): FoundEntry[] {
    const expression = expressionOf(query);
    if (expression === null) return [];
    const from = query.after === undefined ? 0 : timeOf(query.after) * IDS_OF_A_MILLISECOND;
    const to =
      query.before === undefined ? Number.MAX_SAFE_INTEGER : timeOf(query.before) * IDS_OF_A_MILLISECOND - 1;
    const matching = 'FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?';
    const first = this.#database.get(`SELECT rowid AS id ${matching} ORDER BY rowid DESC LIMIT 1 OFFSET ?`, [
      ...[expression, from, to],
      MOST_RANKED - 1,
    ]);
    const ranked = `SELECT rowid AS id, rank AS score, snippet(words, 0, ?, ?, '…', ?) AS snippet ${matching}`;
    const found = this.#database.all(`${ranked} ORDER BY rank LIMIT ?`, [
      ...[MARK, UNMARK, SNIPPET_WORDS, expression, Number(first?.id ?? from), to],
      query.limit,
    ]);
    return found.map(({ id, score, snippet }) =>
      this.#foundEntry(Number(id), Number(score), String(snippet)),
    );
  }

  close(): void {
    this.#insert.finalize();
    this.#insertWords.finalize();
    this.#newestOf.finalize();
    this.#database.close();
  }

  #foundEntry(id: number, score: number, snippet: string): FoundEntry {
    const row = this.#database.get('SELECT * FROM entry WHERE id = ?', [id]) as unknown as Row;
    const { conversation, position, at, kind, author, name, phase } = row;
    return {
      conversation,
      index: position,
      at,
      author: { kind, id: author, name },
      phase,
      score: -score,
      ...marked(snippet),
    };
  }

  #add(conversation: string, { index, at, author, phase, text }: SearchDocument, time: number): void {
    const id = this.#freeId(time);
    const tags = [
      tag('c', conversation),
      ...(phase === null ? [] : [tag('f', phase)]),
      ...(author.kind === 'agent' ? [tag('a', author.id)] : []),
      ...(author.kind === 'person' ? [tag('p', author.id), tag('p', author.name)] : []),
    ].join(' ');
    const clean = text.replaceAll(MARK, ' ').replaceAll(UNMARK, ' ').replaceAll('\0', ' ');
    const { kind, id: who, name } = author;
    this.#insert.run([id, conversation, index, at, kind, who, name, phase, clean, tags]);
    this.#insertWords.run([id, clean, tags]);
  }

  #freeId(time: number): number {
    for (let first = time * IDS_OF_A_MILLISECOND; ; first += IDS_OF_A_MILLISECOND) {
      const last = first + IDS_OF_A_MILLISECOND - 1;
      const newest = this.#newestOf.get([first, last])?.newest ?? null;
      if (newest === null) return first;
      if (Number(newest) < last) return Number(newest) + 1;
    }
  }

  #atOnce(change: () => void): void {
    this.#database.exec('BEGIN');
    try {
      change();
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}

interface Row {
  readonly conversation: string;
  readonly position: number;
  readonly at: string;
  readonly kind: 'person' | 'agent' | 'system';
  readonly author: string;
  readonly name: string;
  readonly phase: string | null;
}

function timeOf(at: string): number {
  return Math.max(0, Date.parse(at) || 0);
}

function marked(text: string): Pick<FoundEntry, 'snippet' | 'marks'> {
  const marks: [number, number][] = [];
  let snippet = '';
  for (const part of text.split(MARK)) {
    const end = part.indexOf(UNMARK);
    if (end >= 0) marks.push([snippet.length, snippet.length + end]);
    snippet += part.replace(UNMARK, '');
  }
  return limited(snippet, marks);
}

/** A word can be as long as its text: what is beyond the limit is cut. */
function limited(text: string, marks: readonly [number, number][]): Pick<FoundEntry, 'snippet' | 'marks'> {
  if (text.length <= LONGEST_SNIPPET) return { snippet: text, marks };
  const from = Math.max(
    0,
    Math.min((marks[0]?.[0] ?? 0) - LONGEST_SNIPPET / 4, text.length - LONGEST_SNIPPET),
  );
  const inside = (at: number) => Math.max(0, Math.min(at - from, LONGEST_SNIPPET));
  const kept = marks.map(([start, end]): [number, number] => [inside(start), inside(end)]);
  return {
    snippet: text.slice(from, from + LONGEST_SNIPPET).replace(/^\p{Surrogate}|\p{Surrogate}$/gu, ' '),
    marks: kept.filter(([start, end]) => end > start),
  };
}

const TERMS = /"([^"]*)"?|[^\s"]+/gu;
const SEARCHABLE = /[\p{L}\p{N}]/u;
/** Shorter beginnings match too many words, except in scripts without blanks. */
const BEGINNING = /^(?:.{3,}|.*[^\p{ASCII}])$/su;

/**
 * The expression of FTS5 for a query.
 * Null: nothing to search for.
 *
 * SEARCH-QUERY-1 Every word must occur, and words in quotation marks in this order. The last word may be the
 *                beginning of one, unless a blank follows it.
 * SEARCH-QUERY-2 Each word is a quoted string of FTS5: no character of a person is an operator.
 */
function expressionOf(query: IndexQuery): string | null {
  const terms = [...query.text.matchAll(TERMS)]
    .map(([whole, phrase]) => ({ text: phrase ?? whole, isPhrase: phrase !== undefined }))
    .filter(({ text }) => SEARCHABLE.test(text));
  if (terms.length === 0) return null;
  const words = terms.map(({ text, isPhrase }, position) => {
    const isLast = position === terms.length - 1 && query.text.endsWith(text);
    const isBeginning = isLast && !isPhrase && BEGINNING.test(text);
    return `text : ${quoted(text)}${isBeginning ? ' *' : ''}`;
  });
  const tags = tagsIn(query).map((tag) => `tags : ${tag}`);
  return [...tags, ...words].map((part) => `(${part})`).join(' AND ');
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""').replaceAll('\0', ' ')}"`;
}

function tagsIn({ conversation, agent, person, phase }: IndexQuery): string[] {
  return [
    ...(conversation === undefined ? [] : [tag('c', conversation)]),
    ...(agent === undefined ? [] : [tag('a', agent)]),
    ...(person === undefined ? [] : [tag('p', person)]),
    ...(phase === undefined ? [] : [tag('f', phase)]),
  ];
}

/** A filter as one word of the index: FTS5 intersects it with the words of the text. */
function tag(kind: 'c' | 'a' | 'p' | 'f', value: string): string {
  return `${kind}${Buffer.from(value).toString('hex')}`;
}
