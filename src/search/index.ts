/**
 * The search index: a projection of the messages of all logs, which can be deleted at any time.
 *
 *   documents.ts     which entries are searched, and by which fields
 *   sqlite-index.ts  the index as an SQLite database; the only file that imports SQLite
 *   thread.ts        runs the index in a worker thread
 *   thread-index.ts  its port for the daemon: one message for each call
 *
 * No access to logs or stores here: the daemon gives the entries.
 */
export {
  documentsOf,
  type FoundEntry,
  type IndexedConversation,
  type IndexQuery,
  type SearchDocument,
} from './documents.ts';
export { openSearchIndex, type SearchIndex } from './thread-index.ts';
