/**
 * The store in memory: for tests and for programs that keep nothing.
 *
 *   memory-store    logs, rows, marks, definitions and results of what-ifs
 *   memory-disk     the state, which outlives the store that uses it, and the tool records in it
 *
 * It passes the contract suite of the other stores. Nothing here touches a file.
 */
export { createMemoryDisk, type MemoryDisk } from './memory-disk.ts';
export { createMemoryStore, createWhatIfTexts } from './memory-store.ts';
