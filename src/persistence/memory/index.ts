/**
 * The store in memory: for tests and for programs that keep nothing.
 *
 *   memory-store    logs, rows, marks and definitions
 *   memory-disk     the state, which outlives the store that uses it, and the tool records in it
 *   what-if-texts   results of what-ifs
 *
 * It passes the contract suite of the other stores. Nothing here touches a file.
 */
export { createMemoryDisk, type MemoryDisk } from './memory-disk.ts';
export { createMemoryStore } from './memory-store.ts';
export { createWhatIfTexts } from './what-if-texts.ts';
