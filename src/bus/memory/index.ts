/**
 * The bus in memory: posts, dead letters and requests of one process, without a server.
 *
 *   memory-bus   the bus; `request` calls the request API as a client does
 *
 * It delivers one post at a time, in order, and never loses one. No agent in another process can connect.
 */
export { createMemoryBus, type MemoryBus } from './memory-bus.ts';
