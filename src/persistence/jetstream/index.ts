/**
 * The store on a JetStream server: `--store jetstream`. The only folder besides `bus/nats` that imports the NATS client.
 *
 *   stream-store   the storage, with the content of blobs in pieces; deletes conversations; the newest append of each log; the source and target of `parley migrate`
 *   streams        names, creates and checks the streams
 *   broker         publishes, and turns errors of the client into outcomes
 *   reader         reads ranges of a stream and removes messages
 *   stream-log     the log of one conversation: the format of an append, reading it, appending
 *   documents      the documents, in one bucket, those that exceed a message in an object store; records of tool calls
 *
 * Only `stream-log` appends to a log. Nothing is kept on this machine.
 */
export { openJetStreamStore, openStreamSource, openStreamTarget } from './stream-store.ts';
