import {
  DiscardPolicy,
  type JetStreamManager,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats';
import { ensureStream } from '../../kernel/index.ts';
import { storeError } from './broker.ts';

/**
 * The streams of the store.
 *
 * JETSTREAM-STREAMS-1 Replicas stay as the operator chose. No byte limit: before 2.10.5 nats-server drops the oldest messages at one
 *                     (CAPACITY-1).
 */

export interface StoreNames {
  readonly logStream: string;
  readonly auditStream: string;
  readonly blobStream: string;
  readonly stateBucket: string;
  readonly outputBucket: string;
  log(conversation: string): string;
  audit(conversation: string): string;
  blob(content: string): string;
}

/** Matches every conversation in a subject. */
export const ANY = '*';
/** The shortest window that servers accept. Messages here have no broker id: the log has its own. */
const DUPLICATE_WINDOW_MS = 100;

/** Returns the id of the logs. */
export async function ensureStoreStreams(manager: JetStreamManager, names: StoreNames): Promise<string> {
  for (const { name, subject } of [
    { name: names.logStream, subject: names.log(ANY) },
    { name: names.auditStream, subject: names.audit(ANY) },
    { name: names.blobStream, subject: names.blob(ANY) },
  ]) {
    await ensureStream(manager.streams, { binding: binding(name, subject), error: storeError });
  }
  return idOf(manager, names);
}

/** The id of the logs. It changes when their stream is created again. */
export async function idOf(manager: JetStreamManager, { logStream }: StoreNames): Promise<string> {
  try {
    return `${logStream} ${(await manager.streams.info(logStream)).created}`;
  } catch (error) {
    throw storeError(error, `look up stream ${logStream}`);
  }
}

function binding(name: string, subject: string): Partial<StreamConfig> & { name: string } {
  return {
    name,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_age: 0,
    max_bytes: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    deny_delete: true,
    deny_purge: false,
    allow_rollup_hdrs: false,
    sealed: false,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  };
}
