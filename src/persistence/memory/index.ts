/**
 * The store in memory: for tests and for programs that keep nothing.
 *
 *   memory-store    logs, rows, marks and records of a `MemoryDisk`, which outlives the store that uses it
 *   what-if-texts   results of what-ifs
 *
 * It passes the contract suite of the other stores. Nothing here touches a file.
 */
export { createMemoryDisk, createMemoryStore, type MemoryDisk } from './memory-store.ts';
export { createWhatIfTexts } from './what-if-texts.ts';
