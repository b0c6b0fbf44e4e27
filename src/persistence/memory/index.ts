export { createMemoryDisk, createMemoryStore, type MemoryDisk } from './memory-store.ts';
