/**
 * The store in memory: for tests and for programs that keep nothing.
 *
 *   memory-store    logs, documents, and the `MemoryDisk` that outlives the store that uses it
 *
 * It passes the contract suite of the other stores. Nothing here touches a file.
 */
export { createMemoryDisk, createMemoryStore, createMemoryWhatIfs, type MemoryDisk } from './memory-store.ts';
