/**
 * The store on a JetStream server: `--store jetstream`. The only folder besides `bus/nats` that imports the NATS client.
 *
 *   stream-store     the store; deletes conversations
 *   streams          names, creates and checks the streams
 *   broker           publishes, and turns errors of the client into outcomes
 *   reader           reads ranges of a stream and removes messages
 *   stream-log       one open log and its writer: log-reader, and append-message for the format of an append
 *   documents        small documents in one bucket; deletions, definitions and migration-mark are documents
 *   tool-records     records and outputs of tool calls
 *   shared-logs      owners and outstanding work, where several daemons share the logs
 *   migration        a store as the source or target of `parley migrate`
 *
 * Only `stream-log` appends to a log. Nothing is kept on this machine.
 */
export { openStreamSource, openStreamTarget } from './migration.ts';
export { type JetStreamStoreOptions, openJetStreamStore, type StoreEvent } from './stream-store.ts';
