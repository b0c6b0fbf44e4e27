export type { ConnectionWatch } from './broker.ts';
export { openStreamSource, openStreamTarget } from './migration.ts';
export { type JetStreamStoreOptions, openJetStreamStore, type StoreEvent } from './stream-store.ts';
export type { StoreNames } from './streams.ts';
