/**
 * Where logs and what follows from them are stored.
 *
 *   port             what the daemon and commands without a daemon need of a store
 *   rules            checks, errors and comparisons that every store shares
 *   storage          what an adapter provides: logs, audit logs, documents
 *   store            the records of every store, in its storage; an open log claims the files of its entries first
 *   blobs            which blobs are stored, and which logs may name them
 *   archive          a store as the source or target of a migration or a backup
 *   group-commit     the writer of an open log
 *   jsonl/           the store in a directory of this machine
 *   jetstream/       the store on a JetStream server
 *   memory/          the store in memory, for tests
 *
 * Other folders import the port; only `daemon/` and `cli/` choose an adapter. `test/contract/` runs on every adapter.
 */
export * from './port.ts';
export { isBeyond, isCovered } from './rules.ts';
export { STORE_POINTS, type StorePoint } from './storage.ts';
