/**
 * The store on a JetStream server: `--store jetstream`. The only folder besides `bus/nats` that imports the NATS client.
 *
 *   stream-store     the storage; deletes conversations; the newest append of each log
 *   streams          names, creates and checks the streams
 *   broker           publishes, and turns errors of the client into outcomes
 *   reader           reads ranges of a stream and removes messages
 *   stream-log       one open log: log-reader, and append-message for the format of an append
 *   documents        the documents, in one bucket; those that exceed a message, in an object store
 *   audit            records of tool calls
 *   migration        a store as the source or target of `parley migrate`
 *
 * Only `stream-log` appends to a log. Nothing is kept on this machine.
 */
export { openStreamSource, openStreamTarget } from './migration.ts';
export { type JetStreamStoreOptions, openJetStreamStore, type StoreEvent } from './stream-store.ts';
