/**
 * Where logs and what follows from them are stored.
 *
 *   port             what the daemon needs of a store; types only
 *   offline-port     what commands without a daemon need of it; types only
 *   rules            checks, errors and comparisons that every store shares
 *   open-logs        a conversation is opened or deleted once at a time
 *   migration-run    the mark of `parley migrate` in its target
 *   jsonl/           the store in a directory of this machine
 *   jetstream/       the store on a JetStream server
 *   memory/          the store in memory, for tests
 *
 * Other folders import the port; only `daemon/` and `cli/` choose an adapter. `test/contract/` runs on every adapter.
 */
export * from './offline-port.ts';
export * from './port.ts';
export { isBeyond, isCovered } from './rules.ts';
